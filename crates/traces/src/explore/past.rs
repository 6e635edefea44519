//! The run at hand: what happened before what, and which moves race.

use super::{Accessed, Search, Taken};
use crate::footprint::{Access, Kind, NO_STORE};
use crate::order;
use crate::wakeup::NONE;

impl Search<'_, '_> {
    /// Where a cell's bits are.
    pub(super) fn dense(&mut self, cell: u32) -> usize {
        let dense = &mut self.rows.dense[cell as usize];
        if *dense == NONE {
            *dense = self.rows.cells;
            self.rows.cells += 1;
            let row = *dense as usize;
            self.readers.need(row);
            self.writers.need(row);
            self.forwarded.need(row);
        }
        *dense as usize
    }

    fn widen(&mut self) {
        self.words *= 2;
        for rows in [
            &mut self.before,
            &mut self.by_process,
            &mut self.readers,
            &mut self.writers,
            &mut self.forwarded,
        ] {
            rows.widen(self.words);
        }
        self.rows.now.resize(self.words, 0);
        self.rows.strict.resize(self.words, 0);
        self.rows.sequence.resize(self.words, 0);
    }

    /// A move that was made: what happened before it, and its races.
    pub(super) fn push(&mut self, taken: Taken) {
        let i = self.taken.len();
        // One place more, for a move that is only thought of.
        if i + 2 > self.words * 64 {
            self.widen();
        }
        let p = taken.of.process;
        let thread = self.moves.thread_of(p);
        let is_buffer = self.moves.is_buffer(p);
        let mut firm = std::mem::take(&mut self.rows.firm);
        let mut candidates = std::mem::take(&mut self.rows.candidates);
        firm.clear();
        candidates.clear();
        firm.extend((taken.previous != NONE).then_some(taken.previous));
        if taken.made.waited {
            let buffers = self.moves.buffers_of(thread).iter();
            let drains = buffers.map(|b| self.last[*b as usize]);
            firm.extend(drains.filter(|d| *d != NONE));
        }
        if let Some((serial, epoch)) = taken.drained {
            let put = self.put_by[thread.index()][serial as usize];
            firm.extend((put != NONE).then_some(put));
            if epoch > 0 {
                self.earlier_epochs(thread.0, epoch, &mut firm);
            }
        }
        let footprint = taken.of.footprint;
        let accesses = self.footprints.accesses(footprint).len();
        for a in 0..accesses {
            let access = self.footprints.accesses(footprint)[a];
            self.conflicting(access, &mut candidates);
        }
        for a in 0..accesses {
            let access = self.footprints.accesses(footprint)[a];
            let dense = self.dense(access.cell);
            match access.kind {
                Kind::Read => self.readers.set(dense, i),
                Kind::Write => self.writers.set(dense, i),
                Kind::Forward => self.forwarded.set(dense, i),
            }
            let last = self.accessed.len() as u32;
            let before = std::mem::replace(&mut self.heads[access.cell as usize], last);
            self.accessed.push(Accessed {
                cell: access.cell,
                kind: access.kind,
                store: access.store,
                by: i as u32,
                before,
            });
        }
        self.before.need(i + 1);
        let (now, strict) = (&mut self.rows.now, &mut self.rows.strict);
        now.fill(0);
        strict.fill(0);
        for k in firm.iter().chain(&candidates) {
            order::join(strict, self.before.row(*k as usize));
            order::put(now, *k as usize);
        }
        order::join(now, strict);
        let row = self.before.row_mut(i);
        row.copy_from_slice(now);
        candidates.sort_unstable();
        candidates.dedup();
        let other = |k: &u32| self.taken[*k as usize].of.process != p && !firm.contains(k);
        let immediate = |k: &u32| !order::has(&self.rows.strict, *k as usize);
        let races = candidates.iter().filter(|k| immediate(k) && other(k));
        self.races.extend(races);
        if let Some(guard) = taken.made.guard {
            // Whatever may have shut it out, however long ago. Who is served by a pending store does not look at
            // memory, and minds only that store's drain.
            for e in self.shut_by(guard, i, p, taken.previous) {
                let after = order::has(self.before.row(i), e as usize);
                if after && !firm.contains(&e) && !self.races[taken.races as usize..].contains(&e) {
                    self.races.push(e);
                }
            }
        }
        self.rows.firm = firm;
        self.rows.candidates = candidates;
        self.by_process.set(p as usize, i);
        self.last[p as usize] = i as u32;
        if !is_buffer {
            let stores = self.moves.machine.serial(thread) as usize;
            self.put_by[thread.index()].resize(stores, i as u32);
        }
        self.labels.push(taken.of);
        self.taken.push(taken);
    }

    /// The moves on a cell that the access depends on, as far as others do not stand between.
    fn conflicting(&self, access: Access, into: &mut Vec<u32>) {
        let mut at = self.heads[access.cell as usize];
        let mut shadowed = false;
        while at != NONE {
            let a = self.accessed[at as usize];
            match (access.kind, a.kind) {
                (Kind::Read, Kind::Read | Kind::Forward)
                | (Kind::Forward, Kind::Read | Kind::Forward) => {}
                (Kind::Read | Kind::Write, Kind::Write) if !shadowed => {
                    into.push(a.by);
                    shadowed = true;
                    if access.kind == Kind::Read {
                        return;
                    }
                }
                (Kind::Read | Kind::Write, Kind::Write) => {}
                (Kind::Write, Kind::Read) if !shadowed => into.push(a.by),
                (Kind::Write, Kind::Read) => {}
                (Kind::Write, Kind::Forward) | (Kind::Forward, Kind::Write) => {
                    if a.store == access.store {
                        into.push(a.by);
                    }
                }
            }
            // Beyond the last write only loads from this very store matter.
            if shadowed && access.store == NO_STORE {
                return;
            }
            at = a.before;
        }
    }

    /// Drains of the thread's stores before earlier store fences.
    fn earlier_epochs(&self, thread: u32, epoch: u32, into: &mut Vec<u32>) {
        for (k, taken) in self.taken.iter().enumerate() {
            let earlier = taken.drained.is_some_and(|(_, e)| e < epoch);
            if earlier && self.moves.thread_of(taken.of.process).0 == thread {
                into.push(k as u32);
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<Taken> {
        let taken = self.taken.pop()?;
        self.labels.pop();
        let i = self.taken.len();
        for a in (taken.accesses as usize..self.accessed.len()).rev() {
            let accessed = self.accessed[a];
            self.heads[accessed.cell as usize] = accessed.before;
            let dense = self.rows.dense[accessed.cell as usize] as usize;
            match accessed.kind {
                Kind::Read => self.readers.clear(dense, i),
                Kind::Write => self.writers.clear(dense, i),
                Kind::Forward => self.forwarded.clear(dense, i),
            }
        }
        self.accessed.truncate(taken.accesses as usize);
        self.races.truncate(taken.races as usize);
        let p = taken.of.process;
        self.by_process.clear(p as usize, i);
        self.last[p as usize] = taken.previous;
        if !self.moves.is_buffer(p) {
            self.put_by[p as usize].truncate(taken.serial as usize);
        }
        self.moves.undo_to(taken.mark);
        Some(taken)
    }
}

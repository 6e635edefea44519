//! What the races of a complete run ask for.

use super::Search;
use crate::footprint::Kind;
use crate::moves::{Halt, Move, Outcome, Process};
use crate::order;
use crate::wakeup::NONE;

impl Search<'_, '_> {
    /// The sequences that the races of a complete run ask for.
    pub(super) fn reverse_races(&mut self) -> Result<(), Halt> {
        let n = self.taken.len();
        for f in 0..n {
            let from = self.taken[f].races as usize;
            let to = self
                .taken
                .get(f + 1)
                .map_or(self.races.len(), |t| t.races as usize);
            for r in from..to {
                let e = self.races[r] as usize;
                let (first, second) = (self.taken[e], self.taken[f]);
                let p = second.of.process;
                let thread = self.moves.thread_of(p);
                let own = self.moves.is_buffer(first.of.process)
                    && !self.moves.is_buffer(p)
                    && self.moves.thread_of(first.of.process) == thread;
                // A race costs about as much as a move, more in long runs.
                self.spent += 1 + n as u64 / 64;
                self.not_after(e);
                if own || second.made.block || second.made.guard.is_some() {
                    self.ask(e, p)?;
                } else {
                    order::put(&mut self.rows.sequence, f);
                    self.insert(e, f);
                }
            }
        }
        for p in 0..self.moves.processes() {
            self.reverse_blocked(p)?;
        }
        Ok(())
    }

    /// A process that waits at the end of a run may have been shut out.
    fn reverse_blocked(&mut self, p: Process) -> Result<(), Halt> {
        if !self.moves.program.may_wait() {
            return Ok(());
        }
        let mark = self.moves.mark();
        let guard = match self.moves.go(p, 0, &mut self.footprints)? {
            Outcome::Blocked(Some(guard)) => guard,
            Outcome::Blocked(None) => return Ok(()),
            Outcome::Made(_) | Outcome::Fault(_) => {
                // Asleep, not blocked.
                self.moves.undo_to(mark);
                return Ok(());
            }
        };
        for e in self.shut_by(guard, self.taken.len(), p, self.last[p as usize]) {
            self.not_after(e as usize);
            self.ask(e as usize, p)?;
        }
        Ok(())
    }

    /// The moves before number `i` that write the guard of process `p`, and do not happen before its
    /// previous move.
    pub(super) fn shut_by(&self, guard: u32, i: usize, p: Process, previous: u32) -> Vec<u32> {
        let mut writers = Vec::new();
        let mut at = self.heads[guard as usize];
        while at != NONE {
            let a = self.accessed[at as usize];
            let earlier = previous != NONE
                && (a.by == previous
                    || order::has(self.before.row(previous as usize), a.by as usize));
            if a.kind == Kind::Write
                && (a.by as usize) < i
                && !earlier
                && self.taken[a.by as usize].of.process != p
                && !writers.contains(&a.by)
            {
                writers.push(a.by);
            }
            at = a.before;
        }
        writers
    }

    /// The moves after `e` in the run that do not happen after it.
    fn not_after(&mut self, e: usize) {
        let sequence = &mut self.rows.sequence;
        sequence.fill(0);
        for k in e + 1..self.taken.len() {
            if !order::has(self.before.row(k), e) {
                order::put(sequence, k);
            }
        }
    }

    /// What the process does after the sequence at `e`, by trying; if it can move, the sequence with it.
    fn ask(&mut self, e: usize, p: Process) -> Result<(), Halt> {
        self.probe.undo_to(self.marks.1);
        let n = self.taken.len();
        self.spent += n as u64;
        for k in 0..n {
            if k < e || order::has(&self.rows.sequence, k) {
                let of = self.labels[k];
                match self.probe.go(of.process, of.choice, &mut self.footprints)? {
                    Outcome::Made(made) if made.footprint == of.footprint => {}
                    Outcome::Made(_) | Outcome::Blocked(_) | Outcome::Fault(_) => {
                        return Err(Halt::Confused("a run cannot be repeated"));
                    }
                }
            }
        }
        let thread = self.moves.thread_of(p);
        let drained = match self.moves.is_buffer(p) {
            false => None,
            true => {
                let mut pending = self.probe.machine.pending(thread).iter();
                let its = pending.find(|e| self.moves.buffer(thread, e.cell) == Some(p));
                its.map(|e| (e.serial, e.epoch))
            }
        };
        let made = match self.probe.go(p, 0, &mut self.footprints)? {
            Outcome::Made(made) => made,
            Outcome::Blocked(_) | Outcome::Fault(_) => return Ok(()),
        };
        let of = Move {
            process: p,
            choice: 0,
            footprint: made.footprint,
        };
        // What it depends on in the sequence.
        let mut now = std::mem::take(&mut self.rows.now);
        now.fill(0);
        for k in e + 1..n {
            if !order::has(&self.rows.sequence, k) {
                continue;
            }
            let other = &self.taken[k];
            let q = other.of.process;
            let same_thread = self.moves.thread_of(q) == thread;
            let waits = made.waited && same_thread && self.moves.is_buffer(q);
            let stored = drained.is_some_and(|(serial, epoch)| {
                let put = self.put_by[thread.index()].get(serial as usize);
                let earlier = other.drained.is_some_and(|(_, e)| e < epoch);
                put == Some(&(k as u32)) || same_thread && earlier
            });
            if q == p
                || waits
                || stored
                || self.footprints.conflict(other.of.footprint, of.footprint)
            {
                order::join(&mut now, self.before.row(k));
                order::put(&mut now, k);
            }
        }
        self.before.need(n + 1);
        self.before.row_mut(n).copy_from_slice(&now);
        self.rows.now = now;
        self.labels.push(of);
        order::put(&mut self.rows.sequence, n);
        self.by_process.set(p as usize, n);
        self.mark_cells(of.footprint, n, true);
        // Without `e` it may be served by a store that is pending now, and not mind `e`: nothing to reverse.
        if self.may_begin(self.labels[e]).is_none() {
            self.insert(e, n);
        }
        self.mark_cells(of.footprint, n, false);
        self.by_process.clear(p as usize, n);
        self.labels.pop();
        Ok(())
    }

    fn mark_cells(&mut self, footprint: u32, bit: usize, on: bool) {
        for a in 0..self.footprints.accesses(footprint).len() {
            let access = self.footprints.accesses(footprint)[a];
            let dense = self.dense(access.cell);
            let rows = match access.kind {
                Kind::Read => &mut self.readers,
                Kind::Write => &mut self.writers,
                Kind::Forward => &mut self.forwarded,
            };
            match on {
                true => rows.set(dense, bit),
                false => rows.clear(dense, bit),
            }
        }
    }
}

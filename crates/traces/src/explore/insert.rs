//! Sequences to be explored, put into the tree of a state.

use super::Search;
use crate::footprint::Kind;
use crate::moves::Move;
use crate::order;
use crate::wakeup::NONE;

impl Search<'_, '_> {
    /// Whether some run that begins, as a trace, with the sequence may begin with the move: it is the
    /// first of it there (which is then told), or independent of all of it.
    pub(super) fn may_begin(&self, z: Move) -> Option<Option<usize>> {
        let sequence = &self.rows.sequence;
        if let Some(k) = order::first(self.by_process.row(z.process as usize), sequence) {
            let first =
                self.labels[k].choice == z.choice && !order::meet(self.before.row(k), sequence);
            return first.then_some(Some(k));
        }
        for access in self.footprints.accesses(z.footprint) {
            let dense = self.rows.dense[access.cell as usize];
            if dense == NONE {
                continue;
            }
            let dense = dense as usize;
            let write = self.writers.row(dense);
            let conflict = match access.kind {
                Kind::Read => order::meet(write, sequence),
                Kind::Write => {
                    order::meet(write, sequence)
                        || order::meet(self.readers.row(dense), sequence)
                        || order::meet(self.forwarded.row(dense), sequence)
                            && self.conflict_in_sequence(z)
                }
                Kind::Forward => order::meet(write, sequence) && self.conflict_in_sequence(z),
            };
            if conflict {
                return None;
            }
        }
        Some(None)
    }

    fn conflict_in_sequence(&self, z: Move) -> bool {
        let mut all = order::bits(&self.rows.sequence);
        all.any(|k| {
            self.footprints
                .conflict(z.footprint, self.labels[k].footprint)
        })
    }

    /// Puts the sequence into the tree of the state before `e`, unless runs that begin with it have been
    /// explored or will be. `f` is its last move. `e` itself may not begin it: else `e` would be asleep all along
    /// the branch, and what is explored after it not all that begins with it.
    ///
    /// Of the sequence only as much is planned as wakes whatever is asleep: what depends on each sleeping
    /// move, with all that happens before. Nothing is asleep at the end of the branch, so all that begins
    /// with it can be explored freely, and nothing else begins with it.
    pub(super) fn insert(&mut self, e: usize, f: usize) {
        let (from, to) = (
            self.nodes[e].sleep as usize,
            self.nodes[e + 1].sleep as usize,
        );
        for z in from..to {
            if self.may_begin(self.sleeping[z]).is_some() {
                return;
            }
        }
        let mut alive = std::mem::take(&mut self.rows.alive);
        alive.clear();
        alive.extend_from_slice(&self.sleeping[from..to]);
        alive.push(self.labels[e]);
        let mut above = NONE;
        let mut row = self.nodes[e].tree;
        loop {
            let (mut branch, mut last) = (row, NONE);
            let mut begins = None;
            while branch != NONE {
                let of = self.forest.of(branch);
                begins = self.may_begin(of);
                if begins.is_some() {
                    break;
                }
                alive.push(of);
                last = branch;
                branch = self.forest.next(branch);
            }
            let Some(first) = begins else {
                self.shorten(&alive);
                let new = self.chain(f);
                match (last, above) {
                    (NONE, NONE) => self.nodes[e].tree = new,
                    (NONE, above) => self.forest.set_first(above, new),
                    (last, _) => self.forest.set_next(last, new),
                }
                break;
            };
            if let Some(k) = first {
                order::drop(&mut self.rows.sequence, k);
            }
            let of = self.forest.of(branch);
            alive.retain(|z| {
                z.process != of.process && !self.footprints.conflict(z.footprint, of.footprint)
            });
            above = branch;
            row = self.forest.first(branch);
            if row == NONE {
                break;
            }
        }
        self.rows.alive = alive;
    }

    /// Leaves of the sequence only what wakes these moves.
    fn shorten(&mut self, alive: &[Move]) {
        let mut rest = std::mem::take(&mut self.rows.rest);
        rest.clear();
        rest.extend_from_slice(&self.rows.sequence);
        self.rows.sequence.fill(0);
        for z in alive {
            if self.may_begin(*z).is_none() {
                continue;
            }
            let own = order::first(self.by_process.row(z.process as usize), &rest);
            let waking = own.or_else(|| {
                let label = |k: usize| self.labels[k].footprint;
                order::bits(&rest).find(|k| self.footprints.conflict(z.footprint, label(*k)))
            });
            let Some(k) = waking else {
                continue;
            };
            let sequence = &mut self.rows.sequence;
            for (w, word) in sequence.iter_mut().enumerate() {
                *word |= self.before.row(k)[w] & rest[w];
            }
            order::put(sequence, k);
        }
        self.rows.rest = rest;
    }

    /// The sequence as a branch without forks, `f` last.
    fn chain(&mut self, f: usize) -> u32 {
        let (mut first, mut last) = (NONE, NONE);
        let more = order::has(&self.rows.sequence, f).then_some(f);
        order::drop(&mut self.rows.sequence, f);
        for k in order::bits(&self.rows.sequence).chain(more) {
            let branch = self.forest.make(self.labels[k]);
            match last {
                NONE => first = branch,
                last => self.forest.set_first(last, branch),
            }
            last = branch;
        }
        first
    }
}

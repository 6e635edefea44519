//! Where the reads and stores of a step are in the order of memory, per memory model.
//!
//! **TSO.** Every run can be told so that its steps extend program order, the order in which stores
//! reach each cell, and reads-from: a cycle of these three would have to leave a store by program order
//! towards a read and could only go on by program order to a later store, and TSO keeps stores of a
//! thread in order. Told backward like that, a store met now reaches memory before every known store of
//! its cell, and an open read that does not take it happens before that. Facts of the form "this is
//! before that moment" follow from: the order of stores of a thread; reads come before everything later
//! of their thread; a full fence and an atomic step come after all older stores of their thread. A read
//! before a store before that same read is impossible.
//!
//! **PSO.** Stores of one thread to different cells may pass each other, so runs are told in the order
//! of time, and stores reaching memory are met on their own ([`super::step::drains`]) if somebody
//! looks. Whatever is met is before everything known. A store nobody looks at reaches memory later
//! than its step, before the thread's next fence; an open read of the cell either happens before that
//! or takes its value from its own buffer: from a store that is met before any older fence or atomic
//! step of the reader.

use super::assume::Draft;
use super::facts::{CellAt, Impossible, Moments, NOBODY, Possible};
use super::step::Step;
use wattle_memory::MemoryModel;
use wattle_model::array::FenceKind;

impl Step<'_, '_> {
    /// Adds the facts about the step's own reads and stores.
    pub(super) fn place_moments(
        &self,
        draft: &mut Draft,
        written: &[CellAt],
        served: Moments,
        unserved: Moments,
    ) -> Possible {
        match self.rules.model {
            MemoryModel::Sc => Ok(()),
            MemoryModel::Tso => self.place_tso(draft, written, served, unserved),
            MemoryModel::Pso => self.place_pso(draft, written, unserved),
        }
    }

    fn place_tso(
        &self,
        draft: &mut Draft,
        written: &[CellAt],
        served: Moments,
        unserved: Moments,
    ) -> Possible {
        let (Some(p), Some(new)) = (self.actor.map(usize::from), draft.moment) else {
            return Ok(());
        };
        let mut written: Vec<CellAt> = written.to_vec();
        written.retain(|p| self.rules.weak(p.cell));
        written.extend(self.certainly_written(&draft.facts));
        let elsewhere = self.written_elsewhere(&draft.facts);
        let facts = &mut draft.facts;
        let new = usize::from(new);
        let reads: Vec<CellAt> = facts.reads[new].parts.iter().map(|p| p.place).collect();
        let stores = !written.is_empty() || !elsewhere.is_empty();
        let looks = !reads.is_empty() || self.atomic;
        let mut after: Moments = 0;
        if stores {
            after |= facts.after_stores_of[p];
            for place in &written {
                after |= facts.stores_to(*place);
            }
            for (e, open) in facts.reads.iter().enumerate() {
                if served & 1 << e != 0 {
                    after |= open.before;
                }
            }
        }
        if looks {
            after |= facts.after_reads_of[p] | facts.last;
            for place in &reads {
                after |= facts.stores_to(*place);
            }
        }
        if after & unserved != 0 {
            return Err(Impossible);
        }
        // Reads and stores of one step are at the same moment.
        let here = if reads.is_empty() {
            after
        } else {
            after | 1 << new
        };
        facts.reads[new].before = here | 1 << new;
        facts.put_before(unserved, here);
        facts.after_reads_of[p] |= here;
        if stores {
            facts.after_stores_of[p] |= here;
        }
        for place in &written {
            *facts.after_stores_to.entry(*place).or_default() |= here;
        }
        for cell in elsewhere {
            *facts.after_stores_elsewhere.entry(cell).or_default() |= here;
        }
        if self.atomic || self.transition.fence == Some(FenceKind::Full) {
            facts.after_stores_of[p] = facts.after_reads_of[p] | facts.last;
        }
        Ok(())
    }

    fn place_pso(&self, draft: &mut Draft, written: &[CellAt], unserved: Moments) -> Possible {
        let (Some(p), Some(new)) = (self.actor, draft.moment) else {
            return Ok(());
        };
        let facts = &mut draft.facts;
        // Told in the order of time, an atomic store is seen by every later read of the cell but
        // those that a store of their own hides it from.
        for (e, open) in facts.reads.iter_mut().enumerate() {
            if unserved & 1 << e == 0 {
                continue;
            }
            let looks = |x: &super::facts::Part| x.reader != p && written.contains(&x.place);
            for part in open.parts.iter_mut().filter(|x| looks(x)) {
                if part.reader == NOBODY || !self.rules.buffers(part.place.cell) {
                    return Err(Impossible);
                }
                part.own = true;
            }
        }
        let all: Moments = (1 << facts.reads.len()) - 1;
        facts.reads[usize::from(new)].before = all;
        if self.atomic || self.transition.fence == Some(FenceKind::Full) {
            // The buffer is empty here: no store of it is yet to be met, but those of this step.
            let stored = |place: &CellAt| !self.atomic && written.contains(place);
            let parts = self.facts.reads.iter().flat_map(|r| &r.parts);
            let mut own = parts.filter(|x| x.own && x.reader == p);
            let waits = own.any(|x| !stored(&x.place));
            if waits || facts.pending.iter().any(|x| x.thread == p) {
                return Err(Impossible);
            }
            facts.after_stores_of[usize::from(p)] = all;
        }
        Ok(())
    }

    /// PSO: the ways in which nobody looks at a store of `p` when it reaches memory.
    pub(super) fn unseen(&self, draft: Draft, p: u8, place: CellAt) -> Vec<Draft> {
        let bound = draft.facts.after_stores_of[usize::from(p)];
        let mut drafts = vec![draft];
        if bound == 0 {
            return drafts;
        }
        for e in 0..self.facts.reads.len() {
            let looks = |x: &super::facts::Part| x.place == place && x.reader != p && !x.own;
            if !self.facts.reads[e].parts.iter().any(looks) {
                continue;
            }
            let mut next = Vec::new();
            for draft in drafts {
                let mut hidden = draft.clone();
                let mut possible = self.rules.buffers(place.cell);
                for part in hidden.facts.reads[e].parts.iter_mut().filter(|x| looks(x)) {
                    possible &= part.reader != NOBODY;
                    part.own = true;
                }
                if possible {
                    next.push(hidden);
                }
                if bound & 1 << e == 0 {
                    let mut before = draft;
                    before.facts.put_before(1 << e, bound);
                    next.push(before);
                }
            }
            drafts = next;
        }
        drafts
    }
}

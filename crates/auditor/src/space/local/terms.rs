//! Who touches what, and which steps nobody minds: which may be taken at once.

use super::seen::Seen;
use super::{Local, is_determined};
use crate::facts::cells_seen;
use rustc_hash::FxHashSet;
use wattle_evidence::task::Task;
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Step};
use wattle_model::{CellId, Fence, Instance, RegisterId};

/// Which threads do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    One(usize),
    Many,
}

impl Who {
    fn and(self, t: usize) -> Who {
        match self {
            Who::Nobody => Who::One(t),
            Who::One(u) if u == t => self,
            Who::One(_) | Who::Many => Who::Many,
        }
    }

    fn is_at_most(self, t: usize) -> bool {
        self == Who::Nobody || self == Who::One(t)
    }
}

/// What the text says about who touches what, and what the question looks at.
pub struct Terms<'i> {
    instance: &'i Instance,
    model: MemoryModel,
    pub(super) seen: Seen<'i>,
    readers: Vec<Who>,
    writers: Vec<Who>,
    lockers: Who,
    seen_cells: Vec<bool>,
}

impl<'i> Terms<'i> {
    pub fn of(task: &Task<'i>) -> Self {
        Terms::new(task.instance, task.model, Seen::of(task))
    }

    pub(super) fn new(instance: &'i Instance, model: MemoryModel, seen: Seen<'i>) -> Self {
        let cells = instance.cells.len();
        let mut terms = Terms {
            instance,
            model,
            readers: vec![Who::Nobody; cells],
            writers: vec![Who::Nobody; cells],
            lockers: Who::Nobody,
            seen_cells: vec![false; cells],
            seen,
        };
        for (t, thread) in instance.threads.iter().enumerate() {
            let mut known = FxHashSet::default();
            for step in &thread.steps {
                if step.action == Action::Lock {
                    terms.lockers = terms.lockers.and(t);
                }
                let Some(place) = step.action.place() else {
                    continue;
                };
                let load = step.action.loaded().is_some();
                let table = match load {
                    true => &mut terms.readers,
                    false => &mut terms.writers,
                };
                if known.insert((load, place.extent())) {
                    for who in &mut table[place.extent()] {
                        *who = who.and(t);
                    }
                }
            }
        }
        for c in terms.seen.conditions.iter().flat_map(|e| cells_seen(e)) {
            terms.seen_cells[c] = true;
        }
        terms
    }

    /// Nobody else touches the cell or locks, and nobody looks at it on the way.
    pub fn may_be_private(&self, t: usize, cell: CellId) -> bool {
        let c = cell.index();
        self.readers[c].is_at_most(t)
            && self.writers[c].is_at_most(t)
            && self.lockers.is_at_most(t)
            && (self.seen.only_final || !self.seen_cells[c])
    }

    /// What the thread stores to and may be private.
    pub(super) fn private(&self, t: usize) -> FxHashSet<CellId> {
        let steps = self.instance.threads[t].steps.iter();
        let stored = steps.filter_map(|s| s.action.stored());
        let stored: FxHashSet<_> = stored.map(Address::extent).collect();
        let all = stored.into_iter().flatten().map(CellId::new);
        all.filter(|c| self.may_be_private(t, *c)).collect()
    }

    pub fn locality(&self, t: usize, l: usize) -> Local {
        let thread = &self.instance.threads[t];
        let out = &thread.outgoing[l];
        let unseen = |step: &Step| self.seen.is_unseen(t, step);
        let mut steps = out.iter().map(|s| thread.step(*s));
        let fences = (steps.clone()).any(|s| s.action == Action::Fence(Fence::Full));
        let own = |s: &Step| self.is_nobodys_business(t, &s.action) && unseen(s);
        match (is_determined(thread, out), thread.atomic[l]) {
            // In a buffered block entries must drain before a fence.
            (true, true) if thread.direct[l] || !fences => Local::Step,
            (true, false) if steps.all(own) => Local::Step,
            // A fence that waits would be another choice later.
            (false, false) if !out.is_empty() && !fences && steps.all(own) => Local::Choice,
            (true, false) if self.is_computed(t, l, true) => Local::Perhaps,
            (_, _) => Local::No,
        }
    }

    /// One load, or one store, by a computed address, which nobody sees and no lock keeps waiting.
    pub(super) fn is_computed(&self, t: usize, l: usize, load: bool) -> bool {
        let thread = &self.instance.threads[t];
        let [s] = thread.outgoing[l].as_slice() else {
            return false;
        };
        let step = thread.step(*s);
        let unseen = self.seen.is_unseen(t, step);
        let place = match load {
            true => step.action.loaded(),
            false => step.action.stored(),
        };
        let computed = matches!(place, Some(Address::Computed { .. }));
        computed && !thread.atomic[l] && unseen && self.lockers.is_at_most(t)
    }

    /// The cells that nobody but the thread writes.
    pub fn free(&self, t: usize) -> Vec<bool> {
        self.writers.iter().map(|w| w.is_at_most(t)).collect()
    }

    /// Nothing another thread or the own buffer does enables, disables or changes it, but that a
    /// fence becomes enabled; and it does nothing of the kind to others.
    fn is_nobodys_business(&self, t: usize, action: &Action<RegisterId, Address>) -> bool {
        match action {
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_) => true,
            // Whoever holds the lock may keep others from memory.
            Action::Load { place, .. } => {
                let mut writers = self.writers[place.extent()].iter();
                self.lockers.is_at_most(t) && writers.all(|w| w.is_at_most(t))
            }
            Action::Store { place, .. } => match self.model {
                MemoryModel::Sc => place
                    .extent()
                    .all(|c| self.may_be_private(t, CellId::new(c))),
                MemoryModel::Tso | MemoryModel::Pso => true,
            },
            Action::AtomicBegin(_) | Action::AtomicEnd | Action::Lock | Action::Unlock => false,
        }
    }
}

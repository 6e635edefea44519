//! Which steps are nobody else's business, so that they may be chained to the step before.
//!
//! A location is *local* if its steps form an ample set of one: at most one of them is enabled at a
//! time, nothing another thread (or the thread's own buffer) does can enable, disable or change
//! it, and nobody looking at states can tell before from after. Then running it at once loses no
//! final state, no fault and nothing the [`Watched`] sees. Local are:
//!
//! - steps on registers the view does not see, between locations it does not tell apart;
//! - loads of cells no other thread writes, if no other thread ever locks;
//! - stores into a buffer and store fences (their drains are separate events);
//! - stores that reach memory at once, if no other thread touches the cell, the view does not see
//!   it and no other thread ever locks;
//! - full fences, as soon as the buffer is empty;
//! - everything inside an atomic block (but fences in one that keeps its stores buffered).
//!
//! *Nobody can tell before from after* may be less: whoever sees something before still sees it after. So a
//! step to a location is local too where being there can only make the target true, as `p[i]@critical` does in
//! `p[i]@critical && p[j]@critical`. *Why:* let the target be true after a run in which the step is not yet
//! taken. It commutes with the rest of the run, so the same run with the step first is one; it ends in a state that
//! differs in where the thread is, and there the target is true as well ([`View::helps`]).
//!
//! Where several such steps may be enabled at once the location is a *choice*: it is chained while one
//! of its guards is true, and a search may take all its steps before anything else ([`super::persistent`]).
//!
//! A view of final states only needs none of the invisibility conditions. The cycle proviso is kept
//! by construction: every cycle of local locations is cut (one of them is made not local), so that
//! every chain ends, and every state where a chain ends is expanded in full.

use super::view::Watched;
use crate::MemoryModel;
use rustc_hash::FxHashSet;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Step, Thread};
use wattle_model::{Fence, Instance, StepId};

/// Which threads touch a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Who {
    #[default]
    Nobody,
    One(u32),
    Many,
}

impl Who {
    fn add(&mut self, t: u32) {
        *self = match *self {
            Who::Nobody => Who::One(t),
            Who::One(u) if u == t => Who::One(t),
            Who::One(_) | Who::Many => Who::Many,
        };
    }

    fn only(self, t: u32) -> bool {
        match self {
            Who::Nobody => true,
            Who::One(u) => u == t,
            Who::Many => false,
        }
    }
}

/// Who reads, writes and locks.
pub struct Sharing {
    readers: Vec<Who>,
    writers: Vec<Who>,
    lockers: Who,
}

impl Sharing {
    pub fn of(instance: &Instance) -> Self {
        let n = instance.cells.len();
        let mut sharing = Sharing {
            readers: vec![Who::Nobody; n],
            writers: vec![Who::Nobody; n],
            lockers: Who::Nobody,
        };
        for (t, thread) in instance.threads.iter().enumerate() {
            let t = t as u32;
            let mut seen = FxHashSet::default();
            for step in &thread.steps {
                let (table, place) = match &step.action {
                    Action::Load { place, .. } => (&mut sharing.readers, place),
                    Action::Store { place, .. } => (&mut sharing.writers, place),
                    Action::Lock => {
                        sharing.lockers.add(t);
                        continue;
                    }
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Unlock => continue,
                };
                let (first, length) = extent(place);
                let kind = matches!(step.action, Action::Load { .. });
                if seen.insert((kind, first, length)) {
                    for who in &mut table[first..first + length] {
                        who.add(t);
                    }
                }
            }
        }
        sharing
    }

    /// No other thread touches the cell and no other thread can lock this one out.
    pub fn private(&self, t: u32, cell: usize) -> bool {
        self.readers[cell].only(t) && self.writers[cell].only(t) && self.lockers.only(t)
    }

    /// Per cell: whether a load, and a store that reaches memory at once, is nobody else's business.
    pub fn free(&self, t: u32, view: &Watched) -> (Vec<bool>, Vec<bool>) {
        let cells = 0..self.writers.len();
        let load = |c: usize| self.writers[c].only(t);
        let store = |c: usize| self.private(t, c) && (view.only_final || !view.cells[c]);
        (
            cells.clone().map(load).collect(),
            cells.map(store).collect(),
        )
    }

    /// Somebody else may hold the lock when the thread wants to load or to write.
    pub fn may_be_locked_out(&self, t: u32) -> bool {
        !self.lockers.only(t)
    }
}

/// First cell and number of cells an operand may mean.
pub fn extent(place: &Address) -> (usize, usize) {
    match place {
        Address::Cell(c) => (c.index(), 1),
        Address::Computed { base, length, .. } => (base.index(), *length as usize),
    }
}

/// Whether what a thread does at a location is nobody else's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    No,
    /// At most one step is enabled at a time, with one outcome.
    Step,
    /// Several may be.
    Choice,
    /// If its computed address is that of a cell which only this thread writes (to load from it) or
    /// touches (to store to it).
    Perhaps,
}

/// Per location of the thread: local.
pub fn local(
    instance: &Instance,
    model: MemoryModel,
    t: usize,
    view: &Watched,
    sharing: &Sharing,
) -> Vec<Local> {
    let thread = &instance.threads[t];
    let mut local: Vec<Local> = (0..thread.locations.len())
        .map(|l| {
            let out = &thread.outgoing[l];
            let unseen = |s: &StepId| view.only_final || invisible(t, thread.step(*s), view);
            let free = |s: &StepId| {
                independent(model, t as u32, thread.step(*s), view, sharing) && unseen(s)
            };
            let perhaps = |s: &StepId| {
                let place = thread.step(*s).action.place();
                matches!(place, Some(Address::Computed { .. }))
                    && !sharing.may_be_locked_out(t as u32)
                    && unseen(s)
            };
            let waits = |s: &StepId| thread.step(*s).action == Action::Fence(Fence::Full);
            match (deterministic(thread, out), thread.atomic[l]) {
                (true, true) if !out.iter().any(|s| waits_inside(thread, *s)) => Local::Step,
                (true, false) if out.iter().all(free) => Local::Step,
                // A fence that is not enabled yet would be another choice later.
                (false, false) if out.iter().all(|s| free(s) && !waits(s)) => match out.len() {
                    0 => Local::No,
                    _ => Local::Choice,
                },
                (true, false) if out.iter().all(perhaps) => Local::Perhaps,
                _ => Local::No,
            }
        })
        .collect();
    cut_cycles(thread, &mut local);
    local
}

/// A fence inside a buffered atomic block: entries must drain there. Elsewhere inside a block the
/// thread's own drains may as well come after it: nobody else acts, and own loads find the same.
fn waits_inside(thread: &Thread, s: StepId) -> bool {
    let step = thread.step(s);
    !thread.direct[step.source.index()] && step.action == Action::Fence(Fence::Full)
}

/// At most one step is enabled at a time, with one outcome.
fn deterministic(thread: &Thread, out: &[StepId]) -> bool {
    match out {
        [s] => match &thread.step(*s).action {
            Action::Havoc { range, .. } => range.is_some_and(|(lo, hi)| lo == hi),
            Action::Skip
            | Action::Assign { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => true,
        },
        [a, b] => match (&thread.step(*a).action, &thread.step(*b).action) {
            (Action::Assume(a), Action::Assume(b)) => {
                a.clone().negate() == *b || b.clone().negate() == *a
            }
            _ => false,
        },
        _ => false,
    }
}

fn independent(model: MemoryModel, t: u32, step: &Step, view: &Watched, sharing: &Sharing) -> bool {
    match &step.action {
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Fence(_) => true,
        Action::Load { place, .. } => {
            let (first, length) = extent(place);
            let mut writers = sharing.writers[first..first + length].iter();
            !sharing.may_be_locked_out(t) && writers.all(|w| w.only(t))
        }
        Action::Store { .. } if model != MemoryModel::Sc => true,
        Action::Store { place, .. } => {
            let (first, length) = extent(place);
            (first..first + length)
                .all(|c| sharing.private(t, c) && (view.only_final || !view.cells[c]))
        }
        // An end outside an atomic block cannot be reached.
        Action::AtomicBegin(_) | Action::AtomicEnd | Action::Lock | Action::Unlock => false,
    }
}

fn invisible(t: usize, step: &Step, view: &Watched) -> bool {
    let written = step.action.written();
    written.is_none_or(|r| !view.registers[t][r.index()])
        && view.locations[t]
            .iter()
            .zip(&view.helps[t])
            .all(|(at, helps)| {
                let inside = |l| at.binary_search(&l).is_ok();
                match (inside(step.source), inside(step.target)) {
                    (false, true) => *helps,
                    (from, to) => from == to,
                }
            })
}

/// Makes the target of every back edge among local locations not local.
fn cut_cycles(thread: &Thread, local: &mut [Local]) {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut mark = vec![Mark::New; local.len()];
    for root in 0..local.len() {
        if mark[root] != Mark::New || local[root] == Local::No {
            continue;
        }
        let mut path = vec![(root, 0)];
        mark[root] = Mark::Open;
        while let Some((l, next)) = path.last_mut() {
            // A location cut meanwhile ends chains: what follows it is no longer on this path.
            let step = thread.outgoing[*l]
                .get(*next)
                .filter(|_| local[*l] != Local::No);
            let Some(step) = step else {
                mark[*l] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            let target = thread.step(*step).target.index();
            match mark[target] {
                Mark::New if local[target] != Local::No => {
                    mark[target] = Mark::Open;
                    path.push((target, 0));
                }
                Mark::Open => local[target] = Local::No,
                Mark::New | Mark::Done => {}
            }
        }
    }
}

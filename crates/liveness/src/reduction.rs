//! Which states need not be stored, and why no fair run is lost.
//!
//! Two things are left out, as in searches for bad states (`compiled/local.rs` and `compiled/persistent.rs` of the
//! memory crate): local steps are chained to the move before them, and of a state's moves only those
//! of a closed set of processes are followed.
//!
//! *Lemma.* Let a run be fair. There is one through the nodes that are left which has the same events, each pair that
//! depends on each other in the same order (the same *trace*). *Proof.* A member of a closed set that can move can
//! do so until a member moves, so in a fair run one does; the first move of a member in it was possible from the start,
//! and commutes with all before it: it can come first. So can a local step. What is then left of the run is again one from
//! the state reached. No move is put off for ever: sets with a step [`back`] are not chosen. A way round leads
//! every thread back to its place, so there is a step back on it (or drains alone, and those end): on every infinite way
//! all moves are followed now and then, and the first of what is left is taken. ∎
//!
//! The set is chosen by the state alone. Were it another for each state of the automaton, a run would have to be
//! chosen together with what the automaton guesses about its future, and the right guess could be
//! left out; that is what is wrong with choosing on the fly by the nodes of the product (Siegel, CAV 2019).
//!
//! Nothing that is asked can tell two runs of the same trace apart:
//!
//! - *The formula*: no step is chained, and no set of processes chosen, that changes what a condition reads, so the
//!   runs differ in repetitions only, and there is no `X`.
//! - *Progress*: where a thread is in the long run is a matter of its own steps, and these have the same order. What
//!   a thread passes on an edge is kept with the edge.
//! - *Fairness*: from some time on a mover that never moves again has the same place and registers, and what is pending before its
//!   turn has drained in both runs. Whether it can move is then said by things that others change one after the other:
//!   the lock (all accesses to memory depend on it) and the cell that an atomic block waits for. Each value they have between two
//!   changes is there in a stored state, because chained steps change neither. A block that waits
//!   for several cells at once could be passable for a moment in one run and not in the other; with
//!   such blocks no moves are left out, and steps are chained only.
//! - *Faults and false assumptions*: to come to a place where a run may have to be discarded counts as seen.
//!
//! Without fairness a thread may stop before a local step, which the question of progress would see. Then everything is stored,
//! and so it is for programs with buffered atomic blocks.

use crate::components::Stays;
use std::collections::BTreeSet;
use wattle_evidence::deadlock::may_be_discarded;
use wattle_evidence::live::{Fairness, LiveTask, Trap};
use wattle_memory::compiled::{Reductions, Watched};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Instance, Step, Thread};
use wattle_model::{CellId, Fence, LocationId, Section};

/// What is left out for a demand.
pub struct Rules {
    pub reductions: Reductions,
    pub traps: Vec<Trap>,
    pub stays: Vec<Stays>,
    /// The traps of more than one place, numbered by bits of an edge.
    pub loops: Vec<Trap>,
}

/// An edge has so many bits for loops.
const MOST_LOOPS: usize = 128;
/// With more cells, sets of processes are not looked for.
const MOST_CELLS: usize = 126;

impl Rules {
    pub fn of(task: &LiveTask<'_>) -> Self {
        let traps = task.traps();
        let loops: Vec<Trap> = traps.iter().filter(|t| t.at.len() > 1).cloned().collect();
        let chaining = task.fairness != Fairness::None
            && loops.len() <= MOST_LOOPS
            && !drains_in_blocks(task.instance);
        let few = task.instance.cells.len() <= MOST_CELLS;
        let loops = if chaining { loops } else { Vec::new() };
        let mut number = 0;
        let stays = traps.iter().map(|trap| match trap.at.len() {
            1 => Stays::Place(1 << trap.thread.index()),
            // Where nothing is chained an edge has no place between its ends.
            _ if !chaining => Stays::Loop(0),
            _ => {
                number += 1;
                Stays::Loop(1 << (number - 1))
            }
        });
        Rules {
            stays: stays.collect(),
            reductions: Reductions {
                chaining,
                dead_registers: true,
                persistent: chaining && few && !waits_for_several(task.instance),
                symmetry: false,
            },
            traps,
            loops,
        }
    }

    /// What may not change unseen.
    pub fn view(&self, task: &LiveTask<'_>) -> Watched {
        let mut view = Watched::of_conditions(task.instance, &task.atoms());
        for t in task.instance.thread_ids() {
            let thread = task.instance.thread(t);
            for l in (0..thread.locations.len()).map(LocationId::new) {
                if may_be_discarded(thread, l) {
                    view.see_place(t, vec![l]);
                }
            }
        }
        view
    }
}

/// Every round of a thread has such a step.
pub fn back(step: &Step) -> bool {
    step.target <= step.source
}

/// In a buffered block stores may drain between its steps, all in one move; chained steps would leave that out.
fn drains_in_blocks(instance: &Instance) -> bool {
    let mut steps = instance.threads.iter().flat_map(|t| &t.steps);
    steps.any(|s| s.action == Action::AtomicBegin(Section::Buffered))
}

/// A thread may stand where an atomic block, or one of several, may have to wait, and they look at several cells that
/// others write.
fn waits_for_several(instance: &Instance) -> bool {
    let others_write = |t: usize, c: CellId| {
        let mut others = instance.threads.iter().enumerate().filter(|(u, _)| *u != t);
        others.any(|(_, other)| {
            other.steps.iter().any(
                |s| matches!(&s.action, Action::Store { place, .. } if cells(place).contains(&c.0)),
            )
        })
    };
    instance.threads.iter().enumerate().any(|(t, thread)| {
        (0..thread.locations.len()).any(|l| {
            let (mut waits, mut read) = (false, BTreeSet::new());
            for s in thread.outgoing(LocationId::new(l)) {
                let step = thread.step(*s);
                if matches!(step.action, Action::AtomicBegin(_)) {
                    let (wait, looked) = block(thread, step.target);
                    waits |= wait;
                    read.extend(looked);
                }
            }
            waits && read.into_iter().filter(|c| others_write(t, *c)).count() > 1
        })
    })
}

/// Whether the block that begins there may have to wait for something in it, and the cells it looks at.
fn block(thread: &Thread, first: LocationId) -> (bool, BTreeSet<CellId>) {
    let (mut waits, mut read) = (false, BTreeSet::new());
    let mut known = BTreeSet::from([first]);
    let mut work = vec![first];
    while let Some(l) = work.pop() {
        let out: Vec<_> = thread.outgoing(l).iter().map(|s| thread.step(*s)).collect();
        waits |= out.is_empty() || only_guards(&out);
        for step in out {
            match &step.action {
                Action::Load { place, .. } => read.extend(cells(place).map(CellId)),
                Action::Lock | Action::Unlock | Action::Fence(Fence::Full) => waits = true,
                Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::Store { .. }
                | Action::Fence(Fence::Store)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd => {}
            }
            if thread.atomic[step.target.index()] && known.insert(step.target) {
                work.push(step.target);
            }
        }
    }
    (waits, read)
}

/// All steps are assumptions, and no two of them are each other's negation.
fn only_guards(out: &[&Step]) -> bool {
    let mut guards = Vec::new();
    for step in out {
        let Action::Assume(e) = &step.action else {
            return false;
        };
        guards.push(e.clone());
    }
    !guards.iter().any(|e| guards.contains(&e.clone().negate()))
}

fn cells(place: &Address) -> std::ops::Range<u32> {
    match place {
        Address::Cell(c) => c.0..c.0 + 1,
        Address::Computed { base, length, .. } => base.0..base.0 + length,
    }
}

//! Which events a search may take at once, and which registers it may forget: statements about the
//! program's text. See the parent module for what follows from them.

mod alive;
mod most;
mod of_runs;
pub(super) mod seen;
pub(super) mod terms;

pub use crate::facts::for_each_fact;
pub use alive::{forget, registers_alive};
pub use of_runs::{OfRuns, of_runs};

use rustc_hash::FxHashSet;
use wattle_evidence::task::Task;
use wattle_model::graph::Action;
use wattle_model::instance::Thread;
use wattle_model::{CellId, StepId};

/// Whether steps at a location are taken at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    No,
    /// At most one is enabled at a time.
    Step,
    /// Where one alone is enabled.
    Choice,
    /// Where its computed address is that of a cell in [`Reduction::free`].
    Perhaps,
}

/// What is not stored of the states.
#[derive(Debug)]
pub struct Reduction {
    /// Per thread and location: its step is taken at once.
    pub local: Vec<Vec<Local>>,
    /// Per thread: the cells whose pending stores reach memory at once.
    pub private: Vec<FxHashSet<CellId>>,
    /// Per thread: the cells that only it writes, so that a load of them can be taken at once.
    pub free: Vec<Vec<bool>>,
    /// Per thread, location and register: what it holds may be read.
    pub live: Vec<Vec<Vec<bool>>>,
}

impl Reduction {
    /// Nothing is taken at once.
    pub fn none(task: &Task<'_>) -> Self {
        let threads = &task.instance.threads;
        Reduction {
            local: threads
                .iter()
                .map(|t| vec![Local::No; t.locations.len()])
                .collect(),
            private: vec![FxHashSet::default(); threads.len()],
            free: vec![Vec::new(); threads.len()],
            live: live(task),
        }
    }
}

/// At most one of the steps is enabled at a time, and it has one outcome.
pub(super) fn is_determined(thread: &Thread, out: &[StepId]) -> bool {
    match out {
        [s] => match thread.step(*s).action.chosen() {
            Some((_, range)) => range.is_some_and(|(lo, hi)| lo == hi),
            None => true,
        },
        [a, b] => match (&thread.step(*a).action, &thread.step(*b).action) {
            (Action::Assume(a), Action::Assume(b)) => {
                a.clone().negate() == *b || b.clone().negate() == *a
            }
            (_, _) => false,
        },
        _ => false,
    }
}

/// On every cycle of local locations makes one that is not.
pub(super) fn cut_cycles(thread: &Thread, local: &mut [Local]) {
    // Locations in the order in which they are left by a depth-first walk: an edge to one that is
    // left no earlier closes a cycle.
    let n = local.len();
    let mut left = vec![usize::MAX; n];
    let mut entered = vec![false; n];
    let mut clock = 0;
    for root in 0..n {
        if entered[root] || local[root] == Local::No {
            continue;
        }
        entered[root] = true;
        let mut path = vec![(root, 0)];
        while let Some((l, next)) = path.last_mut() {
            let Some(s) = thread.outgoing[*l].get(*next) else {
                left[*l] = clock;
                clock += 1;
                path.pop();
                continue;
            };
            *next += 1;
            let target = thread.step(*s).target.index();
            if local[target] != Local::No && !entered[target] {
                entered[target] = true;
                path.push((target, 0));
            }
        }
    }
    let mut cut = Vec::new();
    for step in &thread.steps {
        let (from, to) = (step.source.index(), step.target.index());
        let both = local[from] != Local::No && local[to] != Local::No;
        if both && left[to] >= left[from] {
            cut.push(to);
        }
    }
    cut.into_iter().for_each(|l| local[l] = Local::No);
}

/// A register that no path reads before it is written, and the question does not look at, is dead.
fn live(task: &Task<'_>) -> Vec<Vec<Vec<bool>>> {
    let only_final = task.question().is_none_or(|q| q.only_final);
    let target = task.question().map(|q| &q.target);
    registers_alive(task.instance, target.as_slice(), only_final)
}

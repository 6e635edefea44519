//! Questions about whole runs, and what counts as a run.
//!
//! A run is seen at its states outside atomic blocks; from one to the next leads a *move* ([`big`]): a
//! step, a drain, or a whole atomic block. A run goes on as long as anything can move, and then repeats
//! its last state for ever, which is nobody's move. A run in which a thread stands before nothing but
//! false assumptions is no run of the program (see [`crate::deadlock`]).
//!
//! Fairness is about *movers*: every thread, and every buffer (of a thread under TSO, of a thread and a
//! cell under PSO). A run is *weakly* fair if no mover can move from some time on without ever doing
//! so, *strongly* fair if none can move again and again without doing so again and again.

pub mod big;
pub mod lasso;
mod obligations;
mod shown;

use crate::answer::{Limits, Reason};
use crate::certificate::Certificate;
use crate::task::Task;
use crate::trace::Trace;
use lasso::Lasso;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use wattle_memory::MemoryModel;
use wattle_model::instance::{Address, Demand, DemandKind, Fact, Step};
use wattle_model::{CellId, Expr, Formula, Instance, LocationId, Span, ThreadId, waiting};

/// What is taken for granted about who moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fairness {
    /// Nothing: a thread may be kept from moving, and a store from memory, for ever.
    None,
    /// What can move from some time on moves.
    #[default]
    Weak,
    /// What can move again and again moves again and again.
    Strong,
    /// Buffers are small again and again, and whatever can happen again and again, in whatever order, happens again and
    /// again ([`crate::certificate::returning`]).
    Memory,
}

/// One demand on the runs of one instance under one memory model.
#[derive(Clone, Copy, Debug)]
pub struct LiveTask<'i> {
    pub instance: &'i Instance,
    pub model: MemoryModel,
    /// Index into the instance's demands.
    pub demand: usize,
    pub fairness: Fairness,
}

impl<'i> LiveTask<'i> {
    pub fn demand(&self) -> &'i Demand {
        &self.instance.demands[self.demand]
    }

    /// The same program, asked about faults alone.
    pub fn faults(&self) -> Task<'i> {
        Task {
            instance: self.instance,
            model: self.model,
            question: None,
            deadlock: false,
        }
    }

    /// The formula, unless it is progress that is asked for.
    pub fn formula(&self) -> Option<&'i Formula<Expr<Fact>>> {
        match &self.demand().kind {
            DemandKind::Formula(f) => Some(f),
            DemandKind::Progress => None,
        }
    }

    /// Where no run may stay for ever, thread by thread; nothing for a formula.
    pub fn traps(&self) -> Vec<Trap> {
        if self.formula().is_some() {
            return Vec::new();
        }
        let threads = self.instance.thread_ids();
        let traps = threads.flat_map(|t| {
            let all = waiting::traps(self.instance.thread(t)).into_iter();
            all.map(move |at| Trap { thread: t, at })
        });
        traps.collect()
    }

    /// The different conditions of the formula, in the order of their first appearance.
    pub fn atoms(&self) -> Vec<&'i Expr<Fact>> {
        self.formula().map(atoms_of).unwrap_or_default()
    }
}

/// The different conditions of a formula, in the order of their first appearance.
pub fn atoms_of(f: &Formula<Expr<Fact>>) -> Vec<&Expr<Fact>> {
    let mut atoms: Vec<&Expr<Fact>> = Vec::new();
    f.for_each_now(&mut |e| {
        if !atoms.contains(&e) {
            atoms.push(e);
        }
    });
    atoms
}

/// What an engine says about a demand.
#[derive(Clone, Debug)]
pub enum LiveAnswer {
    /// A fair run that does not do what is demanded.
    Broken(Lasso),
    /// A run that ends in a fault.
    Fault(Trace),
    /// There is no such run, and why.
    Holds(Certificate),
    /// None within these limits.
    Bounded(Limits),
    Undecided(Reason),
}

/// A place where a thread must not stay for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    pub thread: ThreadId,
    /// Sorted.
    pub at: Vec<LocationId>,
}

impl Trap {
    pub fn holds(&self, locations: &[LocationId]) -> bool {
        self.at
            .binary_search(&locations[self.thread.index()])
            .is_ok()
    }
}

/// Who may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mover {
    Thread(ThreadId),
    /// The buffer of a thread, under PSO its part for one cell.
    Buffer(ThreadId, Option<CellId>),
}

/// A set of movers, by their place in the list of [`movers`].
pub type Set = u128;

/// More movers than a [`Set`] has bits are not treated.
pub const MOST_MOVERS: usize = 128;

/// Threads first, then buffers that anything is ever put into.
pub fn movers(instance: &Instance, model: MemoryModel) -> Vec<Mover> {
    let mut all: Vec<Mover> = instance.thread_ids().map(Mover::Thread).collect();
    for t in instance.thread_ids() {
        let cells = buffered_cells(instance, t);
        match model {
            MemoryModel::Sc => {}
            MemoryModel::Tso if cells.is_empty() => {}
            MemoryModel::Tso => all.push(Mover::Buffer(t, None)),
            MemoryModel::Pso => {
                all.extend(cells.into_iter().map(|c| Mover::Buffer(t, Some(c))));
            }
        }
    }
    all
}

/// The cells that the thread's buffered stores may name.
fn buffered_cells(instance: &Instance, t: ThreadId) -> BTreeSet<CellId> {
    let thread = instance.thread(t);
    let buffered = |s: &&Step| !thread.direct[s.source.index()];
    let steps = thread.steps.iter().filter(buffered);
    let stored = steps.filter_map(|s| s.action.stored());
    let stored: FxHashSet<_> = stored.map(Address::extent).collect();
    stored.into_iter().flatten().map(CellId::new).collect()
}

/// A place from which an atomic block can be gone through for ever; such programs are not treated.
pub fn loop_in_block(instance: &Instance) -> Option<Span> {
    for thread in &instance.threads {
        // Locations inside blocks from which all steps lead out or to such locations.
        let n = thread.locations.len();
        let mut ends = vec![false; n];
        let mut changed = true;
        while changed {
            changed = false;
            for l in (0..n).filter(|l| thread.atomic[*l]) {
                let done = thread.outgoing[l].iter().all(|s| {
                    let target = thread.step(*s).target.index();
                    !thread.atomic[target] || ends[target]
                });
                changed |= done && !ends[l];
                ends[l] |= done;
            }
        }
        if let Some(l) = (0..n).find(|l| thread.atomic[*l] && !ends[*l]) {
            return Some(thread.locations[l].span);
        }
    }
    None
}

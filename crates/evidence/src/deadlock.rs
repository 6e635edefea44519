//! Deadlock: from a state on, whatever happens, no store reaches memory and no thread ends, though
//! some thread has not ended or some store is still pending (a thread that ends inside a lock region
//! keeps the others' stores for ever). A thread that spins on a cell nobody will change again is in deadlock
//! even though it takes steps.
//!
//! An `assume` that is false for good ends a run that is then no run of the program: a state from
//! which such an end can be reached is not called a deadlock. Inside an atomic block a false
//! assumption means that the block cannot be entered yet, which is waiting like any other.

mod discarded;

pub use discarded::{is_discarded, may_be_discarded};

use crate::control::{Control, Meter, Stop};
use crate::task::Task;
use crate::trace::TraceError;
use rustc_hash::FxHashSet;
use wattle_memory::reference::{Machine, Outcome, State};
use wattle_memory::{Event, Exact, Layout, MemoryModel, Pso, Sc, Start, Tso};
use wattle_model::Instance;
use wattle_model::graph::Action;

/// Whether the event changes what the rest of the world can see: a store reaches memory, or a
/// thread ends.
pub fn is_progress(instance: &Instance, model: MemoryModel, event: &Event) -> bool {
    match event {
        Event::Drain { .. } => true,
        Event::Step { thread, step, .. } => {
            let thread = instance.thread(*thread);
            let step = thread.step(*step);
            let direct = model == MemoryModel::Sc || thread.direct[step.source.index()];
            thread.ended(step.target) || matches!(step.action, Action::Store { .. }) && direct
        }
    }
}

/// More states than this after the last one of a trace are not looked at.
const MAX_STATES: usize = 1 << 20;

/// Runs the events and makes sure that nothing happens after them any more.
pub fn check(
    task: &Task<'_>,
    start: &Start,
    events: &[Event],
    control: &Control<'_>,
) -> Result<(), TraceError> {
    match task.model {
        MemoryModel::Sc => run::<Sc>(task, start, events, control),
        MemoryModel::Tso => run::<Tso>(task, start, events, control),
        MemoryModel::Pso => run::<Pso>(task, start, events, control),
    }
}

fn run<L: Layout>(
    task: &Task<'_>,
    start: &Start,
    events: &[Event],
    control: &Control<'_>,
) -> Result<(), TraceError> {
    let Ok(machine) = Machine::<L, Exact>::new(task.instance, ()) else {
        return Err(TraceError::NotDeadlocked);
    };
    let mut state = machine.initial(start);
    for event in events {
        match machine.apply(&state, event) {
            Outcome::Next(next) => state = next,
            Outcome::Fault(_) | Outcome::Full(_) => return Err(TraceError::NotDeadlocked),
        }
    }
    match is_deadlock(task.instance, &machine, &state, control) {
        Ok(true) => Ok(()),
        Ok(false) => Err(TraceError::NotDeadlocked),
        Err(stop) => Err(TraceError::Stopped(stop)),
    }
}

/// Explores everything reachable from the state.
pub fn is_deadlock<L: Layout>(
    instance: &Instance,
    machine: &Machine<'_, L, Exact>,
    state: &State<L::Buffer<Exact>>,
    control: &Control<'_>,
) -> Result<bool, Stop> {
    if machine.is_final(state) {
        return Ok(false);
    }
    let meter = Meter::new(control);
    let mut seen = FxHashSet::default();
    seen.insert(state.clone());
    let mut work = vec![state.clone()];
    while let Some(state) = work.pop() {
        meter.spend(16)?;
        if is_discarded(instance, &state) {
            return Ok(false);
        }
        for event in machine.events(&state) {
            if is_progress(instance, L::MODEL, &event) {
                return Ok(false);
            }
            match machine.apply(&state, &event) {
                Outcome::Next(next) => {
                    if seen.insert(next.clone()) {
                        work.push(next);
                    }
                }
                Outcome::Fault(_) | Outcome::Full(_) => return Ok(false),
            }
        }
        if seen.len() > MAX_STATES {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The graph of a closed set, to find its deadlocks: states from which no progress can be reached.
#[derive(Debug, Default)]
pub struct Edges {
    /// `(target, source)`.
    reversed: Vec<(u64, u64)>,
    progress: Vec<u64>,
    unfinished: Vec<u64>,
}

impl Edges {
    pub fn add(&mut self, source: u64, targets: &[u64], progress: bool, unfinished: bool) {
        self.reversed.extend(targets.iter().map(|t| (*t, source)));
        if progress {
            self.progress.push(source);
        }
        if unfinished {
            self.unfinished.push(source);
        }
    }

    /// The first state that has an unfinished thread and no way to progress.
    pub fn first_deadlock(mut self) -> Option<u64> {
        self.reversed.sort_unstable();
        let mut alive: FxHashSet<u64> = self.progress.iter().copied().collect();
        let mut work = self.progress;
        while let Some(state) = work.pop() {
            let from = self.reversed.partition_point(|(t, _)| *t < state);
            let into = self.reversed[from..].iter();
            for (_, source) in into.take_while(|(t, _)| *t == state) {
                if alive.insert(*source) {
                    work.push(*source);
                }
            }
        }
        let mut unfinished = self.unfinished.into_iter();
        unfinished.find(|s| !alive.contains(s))
    }
}

//! From a path of the search to a run of the reference machine, with the happens-before cycle named.

use super::steps::{Kind, Label};
use super::{Goal, Options};
use wattle_evidence::happens_before::{self, Relation};
pub use wattle_evidence::happens_before::{Edge, EdgeKind};
use wattle_memory::layout::Layout;
use wattle_memory::reference::{Machine, Outcome, State};
use wattle_memory::{Event, Exact, MemoryModel, Pso, Start, Tso};
use wattle_model::graph::Action;
use wattle_model::{CellId, Instance, LocationId, StepId, ThreadId};

/// A run that shows why the program misses the goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attack {
    pub goal: Goal,
    /// The model the run belongs to.
    pub model: MemoryModel,
    pub start: Start,
    pub events: Vec<Event>,
    pub attacker: ThreadId,
    /// Events: the delayed store, the access that overtakes it, the last access of the cycle by
    /// another thread, and the drain of the store (if it happens in the run).
    pub store: usize,
    pub overtaker: usize,
    pub conflict: usize,
    pub drain: Option<usize>,
    /// The attacker's steps from the store to the overtaking access.
    pub path: Vec<StepId>,
    /// Where a fence of the attacker would stop this run.
    pub crossings: Vec<Crossing>,
    /// Stores of the attacker that would stop it if they were locked.
    pub stores: Vec<StepId>,
    /// The happens-before relation of the run and a cycle in it that uses the delay (empty for a
    /// triangular race).
    pub relation: Relation,
    pub cycle: Vec<Edge>,
}

/// A location the attacker passes while its store is delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crossing {
    pub location: LocationId,
    /// A store fence would do (PSO, when a store overtakes).
    pub store_fence: bool,
}

/// Replays the path on the machine of its model. None if it is no run there, or shows nothing.
pub(super) fn build(
    instance: &Instance,
    options: Options,
    start: &Start,
    labels: &[Label],
) -> Option<Attack> {
    match options.model {
        MemoryModel::Pso => replay::<Pso>(instance, options, start, labels),
        MemoryModel::Sc | MemoryModel::Tso => replay::<Tso>(instance, options, start, labels),
    }
}

struct Run<'i, L: Layout> {
    machine: Machine<'i, L, Exact>,
    state: State<L::Buffer<Exact>>,
    events: Vec<Event>,
    /// By a fault.
    ended: bool,
}

impl<L: Layout> Run<'_, L> {
    fn take(&mut self, event: Event) -> Option<()> {
        if self.ended || !self.machine.can(&self.state, &event) {
            return None;
        }
        match self.machine.apply(&self.state, &event) {
            Outcome::Next(next) => self.state = next,
            // It must be the last event, or the run does not replay.
            Outcome::Fault(_) => self.ended = true,
            Outcome::Full(_) => return None,
        }
        self.events.push(event);
        Some(())
    }

    fn drains(&self, thread: ThreadId) -> Vec<Event> {
        if self.ended {
            return Vec::new();
        }
        let events = self.machine.events(&self.state).into_iter();
        let mine = events.filter(|e| matches!(e, Event::Drain { .. }) && e.thread() == thread);
        mine.collect()
    }
}

fn replay<L: Layout>(
    instance: &Instance,
    options: Options,
    start: &Start,
    labels: &[Label],
) -> Option<Attack> {
    let machine = Machine::<L, Exact>::new(instance, ()).ok()?;
    let state = machine.initial(start);
    let mut run = Run {
        machine,
        state,
        events: Vec::new(),
        ended: false,
    };
    let first = labels.iter().find(|l| l.kind == Kind::Delayed)?;
    let attacker = ThreadId(first.thread);
    let (mut store, mut overtaker) = (None, None);
    let mut path = Vec::new();
    let mut conflict = None;
    let (mut crossings, mut stores): (Vec<Crossing>, Vec<StepId>) = (Vec::new(), Vec::new());
    for label in labels {
        let thread = ThreadId(label.thread);
        let step = instance.thread(thread).step(label.step);
        let now = run.events.len();
        run.take(Event::Step {
            thread,
            step: label.step,
            value: label.value,
        })?;
        let is_store = matches!(step.action, Action::Store { .. });
        if is_store && label.kind != Kind::Delayed {
            let atomic = instance.thread(thread).atomic[step.source.index()];
            if !atomic {
                let stored = last_cell(&run, thread)?;
                let own = |e: &Event| matches!(e, Event::Drain { cell, .. } if *cell == stored);
                let event = run.drains(thread).into_iter().find(own)?;
                run.take(event)?;
            }
        }
        if thread == attacker && store.is_some() && overtaker.is_none() {
            let source = step.source;
            if !crossings.iter().any(|c| c.location == source) {
                crossings.push(Crossing {
                    location: source,
                    store_fence: false,
                });
            }
            if is_store && label.kind != Kind::Delayed {
                crossings.iter_mut().for_each(|c| c.store_fence = true);
            }
        }
        if thread == attacker
            && is_store
            && overtaker.is_none()
            && (store.is_some() || label.kind == Kind::Delayed)
        {
            stores.push(label.step);
        }
        let starts = label.kind == Kind::Delayed;
        if thread == attacker && overtaker.is_none() && (store.is_some() || starts) {
            path.push(label.step);
        }
        match label.kind {
            Kind::Delayed if store.is_none() => store = Some(now),
            Kind::Commit => overtaker = Some(now),
            Kind::Conflict => conflict = Some(now),
            Kind::Delayed | Kind::Plain => {}
        }
    }
    let (store, overtaker, conflict) = (store?, overtaker?, conflict?);
    crossings.sort();
    crossings.dedup();
    stores.sort();
    stores.dedup();
    let mut drain = None;
    while let Some(event) = run.drains(attacker).first().copied() {
        drain = drain.or(Some(run.events.len()));
        run.take(event)?;
    }
    let events = run.events;
    let relation = happens_before::relation(instance, L::MODEL, start, &events).ok()?;
    let cycle = match options.goal {
        Goal::Triangular => Vec::new(),
        Goal::Robustness => {
            let node = |event: usize| relation.nodes.iter().position(|n| n.event == event);
            let (from, to) = (node(overtaker)?, node(store)?);
            let mut cycle = relation.path(from, to)?;
            cycle.extend(relation.path(to, from)?);
            cycle
        }
    };
    Some(Attack {
        goal: options.goal,
        model: L::MODEL,
        start: start.clone(),
        events,
        attacker,
        store,
        overtaker,
        conflict,
        drain,
        path,
        crossings,
        stores,
        relation,
        cycle,
    })
}

/// The cell written by the run's last event.
fn last_cell<L: Layout>(run: &Run<'_, L>, thread: ThreadId) -> Option<CellId> {
    let Some(Event::Step { step, .. }) = run.events.last() else {
        return None;
    };
    let step = run.machine.instance.thread(thread).step(*step);
    let Action::Store { place, .. } = &step.action else {
        return None;
    };
    let snapshot = State {
        locations: run.state.locations.clone(),
        registers: run.state.registers.clone(),
        memory: run.state.memory.clone(),
        buffers: Vec::new(),
        holder: run.state.holder,
    };
    // A store changes no register, so the operand has the value it had before the step.
    happens_before::address(&snapshot, thread, place)
}

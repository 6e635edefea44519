//! Replaying a list of events on the exact machine of a memory model.

use super::{Machine, Outcome, Refusal, State};
use crate::MemoryModel;
use crate::content::{Entry, Exact};
use crate::event::{Event, Start};
use crate::fault::Fault;
use crate::layout::{Layout, Pso, Sc, Tso};
use wattle_model::Instance;

/// A state as evidence shows it: the same shape for every memory model, buffers as plain lists.
pub type Snapshot = State<Vec<Entry>>;

/// Why a list of events is not a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The start is not an initial state of the program.
    NotInitial,
    /// The event with this index is not enabled.
    NotEnabled {
        index: usize,
        event: Event,
    },
    /// Events after a fault, which ends its run.
    AfterFault {
        index: usize,
    },
    Refused(Refusal),
}

/// Runs the events from the start. Gives every state passed, the start's first, and the fault if the
/// last event is one.
pub fn replay(
    instance: &Instance,
    model: MemoryModel,
    start: &Start,
    events: &[Event],
) -> Result<(Vec<Snapshot>, Option<Fault>), ReplayError> {
    match model {
        MemoryModel::Sc => run::<Sc>(instance, start, events),
        MemoryModel::Tso => run::<Tso>(instance, start, events),
        MemoryModel::Pso => run::<Pso>(instance, start, events),
    }
}

fn run<L: Layout>(
    instance: &Instance,
    start: &Start,
    events: &[Event],
) -> Result<(Vec<Snapshot>, Option<Fault>), ReplayError> {
    let machine = Machine::<L, Exact>::new(instance, ()).map_err(ReplayError::Refused)?;
    if !is_start(instance, start) {
        return Err(ReplayError::NotInitial);
    }
    let mut state = machine.initial(start);
    let mut passed = vec![snapshot::<L>(&state)];
    for (index, event) in events.iter().enumerate() {
        if !machine.events(&state).contains(event) {
            let event = *event;
            return Err(ReplayError::NotEnabled { index, event });
        }
        match machine.apply(&state, event) {
            Outcome::Next(next) => state = next,
            Outcome::Fault(fault) if index + 1 == events.len() => return Ok((passed, Some(fault))),
            Outcome::Fault(_) | Outcome::Full(_) => {
                return Err(ReplayError::AfterFault { index: index + 1 });
            }
        }
        passed.push(snapshot::<L>(&state));
    }
    Ok((passed, None))
}

/// A run made of choices, and what can follow it.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub events: Vec<Event>,
    /// Every state passed, the start's first.
    pub states: Vec<Snapshot>,
    /// What the last event was, if it ends the run.
    pub fault: Option<Fault>,
    /// Every event possible now, in a fixed order; none after a fault.
    pub next: Vec<Event>,
}

/// Takes among the possible events the one with the next number, for as long as there is one.
pub fn choose(
    instance: &Instance,
    model: MemoryModel,
    start: &Start,
    choices: impl Iterator<Item = usize>,
) -> Result<Chosen, ReplayError> {
    match model {
        MemoryModel::Sc => chosen::<Sc>(instance, start, choices),
        MemoryModel::Tso => chosen::<Tso>(instance, start, choices),
        MemoryModel::Pso => chosen::<Pso>(instance, start, choices),
    }
}

fn chosen<L: Layout>(
    instance: &Instance,
    start: &Start,
    choices: impl Iterator<Item = usize>,
) -> Result<Chosen, ReplayError> {
    let machine = Machine::<L, Exact>::new(instance, ()).map_err(ReplayError::Refused)?;
    if !is_start(instance, start) {
        return Err(ReplayError::NotInitial);
    }
    let mut state = machine.initial(start);
    let mut gone = Chosen {
        events: Vec::new(),
        states: vec![snapshot::<L>(&state)],
        fault: None,
        next: machine.events(&state),
    };
    for choice in choices {
        let Some(event) = gone.next.get(choice).copied() else {
            break;
        };
        gone.events.push(event);
        match machine.apply(&state, &event) {
            Outcome::Next(next) => state = next,
            Outcome::Fault(fault) => {
                gone.fault = Some(fault);
                gone.next.clear();
                break;
            }
            // Exact buffers have no bound.
            Outcome::Full(_) => break,
        }
        gone.states.push(snapshot::<L>(&state));
        gone.next = machine.events(&state);
    }
    Ok(gone)
}

/// The numbers of the events of a run among those possible each time.
pub fn choices_of(
    instance: &Instance,
    model: MemoryModel,
    start: &Start,
    events: &[Event],
) -> Result<Vec<usize>, ReplayError> {
    match model {
        MemoryModel::Sc => numbers::<Sc>(instance, start, events),
        MemoryModel::Tso => numbers::<Tso>(instance, start, events),
        MemoryModel::Pso => numbers::<Pso>(instance, start, events),
    }
}

fn numbers<L: Layout>(
    instance: &Instance,
    start: &Start,
    events: &[Event],
) -> Result<Vec<usize>, ReplayError> {
    let machine = Machine::<L, Exact>::new(instance, ()).map_err(ReplayError::Refused)?;
    if !is_start(instance, start) {
        return Err(ReplayError::NotInitial);
    }
    let mut state = machine.initial(start);
    let mut all = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let place = machine.events(&state).iter().position(|e| e == event);
        let event = *event;
        all.push(place.ok_or(ReplayError::NotEnabled { index, event })?);
        match machine.apply(&state, &event) {
            Outcome::Next(next) => state = next,
            Outcome::Fault(_) | Outcome::Full(_) => break,
        }
    }
    Ok(all)
}

fn snapshot<L: Layout>(state: &State<L::Buffer<Exact>>) -> Snapshot {
    State {
        locations: state.locations.clone(),
        registers: state.registers.clone(),
        memory: state.memory.clone(),
        buffers: state.buffers.iter().map(L::entries::<Exact>).collect(),
        holder: state.holder,
    }
}

/// Whether the values are among those the program may start with.
fn is_start(instance: &Instance, start: &Start) -> bool {
    use wattle_model::instance::Initial;
    let fits = |init: Initial, ty: wattle_model::Type, v: i64| match init {
        Initial::Value(w) => v == w,
        Initial::Any => ty.admit(v) == Some(v),
    };
    start.memory.len() == instance.cells.len()
        && start.registers.len() == instance.threads.len()
        && instance
            .cells
            .iter()
            .zip(&start.memory)
            .all(|(c, v)| fits(c.init, c.ty, *v))
        && instance
            .threads
            .iter()
            .zip(&start.registers)
            .all(|(t, values)| {
                t.registers.len() == values.len()
                    && t.registers
                        .iter()
                        .zip(values)
                        .all(|(r, v)| fits(r.init, r.ty, *v))
            })
}

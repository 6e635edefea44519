//! Runs by numbers: which of the possible events comes next each time. Nothing rests on them but what is shown.

use super::replay::{ReplayError, Snapshot, is_start, snapshot};
use super::{Machine, Outcome};
use crate::MemoryModel;
use crate::content::Exact;
use crate::event::{Event, Start};
use crate::fault::Fault;
use crate::layout::{Layout, Pso, Sc, Tso};
use wattle_model::Instance;

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

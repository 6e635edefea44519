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
        if !machine.can(&state, event) {
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

pub(super) fn snapshot<L: Layout>(state: &State<L::Buffer<Exact>>) -> Snapshot {
    State {
        locations: state.locations.clone(),
        registers: state.registers.clone(),
        memory: state.memory.clone(),
        buffers: state.buffers.iter().map(L::entries::<Exact>).collect(),
        holder: state.holder,
    }
}

/// Whether the values are among those the program may start with.
pub(super) fn is_start(instance: &Instance, start: &Start) -> bool {
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

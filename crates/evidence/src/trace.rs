//! A trace is a list of events that the reference machine accepts.

mod error;

pub use error::TraceError;

use serde::{Deserialize, Serialize};
use wattle_memory::reference::{self, Snapshot};
use wattle_memory::{Event, Fault, FaultKind, MemoryModel, Start};

use crate::control::Control;
use crate::task::Task;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    pub model: MemoryModel,
    pub start: Start,
    pub events: Vec<Event>,
    pub end: End,
}

/// What a trace shows in its last state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The question's target is true.
    Target,
    /// The last event is this fault.
    Fault(Fault),
    /// From here no store will ever reach memory, no thread will ever end, and some thread has not.
    Deadlock,
}

impl Trace {
    /// Replays the trace on the reference machine and checks its end. Gives the states passed.
    pub fn check(&self, task: &Task<'_>) -> Result<Vec<Snapshot>, TraceError> {
        self.check_within(task, &Control::unlimited())
    }

    /// The same within a budget: that nothing can happen after a deadlock takes a search.
    pub fn check_within(
        &self,
        task: &Task<'_>,
        control: &Control<'_>,
    ) -> Result<Vec<Snapshot>, TraceError> {
        if self.model != task.model {
            return Err(TraceError::WrongModel);
        }
        let (states, fault) =
            reference::replay(task.instance, self.model, &self.start, &self.events)
                .map_err(TraceError::Replay)?;
        let Some(last) = states.last() else {
            return Err(TraceError::NotFinal);
        };
        let inside = |t: wattle_model::ThreadId| {
            task.instance.thread(t).atomic[last.locations[t.index()].index()]
        };
        match &self.end {
            End::Fault(expected) => {
                if fault.as_ref() != Some(expected) || is_machine_limit(expected) {
                    return Err(TraceError::WrongFault(fault));
                }
            }
            _ if fault.is_some() => return Err(TraceError::WrongFault(fault)),
            _ if task.instance.thread_ids().any(inside) => return Err(TraceError::InsideAtomic),
            End::Deadlock => crate::deadlock::check(task, &self.start, &self.events, control)?,
            End::Target => {
                let question = task.question().ok_or(TraceError::NoQuestion)?;
                if question.only_final && !is_final(task, last) {
                    return Err(TraceError::NotFinal);
                }
                match reference::evaluate(last, &question.target) {
                    Ok(v) if v != 0 => {}
                    _ => return Err(TraceError::TargetFalse),
                }
            }
        }
        Ok(states)
    }
}

/// An overflow of the machine's numbers says nothing about the program.
fn is_machine_limit(fault: &Fault) -> bool {
    fault.kind == FaultKind::MachineOverflow
}

fn is_final(task: &Task<'_>, state: &Snapshot) -> bool {
    let mut threads = task.instance.thread_ids();
    threads.all(|t| {
        task.instance.thread(t).ended(state.locations[t.index()])
            && state.buffers[t.index()].is_empty()
    })
}

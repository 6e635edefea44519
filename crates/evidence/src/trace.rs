//! A trace is a list of events that the reference machine accepts.

use serde::{Deserialize, Serialize};
use std::fmt;
use wattle_memory::reference::{self, ReplayError, Snapshot};
use wattle_memory::{Event, Fault, FaultKind, MemoryModel, Start};

use crate::control::{Control, Stop};
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

/// Why a trace does not show what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceError {
    Replay(ReplayError),
    WrongModel,
    /// The last state does not satisfy the target (or the target has no value there).
    TargetFalse,
    /// The target looks only at final states; the last state is not one.
    NotFinal,
    /// The last state is inside an atomic block, where nobody looks.
    InsideAtomic,
    /// The run ends in another fault than the one named, or in none.
    WrongFault(Option<Fault>),
    /// The program can still do something there.
    NotDeadlocked,
    NoQuestion,
    /// It was not looked at to the end.
    Stopped(Stop),
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Replay(ReplayError::NotInitial) => {
                write!(f, "it does not begin in an initial state")
            }
            TraceError::Replay(ReplayError::NotEnabled { index, .. }) => {
                write!(f, "event {} is not possible there", index + 1)
            }
            TraceError::Replay(ReplayError::AfterFault { index }) => {
                write!(f, "event {index} is a fault, but the trace goes on")
            }
            TraceError::Replay(ReplayError::Refused(r)) => write!(f, "{r}"),
            TraceError::WrongModel => write!(f, "it is about another memory model"),
            TraceError::TargetFalse => write!(f, "the last state does not decide the property"),
            TraceError::NotFinal => write!(f, "the last state is not a final one"),
            TraceError::InsideAtomic => write!(f, "it ends inside an atomic block"),
            TraceError::WrongFault(Some(fault)) => {
                write!(f, "it ends in another fault than announced: {}", fault.kind)
            }
            TraceError::WrongFault(None) => write!(f, "it does not end in the announced fault"),
            TraceError::NotDeadlocked => {
                write!(f, "the program can still do something after the last event")
            }
            TraceError::Stopped(stop) => write!(f, "{stop} while checking it"),
            TraceError::NoQuestion => write!(f, "there is no property it could decide"),
        }
    }
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

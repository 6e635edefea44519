//! What is wrong with a trace, in words.

use crate::control::Stop;
use std::fmt;
use wattle_memory::Fault;
use wattle_memory::reference::ReplayError;

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

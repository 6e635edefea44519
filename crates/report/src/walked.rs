//! A run that somebody walked by hand: it is about no question and shows nothing, but it replays.

use wattle_evidence::{End, Task, Trace, TraceError};
use wattle_memory::reference::{self, Snapshot};

/// Whether it is one.
pub fn is_walk(task: &Task<'_>, trace: &Trace) -> bool {
    trace.end == End::Target && task.question.is_none()
}

/// The states that a run passes, if it replays; of one that shows something, if it does.
pub fn states(task: &Task<'_>, trace: &Trace) -> Result<Vec<Snapshot>, TraceError> {
    if !is_walk(task, trace) || trace.model != task.model {
        return trace.check(task);
    }
    match reference::replay(task.instance, trace.model, &trace.start, &trace.events) {
        Ok((states, None)) => Ok(states),
        Ok((_, fault)) => Err(TraceError::WrongFault(fault)),
        Err(e) => Err(TraceError::Replay(e)),
    }
}

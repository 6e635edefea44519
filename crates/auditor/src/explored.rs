//! Searches whose states were not written down: see [`super::space`].

use super::{AuditError, Audited, space};
use wattle_evidence::certificate::Explored;
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::{Exact, MemoryModel, Pso, Sc, Tso};

/// The states are explored anew.
pub fn audit(
    task: &Task<'_>,
    explored: &Explored,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if explored.model != task.model {
        return Err(AuditError::WrongModel(explored.model));
    }
    let bounds = space::exact_bounds(task.instance);
    match task.model {
        MemoryModel::Sc => space::explore::<Sc, Exact>(task, &bounds, Some(explored), control),
        MemoryModel::Tso => space::explore::<Tso, Exact>(task, &bounds, Some(explored), control),
        MemoryModel::Pso => space::explore::<Pso, Exact>(task, &bounds, Some(explored), control),
    }
}

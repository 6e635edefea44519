//! Searches whose states were not written down: see [`super::space`].

use super::{AuditError, Audited, space};
use wattle_evidence::certificate::Explored;
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::{Exact, MemoryModel, Pso, Sc, Tso};

/// The states are explored anew. Where the search that saw them took more at once, there may be more
/// of them, even without end.
pub fn audit(
    task: &Task<'_>,
    explored: &Explored,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if explored.model != task.model {
        return Err(AuditError::WrongModel(explored.model));
    }
    let most = explored.states.saturating_mul(64).saturating_add(1 << 20);
    let bounds = space::exact_bounds(task.instance);
    match task.model {
        MemoryModel::Sc => space::explore::<Sc, Exact>(task, &bounds, true, most, control),
        MemoryModel::Tso => space::explore::<Tso, Exact>(task, &bounds, true, most, control),
        MemoryModel::Pso => space::explore::<Pso, Exact>(task, &bounds, true, most, control),
    }
}

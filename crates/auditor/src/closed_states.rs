//! Closed sets of states: see [`super::space`].

use super::{AuditError, Audited, space};
use wattle_evidence::certificate::ClosedStates;
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::{MemoryModel, Pso, Sc, Tso};

pub fn audit(
    task: &Task<'_>,
    set: &ClosedStates,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if set.model != task.model {
        return Err(AuditError::WrongModel(set.model));
    }
    match set.model {
        MemoryModel::Sc => space::closed::<Sc>(task, set, control),
        MemoryModel::Tso => space::closed::<Tso>(task, set, control),
        MemoryModel::Pso => space::closed::<Pso>(task, set, control),
    }
}

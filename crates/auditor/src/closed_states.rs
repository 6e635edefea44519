//! Closed sets of states, and searches whose states were not written down: see [`super::space`].

use super::{AuditError, Audited, space};
use wattle_evidence::certificate::{Certificate, ClosedStates, Explored, Robust};
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::{Exact, MemoryModel, Pso, Sc, Tso};

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

/// The states are explored anew. Where the search that saw them took more at once, there may be more
/// of them, even without end.
pub fn audit_explored(
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

/// More states than this are not written down.
const MOST: u64 = 1_000_000;

/// The certificate for a file: states that were explored are written down, if that can be done.
pub fn write_down(
    task: &Task<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Certificate {
    match certificate {
        Certificate::Explored(_) => {
            let listed = match task.model {
                MemoryModel::Sc => space::list::<Sc>(task, MOST, control),
                MemoryModel::Tso => space::list::<Tso>(task, MOST, control),
                MemoryModel::Pso => space::list::<Pso>(task, MOST, control),
            };
            match listed {
                Ok(set) => Certificate::ClosedStates(set),
                Err(_) => certificate.clone(),
            }
        }
        Certificate::Robust(robust) => {
            let model = MemoryModel::Sc;
            let sc = Task { model, ..*task };
            let under_sc = Box::new(write_down(&sc, &robust.under_sc, control));
            Certificate::Robust(Robust { under_sc })
        }
        Certificate::Parts(parts) => {
            let each = |alone: &Task<'_>, proof: &Certificate| write_down(alone, proof, control);
            match crate::parts::each(task, parts, each) {
                Ok(parts) => Certificate::Parts(parts),
                Err(_) => certificate.clone(),
            }
        }
        Certificate::ClosedStates(_)
        | Certificate::Coherent(_)
        | Certificate::Traces(_)
        | Certificate::LoadBuffers(_)
        | Certificate::Multisets(_)
        | Certificate::Cubes(_)
        | Certificate::Views(_)
        | Certificate::Counting(_)
        | Certificate::Components(_)
        | Certificate::Inductive(_) => certificate.clone(),
    }
}

//! Programs that are robust against TSO: SC does not reach the target, and there is no attack
//! ([`super::space::attack`]).

use super::space::attack::{audit_robustness, audit_under_sc};
use super::{AuditError, Audited, Solvers, audit_with};
use wattle_evidence::certificate::{Certificate, Robust};
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::MemoryModel;
use wattle_model::instance::Fact;

pub(super) fn audit_robust(
    solvers: &Solvers,
    task: &Task<'_>,
    certificate: &Robust,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let other = |why: &str| Err(AuditError::Other(why.to_string()));
    if task.model != MemoryModel::Tso {
        return Err(AuditError::WrongModel(MemoryModel::Tso));
    }
    if task.deadlock {
        return other("robustness says nothing about deadlocks");
    }
    if let Some(q) = task.question()
        && !q.only_final
    {
        let mut memory = false;
        q.target.for_each_atom(&mut |f| {
            memory |= matches!(f, Fact::Cell(_) | Fact::Seen(..) | Fact::CellAt { .. });
        });
        if memory {
            return other("robustness says nothing about memory while stores are pending");
        }
    }
    if !(task.instance).waiting_for_the_lock_is_unseen(task.question()) {
        return other("robustness says nothing of states in which stores wait for the lock");
    }
    let under_sc = Task {
        model: MemoryModel::Sc,
        ..*task
    };
    // The search for attacks goes through all states of SC anyway.
    if let Certificate::Explored(explored) = &*certificate.under_sc
        && explored.model == MemoryModel::Sc
    {
        let checked = audit_under_sc(&under_sc, control)?;
        return Ok(Audited { checked });
    }
    let mut audited = audit_with(solvers, &under_sc, &certificate.under_sc, control)?;
    audited.checked += audit_robustness(task.instance, control)?;
    Ok(audited)
}

//! Certificates about a fixed number of threads: which auditor.

use crate::{AuditError, Audited, Solvers};
use crate::{
    closed_states, coherent, explored, inductive, load_buffers, multisets, parts, robust, traces,
};
use wattle_evidence::Task;
use wattle_evidence::certificate::Certificate;
use wattle_evidence::control::Control;

/// Whether the certificate proves that the task's target, a fault (and a deadlock, if asked for) cannot be reached.
pub fn audit(
    task: &Task<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    audit_with(&Solvers::own(), task, certificate, control)
}

/// The same, with a say in who answers queries.
pub fn audit_with(
    solvers: &Solvers,
    task: &Task<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    match certificate {
        // What is pending is part of the states that these are about.
        Certificate::ClosedStates(c) => closed_states::audit(task, c, control),
        Certificate::Explored(c) => explored::audit(task, c, control),
        Certificate::Coherent(c) => coherent::audit(task, c, control),
        Certificate::Parts(c) => parts::audit(solvers, task, c, control),
        _ if task.sees_buffers() => Err(AuditError::Refused(
            "the question sees pending stores, of which it says nothing".into(),
        )),
        Certificate::Robust(c) => robust::audit_robust(solvers, task, c, control),
        Certificate::Traces(c) => traces::audit(task, c, control),
        Certificate::Inductive(c) => inductive::audit(solvers, task, c, control),
        Certificate::Multisets(c) => multisets::audit(task, c, control),
        Certificate::LoadBuffers(c) => load_buffers::audit(task, c, control),
        Certificate::Cubes(_)
        | Certificate::Views(_)
        | Certificate::Counting(_)
        | Certificate::Levels(_)
        | Certificate::Readers(_) => Err(AuditError::Refused(
            "it is about any number of threads, and this is one instance".into(),
        )),
        Certificate::Components(_) | Certificate::Returning(_) => Err(AuditError::Refused(
            "it is about whole runs, and single states are asked about".into(),
        )),
    }
}

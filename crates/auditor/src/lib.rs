//! The auditor: re-checks certificates with the rules of a step (and, for formulas, the solver). It
//! shares no code with any engine: one file per kind of certificate. And the judge, which turns an
//! engine's answer into a verdict once its evidence is checked.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

mod automata;
mod bad;
mod closed_states;
mod coherent;
mod components;
pub mod counting;
mod cubes;
mod error;
mod explored;
mod facts;
mod inductive;
mod judge;
mod load_buffers;
pub mod meaning;
mod multisets;
mod open;
mod parts;
mod readers;
mod returning;
mod robust;
mod solvers;
mod space;
mod symbols;
mod traces;
pub mod translation;
mod tuples;
mod views;
mod write_down;

pub use counting::audit_counting;
pub use error::AuditError;
pub use judge::{AuditPolicy, after_audit, after_validation, judge, judge_live, judge_open};
pub use load_buffers::audit_crowd;
pub use open::{audit_open, audit_system};
pub use returning::{audit_for_ever, audit_live};
pub use solvers::Solvers;
pub use space::attack::audit_robustness;
pub use write_down::write_down;

use open::model_of;
use wattle_evidence::Task;
use wattle_evidence::certificate::Certificate;
use wattle_evidence::control::Control;

/// What an audit that went well has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// States, cubes or formulas that were checked.
    pub checked: u64,
}

/// Whether the certificate proves that the task's target, a fault (and a deadlock, if asked for)
/// cannot be reached.
pub fn audit(
    task: &Task<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    audit_with(&Solvers::own(), task, certificate, control)
}

/// Whether what is pending is part of the states that it is about.
fn knows_buffers(certificate: &Certificate) -> bool {
    match certificate {
        Certificate::ClosedStates(_)
        | Certificate::Explored(_)
        | Certificate::Coherent(_)
        | Certificate::Parts(_) => true,
        Certificate::Robust(_)
        | Certificate::Cubes(_)
        | Certificate::Views(_)
        | Certificate::Counting(_)
        | Certificate::Readers(_)
        | Certificate::Components(_)
        | Certificate::Returning(_)
        | Certificate::Traces(_)
        | Certificate::Inductive(_)
        | Certificate::Multisets(_)
        | Certificate::LoadBuffers(_) => false,
    }
}

/// The same, with a say in who answers queries.
pub fn audit_with(
    solvers: &Solvers,
    task: &Task<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if task.sees_buffers() && !knows_buffers(certificate) {
        let why = "the question sees pending stores, of which it says nothing";
        return Err(AuditError::Refused(why.into()));
    }
    match certificate {
        Certificate::Robust(c) => robust::audit_robust(solvers, task, c, control),
        Certificate::Cubes(_)
        | Certificate::Views(_)
        | Certificate::Counting(_)
        | Certificate::Readers(_) => Err(AuditError::Refused(
            "it is about any number of threads, and this is one instance".into(),
        )),
        Certificate::Components(_) | Certificate::Returning(_) => Err(AuditError::Refused(
            "it is about whole runs, and single states are asked about".into(),
        )),
        Certificate::ClosedStates(c) => closed_states::audit(task, c, control),
        Certificate::Explored(c) => explored::audit(task, c, control),
        Certificate::Traces(c) => traces::audit(task, c, control),
        Certificate::Parts(c) => parts::audit(solvers, task, c, control),
        Certificate::Coherent(c) => coherent::audit(task, c, control),
        Certificate::Inductive(c) => inductive::audit(solvers, task, c, control),
        Certificate::Multisets(c) => multisets::audit(task, c, control),
        Certificate::LoadBuffers(c) => load_buffers::audit(task, c, control),
    }
}

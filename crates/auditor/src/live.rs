//! Certificates about whole runs.

pub mod automaton;

use super::components::audit_components;
use super::returning::audit_returning;
use super::{AuditError, Audited};
use wattle_evidence::Fairness;
use wattle_evidence::certificate::Certificate;
use wattle_evidence::control::Control;
use wattle_evidence::live::LiveTask;

/// Whether the certificate proves that the demand holds.
pub fn audit_live(
    task: &LiveTask<'_>,
    certificate: &Certificate,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if task.atoms().iter().any(|e| e.sees_buffers()) {
        let why = "the demand sees pending stores, of which it says nothing";
        return Err(AuditError::Refused(why.into()));
    }
    match certificate {
        Certificate::Components(c) => {
            // Memory fair runs are strongly fair, and those weakly.
            let fairness = match (task.fairness, c.fairness) {
                (Fairness::Memory, weaker) => weaker,
                (asked, _) => asked,
            };
            let task = LiveTask { fairness, ..*task };
            audit_components(&task, c, control)
        }
        Certificate::Returning(c) => audit_returning(task, c, control),
        Certificate::ClosedStates(_)
        | Certificate::Explored(_)
        | Certificate::Coherent(_)
        | Certificate::LoadBuffers(_)
        | Certificate::Multisets(_)
        | Certificate::Cubes(_)
        | Certificate::Views(_)
        | Certificate::Counting(_)
        | Certificate::Levels(_)
        | Certificate::Readers(_)
        | Certificate::Robust(_)
        | Certificate::Traces(_)
        | Certificate::Parts(_)
        | Certificate::Inductive(_) => Err(AuditError::Refused(
            "it is about single states, and whole runs are asked about".into(),
        )),
    }
}

pub fn other(why: &str) -> AuditError {
    AuditError::Other(why.to_string())
}

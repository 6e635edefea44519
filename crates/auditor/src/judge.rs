//! From what an engine answered to what a person is told. Here, and only here, answers become
//! verdicts: traces are minimised and replayed, certificates audited, before anything is said.

mod live;
mod open;
mod replayed;

pub use live::judge_live;
pub use open::{after_validation, judge_open};

use crate::{AuditError, audit};
use replayed::{fault_on_the_way, reached};
use wattle_evidence::{
    Answer, Broken, Control, Judged, Proof, Reason, Scope, Task, Unchecked, Unsound, Verdict,
};
use wattle_model::PropertyKind;

/// What the result of an audit makes of a proof: it counts (checked or not), or it does not, for a
/// reason, or it is wrong.
pub fn after_audit(
    engine: &'static str,
    result: Result<(), AuditError>,
) -> Result<Result<Option<Unchecked>, Reason>, Unsound> {
    match result {
        Ok(()) => Ok(Ok(None)),
        Err(AuditError::Stopped(stop)) => Ok(Ok(Some(Unchecked::Stopped(stop)))),
        // The auditor may have more to go through than the search had.
        Err(e @ AuditError::TooMany) => Ok(Ok(Some(Unchecked::Unable(e.to_string())))),
        Err(AuditError::Refused(why)) => Ok(Err(Reason::Other(format!(
            "{engine} has a proof, but it cannot be audited: {why}"
        )))),
        Err(e) => Err(unsound(engine, e)),
    }
}

/// Whether the state that is looked for is wanted.
fn is_good(task: &Task<'_>) -> bool {
    let question = task.question();
    question.is_some_and(|q| q.kind == PropertyKind::Reachable)
}

fn unsound(engine: &'static str, e: impl ToString) -> Unsound {
    let what = e.to_string();
    Unsound { engine, what }
}

/// Whether to re-check certificates before believing them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditPolicy {
    #[default]
    Always,
    /// The verdict says that it was not audited.
    Never,
}

pub fn judge(
    task: &Task<'_>,
    engine: &'static str,
    answer: Answer,
    policy: AuditPolicy,
    control: &Control<'_>,
) -> Result<Judged, Unsound> {
    let reaching_is_good = is_good(task);
    let (so_far, settled) = (answer.effort(), answer.settles(task).is_some());
    let (verdict, unchecked) = match answer {
        Answer::Reached { trace, effort } if !settled => {
            (fault_on_the_way(engine, &trace, effort), None)
        }
        Answer::Reached { trace, effort } => {
            (reached(task, engine, (trace, effort), control)?, None)
        }
        Answer::Unreachable { certificate, .. } => {
            let audited = match policy {
                AuditPolicy::Never => Ok(Some(Unchecked::Off)),
                AuditPolicy::Always => {
                    let result = audit(task, &certificate, control).map(|_| ());
                    after_audit(engine, result)?
                }
            };
            match audited {
                Ok(unchecked) if reaching_is_good => {
                    let because = Broken::NeverReached(certificate);
                    (Verdict::Violated { because }, unchecked)
                }
                Ok(unchecked) => {
                    let (scope, proof) = (Scope::of(task), Proof::Certificate(certificate));
                    (Verdict::Holds { scope, proof }, unchecked)
                }
                Err(reason) => (Verdict::Undecided { reason, so_far }, None),
            }
        }
        Answer::Bounded { limits, .. } => (Verdict::Bounded { limits }, None),
        Answer::Undecided { reason, .. } => (Verdict::Undecided { reason, so_far }, None),
    };
    Ok(Judged { verdict, unchecked })
}

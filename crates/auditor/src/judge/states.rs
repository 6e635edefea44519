//! Answers about the states of one instance.

use super::replayed::{fault_on_the_way, reached};
use super::{AuditPolicy, after_audit};
use crate::audit;
use wattle_evidence::{
    Answer, Broken, Control, Judged, Proof, Scope, Task, Unchecked, Unsound, Verdict,
};
use wattle_model::PropertyKind;

/// Whether the state that is looked for is wanted.
pub fn is_good(task: &Task<'_>) -> bool {
    let question = task.question();
    question.is_some_and(|q| q.kind == PropertyKind::Reachable)
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

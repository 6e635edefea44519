//! Answers about whole runs.

use super::{AuditPolicy, after_audit, judge, unsound};
use crate::{audit_for_ever, audit_live};
use wattle_evidence::{
    Answer, Broken, Certificate, Control, Judged, LiveAnswer, LiveTask, Progress, Proof, Scope,
    Unchecked, Unsound, Verdict,
};

/// The same for demands on runs: lassos are replayed, certificates audited.
pub fn judge_live(
    task: &LiveTask<'_>,
    engine: &'static str,
    (answer, so_far): (LiveAnswer, Progress),
    policy: AuditPolicy,
    control: &Control<'_>,
) -> Result<Judged, Unsound> {
    let (verdict, unchecked) = match answer {
        LiveAnswer::Broken(lasso) => {
            let checked = lasso.check(task);
            checked.map_err(|e| unsound(engine, format!("its run does not replay: {e}")))?;
            let audited = match policy {
                AuditPolicy::Never if lasso.for_ever.is_some() => Ok(Some(Unchecked::Off)),
                AuditPolicy::Never | AuditPolicy::Always => {
                    let result = audit_for_ever(task, &lasso, control).map(|_| ());
                    after_audit(engine, result)?
                }
            };
            match audited {
                Ok(unchecked) => {
                    let because = Broken::Lasso(lasso);
                    (Verdict::Violated { because }, unchecked)
                }
                Err(reason) => (Verdict::Undecided { reason, so_far }, None),
            }
        }
        LiveAnswer::Fault(trace) => {
            let effort = so_far;
            let answer = Answer::Reached { trace, effort };
            return judge(&task.faults(), engine, answer, policy, control);
        }
        LiveAnswer::Holds(certificate) => {
            let audited = match policy {
                AuditPolicy::Never => Ok(Some(Unchecked::Off)),
                AuditPolicy::Always => {
                    let result = audit_live(task, &certificate, control).map(|_| ());
                    after_audit(engine, result)?
                }
            };
            match audited {
                Ok(unchecked) => {
                    let mut scope = Scope::of(&task.faults());
                    if !forgets(&certificate) {
                        // The buffers were followed to their end.
                        scope.unbounded = Vec::new();
                    }
                    let proof = Proof::Certificate(certificate);
                    (Verdict::Holds { scope, proof }, unchecked)
                }
                Err(reason) => (Verdict::Undecided { reason, so_far }, None),
            }
        }
        LiveAnswer::Bounded(limits) => (Verdict::Bounded { limits }, None),
        LiveAnswer::Undecided(reason) => (Verdict::Undecided { reason, so_far }, None),
    };
    Ok(Judged { verdict, unchecked })
}

/// Buffers were not followed to their end: they may have none.
fn forgets(certificate: &Certificate) -> bool {
    matches!(certificate, Certificate::Returning(c) if c.parts.iter().any(|p| p.keeps.is_abstract()))
}

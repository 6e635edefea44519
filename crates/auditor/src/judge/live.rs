//! Answers about whole runs.

use super::{AuditPolicy, after_audit, judge, unsound};
use crate::audit_components;
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
            let because = Broken::Lasso(lasso);
            (Verdict::Violated { because }, None)
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
                    let result = audit_components(task, &certificate, control).map(|_| ());
                    after_audit(engine, result)?
                }
            };
            match audited {
                Ok(unchecked) => {
                    let proof = Proof::Certificate(Certificate::Components(certificate));
                    // The buffers were followed to their end.
                    let scope = Scope {
                        unbounded: Vec::new(),
                        ..Scope::of(&task.faults())
                    };
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

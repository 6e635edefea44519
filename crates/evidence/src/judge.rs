//! From what an engine answered to what a person is told. Here, and only here, answers become
//! verdicts: traces are minimised and replayed, certificates audited, before anything is said.

use crate::answer::{Answer, Reason};
use crate::audit::{AuditError, audit};
use crate::certificate::Certificate;
use crate::control::{Control, Stop};
use crate::minimise::minimise;
use crate::task::Task;
use crate::trace::{End, Trace, TraceError};
use crate::verdict::{Broken, Proof, Scope, Verdict};
use std::fmt;
use wattle_memory::MemoryModel;
use wattle_model::PropertyKind;

/// An engine's evidence did not check. This is a bug in Wattle, never in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsound {
    pub engine: &'static str,
    pub what: String,
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the evidence of engine `{}` did not check: {}\n\
             This is a bug in Wattle; nothing is claimed about the program. Please report it with \
             the input file and the command.",
            self.engine, self.what
        )
    }
}

/// A verdict, and whether its evidence was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    /// Traces always are; a certificate unless that was switched off.
    pub checked: bool,
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
    let reaching_is_good = task
        .question()
        .is_some_and(|q| q.kind == PropertyKind::Reachable);
    let so_far = answer.effort();
    let (verdict, checked) = match answer {
        Answer::Reached { trace, .. } => {
            let verdict = match checked_trace(task, engine, trace, control)? {
                Err(stop) => {
                    let stage = format!("the replay of the run found by {engine}");
                    let reason = Reason::Stopped { stop, stage };
                    Verdict::Undecided { reason, so_far }
                }
                Ok(trace) if reaching_is_good && trace.end == End::Target => {
                    let (scope, proof) = (scope(task), Proof::Witness(trace));
                    Verdict::Holds { scope, proof }
                }
                Ok(trace) => {
                    let because = Broken::Trace(trace);
                    Verdict::Violated { because }
                }
            };
            (verdict, true)
        }
        Answer::Unreachable { certificate, .. } => {
            // States that were only counted cannot be checked without searching again; the verdict
            // says that it was not audited, and `wattle audit` does it on request.
            let counted = matches!(certificate, Certificate::Counted(_));
            let checked = policy == AuditPolicy::Always && !counted;
            let result = match checked {
                true => audit(task, &certificate, control).map(|_| ()),
                false => Ok(()),
            };
            let verdict = match result {
                Ok(()) if reaching_is_good => {
                    let because = Broken::NeverReached(certificate);
                    Verdict::Violated { because }
                }
                Ok(()) => {
                    let (scope, proof) = (scope(task), Proof::Certificate(certificate));
                    Verdict::Holds { scope, proof }
                }
                Err(AuditError::Stopped(stop)) => {
                    let stage = format!("the audit of the proof by {engine}");
                    let reason = Reason::Stopped { stop, stage };
                    Verdict::Undecided { reason, so_far }
                }
                Err(AuditError::Refused(why)) => {
                    let reason = Reason::Other(format!(
                        "{engine} has a proof, but it cannot be audited: {why}"
                    ));
                    Verdict::Undecided { reason, so_far }
                }
                Err(e) => {
                    let what = e.to_string();
                    return Err(Unsound { engine, what });
                }
            };
            (verdict, checked)
        }
        Answer::Bounded { limits, .. } => (Verdict::Bounded { limits }, true),
        Answer::Undecided { reason, .. } => (Verdict::Undecided { reason, so_far }, true),
    };
    Ok(Judged { verdict, checked })
}

fn checked_trace(
    task: &Task<'_>,
    engine: &'static str,
    trace: Trace,
    control: &Control<'_>,
) -> Result<Result<Trace, Stop>, Unsound> {
    let unsound = |e: TraceError| Unsound {
        engine,
        what: format!("its trace does not replay: {e}"),
    };
    match trace.check_within(task, control) {
        Ok(_) => {}
        Err(TraceError::Stopped(stop)) => return Ok(Err(stop)),
        Err(e) => return Err(unsound(e)),
    }
    let shorter = minimise(task, &trace, control);
    match shorter.check_within(task, control) {
        Ok(_) => Ok(Ok(shorter)),
        // The one given has been replayed.
        Err(TraceError::Stopped(_)) => Ok(Ok(trace)),
        Err(e) => Err(unsound(e)),
    }
}

/// What a verdict about the task covers.
pub fn scope(task: &Task<'_>) -> Scope {
    let threads = match task.instance.threads.len() {
        1 => "1 thread".to_string(),
        n => format!("{n} threads"),
    };
    let data = match task.instance.is_finite() {
        true => "finite",
        false => "unbounded integers",
    };
    let buffers = (task.model != MemoryModel::Sc).then(|| "store buffers".to_string());
    Scope {
        threads,
        data: data.to_string(),
        unbounded: buffers.into_iter().collect(),
    }
}

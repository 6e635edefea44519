//! From what an engine answered to what a person is told. Here, and only here, answers become
//! verdicts: traces are minimised and replayed, certificates audited, before anything is said.

use crate::answer::{Answer, Reason};
use crate::audit::{AuditError, audit};
use crate::control::Control;
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
            let trace = checked_trace(task, engine, trace, control)?;
            let verdict = if reaching_is_good && trace.end == End::Target {
                let (scope, proof) = (scope(task), Proof::Witness(trace));
                Verdict::Holds { scope, proof }
            } else {
                let because = Broken::Trace(trace);
                Verdict::Violated { because }
            };
            (verdict, true)
        }
        Answer::Unreachable { certificate, .. } => {
            let mut checked = policy == AuditPolicy::Always;
            let result = match checked {
                true => audit(task, &certificate, control).map(|_| ()),
                false => Ok(()),
            };
            // The auditor leaves out less than the search, and may have too much to look at.
            let result = match result {
                Err(AuditError::TooMany) => {
                    checked = false;
                    Ok(())
                }
                result => result,
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
) -> Result<Trace, Unsound> {
    let unsound = |e: TraceError| Unsound {
        engine,
        what: format!("its trace does not replay: {e}"),
    };
    trace.check(task).map_err(unsound)?;
    let trace = minimise(task, &trace, control);
    trace.check(task).map_err(unsound)?;
    Ok(trace)
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

//! From what an engine answered to what a person is told. Here, and only here, answers become
//! verdicts: traces are minimised and replayed, certificates audited, before anything is said.

use crate::answer::{Answer, Reason};
use crate::audit::{AuditError, audit};
use crate::control::{Control, Stop};
use crate::minimise::minimise;
use crate::task::Task;
use crate::trace::{End, Trace, TraceError};
use crate::verdict::{Assumption, Broken, Proof, Scope, Verdict};
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
    /// Why the evidence was not checked. Traces always are, certificates where nothing hinders it.
    pub unchecked: Option<Unchecked>,
}

impl Judged {
    /// A verdict whose evidence was checked, or that has none.
    pub fn checked(verdict: Verdict) -> Self {
        let unchecked = None;
        Judged { verdict, unchecked }
    }

    /// The same where a proof took something for granted: what was not accepted is a condition.
    pub fn assuming(
        self,
        assumptions: Vec<Assumption>,
        accepted: impl Fn(&Assumption) -> bool,
    ) -> Self {
        let Verdict::Holds { mut scope, proof } = self.verdict else {
            return self;
        };
        let all = assumptions.iter().all(accepted);
        scope.assumptions.extend(assumptions);
        let verdict = match all {
            true => Verdict::Holds { scope, proof },
            false => Verdict::HoldsIf { scope, proof },
        };
        Judged { verdict, ..self }
    }
}

/// Why a proof was not audited. The verdict stands, and says so: this is about what an audit costs,
/// not about the proof. An auditor that *refuses* a proof says something about the proof, and then
/// nothing is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// Nobody wanted it.
    Off,
    /// There was too much to audit, or nobody to do it.
    Unable(String),
    /// The audit ran out of its budget.
    Stopped(Stop),
    /// The proof is about a system, which was audited; that this does what the program does, was not:
    /// why.
    Translation(String),
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unchecked::Off => f.write_str("switched off"),
            Unchecked::Unable(why) | Unchecked::Translation(why) => f.write_str(why),
            Unchecked::Stopped(stop) => write!(f, "{stop}"),
        }
    }
}

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
        Err(e) => {
            let what = e.to_string();
            Err(Unsound { engine, what })
        }
    }
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
    let (so_far, settled) = (answer.effort(), answer.settles(task).is_some());
    let (verdict, unchecked) = match answer {
        // The run of an engine that stops at the first fault: another may get to the state.
        Answer::Reached { trace, .. } if !settled => {
            let met = match &trace.end {
                End::Fault(fault) => fault.kind.to_string(),
                End::Deadlock => "a deadlock".into(),
                End::Target => String::new(),
            };
            let reason = Reason::Other(format!(
                "{engine} met a fault ({met}) and looked no further; `--engine explicit` does"
            ));
            (Verdict::Undecided { reason, so_far }, None)
        }
        Answer::Reached { trace, .. } => {
            let verdict = match checked_trace(task, engine, trace, control)? {
                Err(stop) => {
                    let stage = format!("the replay of the run found by {engine}");
                    let reason = Reason::Stopped { stop, stage };
                    Verdict::Undecided { reason, so_far }
                }
                Ok(trace) if reaching_is_good => {
                    let (scope, proof) = (scope(task), Proof::Witness(trace));
                    Verdict::Holds { scope, proof }
                }
                Ok(trace) => {
                    let because = Broken::Trace(trace);
                    Verdict::Violated { because }
                }
            };
            (verdict, None)
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
                    let (scope, proof) = (scope(task), Proof::Certificate(certificate));
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
        assumptions: Vec::new(),
    }
}

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
    /// Why the evidence was not checked. Traces always are, certificates where nothing hinders it.
    pub unchecked: Option<Unchecked>,
}

impl Judged {
    /// A verdict whose evidence was checked, or that has none.
    pub fn checked(verdict: Verdict) -> Self {
        let unchecked = None;
        Judged { verdict, unchecked }
    }
}

/// Why a proof was not audited. The verdict stands, and says so: this is about what an audit costs,
/// not about the proof. An auditor that *refuses* a proof says something about the proof, and then
/// nothing is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// Nobody wanted it.
    Off,
    /// The states of the search were too many to write down; why.
    Counted(String),
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
            Unchecked::Counted(why) | Unchecked::Translation(why) => f.write_str(why),
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
    let so_far = answer.effort();
    let (verdict, unchecked) = match answer {
        Answer::Reached { trace, .. } => {
            let trace = checked_trace(task, engine, trace, control)?;
            let verdict = if reaching_is_good && trace.end == End::Target {
                let (scope, proof) = (scope(task), Proof::Witness(trace));
                Verdict::Holds { scope, proof }
            } else {
                let because = Broken::Trace(trace);
                Verdict::Violated { because }
            };
            (verdict, None)
        }
        Answer::Unreachable { certificate, .. } => {
            // States that were only counted cannot be checked without searching again; the verdict
            // says that it was not audited, and `wattle audit` does it on request.
            let audited = match (policy, &certificate) {
                (AuditPolicy::Never, _) => Ok(Some(Unchecked::Off)),
                (AuditPolicy::Always, Certificate::Counted(c)) => {
                    Ok(Some(Unchecked::Counted(c.why.clone())))
                }
                (AuditPolicy::Always, _) => {
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
        assumptions: Vec::new(),
    }
}

//! Runs are replayed, and made shorter.

use super::states::is_good;
use super::unsound;
use wattle_evidence::{
    Broken, Control, End, Progress, Proof, Reason, Scope, Stop, Task, Trace, TraceError, Unsound,
    Verdict, minimise,
};

/// The run of an engine that stops at the first fault: another may get to the state.
pub fn fault_on_the_way(engine: &'static str, trace: &Trace, so_far: Progress) -> Verdict {
    let met = match &trace.end {
        End::Fault(fault) => fault.kind.to_string(),
        End::Deadlock => "a deadlock".into(),
        End::Target => String::new(),
    };
    let reason = Reason::Other(format!(
        "{engine} met a fault ({met}) and looked no further; `--engine explicit` does"
    ));
    Verdict::Undecided { reason, so_far }
}

/// A run that gets to the state.
pub fn reached(
    task: &Task<'_>,
    engine: &'static str,
    (trace, so_far): (Trace, Progress),
    control: &Control<'_>,
) -> Result<Verdict, Unsound> {
    Ok(match checked_trace(task, engine, trace, control)? {
        Err(stop) => {
            let stage = format!("the replay of the run found by {engine}");
            let reason = Reason::Stopped { stop, stage };
            Verdict::Undecided { reason, so_far }
        }
        Ok(trace) if is_good(task) => {
            let (scope, proof) = (Scope::of(task), Proof::Witness(trace));
            Verdict::Holds { scope, proof }
        }
        Ok(trace) => {
            let because = Broken::Trace(trace);
            Verdict::Violated { because }
        }
    })
}

fn checked_trace(
    task: &Task<'_>,
    engine: &'static str,
    trace: Trace,
    control: &Control<'_>,
) -> Result<Result<Trace, Stop>, Unsound> {
    let unsound = |e: TraceError| unsound(engine, format!("its trace does not replay: {e}"));
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

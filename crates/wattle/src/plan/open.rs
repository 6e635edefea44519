//! What becomes of an answer about any number of threads: proofs are audited and confirmed by small
//! instances, violations are shown on an instance of the program.

use super::{Outcome, is_decided, run};
use crate::families;
use crate::options::Options;
use crate::small_worlds::{self, Sampled, Shown, sample};
use std::sync::Arc;
use wattle_auditor::{judge, judge_open};
use wattle_evidence::{
    Answer, AnyNumber, Broken, Control, Engine, Judged, OpenAnswer, OpenTask, Progress, Proof,
    Reason, Unchecked, Unsound, Verdict,
};

/// Threads in a family, and states, of small instances that are run before anything is proved, and
/// where nobody has decided.
pub const FIRST_LOOK: (u32, u64) = (3, 4_000);
pub const LAST_LOOK: (u32, u64) = (small_worlds::THREADS, small_worlds::STATES);

/// Who runs small instances.
const EXPLICIT: &str = "explicit";

/// What an engine says, with its evidence checked.
pub fn answered(
    engine: &dyn Engine,
    task: &OpenTask<'_>,
    options: &Options,
    control: &Control<'_>,
) -> Result<Outcome, Unsound> {
    let name = engine.name();
    let answer = engine.run_open(task, control);
    let (judged, effort) = match answer {
        OpenAnswer::Reached {
            instance,
            trace,
            effort,
        } => {
            let run = Shown {
                instance: *instance,
                trace,
                effort,
            };
            return shown(name, task, run, options, control);
        }
        OpenAnswer::Suspected { threads, .. } => {
            return suspected(name, task, threads, options, control);
        }
        OpenAnswer::Ran { lines, effort } => {
            let because = Broken::Run(lines);
            (Judged::checked(Verdict::Violated { because }), effort)
        }
        OpenAnswer::Unreachable { proof, effort } => {
            let scope = families::scope(task, options);
            let policy = (options.audit, |a: &_| options.accepts(a));
            (
                judge_open(task, name, proof, scope, policy, control)?,
                effort,
            )
        }
        OpenAnswer::Undecided { reason, effort } => (undecided(reason), effort),
    };
    Ok(Outcome::new(name, judged, effort))
}

fn undecided(reason: Reason) -> Judged {
    let so_far = Progress::default();
    Judged::checked(Verdict::Undecided { reason, so_far })
}

/// A run of an instance, replayed.
pub fn shown(
    engine: &'static str,
    task: &OpenTask<'_>,
    run: Shown,
    options: &Options,
    control: &Control<'_>,
) -> Result<Outcome, Unsound> {
    let Shown {
        instance,
        trace,
        effort,
    } = run;
    let answer = Answer::Reached { trace, effort };
    let judged = judge(&task.on(&instance), engine, answer, options.audit, control)?;
    Ok(Outcome {
        shown: Some(Arc::new(instance)),
        ..Outcome::new(engine, judged, effort)
    })
}

/// Shows a violation on the program itself: with as many threads as the run has, or a few more (a
/// counter that leaves its range counts as a violation of the system, not of the program).
fn suspected(
    engine: &'static str,
    task: &OpenTask<'_>,
    least: u32,
    options: &Options,
    control: &Control<'_>,
) -> Result<Outcome, Unsound> {
    // Any engine for instances may show it.
    let options = &Options {
        engine: None,
        ..options.clone()
    };
    if let AnyNumber::Program(program) = task.of {
        for n in least..=least.max(3) {
            let Ok(instance) = families::with_threads(program, n) else {
                break;
            };
            let outcome = run(&task.on(&instance), options, control)?;
            if matches!(outcome.judged.verdict, Verdict::Violated { .. }) {
                let shown = Some(Arc::new(instance));
                return Ok(Outcome { shown, ..outcome });
            }
        }
    }
    let why =
        "the search for any number of threads found a violation that small instances do not show";
    let judged = undecided(Reason::Other(why.into()));
    Ok(Outcome::new(engine, judged, Progress::default()))
}

/// What small instances of a program show, unless an engine was asked for by name.
pub fn small(
    task: &OpenTask<'_>,
    limits: (u32, u64),
    options: &Options,
    control: &Control<'_>,
) -> Result<Option<Outcome>, Unsound> {
    if options.engine.is_some() || matches!(task.of, AnyNumber::System(_)) {
        return Ok(None);
    }
    match sample(task, None, limits, control) {
        Sampled::Broken(run) => shown(EXPLICIT, task, *run, options, control).map(Some),
        Sampled::Fine(_) | Sampled::Ran(..) | Sampled::Outside(_) => Ok(None),
    }
}

/// A proof after small instances were run: what they show comes first.
pub fn confirmed(
    task: &OpenTask<'_>,
    mut outcome: Outcome,
    options: &Options,
    control: &Control<'_>,
) -> Result<Outcome, Unsound> {
    let certificate = match &outcome.judged.verdict {
        Verdict::Holds {
            proof: Proof::Certificate(certificate),
            ..
        } => Some(certificate),
        Verdict::HoldsIf {
            scope,
            proof: Proof::Certificate(certificate),
        } if (scope.assumptions.iter()).all(|a| families::small_worlds_keep(task.of, a)) => {
            Some(certificate)
        }
        // A proof under a condition is not refuted by what breaks the condition.
        Verdict::HoldsIf { .. } => None,
        Verdict::Holds { .. }
        | Verdict::Violated { .. }
        | Verdict::Bounded { .. }
        | Verdict::Undecided { .. } => return Ok(outcome),
    };
    if outcome.judged.unchecked == Some(Unchecked::Off) || !options.confirm {
        return Ok(outcome);
    }
    let (engine, certain) = (outcome.engine, certificate.is_some());
    let mut broken = match sample(task, certificate, LAST_LOOK, control) {
        Sampled::Outside(what) => return Err(Unsound { engine, what }),
        Sampled::Fine(worlds) => {
            if let Some(why) = &worlds.not_run {
                let note = format!("small instances could not be run: {why}");
                outcome.warnings.push(note);
            }
            outcome.small_worlds = Some(worlds);
            return Ok(outcome);
        }
        Sampled::Broken(run) => shown(EXPLICIT, task, *run, options, control)?,
        Sampled::Ran(_, lines) => {
            let because = Broken::Run(lines);
            let judged = Judged::checked(Verdict::Violated { because });
            Outcome::new(engine, judged, outcome.effort)
        }
    };
    if certain && is_decided(&broken) {
        broken.warnings.push(format!(
            "{engine} had a proof of the opposite, which this run refutes; please report this program"
        ));
    }
    Ok(broken)
}

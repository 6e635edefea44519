//! The engines and the order in which they are asked.
//!
//! Adding an engine is one line in [`engines`]. `auto` asks them in that order, cheap first; an
//! engine that refuses is passed over, one that does not decide makes room for the next. Every
//! engine but the last gets at most half of the time that remains; without a time limit it gets one
//! turn, and the first one may go on when all have had theirs.
//!
//! Where integers are unbounded most engines cannot search to the end. There `explicit` looks for a
//! short run first, within little memory, and `cegar` is asked next.

use crate::options::{Options, Order};
use crate::reference::Reference;
use std::time::Duration;
use wattle_coherent::Coherent;
use wattle_evidence::{
    Control, Engine, Judged, Progress, Reason, Refusal, Stop, Task, Unsound, Verdict, judge,
};
use wattle_extrapolate::Extrapolate;
use wattle_predicates::Cegar;
use wattle_robust::{Lazy, Robust};
use wattle_search::Explicit;
use wattle_wsts::{Exact, Multiset};

/// Every engine, in the order of the plan. The flag says whether `auto` asks it.
pub fn engines(options: &Options) -> Vec<(bool, Box<dyn Engine>)> {
    vec![
        (true, Box::new(explicit(options))),
        (true, Box::new(Robust::default())),
        (true, Box::new(Coherent::OldestK)),
        (true, Box::new(Exact)),
        (true, Box::new(Cegar::default())),
        (true, Box::new(extrapolate(options))),
        (false, Box::new(Coherent::NewestK)),
        (false, Box::new(Multiset)),
        (false, Box::new(Lazy::default())),
        (false, Box::new(Reference)),
    ]
}

fn extrapolate(options: &Options) -> Extrapolate {
    let default = Extrapolate::default();
    match options.extrapolate {
        None => default,
        // Asked for by name: this method and no other.
        Some(method) => Extrapolate {
            method,
            fall_back: false,
            ..default
        },
    }
}

fn explicit(options: &Options) -> Explicit {
    let mut explicit = Explicit::default();
    explicit.options.order = match options.order {
        Order::BreadthFirst => wattle_search::Order::BreadthFirst,
        Order::DepthFirst => wattle_search::Order::DepthFirst,
    };
    explicit
}

/// The names that `--engine` knows.
pub fn names() -> Vec<&'static str> {
    let all = engines(&Options::default());
    all.iter().map(|(_, e)| e.name()).collect()
}

/// A judged answer and who gave it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub engine: &'static str,
    pub judged: Judged,
    pub effort: Progress,
}

/// Runs the plan, or the one engine asked for.
pub fn run(task: &Task<'_>, options: &Options, control: &Control<'_>) -> Result<Outcome, Unsound> {
    let engines = engines(options);
    let wanted = |auto: bool, name: &str| match &options.engine {
        Some(one) => one == name,
        None => auto,
    };
    let mut refusals: Vec<String> = Vec::new();
    let mut willing: Vec<&dyn Engine> = Vec::new();
    for (auto, engine) in &engines {
        if wanted(*auto, engine.name()) {
            match engine.accepts(task) {
                Ok(()) => willing.push(engine.as_ref()),
                Err(Refusal(why)) => refusals.push(format!("{}: {why}", engine.name())),
            }
        }
    }
    let mut best: Option<Outcome> = None;
    if !task.instance.is_finite() && willing.len() > 1 {
        if willing[0].name() == "explicit" {
            let little = control.memory_limit().map_or(HUNT, |m| m.min(HUNT));
            let hunt = control.stage(Duration::MAX).with_memory(Some(little));
            let outcome = ask(willing[0], task, options, &hunt, control)?;
            if is_decided(&outcome) || was_interrupted(&outcome) {
                return Ok(outcome);
            }
        }
        willing.sort_by_key(|e| e.name() != "cegar");
    }
    let mut hurried = false;
    let mut reasons: Vec<String> = Vec::new();
    for (i, engine) in willing.iter().enumerate() {
        let last = i + 1 == willing.len();
        let stage = match control.remaining() {
            _ if last => control.stage(Duration::MAX),
            Some(left) => control.stage(left / 2),
            None if task.instance.is_finite() || i == 0 => control.stage(TURN),
            None => control.stage(SHORT_TURN),
        };
        let outcome = ask(*engine, task, options, &stage, control)?;
        if is_decided(&outcome) || was_interrupted(&outcome) {
            return Ok(prefer(best, outcome));
        }
        hurried |= !last && i == 0 && was_hurried(&outcome);
        if let Verdict::Undecided { reason, .. } = &outcome.judged.verdict {
            reasons.push(format!("{}: {}", engine.name(), reason_text(reason)));
        }
        best = Some(prefer(best, outcome));
    }
    // Nobody could do it; if the first had only run out of its turn, it may go on for good.
    if hurried
        && control.remaining().is_none()
        && let Some(first) = willing.first()
    {
        let outcome = ask(*first, task, options, control, control)?;
        return Ok(prefer(best, outcome));
    }
    Ok(match best {
        None => refused(refusals),
        Some(best) => with_all_reasons(best, &reasons),
    })
}

/// If nobody ran out of a budget, every engine's own reason is worth knowing.
fn with_all_reasons(mut best: Outcome, reasons: &[String]) -> Outcome {
    let stopped = stop(&best).is_some();
    if let Verdict::Undecided { reason, .. } = &mut best.judged.verdict
        && reasons.len() > 1
        && !stopped
    {
        *reason = Reason::Other(reasons.join("; "));
    }
    best
}

fn reason_text(reason: &Reason) -> String {
    match reason {
        Reason::Refused(refusal) => refusal.0.clone(),
        other => wattle_report::text::reason(other, 0.0),
    }
}

/// How long an engine may work before the next one is asked, where nobody set a time limit.
const TURN: Duration = Duration::from_secs(60);
/// The same where integers are unbounded, for all but the first.
const SHORT_TURN: Duration = Duration::from_secs(10);
/// Bytes of states among which a short run is looked for where integers are unbounded.
const HUNT: u64 = 16 << 20;

/// One engine's answer, judged.
fn ask(
    engine: &dyn Engine,
    task: &Task<'_>,
    options: &Options,
    stage: &Control<'_>,
    control: &Control<'_>,
) -> Result<Outcome, Unsound> {
    let answer = engine.run(task, stage);
    let effort = answer.effort();
    let judged = judge(task, engine.name(), answer, options.audit, control)?;
    Ok(Outcome {
        engine: engine.name(),
        judged,
        effort,
    })
}

fn is_decided(outcome: &Outcome) -> bool {
    matches!(
        outcome.judged.verdict,
        Verdict::Holds { .. } | Verdict::Violated { .. }
    )
}

/// The answer that says more; of two that say the same, the later one.
fn prefer(best: Option<Outcome>, new: Outcome) -> Outcome {
    let rank = |o: &Outcome| match o.judged.verdict {
        Verdict::Holds { .. } | Verdict::Violated { .. } => 3,
        Verdict::Bounded { .. } => 2,
        // Out of budget: more would perhaps have helped.
        Verdict::Undecided { .. } if stop(o).is_some() => 1,
        Verdict::Undecided { .. } => 0,
    };
    match best {
        Some(best) if rank(&best) > rank(&new) => best,
        _ => new,
    }
}

fn was_interrupted(outcome: &Outcome) -> bool {
    stop(outcome) == Some(Stop::Cancelled)
}

fn was_hurried(outcome: &Outcome) -> bool {
    stop(outcome) == Some(Stop::Time)
}

fn stop(outcome: &Outcome) -> Option<Stop> {
    match &outcome.judged.verdict {
        Verdict::Undecided {
            reason: Reason::Stopped { stop, .. },
            ..
        } => Some(*stop),
        _ => None,
    }
}

fn refused(refusals: Vec<String>) -> Outcome {
    let why = match refusals.is_empty() {
        true => "there is none for it".to_string(),
        false => refusals.join("; "),
    };
    let reason = Reason::Refused(Refusal(why));
    let so_far = Progress::default();
    Outcome {
        engine: "none",
        judged: Judged {
            verdict: Verdict::Undecided { reason, so_far },
            checked: true,
        },
        effort: so_far,
    }
}

//! The engines and the order in which they are asked.
//!
//! Adding an engine is one line in [`engines`]. `auto` asks them in that order, cheap first; an
//! engine that refuses is passed over, one that does not decide makes room for the next. Every
//! engine but the last one left gets at most half of the time that remains.

use crate::options::{Options, Order};
use crate::reference::Reference;
use wattle_evidence::{
    Answer, Control, Engine, Judged, Progress, Reason, Refusal, Task, Unsound, Verdict, judge,
};
use wattle_search::Explicit;

/// Every engine, in the order of the plan. The flag says whether `auto` asks it.
pub fn engines(options: &Options) -> Vec<(bool, Box<dyn Engine>)> {
    vec![
        (true, Box::new(explicit(options))),
        (false, Box::new(Reference)),
    ]
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
    for (i, engine) in willing.iter().enumerate() {
        let stage = match control.remaining() {
            Some(left) if i + 1 < willing.len() => control.stage(left / 2),
            Some(left) => control.stage(left),
            None => control.stage(std::time::Duration::MAX),
        };
        let answer = engine.run(task, &stage);
        let effort = answer.effort();
        let conclusive = matches!(answer, Answer::Reached { .. } | Answer::Unreachable { .. });
        let judged = judge(task, engine.name(), answer, options.audit, control)?;
        let outcome = Outcome {
            engine: engine.name(),
            judged,
            effort,
        };
        if conclusive || stopped_for_good(&outcome) {
            return Ok(prefer(best, outcome));
        }
        best = Some(prefer(best, outcome));
    }
    Ok(best.unwrap_or_else(|| refused(refusals)))
}

/// A bound says more than nothing; otherwise what came last.
fn prefer(best: Option<Outcome>, new: Outcome) -> Outcome {
    let undecided = matches!(new.judged.verdict, Verdict::Undecided { .. });
    match best {
        Some(best) if undecided && matches!(best.judged.verdict, Verdict::Bounded { .. }) => best,
        _ => new,
    }
}

fn stopped_for_good(outcome: &Outcome) -> bool {
    use wattle_evidence::Stop;
    let Verdict::Undecided { reason, .. } = &outcome.judged.verdict else {
        return false;
    };
    matches!(
        reason,
        Reason::Stopped {
            stop: Stop::Cancelled,
            ..
        }
    )
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

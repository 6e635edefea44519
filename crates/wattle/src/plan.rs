//! The engines, and how `auto` uses them.
//!
//! Adding an engine is one line in [`engines`]. `auto` looks at the program, asks who is willing, and
//! lets them run side by side: breakers, which search states forwards and find bugs, and provers,
//! which close buffers and integers that have no bound ([`race`]). An engine that does not decide
//! leaves the field to the others.

pub(crate) mod race;

use crate::families;
use crate::options::{Options, Order};
use crate::reference::Reference;
use race::{Ended, Runner, race};
use wattle_auditor::judge;
use wattle_coherent::Coherent;
use wattle_evidence::{
    Answer, Control, End, Engine, Judged, Progress, Reason, Refusal, Stop, Task, Unchecked,
    Unsound, Verdict,
};
use wattle_extrapolate::Extrapolate;
use wattle_memory::Keeps;
use wattle_predicates::Cegar;
use wattle_predicates::reduce::ranges::Ranges;
use wattle_robust::{Lazy, Robust};
use wattle_search::Explicit;
use wattle_wsts::{Exact, Multiset};

/// An engine and its place in the plan.
pub struct Entry {
    pub engine: Box<dyn Engine>,
    /// Whether `auto` asks it.
    pub auto: bool,
    /// About how many microseconds it works from one poll to the next where data is finite.
    finite: u64,
    /// The same where integers are unbounded.
    unbounded: u64,
    /// The same while a proof of it is audited.
    audit: u64,
    /// Made for unbounded integers; the others are made for finite data.
    integers: bool,
}

/// Every engine, in the order of the plan: of two that answer at the same time the first is heard.
pub fn engines(options: &Options) -> Vec<Entry> {
    /// For finite data.
    fn entry(auto: bool, ticks: [u64; 3], engine: impl Engine + 'static) -> Entry {
        let [finite, unbounded, audit] = ticks;
        Entry {
            engine: Box::new(engine),
            auto,
            finite,
            unbounded,
            audit,
            integers: false,
        }
    }
    fn integers(entry: Entry) -> Entry {
        let integers = true;
        Entry { integers, ..entry }
    }
    vec![
        entry(true, [600, 4000, 2000], explicit(options)),
        entry(true, [1000, 4000, 1000], Robust::default()),
        entry(true, [1000, 1200, 2000], Coherent::OldestK),
        entry(true, [450, 1200, 45], Exact),
        integers(entry(true, [600, 380, 800], cegar(options))),
        integers(entry(true, [300, 180, 1100], extrapolate(options))),
        entry(false, [1000, 1200, 2000], Coherent::NewestK),
        entry(false, [450, 1200, 45], Multiset),
        entry(false, [1000, 4000, 1000], Lazy::default()),
        entry(false, [6000, 6000, 1000], Reference),
    ]
}

/// Where data is finite, who is not the first gets half the time of the first.
const LATER: u64 = 2;
/// Who is not made for the program's data gets little: where integers are unbounded most engines
/// cannot search to the end, and their states are large.
const FOREIGN: u64 = 16;

/// Whether every value keeps to an interval, whatever the types say.
fn is_finite(task: &Task<'_>) -> bool {
    let ranges = Ranges::of(task.instance);
    let mut all = ranges.cells.iter().chain(ranges.registers.iter().flatten());
    all.all(|i| i.lo.is_some() && i.hi.is_some())
}

/// Who runs side by side. Where data is finite, engines made for integers wait until the others have
/// given up: they go long from one poll to the next, and everybody would wait for them.
fn rounds(willing: Vec<&Entry>, finite: bool) -> Vec<Vec<&Entry>> {
    let (now, later) = willing.into_iter().partition(|e| !(finite && e.integers));
    let both: [Vec<&Entry>; 2] = [now, later];
    both.into_iter().filter(|r| !r.is_empty()).collect()
}

/// Those of a round as they run: how long they work from poll to poll, and how often they may.
fn runners<'e>(entries: &[&'e Entry], finite: bool) -> Vec<Runner<&'e dyn Engine>> {
    let runner = |(i, e): (usize, &&'e Entry)| Runner {
        engine: e.engine.as_ref(),
        tick: if finite { e.finite } else { e.unbounded },
        audit: e.audit,
        handicap: match finite {
            true if i > 0 => LATER,
            false if !e.integers => FOREIGN,
            _ => 1,
        },
        head_start: if finite { 24 } else { 8 },
    };
    entries.iter().enumerate().map(runner).collect()
}

fn cegar(options: &Options) -> Cegar {
    let default = Cegar::default();
    let newest = match options.content.keeps {
        Keeps::Oldest => false,
        Keeps::Newest => true,
        _ => return default,
    };
    // Asked for by name: blurred as soon as a run fills more than that.
    let keep = options.content.k;
    Cegar {
        newest,
        keep,
        most_exact: keep.clamp(1, default.most_exact),
        most_entries: keep.max(default.most_entries),
        ..default
    }
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
    explicit.options.content = options.content;
    explicit
}

/// The names that `--engine` knows.
pub fn names() -> Vec<&'static str> {
    let all = engines(&Options::default());
    let fixed = all.iter().map(|e| e.engine.name());
    fixed
        .chain([families::PARAMS, families::COUNTING])
        .collect()
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
    let wanted = |entry: &Entry| match &options.engine {
        Some(one) => one == entry.engine.name(),
        None => entry.auto,
    };
    let mut refusals: Vec<Refusal> = Vec::new();
    let open = [families::PARAMS, families::COUNTING];
    if let Some(name) = open.iter().find(|n| options.engine.as_deref() == Some(n)) {
        let why = format!("{name}: it is for any number of threads");
        refusals.push(Refusal::new(why));
    }
    let mut willing: Vec<&Entry> = Vec::new();
    for entry in engines.iter().filter(|e| wanted(e)) {
        match entry.engine.accepts(task) {
            Ok(()) => willing.push(entry),
            Err(refusal) => {
                let why = format!("{}: {}", entry.engine.name(), refusal.why);
                refusals.push(Refusal { why, ..refusal });
            }
        }
    }
    if willing.is_empty() {
        return Ok(refused(refusals));
    }
    let mut best: Option<Outcome> = None;
    let mut reasons: Vec<String> = Vec::new();
    let finite = is_finite(task);
    for round in rounds(willing, finite) {
        let runners = runners(&round, finite);
        let ended = race(&runners, control, |runner, control| {
            let (engine, name) = (runner.engine, runner.engine.name());
            match engine.run(task, control) {
                // An audit may take long, and may end without a result: it is part of the race.
                proof @ Answer::Unreachable { .. } => {
                    Told::Proof(judged(name, proof, task, options, control))
                }
                // A fault is no answer to whether a state is reached.
                Answer::Reached { trace, effort }
                    if !task.minds_faults() && trace.end != End::Target =>
                {
                    let answer = Answer::Reached { trace, effort };
                    Told::Proof(judged(name, answer, task, options, control))
                }
                answer => Told::Answer(answer),
            }
        });
        for (i, told) in ended {
            let outcome = match told {
                Told::Proof(outcome) => outcome?,
                // A trace is made shorter and replayed when nobody else runs any more.
                Told::Answer(answer) => {
                    judged(round[i].engine.name(), answer, task, options, control)?
                }
            };
            if let Verdict::Undecided { reason, .. } = &outcome.judged.verdict {
                reasons.push(format!("{}: {}", outcome.engine, reason_text(reason)));
            }
            best = Some(prefer(best, outcome));
        }
        if best.as_ref().is_some_and(is_decided) || control.stop().is_some() {
            break;
        }
    }
    Ok(match best {
        None => refused(refusals),
        Some(best) => with_all_reasons(best, &reasons),
    })
}

/// What an engine says: a proof is audited already.
enum Told {
    Answer(Answer),
    Proof(Result<Outcome, Unsound>),
}

impl Ended for Told {
    fn is_decided(&self) -> bool {
        match self {
            Told::Answer(answer) => matches!(answer, Answer::Reached { .. }),
            Told::Proof(outcome) => outcome.as_ref().map_or(true, is_decided),
        }
    }

    fn is_final(&self) -> bool {
        match self {
            Told::Answer(_) | Told::Proof(Err(_)) => true,
            Told::Proof(Ok(outcome)) => is_final(&outcome.judged),
        }
    }
}

/// Whether nobody can say more: a proof takes nothing for granted and its audit ended.
pub(crate) fn is_final(judged: &Judged) -> bool {
    let ended = match judged.unchecked {
        Some(Unchecked::Stopped(_)) => false,
        Some(Unchecked::Off | Unchecked::Unable(_) | Unchecked::Translation(_)) | None => true,
    };
    ended && !matches!(judged.verdict, Verdict::HoldsIf { .. })
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
        Reason::Refused(refusal) => refusal.why.clone(),
        other => wattle_report::text::reason(other, 0.0),
    }
}

/// An answer with its evidence checked.
fn judged(
    engine: &'static str,
    answer: Answer,
    task: &Task<'_>,
    options: &Options,
    control: &Control<'_>,
) -> Result<Outcome, Unsound> {
    let effort = answer.effort();
    let judged = judge(task, engine, answer, options.audit, control)?;
    Ok(Outcome {
        engine,
        judged,
        effort,
    })
}

fn is_decided(outcome: &Outcome) -> bool {
    matches!(
        outcome.judged.verdict,
        Verdict::Holds { .. } | Verdict::HoldsIf { .. } | Verdict::Violated { .. }
    )
}

/// The answer that says more; of two that say the same, the later one.
fn prefer(best: Option<Outcome>, new: Outcome) -> Outcome {
    let rank = |o: &Outcome| match o.judged.verdict {
        Verdict::Holds { .. } | Verdict::Violated { .. } => 4,
        Verdict::HoldsIf { .. } => 3,
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

fn stop(outcome: &Outcome) -> Option<Stop> {
    match &outcome.judged.verdict {
        Verdict::Undecided {
            reason: Reason::Stopped { stop, .. },
            ..
        } => Some(*stop),
        _ => None,
    }
}

/// All the reasons; of several places the first.
fn refused(refusals: Vec<Refusal>) -> Outcome {
    let all: Vec<&str> = refusals.iter().map(|r| r.why.as_str()).collect();
    let why = match all.is_empty() {
        true => "there is none for it".to_string(),
        false => all.join("; "),
    };
    let placed = refusals.into_iter().find(|r| r.span.is_some());
    let reason = Reason::Refused(match placed {
        Some(placed) => Refusal { why, ..placed },
        None => Refusal::new(why),
    });
    let so_far = Progress::default();
    Outcome {
        engine: "none",
        judged: Judged::checked(Verdict::Undecided { reason, so_far }),
        effort: so_far,
    }
}

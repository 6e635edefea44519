//! The engines, and how `auto` uses them.
//!
//! Adding an engine is one line in [`engines`]. `auto` looks at the program, asks who is willing, and
//! lets them run side by side: breakers, which search states forwards and find bugs, and provers,
//! which close buffers and integers that have no bound ([`race`]). An engine that does not decide
//! leaves the field to the others.

mod open;
mod parts;
pub(crate) mod race;
mod readers;

use crate::breaker::Small;
use crate::counting::Counting;
use crate::levels::Levels;
use crate::limited::LimitedExplicit;
use crate::options::{Options, Order};
use crate::reference::Reference;
use race::{Ended, Runner, race};
use std::sync::Arc;
use wattle_auditor::judge;
use wattle_coherent::{Coherent, Hierarchy};
use wattle_evidence::{
    Answer, AnyNumber, Asked, Assumption, Control, End, Engine, Judged, OpenTask, Progress, Reason,
    Refusal, SmallWorlds, Stop, Task, Unchecked, Unsound, Verdict,
};
use wattle_extrapolate::Extrapolate;
use wattle_memory::Keeps;
use wattle_model::Instance;
use wattle_params::Params;
use wattle_predicates::reduce::ranges::Ranges;
use wattle_predicates::{Cegar, Facts};
use wattle_robust::{Lazy, Robust};
use wattle_search::{Explicit, KeptExplicit, SharedExplicit};
use wattle_traces::{Cartesian, Traces};
use wattle_wsts::{Exact, Multiset};

/// An engine and its place in the plan.
pub struct Entry {
    /// The engine.
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
    /// But has a share where there are very many states: what it says does not depend on how many.
    large: bool,
    /// Proves little that others do not prove sooner.
    seldom: bool,
    /// Polls the first of the plan has before this one begins, where data is finite, and microseconds for which the
    /// others wait then.
    head_start: u64,
    free: u64,
    /// On any number of threads, if it takes them.
    open: Option<Open>,
}

/// How an engine runs on any number of threads.
#[derive(Clone, Copy)]
struct Open {
    /// About how many microseconds it works from poll to poll, and while a proof of it is audited.
    tick: u64,
    audit: u64,
    /// It gets one part in so many.
    handicap: u64,
    /// Microseconds for which the others wait at its beginning.
    free: u64,
    /// It can do without taking for granted that no number wraps around.
    unwraps: bool,
}

impl Entry {
    /// Whether it takes questions about any number of threads.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

/// Every engine, in the order of the plan: of two that answer at the same time the first is heard.
pub fn engines(options: &Options) -> Vec<Entry> {
    /// For finite data, and a fixed number of threads.
    fn entry(auto: bool, ticks: [u64; 3], engine: impl Engine + 'static) -> Entry {
        let [finite, unbounded, audit] = ticks;
        Entry {
            engine: Box::new(engine),
            auto,
            finite,
            unbounded,
            audit,
            integers: false,
            large: false,
            seldom: false,
            head_start: HEAD_START,
            free: 0,
            open: None,
        }
    }
    /// Either done at once or not for long.
    fn soon(entry: Entry) -> Entry {
        let (head_start, free) = (SOON, AT_ONCE);
        Entry {
            head_start,
            free,
            ..entry
        }
    }
    fn seldom(entry: Entry) -> Entry {
        let seldom = true;
        Entry { seldom, ..entry }
    }
    fn integers(entry: Entry) -> Entry {
        let integers = true;
        Entry { integers, ..entry }
    }
    fn large(entry: Entry) -> Entry {
        let (head_start, large) = (LONG, true);
        Entry {
            head_start,
            large,
            ..entry
        }
    }
    fn open(ticks: [u64; 2], handicap: u64, free: u64, entry: Entry) -> Entry {
        let [tick, audit] = ticks;
        let open = Some(Open {
            tick,
            audit,
            handicap,
            free,
            unwraps: false,
        });
        Entry { open, ..entry }
    }
    fn unwraps(entry: Entry) -> Entry {
        let open = entry.open.map(|o| Open { unwraps: true, ..o });
        Entry { open, ..entry }
    }
    let ticks = [600, 700, 2000];
    let explicit = match (explicit(options), &options.checkpoint, &options.mesh) {
        (explicit, _, Some(mesh)) => {
            let mesh = mesh.clone();
            entry(true, ticks, SharedExplicit { explicit, mesh })
        }
        (explicit, _, _) if !options.buffers.is_empty() => {
            let cells = options.buffers.clone();
            entry(true, ticks, LimitedExplicit { explicit, cells })
        }
        (explicit, None, None) => entry(true, ticks, explicit),
        (explicit, Some(keep), None) => {
            let keep = keep.clone();
            entry(true, ticks, KeptExplicit { explicit, keep })
        }
    };
    vec![
        explicit,
        soon(entry(true, [1300, 1300, 500], Traces)),
        entry(true, [1000, 1000, 1000], Robust::default()),
        seldom(entry(true, [1000, 1400, 2000], Coherent::OldestK)),
        open([500, 150], 1, 0, entry(false, [500, 500, 500], Params)),
        // What has few configurations is done at once.
        open([350, 150], 1, 16_000, entry(true, [450, 1300, 150], Exact)),
        unwraps(open(
            [400, 400],
            1,
            0,
            entry(false, [1000, 1000, 1000], Counting),
        )),
        // It polls at every state of its set.
        open([6, 6], 1, 0, entry(false, [1000, 1000, 1000], Levels)),
        // Half a share: it mostly finds nothing, or at once.
        open(
            [1000, 1000],
            2,
            40_000,
            entry(true, [1000, 1000, 600], Small),
        ),
        large(integers(entry(true, [450, 450, 800], Facts))),
        integers(entry(true, [450, 450, 800], cegar(options))),
        integers(entry(true, [450, 450, 1100], extrapolate(options))),
        entry(false, [1000, 1200, 2000], Coherent::NewestK),
        seldom(entry(true, [1800, 1800, 150], Multiset)),
        entry(false, [450, 450, 150], Hierarchy),
        entry(false, [1000, 4000, 1000], Lazy::default()),
        entry(false, [6000, 6000, 1000], Cartesian),
        entry(false, [6000, 6000, 1000], Reference),
    ]
}

/// Where numbers wrap around and can be unwrapped, a proof that takes for granted that they do not waits so many
/// microseconds for one that does without: it is no answer to whoever asked.
const HOPE: u64 = 3_000_000;

/// Polls of the first before others begin: most programs are small. Before traces, which may have a few where
/// there are very many states.
const HEAD_START: u64 = 24;
const SOON: u64 = 2;
/// Before who is for large spaces of states: smaller ones are done by then.
const LONG: u64 = 160;
/// Microseconds it then has for itself: states met meanwhile would mostly be in vain.
const AT_ONCE: u64 = 16_000;

/// Polls of the first where any number of threads is asked about.
const OPEN_START: u64 = 8;

/// Where data is finite, who is not the first gets half the time of the first.
const LATER: u64 = 2;
/// Who proves little that others do not gets a quarter.
const SELDOM: u64 = 4;
/// Who is not made for the program's data gets little: where integers are unbounded most engines
/// cannot search to the end, and their states are large. Who is not the first gets half of it.
const FOREIGN: u64 = 16;
/// Polls of the first where integers are unbounded.
const FOREIGN_START: u64 = 16;

/// Variables with more values than this are as good as unbounded.
const FEW: u64 = 1 << 20;

/// What a question is like, for who runs beside whom.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Like {
    Finite,
    Unbounded,
    /// With numbers that can be unwrapped, or without.
    Open {
        unwraps: bool,
    },
}

impl Like {
    fn of(asked: &Asked<'_>) -> Self {
        let task = match asked {
            Asked::Fixed(task) => task,
            Asked::Open(task) => {
                let unwraps = match task.of {
                    AnyNumber::Program(program) => program.unwrapped().is_some(),
                    AnyNumber::System(_) => false,
                };
                return Like::Open { unwraps };
            }
        };
        // Whether every value keeps to an interval, whatever the types say, that is not too large to
        // go through.
        let ranges = Ranges::of(task.instance);
        let mut all = ranges.cells.iter().chain(ranges.registers.iter().flatten());
        let few = |(lo, hi): (i64, i64)| hi.abs_diff(lo) < FEW;
        match all.all(|i| i.lo.zip(i.hi).is_some_and(few)) {
            true => Like::Finite,
            false => Like::Unbounded,
        }
    }
}

/// Who runs side by side. Where data is finite, engines made for integers wait until the others have
/// given up: they go long from one poll to the next, and everybody would wait for them. Not so who has a share there.
fn rounds(willing: Vec<&Entry>, like: Like) -> Vec<Vec<&Entry>> {
    let waits = |e: &&Entry| like == Like::Finite && e.integers && !e.large;
    let (later, now) = willing.into_iter().partition(waits);
    let both: [Vec<&Entry>; 2] = [now, later];
    both.into_iter().filter(|r| !r.is_empty()).collect()
}

/// Those of a round as they run: how long they work from poll to poll, and how often they may.
fn runners<'e>(entries: &[&'e Entry], like: Like) -> Vec<Runner<&'e dyn Engine>> {
    let runner = |(i, e): (usize, &&'e Entry)| {
        let hope = match (like, e.open) {
            (Like::Open { unwraps: true }, Some(o)) if o.unwraps => HOPE,
            _ => 0,
        };
        let (tick, audit, handicap, head_start, free) = match like {
            Like::Finite => {
                let handicap = match i {
                    0 => 1,
                    _ if e.seldom => SELDOM,
                    _ => LATER,
                };
                (e.finite, e.audit, handicap, e.head_start, e.free)
            }
            Like::Unbounded => {
                let handicap = match i {
                    _ if e.integers => 1,
                    0 => FOREIGN,
                    _ => 2 * FOREIGN,
                };
                (e.unbounded, e.audit, handicap, FOREIGN_START, 0)
            }
            Like::Open { .. } => match e.open {
                Some(o) => (o.tick, o.audit, o.handicap, OPEN_START, o.free),
                None => (e.unbounded, e.audit, 1, OPEN_START, 0),
            },
        };
        Runner {
            engine: e.engine.as_ref(),
            tick,
            audit,
            handicap,
            head_start,
            free,
            hope,
        }
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

/// The engine `explicit` as it is asked for.
pub(crate) fn explicit(options: &Options) -> Explicit {
    let mut explicit = Explicit::default();
    explicit.options.order = match options.order {
        Order::BreadthFirst => wattle_search::Order::BreadthFirst,
        Order::DepthFirst => wattle_search::Order::DepthFirst,
    };
    explicit.options.content = options.content;
    explicit.options.compress = options.compress;
    explicit.options = explicit.options.reduced(options.reduce);
    explicit.options.symmetry = options.symmetry;
    explicit
}

/// The names that `--engine` knows.
pub fn names() -> Vec<&'static str> {
    let all = engines(&Options::default());
    let states = all.iter().map(|e| e.engine.name());
    states.chain([wattle_liveness::NAME]).collect()
}

/// The names of those who take a question about any number of threads.
pub fn willing_named(task: &OpenTask<'_>) -> Vec<&'static str> {
    let engines = engines(&Options::default());
    let (willing, _) = willing(&engines, &Asked::Open(*task), &Options::default());
    willing.iter().map(|e| e.engine.name()).collect()
}

/// A judged answer and who gave it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Who answered.
    pub engine: &'static str,
    /// The answer, its evidence checked.
    pub judged: Judged,
    /// What it took.
    pub effort: Progress,
    /// The instance that the run is of, where any number of threads was asked about.
    pub shown: Option<Arc<Instance>>,
    /// How far small instances were run to confirm a proof about any number.
    pub small_worlds: Option<SmallWorlds>,
    /// Sentences a person should know before believing the verdict.
    pub warnings: Vec<String>,
}

impl Outcome {
    fn new(engine: &'static str, judged: Judged, effort: Progress) -> Self {
        Outcome {
            engine,
            judged,
            effort,
            shown: None,
            small_worlds: None,
            warnings: Vec::new(),
        }
    }
}

/// Those who take the question, in the order of the plan, and why the others do not.
fn willing<'e>(
    engines: &'e [Entry],
    asked: &Asked<'_>,
    options: &Options,
) -> (Vec<&'e Entry>, Vec<Refusal>) {
    let wanted = |entry: &&Entry| match (&options.engine, asked) {
        (Some(one), _) => one == entry.engine.name(),
        (None, Asked::Fixed(_)) => entry.auto,
        (None, Asked::Open(_)) => entry.open.is_some(),
    };
    let (mut willing, mut refusals) = (Vec::new(), Vec::new());
    if options.engine.as_deref() == Some(wattle_liveness::NAME) {
        let why = format!("{}: it is for demands on runs", wattle_liveness::NAME);
        refusals.push(Refusal::new(why));
    }
    for entry in engines.iter().filter(wanted) {
        let name = entry.engine.name();
        let accepts = match asked {
            Asked::Fixed(task) => entry.engine.accepts(task).map_err(|refusal| {
                let why = format!("{name}: {}", refusal.why);
                Refusal { why, ..refusal }
            }),
            Asked::Open(task) if entry.open.is_none() => Err(not_open(name, task)),
            Asked::Open(task) => entry.engine.accepts_open(task),
        };
        match accepts {
            Ok(()) => willing.push(entry),
            Err(refusal) => refusals.push(refusal),
        }
    }
    (willing, refusals)
}

fn not_open(name: &str, task: &OpenTask<'_>) -> Refusal {
    Refusal::new(match task.of {
        AnyNumber::Program(_) => {
            format!(
                "`{name}` is for a fixed number of threads; there are params, exact, counting, levels and small"
            )
        }
        AnyNumber::System(_) => {
            format!("`{name}` reads programs; array-based systems are for params")
        }
    })
}

/// Runs the plan, or the one engine asked for.
pub fn run<'t>(
    asked: impl Into<Asked<'t>>,
    options: &Options,
    control: &Control<'_>,
) -> Result<Outcome, Unsound> {
    let asked = &asked.into();
    let engines = engines(options);
    let (willing, refusals) = willing(&engines, asked, options);
    if let Asked::Open(task) = asked
        && let Some(shown) = open::small(task, open::FIRST_LOOK, options, control)?
    {
        return Ok(shown);
    }
    if let Asked::Open(task) = asked
        && let Some(found) = readers::run(task, options, control)?
    {
        return open::confirmed(task, found, options, control);
    }
    // Cells that are named may be another part's.
    if let Asked::Fixed(task) = asked
        && options.buffers.is_empty()
        && options.mesh.is_none()
        && let Some(found) = parts::run(task, options, control)?
    {
        return Ok(found);
    }
    let mut best: Option<Outcome> = None;
    let mut reasons: Vec<String> = Vec::new();
    let like = Like::of(asked);
    for round in rounds(willing, like) {
        let runners = runners(&round, like);
        let ended = race(&runners, control, |runner, control| match asked {
            Asked::Fixed(task) => fixed(runner.engine, task, options, control),
            Asked::Open(task) => {
                let outcome = open::answered(runner.engine, task, options, control);
                Said::Judged(Box::new(outcome))
            }
        });
        for (i, said) in ended {
            let outcome = match said {
                Said::Judged(outcome) => (*outcome)?,
                // A trace is made shorter and replayed when nobody else runs any more.
                Said::Answer(task, answer) => {
                    judged(round[i].engine.name(), answer, &task, options, control)?
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
    match (asked, best) {
        (Asked::Open(task), Some(best)) if is_decided(&best) => {
            open::confirmed(task, best, options, control)
        }
        (Asked::Open(task), best) => {
            // What nobody proves may be broken by a few more threads.
            if let Some(shown) = open::small(task, open::LAST_LOOK, options, control)? {
                return Ok(shown);
            }
            // One reason is enough for two who do not treat it.
            let first = refusals.into_iter().take(1);
            let first = first.map(Refusal::with_its_hint).collect();
            Ok(best.map_or_else(|| refused(first), |best| with_all_reasons(best, &reasons)))
        }
        (Asked::Fixed(_), best) => Ok(best.map_or_else(
            || refused(refusals),
            |best| with_all_reasons(best, &reasons),
        )),
    }
}

/// What an engine says about an instance.
fn fixed<'t>(
    engine: &dyn Engine,
    task: &Task<'t>,
    options: &Options,
    control: &Control<'_>,
) -> Said<'t> {
    let name = engine.name();
    match engine.run(task, control) {
        // An audit may take long, and may end without a result: it is part of the race.
        proof @ Answer::Unreachable { .. } => {
            Said::Judged(Box::new(judged(name, proof, task, options, control)))
        }
        // A fault is no answer to whether a state is reached.
        Answer::Reached { trace, effort } if !task.minds_faults() && trace.end != End::Target => {
            let answer = Answer::Reached { trace, effort };
            Said::Judged(Box::new(judged(name, answer, task, options, control)))
        }
        answer => Said::Answer(*task, answer),
    }
}

/// What an engine says: a proof is audited already.
#[expect(clippy::large_enum_variant, reason = "one for each engine")]
enum Said<'t> {
    Answer(Task<'t>, Answer),
    Judged(Box<Result<Outcome, Unsound>>),
}

impl Ended for Said<'_> {
    fn is_decided(&self) -> bool {
        match self {
            Said::Answer(_, answer) => matches!(answer, Answer::Reached { .. }),
            Said::Judged(outcome) => (**outcome).as_ref().map_or(true, is_decided),
        }
    }

    fn is_final(&self) -> bool {
        match self {
            Said::Answer(..) => true,
            Said::Judged(outcome) => (**outcome).as_ref().map_or(true, |o| is_final(&o.judged)),
        }
    }
}

/// Whether nobody can say more: a proof takes nothing for granted, but for how many threads there are, and its audit ended.
pub(crate) fn is_final(judged: &Judged) -> bool {
    let ended = match judged.unchecked {
        Some(Unchecked::Stopped(_)) => false,
        Some(Unchecked::Off | Unchecked::Unable(_) | Unchecked::Translation(_)) | None => true,
    };
    // As many threads as there are tickets is all that can be said of a ticket lock.
    let few = |a: &Assumption| matches!(a, Assumption::AtMost { .. });
    let open = match &judged.verdict {
        Verdict::HoldsIf { scope, .. } => !scope.assumptions.iter().all(few),
        Verdict::Holds { .. }
        | Verdict::Violated { .. }
        | Verdict::Bounded { .. }
        | Verdict::Undecided { .. } => false,
    };
    ended && !open
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
    Ok(Outcome::new(engine, judged, effort))
}

fn is_decided(outcome: &Outcome) -> bool {
    matches!(
        outcome.judged.verdict,
        Verdict::Holds { .. } | Verdict::HoldsIf { .. } | Verdict::Violated { .. }
    )
}

/// The answer that says more; of two that say the same, the later one. Whoever ran out of its budget and knows how far from
/// the start there is no violation says more than one who does not.
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
        Some(best)
            if rank(&best) == 1 && rank(&new) == 1 && new.effort.depth < best.effort.depth =>
        {
            best
        }
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
    let judged = Judged::checked(Verdict::Undecided { reason, so_far });
    Outcome::new("none", judged, so_far)
}

//! A run that goes on for ever: its table, where it turns, and why nobody helps.

use crate::text::Style;
use crate::{table, words};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use wattle_evidence::live::lasso::{Lasso, Replayed};
use wattle_evidence::live::{Fairness, LiveTask};
use wattle_evidence::{End, Trace};
use wattle_memory::Event;
use wattle_model::graph::{Action, Fence, Section};
use wattle_model::instance::Address;
use wattle_model::{CellId, LocationId, ThreadId, waiting};

/// The table with the place from which everything is repeated, and the reasons.
pub fn text(task: &LiveTask<'_>, lasso: &Lasso, style: Style) -> String {
    let replayed = match lasso.check(task) {
        Ok(replayed) => replayed,
        Err(e) => return format!("the run does not replay: {e}\n"),
    };
    let trace = as_trace(lasso);
    let rows = table::rows(&task.faults(), &trace, &replayed.states);
    let mut out = String::new();
    let open = words::choices(task.instance, &replayed.states[0]);
    if !open.is_empty() {
        let _ = writeln!(out, "start {}", open.join(", "));
    }
    let turn = match lasso.cycle.is_empty() {
        true => "↻ here for ever: nothing can move any more",
        false => "↻ from here for ever",
    };
    if rows.is_empty() {
        let _ = writeln!(out, "{turn}");
    } else {
        let before = rows
            .iter()
            .take_while(|r| r.first < lasso.stem.len())
            .count();
        let rendered = table::render(task.instance, &rows, style.width);
        // One line for the names of the columns.
        for (i, line) in rendered.lines().enumerate() {
            if i == before + 1 {
                let _ = writeln!(out, "{}", style.bold(turn));
            }
            let _ = writeln!(out, "{line}");
        }
        if before == rows.len() {
            let _ = writeln!(out, "{}", style.bold(turn));
        }
    }
    let mut keyword = "why";
    for sentence in why(task, lasso, &replayed) {
        let _ = writeln!(out, "{}   {sentence}", style.bold(&format!("{keyword:3}")));
        keyword = "";
    }
    out
}

/// Stem and one round as a plain run.
pub fn as_trace(lasso: &Lasso) -> Trace {
    Trace {
        model: lasso.model,
        start: lasso.start.clone(),
        events: lasso.events(),
        end: End::Target,
    }
}

/// What a thread does in the round.
struct Round {
    at: BTreeSet<LocationId>,
    moves: bool,
    /// What it reads from memory, and which values.
    reads: BTreeMap<CellId, BTreeSet<i64>>,
    /// It stays in a waiting loop.
    waits: bool,
}

/// Who waits where and for what, and who could have helped.
pub fn why(task: &LiveTask<'_>, lasso: &Lasso, replayed: &Replayed) -> Vec<String> {
    let instance = task.instance;
    let rounds: Vec<Round> = (instance.thread_ids())
        .map(|t| round(task, lasso, replayed, t))
        .collect();
    let turn = &replayed.states[lasso.stem.len()];
    let ended = |t: ThreadId| instance.thread(t).ended(turn.locations[t.index()]);
    // Who is asked about comes first.
    let traps = task.traps();
    let first = replayed.trap.map(|i| traps[i].thread);
    let mut order: Vec<ThreadId> = first.into_iter().collect();
    order.extend(instance.thread_ids().filter(|t| Some(*t) != first));
    let mut out = Vec::new();
    for t in order {
        let me = &rounds[t.index()];
        let name = &instance.thread(t).name;
        if ended(t) {
            continue;
        }
        let place = place(task, t, &me.at);
        if !me.moves {
            out.push(format!(
                "{name} stays {place}{}",
                stuck(task, lasso, replayed, t)
            ));
        } else if me.waits {
            let read = me.reads.iter().map(|(c, values)| {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                format!("{} = {}", instance.cell(*c).name, values.join(" or "))
            });
            let read = words::all(read);
            let found = match read.is_empty() {
                true => String::new(),
                false => format!(": it finds {read} every time it looks"),
            };
            out.push(format!("{name} waits {place}{found}"));
            for c in me.reads.keys() {
                out.extend(helpers(task, replayed, lasso, t, *c, &rounds, &ended));
            }
        }
    }
    out.dedup();
    if out.is_empty() {
        out.push("every thread goes on, and the formula is false all the same".into());
    }
    out
}

fn round(task: &LiveTask<'_>, lasso: &Lasso, replayed: &Replayed, t: ThreadId) -> Round {
    let thread = task.instance.thread(t);
    let from = lasso.stem.len();
    let mut round = Round {
        at: BTreeSet::new(),
        moves: false,
        reads: BTreeMap::new(),
        waits: false,
    };
    round.at.insert(replayed.states[from].locations[t.index()]);
    for (i, event) in lasso.cycle.iter().enumerate() {
        let (before, after) = (&replayed.states[from + i], &replayed.states[from + i + 1]);
        round.at.insert(after.locations[t.index()]);
        let Event::Step {
            thread: u, step, ..
        } = event
        else {
            continue;
        };
        if *u != t {
            continue;
        }
        round.moves = true;
        if let Action::Load { register, place } = &thread.step(*step).action
            && let Some(cell) = words::cell(before, t, place)
        {
            let value = after.registers[t.index()][register.index()];
            round.reads.entry(cell).or_default().insert(value);
        }
    }
    let inside = |l: &Vec<LocationId>| round.at.iter().all(|at| l.binary_search(at).is_ok());
    round.waits = waiting::loops(thread).iter().any(inside);
    round
}

/// `at line 7 (critical)`.
fn place(task: &LiveTask<'_>, t: ThreadId, at: &BTreeSet<LocationId>) -> String {
    let thread = task.instance.thread(t);
    let lines = at.iter().map(|l| thread.locations[l.index()].span.line);
    let lines: BTreeSet<u32> = lines.filter(|l| *l > 0).collect();
    let labels: BTreeSet<&str> = (at.iter())
        .flat_map(|l| {
            thread.locations[l.index()]
                .labels
                .iter()
                .map(String::as_str)
        })
        .collect();
    let labels = match labels.is_empty() {
        true => String::new(),
        false => format!(" ({})", labels.into_iter().collect::<Vec<_>>().join(", ")),
    };
    match (lines.first(), lines.last()) {
        (Some(a), Some(b)) if a == b => format!("at line {a}{labels}"),
        (Some(a), Some(b)) => format!("in lines {a} to {b}{labels}"),
        _ => format!("where it is{labels}"),
    }
}

/// Why a thread does not move in the round.
fn stuck(task: &LiveTask<'_>, lasso: &Lasso, replayed: &Replayed, t: ThreadId) -> String {
    let thread = task.instance.thread(t);
    let state = &replayed.states[lasso.stem.len()];
    let able = replayed
        .able
        .iter()
        .filter(|a| *a >> t.index() & 1 == 1)
        .count();
    if able > 0 && able == replayed.able.len() {
        return format!(
            ": it can move and is never given a turn ({})",
            lasso.fairness
        );
    }
    if able > 0 {
        return ": it can move now and then, and somebody else always does".into();
    }
    let waits_for_buffer = |a: &Action<_, Address>| {
        matches!(
            a,
            Action::Fence(Fence::Full)
                | Action::AtomicBegin(Section::Drained)
                | Action::Lock
                | Action::Unlock
        )
    };
    let mut out = thread.outgoing(state.locations[t.index()]).iter();
    let waits = out.any(|s| waits_for_buffer(&thread.step(*s).action));
    if waits && !state.buffers[t.index()].is_empty() {
        let pending = words::buffer(task.instance, &state.buffers[t.index()]);
        return format!(": it waits for its stores {pending} to reach memory");
    }
    match state.holder {
        Some(h) if h != t => {
            format!(": {} holds the lock", task.instance.thread(h).name)
        }
        _ => ": nothing lets it go on".into(),
    }
}

/// The others who write a cell that a thread waits for.
fn helpers(
    task: &LiveTask<'_>,
    replayed: &Replayed,
    lasso: &Lasso,
    me: ThreadId,
    cell: CellId,
    rounds: &[Round],
    ended: &dyn Fn(ThreadId) -> bool,
) -> Vec<String> {
    let instance = task.instance;
    let name = &instance.cell(cell).name;
    let turn = &replayed.states[lasso.stem.len()];
    let mut told = Vec::new();
    for u in instance.thread_ids().filter(|u| *u != me) {
        let thread = instance.thread(u);
        let writes = thread.steps.iter().find(|s| match &s.action {
            Action::Store { place, .. } => match place {
                Address::Cell(c) => *c == cell,
                Address::Computed { base, length, .. } => {
                    (base.index()..base.index() + *length as usize).contains(&cell.index())
                }
            },
            _ => false,
        });
        let Some(step) = writes else { continue };
        let line = match step.span.line {
            0 => String::new(),
            line => format!(" (line {line})"),
        };
        let pending = turn.buffers[u.index()].iter().find(|(c, _)| *c == cell);
        let drains = lasso.cycle.iter().any(
            |e| matches!(e, Event::Drain { thread, cell: c, .. } if *thread == u && *c == cell),
        );
        let what = match pending {
            Some((_, value)) if !drains => format!(
                "has stored {value} there, which stays in its buffer ({})",
                lasso.fairness
            ),
            _ if ended(u) => "has ended".into(),
            _ if !rounds[u.index()].moves => "stays where it is".into(),
            _ if rounds[u.index()].waits => "waits itself".into(),
            _ => "goes on, and never at the right time".into(),
        };
        told.push(format!("{}, who writes {name}{line}, {what}", thread.name));
    }
    if told.is_empty() {
        told.push(format!("nobody else writes {name}"));
    }
    told
}

/// What was assumed, for the first line.
pub fn assumed(fairness: Fairness) -> String {
    format!(" {fairness}")
}

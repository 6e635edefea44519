//! Why a run is possible only on relaxed memory: which load overtook which store, or (PSO) which
//! store overtook which store of the same thread.

use crate::words;
use std::collections::BTreeSet;
use wattle_evidence::{Task, Trace};
use wattle_memory::reference::Snapshot;
use wattle_memory::{Event, MemoryModel};
use wattle_model::graph::Action;
use wattle_model::{CellId, Instance, StepId, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    pub overtakings: Vec<Overtaking>,
    /// Whether the same end cannot be reached under SC; `None` if that was not decided.
    pub sc_forbids: Option<bool>,
}

impl Why {
    /// The overtaking that a fence is told for: the first, where a fence helps at all.
    pub fn told(&self) -> Option<&Overtaking> {
        let helps = self.sc_forbids != Some(false);
        self.overtakings.first().filter(|_| helps)
    }
}

/// A later access of a thread took effect before an earlier store of the same thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overtaking {
    pub thread: ThreadId,
    /// Index of the event that put the store into the buffer.
    pub store: usize,
    pub store_step: StepId,
    pub store_cell: CellId,
    /// Index of the load, or of the drain of the later store.
    pub later: usize,
    pub later_cell: CellId,
    pub later_is_load: bool,
    /// The step before which a fence stops this run, and the one just before it in the run.
    pub fence_before: StepId,
    pub fence_after: StepId,
}

/// A store on its way to memory.
#[derive(Clone, Copy)]
struct Pending {
    event: usize,
    step: StepId,
    cell: CellId,
}

/// Every overtaking that matters in the run: the thread whose store was late was looked at, or
/// written over, by another thread meanwhile. In order of the later event.
pub fn overtakings(task: &Task<'_>, trace: &Trace, states: &[Snapshot]) -> Vec<Overtaking> {
    if task.model == MemoryModel::Sc {
        return Vec::new();
    }
    let accesses = accesses(task, trace, states);
    let mut pending: Vec<Vec<Pending>> = vec![Vec::new(); task.instance.threads.len()];
    let mut drained_at = vec![trace.events.len(); trace.events.len()];
    let mut all: Vec<Overtaking> = Vec::new();
    for (i, event) in trace.events.iter().enumerate() {
        let t = event.thread();
        let mine = &mut pending[t.index()];
        match (event, accesses[i]) {
            (Event::Drain { cell, .. }, _) => {
                let Some(at) = mine.iter().position(|p| p.cell == *cell) else {
                    continue;
                };
                let done = mine.remove(at);
                drained_at[done.event] = i;
                for late in mine.iter().filter(|p| p.event < done.event) {
                    all.push(overtaking(
                        t, late, i, done.cell, None, done.step, late.step,
                    ));
                }
            }
            (Event::Step { step, .. }, Some((cell, Kind::Store))) => mine.push(Pending {
                event: i,
                step: *step,
                cell,
            }),
            (Event::Step { step, .. }, Some((cell, Kind::Load))) => {
                if mine.iter().any(|p| p.cell == cell) {
                    continue;
                }
                let newest = mine.last().map(|p| p.step);
                for late in mine.iter() {
                    let after = newest.unwrap_or(late.step);
                    all.push(overtaking(t, late, i, cell, Some(()), *step, after));
                }
            }
            _ => {}
        }
    }
    // The least a person needs: late stores that another thread missed (it loaded the old value
    // meanwhile), else those it wrote over, else all.
    let meanwhile = |o: &Overtaking, kinds: &[Kind]| {
        let until = drained_at[o.store];
        let mut events = trace.events[o.store..until]
            .iter()
            .zip(&accesses[o.store..]);
        events.any(|(e, access)| {
            let touched = access.is_some_and(|(c, k)| c == o.store_cell && kinds.contains(&k));
            e.thread() != o.thread && touched
        })
    };
    let pick = |kinds: &[Kind]| -> Vec<Overtaking> {
        all.iter()
            .filter(|o| meanwhile(o, kinds))
            .cloned()
            .collect()
    };
    let mut chosen = pick(&[Kind::Load]);
    if chosen.is_empty() {
        chosen = pick(&[Kind::Store, Kind::Drain]);
    }
    if chosen.is_empty() {
        chosen = all;
    }
    // The same pair of places once, however often a loop went round.
    let mut seen = BTreeSet::new();
    chosen.retain(|o| seen.insert((o.thread, o.store_step, o.fence_before)));
    chosen
}

fn overtaking(
    thread: ThreadId,
    late: &Pending,
    later: usize,
    later_cell: CellId,
    load: Option<()>,
    fence_before: StepId,
    fence_after: StepId,
) -> Overtaking {
    Overtaking {
        thread,
        store: late.event,
        store_step: late.step,
        store_cell: late.cell,
        later,
        later_cell,
        later_is_load: load.is_some(),
        fence_before,
        fence_after,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Drain,
}

/// Which cell each event touches; stores inside atomic blocks count as drains.
fn accesses(task: &Task<'_>, trace: &Trace, states: &[Snapshot]) -> Vec<Option<(CellId, Kind)>> {
    let touched = |(i, event): (usize, &Event)| match event {
        Event::Drain { cell, .. } => Some((*cell, Kind::Drain)),
        Event::Step { thread, step, .. } => {
            let t = task.instance.thread(*thread);
            let step = t.step(*step);
            match &step.action {
                Action::Load { place, .. } => {
                    Some((words::cell(&states[i], *thread, place)?, Kind::Load))
                }
                Action::Store { place, .. } => {
                    let kind = match t.direct[step.source.index()] {
                        true => Kind::Drain,
                        false => Kind::Store,
                    };
                    Some((words::cell(&states[i], *thread, place)?, kind))
                }
                _ => None,
            }
        }
    };
    trace.events.iter().enumerate().map(touched).collect()
}

/// The closing words under a trace.
pub fn sentences(task: &Task<'_>, why: &Why, number: &dyn Fn(usize) -> usize) -> Vec<String> {
    let instance = task.instance;
    let name = |c: CellId| instance.cell(c).name.as_str();
    let mut lines = Vec::new();
    for o in why.overtakings.iter().take(MAX_SHOWN) {
        let thread = instance.thread(o.thread);
        let later = if o.later_is_load { "load" } else { "store" };
        lines.push(format!(
            "{} step {} overtook step {} (store {}, {later} {}).",
            thread.name,
            number(o.later),
            number(o.store),
            name(o.store_cell),
            name(o.later_cell),
        ));
    }
    if why.overtakings.len() > MAX_SHOWN {
        let more = why.overtakings.len() - MAX_SHOWN;
        lines.push(format!("… and {more} more."));
    }
    let sc = match why.sc_forbids {
        Some(true) => " SC forbids it.",
        Some(false) => " It is violated on SC too.",
        None => "",
    };
    match lines.last_mut() {
        Some(last) => last.push_str(sc),
        None if sc.is_empty() => {}
        None => lines.push(sc.trim_start().to_string()),
    }
    if let Some(o) = why.told() {
        lines.push(format!(
            "A {} stops this run; `wattle fences` finds the least set.",
            place(instance, o)
        ));
    }
    lines
}

/// The line below which a fence stops this run, to be marked in the source; `None` if it goes into a line, or there
/// are none.
pub fn line(instance: &Instance, o: &Overtaking) -> Option<u32> {
    let line = |s: StepId| instance.thread(o.thread).step(s).span.line;
    match (line(o.fence_after), line(o.fence_before)) {
        (0, before) => before.checked_sub(1),
        (after, before) => (after != before).then_some(after),
    }
}

/// `fence after line 8`: where a fence stops this run.
pub fn place(instance: &Instance, o: &Overtaking) -> String {
    let thread = instance.thread(o.thread);
    let line = |s: StepId| thread.step(s).span.line;
    let kind = match o.later_is_load {
        true => "fence",
        false => "store fence",
    };
    let before = words::step(instance, thread, thread.step(o.fence_before));
    match (line(o.fence_after), line(o.fence_before)) {
        (0, 0) => format!("{kind} in {} before `{before}`", thread.name),
        (0, line) => format!("{kind} before line {line}"),
        (after, before) if after == before => {
            let store = words::step(instance, thread, thread.step(o.fence_after));
            format!("{kind} in line {after} after `{store}`")
        }
        (after, _) => format!("{kind} after line {after}"),
    }
}

const MAX_SHOWN: usize = 4;

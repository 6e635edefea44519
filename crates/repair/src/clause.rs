//! From a violating run to "a fence at one of these sites".
//!
//! A store is *overtaken* by a later access of its thread that takes effect before the store drains:
//! a load (TSO, PSO) or a store of another cell (PSO). A fence at any location between the two stops
//! the run; a fence anywhere else does not, because the thread can wait there until its buffer is
//! empty without anybody noticing. A property that reads memory overtakes what is pending when it is
//! looked at: a fence where the thread stands then is before its label. So every repair has one of these sites, or locks a
//! read-modify-write that the run does not happen to execute as one step with an empty buffer before
//! and after: any other lock leaves the run as it is.

use crate::insert::Fenced;
use crate::site::{Passed, Places, Site, SiteKind};
use crate::unit::Unit;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::{Task, Trace};
use wattle_memory::reference::Snapshot;
use wattle_memory::{Event, MemoryModel};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Thread};
use wattle_model::{CellId, Expr, FamilyId, Instance, RegisterId, StepId, ThreadId};
use wattle_robust::Attack;

/// Longer traces are not tightened, and no more replays than this are spent on it.
const MAX_TIGHTEN: usize = 300;
const MAX_REPLAYS: usize = 3_000;

/// The sites that stop an attack on robustness.
pub fn of_attack(
    fenced: &Fenced,
    places: &Places,
    instance: &Instance,
    attack: &Attack,
) -> BTreeSet<Site> {
    let thread = instance.thread(attack.attacker);
    let family = thread.family;
    let mut clause = BTreeSet::new();
    for (place, j) in passed(fenced, places, thread, &attack.path) {
        clause.insert(site(family, place.fence()));
        let at = thread.step(attack.path[j]).source;
        let mut crossings = attack.crossings.iter();
        if crossings.any(|c| c.location == at && c.store_fence) {
            clause.insert(site(family, place.store_fence()));
        }
    }
    let swaps = attack.stores.iter().filter_map(|s| fenced.step(family, *s));
    clause.extend(swaps.map(|s| site(family, SiteKind::Swap(s))));
    clause
}

/// The places that a thread passes behind the first step of its path, each with the number of the step
/// it then takes.
pub fn passed(
    fenced: &Fenced,
    places: &Places,
    thread: &Thread,
    path: &[StepId],
) -> Vec<(Passed, usize)> {
    let family = thread.family;
    let mut by = path.first().and_then(|s| fenced.step(family, *s));
    let mut all = Vec::new();
    for (j, s) in path.iter().enumerate().skip(1) {
        let at = fenced.location(family, thread.step(*s).source);
        let here = places.family(family).passed(by, at);
        all.extend(here.into_iter().map(|p| (p, j)));
        // What was put in is on the way of the step before it.
        by = fenced.step(family, *s).or(by);
    }
    all
}

/// A step of the run that matters here.
struct Moment {
    event: usize,
    thread: ThreadId,
    step: StepId,
    access: Option<(CellId, bool)>,
    /// When a store reached memory; past the end if it did not.
    drained: usize,
}

/// The sites that stop a violating run. Empty only if no store is overtaken: then the run is one of
/// SC in disguise.
pub fn of_trace(
    fenced: &Fenced,
    places: &Places,
    task: &Task<'_>,
    trace: &Trace,
    states: &[Snapshot],
) -> BTreeSet<Site> {
    let moments = moments(task.instance, trace, states);
    // A lock keeps stores from memory while others go on: that a thread is past its store shows.
    let mut steps = task.instance.threads.iter().flat_map(|t| &t.steps);
    let sees_memory = steps.any(|s| s.action == Action::Lock)
        || task.question().is_some_and(|q| sees_memory(&q.target));
    let mut clause = BTreeSet::new();
    for (i, store) in moments.iter().enumerate() {
        let Some((cell, true)) = store.access else {
            continue;
        };
        let later: Vec<&Moment> = moments[i + 1..]
            .iter()
            .filter(|m| m.thread == store.thread && m.event < store.drained)
            .collect();
        let pending = store.drained == usize::MAX;
        let overtakes = |m: &Moment| match m.access {
            Some((_, false)) => true,
            Some((c, true)) => {
                task.model == MemoryModel::Pso && c != cell && m.drained < store.drained
            }
            None => false,
        };
        // A state that is looked at with the store pending is overtaken by the look itself.
        let looked_at = pending && sees_memory;
        let crossed = match looked_at {
            true => later.len(),
            false => match later.iter().rposition(|m| overtakes(m)) {
                Some(last) => last + 1,
                None => continue,
            },
        };
        let last_store = later
            .iter()
            .rposition(|m| overtakes(m) && m.access.is_some_and(|(_, write)| write));
        let thread = task.instance.thread(store.thread);
        let family = thread.family;
        let path: Vec<StepId> = [store]
            .into_iter()
            .chain(later.iter().copied())
            .map(|m| m.step)
            .collect();
        for (place, j) in passed(fenced, places, thread, &path[..=crossed]) {
            clause.insert(site(family, place.fence()));
            if last_store.is_some_and(|s| j <= s + 1) {
                clause.insert(site(family, place.store_fence()));
            }
        }
        if let Some(end) = states.last().filter(|_| looked_at) {
            let by = path.iter().rev().find_map(|s| fenced.step(family, *s));
            let at = fenced.location(family, end.locations[store.thread.index()]);
            let here = places.family(family).passed(by, at);
            clause.extend(here.into_iter().map(|p| site(family, p.fence())));
        }
        let between = later[..crossed - usize::from(!looked_at)]
            .iter()
            .filter(|m| matches!(m.access, Some((_, true))));
        for m in between.copied().chain([store]) {
            if let Some(s) = fenced.step(family, m.step) {
                clause.insert(site(family, SiteKind::Swap(s)));
            }
        }
    }
    clause
}

/// The locks that may stop the run.
pub fn locks(
    fenced: &Fenced,
    units: &[Vec<Unit>],
    instance: &Instance,
    trace: &Trace,
    states: &[Snapshot],
) -> BTreeSet<Site> {
    let mut clause = BTreeSet::new();
    // The unit each thread is in, and whether its last step is done (only its drains are missing).
    let mut inside: Vec<Option<(&Unit, bool)>> = vec![None; instance.threads.len()];
    for (i, event) in trace.events.iter().enumerate() {
        let mine = event.thread();
        let family = |t: usize| instance.threads[t].family;
        let now = match event {
            Event::Step { step, .. } => fenced.step(family(mine.index()), *step),
            Event::Drain { .. } => None,
        };
        let drain = matches!(event, Event::Drain { .. });
        for (t, slot) in inside.iter_mut().enumerate() {
            let Some((unit, done)) = *slot else { continue };
            let goes_on = match (t == mine.index(), done) {
                (false, _) => false,
                (true, true) => drain,
                (true, false) => drain || now.is_some_and(|s| unit.contains(s)),
            };
            if !goes_on {
                clause.insert(site(family(t), SiteKind::Lock(unit.entry)));
                *slot = None;
            }
        }
        let thread = &instance.threads[mine.index()];
        let slot = &mut inside[mine.index()];
        let mut of_family = units[thread.family.index()].iter();
        let unit = now.and_then(|s| of_family.find(|u| u.contains(s)));
        if let (Some(unit), Event::Step { step, .. }) = (unit, event) {
            let step = &thread.steps[step.index()];
            let origin = |l| fenced.location(thread.family, l);
            if slot.is_none() && origin(step.source) == unit.entry {
                if !states[i].buffers[mine.index()].is_empty() {
                    clause.insert(site(thread.family, SiteKind::Lock(unit.entry)));
                }
                *slot = Some((unit, false));
            }
            if let Some((_, done)) = slot {
                *done = !unit.inside.contains(&origin(step.target));
            }
        }
        let drained = |s: &Snapshot| s.buffers[mine.index()].is_empty();
        if matches!(slot, Some((_, true))) && states.get(i + 1).is_some_and(drained) {
            *slot = None;
        }
    }
    for (t, slot) in inside.iter().enumerate() {
        if let Some((unit, _)) = slot {
            let family = instance.threads[t].family;
            clause.insert(site(family, SiteKind::Lock(unit.entry)));
        }
    }
    clause
}

fn site(family: FamilyId, kind: SiteKind) -> Site {
    Site { family, kind }
}

fn moments(instance: &Instance, trace: &Trace, states: &[Snapshot]) -> Vec<Moment> {
    let mut moments: Vec<Moment> = Vec::new();
    let mut pending: BTreeMap<(ThreadId, CellId), Vec<usize>> = BTreeMap::new();
    for (i, event) in trace.events.iter().enumerate() {
        match *event {
            Event::Drain { thread, cell, .. } => {
                if let Some(list) = pending.get_mut(&(thread, cell))
                    && !list.is_empty()
                {
                    let m = list.remove(0);
                    moments[m].drained = i;
                }
            }
            Event::Step { thread, step, .. } => {
                let t = instance.thread(thread);
                let action = &t.step(step).action;
                let stores = matches!(action, Action::Store { .. });
                let place = action.place();
                let access = place.and_then(|p| Some((cell(&states[i], thread, p)?, stores)));
                let direct = t.direct[t.step(step).source.index()];
                let mut drained = i;
                if let Some((c, true)) = access
                    && !direct
                    && trace.model != MemoryModel::Sc
                {
                    pending.entry((thread, c)).or_default().push(moments.len());
                    drained = usize::MAX;
                }
                moments.push(Moment {
                    event: i,
                    thread,
                    step,
                    access,
                    drained,
                });
            }
        }
    }
    moments
}

fn cell(state: &Snapshot, thread: ThreadId, place: &Address) -> Option<CellId> {
    match place {
        Address::Cell(c) => Some(*c),
        Address::Computed {
            base,
            length,
            index,
        } => {
            let registers = &state.registers[thread.index()];
            let index = index.eval(&|r: &RegisterId| registers[r.index()]).ok()?;
            let inside = u32::try_from(index).ok().filter(|i| i < length)?;
            Some(CellId(base.0 + inside))
        }
    }
}

/// Whether the target looks at memory.
pub fn sees_memory(target: &Expr<Fact>) -> bool {
    let mut sees = false;
    target.for_each_atom(&mut |f| {
        sees |= matches!(f, Fact::Cell(_) | Fact::Seen(..) | Fact::CellAt { .. })
    });
    sees
}

/// The same run with every drain as early as the violation allows, so that only the delays it needs
/// are left.
pub fn tighten(task: &Task<'_>, trace: &Trace) -> Trace {
    let mut best = trace.clone();
    if best.events.len() > MAX_TIGHTEN {
        return best;
    }
    let mut left = MAX_REPLAYS;
    let mut at = 0;
    while at < best.events.len() && left > 0 {
        let Event::Step { thread, .. } = best.events[at] else {
            at += 1;
            continue;
        };
        let Ok(states) = best.check(task) else {
            return trace.clone();
        };
        let put = |s: &Snapshot| s.buffers[thread.index()].len();
        let stored = states
            .get(at + 1)
            .is_some_and(|after| put(after) > put(&states[at]));
        if stored {
            best = earlier(task, best, at, &states, &mut left);
        }
        at += 1;
    }
    best
}

/// Moves the drain of the store made at `at` to the first place where the run still shows the same.
fn earlier(
    task: &Task<'_>,
    trace: Trace,
    at: usize,
    states: &[Snapshot],
    left: &mut usize,
) -> Trace {
    let thread = trace.events[at].thread();
    let entries = |s: &Snapshot| s.buffers[thread.index()].clone();
    let (before, after) = (entries(&states[at]), entries(&states[at + 1]));
    let Some(entry) = after
        .iter()
        .find(|e| count(&after, e) > count(&before, e))
        .copied()
    else {
        return trace;
    };
    let drain = Event::Drain {
        thread,
        cell: entry.0,
        value: entry.1,
        keep: false,
    };
    // Entries of the same cell drain in order: this store's drain comes after those of the earlier.
    let ahead = before.iter().filter(|e| e.0 == entry.0).count();
    let same = |e: &Event| matches!(e, Event::Drain { thread: t, cell, .. } if *t == thread && *cell == entry.0);
    let drains = trace
        .events
        .iter()
        .enumerate()
        .skip(at + 1)
        .filter(|(_, e)| same(e));
    let old = drains.map(|(i, _)| i).nth(ahead);
    let last = old.unwrap_or(trace.events.len());
    for to in at + 1..=last {
        if Some(to) == old || *left == 0 {
            break;
        }
        *left -= 1;
        let mut events = trace.events.clone();
        if let Some(i) = old {
            events.remove(i);
        }
        events.insert(to, drain);
        let moved = Trace {
            events,
            ..trace.clone()
        };
        if moved.check(task).is_ok() {
            return moved;
        }
    }
    trace
}

fn count(entries: &[(CellId, i64)], entry: &(CellId, i64)) -> usize {
    entries.iter().filter(|e| *e == entry).count()
}

//! What to do about a trace that is not real: raise the k that would have prevented it.

use std::collections::BTreeSet;
use wattle_evidence::{End, Task, Trace};
use wattle_memory::content::Content;
use wattle_memory::reference::{Machine, Outcome, State};
use wattle_memory::{Bounds, Event, Layout, MemoryModel, NewestK, OldestK};
use wattle_model::{CellId, ThreadId};

/// The contents this engine works with.
pub trait Kind: Content<Bound = usize, Value = i64> {}

impl Kind for OldestK {}
impl Kind for NewestK {}

/// The least increase, of one buffer if one is enough, that makes the trace infeasible. No buffer
/// ever needs more than the stores the trace puts into it.
pub fn raise<L: Layout, C: Kind>(
    task: &Task<'_>,
    run: &Trace,
    bounds: &[Bounds<usize>],
) -> Option<Vec<Bounds<usize>>> {
    let stores = run.events.len();
    let buffers: Vec<(usize, Option<usize>)> = match L::MODEL {
        MemoryModel::Pso => {
            let cells = task.instance.cells.len();
            let drained: BTreeSet<(usize, usize)> = (run.events.iter())
                .filter_map(|e| match e {
                    Event::Drain { thread, cell, .. } => Some((thread.index(), cell.index())),
                    Event::Step { .. } => None,
                })
                .collect();
            let all = (0..bounds.len()).flat_map(|t| (0..cells).map(move |c| (t, c)));
            let all = all.filter(|p| drained.contains(p));
            all.map(|(t, c)| (t, Some(c))).collect()
        }
        MemoryModel::Sc | MemoryModel::Tso => (0..bounds.len()).map(|t| (t, None)).collect(),
    };
    for more in 1..=stores {
        for (t, c) in &buffers {
            let mut higher = bounds.to_vec();
            match c {
                Some(c) => higher[*t].cells[*c] += more,
                None => higher[*t].thread += more,
            }
            // Epochs of store fences are counted per thread.
            if c.is_some() {
                higher[*t].thread = higher[*t]
                    .thread
                    .max(higher[*t].cells.iter().copied().max()?);
            }
            if !feasible::<L, C>(task, run, &higher) {
                return Some(higher);
            }
        }
        let mut higher = bounds.to_vec();
        for b in &mut higher {
            b.thread += more;
            b.cells.iter_mut().for_each(|k| *k += more);
        }
        if !feasible::<L, C>(task, run, &higher) {
            return Some(higher);
        }
    }
    None
}

/// Whether the abstract machine with these bounds can follow the trace (drains may keep or remove
/// their entry as they like).
fn feasible<L: Layout, C: Kind>(task: &Task<'_>, run: &Trace, bounds: &[Bounds<usize>]) -> bool {
    let Ok(machine) = Machine::<L, C>::with_bounds(task.instance, bounds.to_vec()) else {
        return true;
    };
    let mut states: BTreeSet<State<L::Buffer<C>>> = BTreeSet::new();
    states.insert(machine.initial(&run.start));
    for (i, event) in run.events.iter().enumerate() {
        let mut next = BTreeSet::new();
        for state in &states {
            for enabled in machine.events(state) {
                if !same(event, &enabled) {
                    continue;
                }
                match machine.apply(state, &enabled) {
                    Outcome::Next(state) => {
                        next.insert(state);
                    }
                    Outcome::Fault(_) if i + 1 == run.events.len() => return true,
                    Outcome::Fault(_) | Outcome::Full(_) => {}
                }
            }
        }
        states = next;
        if states.is_empty() {
            return false;
        }
    }
    match (&run.end, task.question()) {
        (End::Target, Some(q)) if q.only_final => states.iter().any(|s| machine.is_final(s)),
        _ => true,
    }
}

fn same(a: &Event, b: &Event) -> bool {
    let drain = |e: &Event| -> Option<(ThreadId, CellId, i64)> {
        match e {
            Event::Drain {
                thread,
                cell,
                value,
                ..
            } => Some((*thread, *cell, *value)),
            Event::Step { .. } => None,
        }
    };
    match (drain(a), drain(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

//! Explicit search of a small instance: a shortest trace to a bad state.

use crate::machine::{Candidates, Event, Machine, State};
use rustc_hash::FxHasher;
use std::hash::BuildHasherDefault;

/// States in the order in which they were met.
type Met = indexmap::IndexSet<State, BuildHasherDefault<FxHasher>>;

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub states: usize,
    /// Longest buffer; longer ones are not followed.
    pub buffer: usize,
    pub depth: usize,
    /// Initial states taken, evenly spread over all.
    pub starts: usize,
}

/// What a search of a small instance found.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The initial state and the events of a shortest trace to a bad state.
    pub bad: Option<(State, Vec<Event>)>,
    pub states: usize,
    /// Whether these were all states.
    pub complete: bool,
}

/// Breadth-first: a shortest trace to a bad state, if there is one within the limits and before `stop`
/// says so. `look` sees every state.
pub fn bad_run(
    machine: &Machine<'_>,
    candidates: &Candidates,
    limits: Limits,
    stop: &dyn Fn() -> bool,
    look: &mut dyn FnMut(&State),
) -> Seen {
    let (initial, all) = machine.initial(candidates);
    let every = initial.len().div_ceil(limits.starts.max(1)).max(1);
    let mut states = Met::default();
    let mut parents: Vec<Option<(u32, Event)>> = Vec::new();
    let mut bad = None;
    let mut add = |s: State, parent, states: &mut Met, parents: &mut Vec<_>| {
        let (n, new) = states.insert_full(s);
        if new {
            look(&states[n]);
            if bad.is_none() && machine.bad(&states[n]).is_some() {
                bad = Some(n);
            }
            parents.push(parent);
        }
        bad
    };
    let mut found = None;
    let mut complete = all && every == 1 && !machine.chooses();
    for s in initial.into_iter().rev().step_by(every) {
        found = add(s, None, &mut states, &mut parents);
    }
    let (mut at, mut level_end, mut depth) = (0, states.len(), 0);
    while at < states.len() && found.is_none() {
        if at == level_end {
            level_end = states.len();
            depth += 1;
        }
        if states.len() >= limits.states || depth >= limits.depth || (at % 256 == 0 && stop()) {
            complete = false;
            break;
        }
        let state = states[at].clone();
        machine.successors(&state, candidates, &mut |event, next| {
            if next.buffers.iter().all(|b| b.len() <= limits.buffer) {
                found = add(next, Some((at as u32, event)), &mut states, &mut parents);
            } else {
                complete = false;
            }
        });
        at += 1;
    }
    let bad = found.map(|mut s| {
        let mut events = Vec::new();
        while let Some((parent, event)) = &parents[s] {
            events.push(event.clone());
            s = *parent as usize;
        }
        events.reverse();
        (states[s].clone(), events)
    });
    Seen {
        bad,
        states: states.len(),
        complete,
    }
}

//! Explicit search of a small instance: shortest traces to bad states, and the states themselves
//! as a source of guesses.

use crate::machine::{Candidates, Event, Machine, State};
use rustc_hash::FxHashMap;

/// What a search found and how far it went.
#[derive(Clone, Debug)]
pub struct Explored {
    pub states: Vec<State>,
    /// The states are all that can be reached.
    pub complete: bool,
    /// A shortest trace to a bad state: its initial state and events.
    pub bad: Option<(State, Vec<Event>)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub states: usize,
    /// Longest buffer; longer ones are not followed.
    pub buffer: usize,
    pub depth: usize,
    /// Initial states taken, evenly spread over all.
    pub starts: usize,
    /// Random walks after a search that was cut off, to see states farther away.
    pub walks: usize,
}

/// Breadth-first. Stops at a bad state, at the limits, or when `stop` says so.
pub fn explore(
    machine: &Machine<'_>,
    candidates: &Candidates,
    limits: Limits,
    stop_at_bad: bool,
    stop: &dyn Fn() -> bool,
) -> Explored {
    let (mut initial, mut complete) = machine.initial(candidates);
    if initial.len() > limits.starts {
        let every = initial.len().div_ceil(limits.starts.max(1));
        initial = initial.into_iter().rev().step_by(every).collect();
        complete = false;
    }
    let mut index: FxHashMap<State, u32> = FxHashMap::default();
    let mut states: Vec<State> = Vec::new();
    let mut parents: Vec<Option<(u32, Event)>> = Vec::new();
    let mut bad = None;
    for s in initial {
        if index.contains_key(&s) {
            continue;
        }
        index.insert(s.clone(), states.len() as u32);
        if bad.is_none() && machine.bad(&s).is_some() {
            bad = Some(states.len());
        }
        states.push(s);
        parents.push(None);
    }
    let (mut at, mut level_end, mut depth) = (0, states.len(), 0);
    while at < states.len() && !(stop_at_bad && bad.is_some()) {
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
            if next.buffers.iter().any(|b| b.len() > limits.buffer) {
                complete = false;
                return;
            }
            if index.contains_key(&next) {
                return;
            }
            if bad.is_none() && machine.bad(&next).is_some() {
                bad = Some(states.len());
            }
            index.insert(next.clone(), states.len() as u32);
            states.push(next);
            parents.push(Some((at as u32, event)));
        });
        at += 1;
    }
    if !complete && bad.is_none() {
        walk(machine, candidates, limits, &mut states, &mut index);
        parents.resize(states.len(), None);
    }
    let bad = bad.map(|mut s| {
        let mut events = Vec::new();
        while let Some((parent, event)) = &parents[s] {
            events.push(event.clone());
            s = *parent as usize;
        }
        events.reverse();
        (states[s].clone(), events)
    });
    Explored {
        states,
        complete,
        bad,
    }
}

/// Follows random successors from states seen, deterministically.
fn walk(
    machine: &Machine<'_>,
    candidates: &Candidates,
    limits: Limits,
    states: &mut Vec<State>,
    index: &mut FxHashMap<State, u32>,
) {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |n: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n.max(1)
    };
    let known = states.len();
    for _ in 0..limits.walks {
        let Some(mut state) = states.get(random(known)).cloned() else {
            return;
        };
        for _ in 0..limits.depth {
            let mut next = Vec::new();
            machine.successors(&state, candidates, &mut |_, s| next.push(s));
            if next.is_empty() {
                break;
            }
            state = next.swap_remove(random(next.len()));
            if state.buffers.iter().any(|b| b.len() > limits.buffer) {
                break;
            }
            if !index.contains_key(&state) {
                index.insert(state.clone(), states.len() as u32);
                states.push(state.clone());
            }
        }
    }
}

//! Explicit search of a small instance: a shortest trace to a bad state.

use crate::machine::{Candidates, Entry, Event, Machine, State};
use rustc_hash::FxHasher;
use std::hash::BuildHasherDefault;

/// States, packed, in the order in which they were met.
type Met = indexmap::IndexSet<Box<[u8]>, BuildHasherDefault<FxHasher>>;

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
    let mut parents: Vec<Option<u32>> = Vec::new();
    let mut found = None;
    let mut packed = Vec::new();
    let mut add = |s: &State, parent, states: &mut Met, parents: &mut Vec<_>| {
        pack(s, &mut packed);
        if !states.contains(packed.as_slice()) {
            states.insert(packed.as_slice().into());
            look(s);
            if found.is_none() && machine.bad(s).is_some() {
                found = Some(parents.len());
            }
            parents.push(parent);
        }
        found
    };
    let mut bad = None;
    let mut complete = all && every == 1 && !machine.chooses();
    for s in initial.iter().rev().step_by(every) {
        bad = add(s, None, &mut states, &mut parents);
    }
    let (mut at, mut level_end, mut depth) = (0, states.len(), 0);
    while at < states.len() && bad.is_none() {
        if at == level_end {
            level_end = states.len();
            depth += 1;
        }
        if states.len() >= limits.states || depth >= limits.depth || (at % 256 == 0 && stop()) {
            complete = false;
            break;
        }
        let mut state = unpack(machine, &states[at]);
        machine.successors(&mut state, candidates, &mut |_, next| {
            if next.buffers.iter().all(|b| b.len() <= limits.buffer) {
                bad = add(next, Some(at as u32), &mut states, &mut parents);
            } else {
                complete = false;
            }
        });
        at += 1;
    }
    Seen {
        bad: bad.map(|s| trace(machine, candidates, &states, &parents, s)),
        states: states.len(),
        complete,
    }
}

/// The way to a state: of each step only where it began is known, so it is taken again.
fn trace(
    machine: &Machine<'_>,
    candidates: &Candidates,
    states: &Met,
    parents: &[Option<u32>],
    mut s: usize,
) -> (State, Vec<Event>) {
    let mut events = Vec::new();
    while let Some(parent) = parents[s] {
        let target = unpack(machine, &states[s]);
        let mut taken = None;
        let mut state = unpack(machine, &states[parent as usize]);
        machine.successors(&mut state, candidates, &mut |step, next| {
            if taken.is_none() && *next == target {
                taken = Some(step.event());
            }
        });
        events.extend(taken);
        s = parent as usize;
    }
    events.reverse();
    (unpack(machine, &states[s]), events)
}

/// What stands for a number of more than one byte: eight follow.
const LONG: u8 = u8::MAX;

/// All cells, and buffers unless all are empty.
fn pack(state: &State, out: &mut Vec<u8>) {
    out.clear();
    let mut number = |n: i64| match u8::try_from(n) {
        Ok(n) if n < LONG => out.push(n),
        _ => {
            out.push(LONG);
            out.extend_from_slice(&n.to_le_bytes());
        }
    };
    state.values.iter().for_each(|v| number(*v));
    if state.buffers.iter().all(Vec::is_empty) {
        return;
    }
    for buffer in &state.buffers {
        number(buffer.len() as i64);
        for entry in buffer {
            match entry {
                Entry::Mark => number(0),
                Entry::Writes(writes) => {
                    number(writes.len() as i64);
                    for (position, value) in writes {
                        number(*position as i64);
                        number(*value);
                    }
                }
            }
        }
    }
}

/// The state that was packed.
fn unpack(machine: &Machine<'_>, bytes: &[u8]) -> State {
    let mut bytes = bytes;
    let mut number = || -> Option<i64> {
        let (first, rest) = bytes.split_first()?;
        bytes = rest;
        match *first {
            LONG => {
                let (long, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                Some(i64::from_le_bytes(*long))
            }
            n => Some(i64::from(n)),
        }
    };
    let values = (0..machine.size()).map_while(|_| number()).collect();
    let mut buffers = vec![Vec::new(); usize::from(machine.threads)];
    for buffer in &mut buffers {
        for _ in 0..number().unwrap_or(0) {
            let writes: Vec<_> = (0..number().unwrap_or(0))
                .map_while(|_| Some((number()? as usize, number()?)))
                .collect();
            buffer.push(match writes.is_empty() {
                true => Entry::Mark,
                false => Entry::Writes(writes),
            });
        }
    }
    State { values, buffers }
}

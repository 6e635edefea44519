//! Everything the reference machine can reach, with nothing clever.

use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use wattle_evidence::certificate::Coded;
use wattle_evidence::deadlock;
use wattle_memory::reference::{Machine, Outcome, State, evaluate};
use wattle_memory::{Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::Instance;

/// What the reference machine found.
#[derive(Debug, Default)]
pub struct Everything {
    /// All states, as rows of numbers.
    pub states: BTreeSet<Vec<i64>>,
    /// Registers of all threads and memory, in final states.
    pub finals: BTreeSet<Vec<i64>>,
    pub fault: bool,
    /// The question's target is true where it is looked at.
    pub target: bool,
    pub no_value: bool,
    pub deadlock: bool,
}

/// `None` if there are more than `most` states.
pub fn explore(
    instance: &Instance,
    model: MemoryModel,
    most: usize,
    everything: bool,
) -> Option<Everything> {
    match model {
        MemoryModel::Sc => run::<Sc>(instance, most, everything),
        MemoryModel::Tso => run::<Tso>(instance, most, everything),
        MemoryModel::Pso => run::<Pso>(instance, most, everything),
    }
}

fn run<L: Coded>(instance: &Instance, most: usize, everything: bool) -> Option<Everything> {
    let machine = Machine::<L, Exact>::new(instance, ()).ok()?;
    let mut found = Everything::default();
    let mut seen: FxHashSet<State<<L as Layout>::Buffer<Exact>>> = FxHashSet::default();
    let mut work = Vec::new();
    for start in machine.starts().ok()? {
        let state = machine.initial(&start);
        if seen.insert(state.clone()) {
            work.push(state);
        }
    }
    let mut edges = deadlock::Edges::default();
    let mut numbers: FxHashMap<State<<L as Layout>::Buffer<Exact>>, u64> = FxHashMap::default();
    let mut number = |s: &State<<L as Layout>::Buffer<Exact>>| {
        let n = numbers.len() as u64;
        *numbers.entry(s.clone()).or_insert(n)
    };
    let question = instance.questions.first();
    while let Some(state) = work.pop() {
        if seen.len() > most {
            return None;
        }
        let is_final = machine.is_final(&state);
        if is_final {
            let registers = state.registers.iter().flatten().copied();
            let seen = registers.chain(state.memory.iter().copied());
            found.finals.insert(seen.collect());
        }
        if let Some(q) = question
            && machine.inside_atomic(&state).is_none()
            && (is_final || !q.only_final)
        {
            match evaluate(&state, &q.target) {
                Ok(v) => found.target |= v != 0,
                Err(_) => found.no_value = true,
            }
        }
        let mut progress = deadlock::is_discarded(instance, &state);
        let mut targets = Vec::new();
        for event in machine.events(&state) {
            progress |= deadlock::is_progress(instance, L::MODEL, &event);
            match machine.apply(&state, &event) {
                Outcome::Next(next) => {
                    if everything {
                        targets.push(number(&next));
                    }
                    if !seen.contains(&next) {
                        seen.insert(next.clone());
                        work.push(next);
                    }
                }
                // A run that ends with a fault is not stuck.
                Outcome::Fault(_) => (found.fault, progress) = (true, true),
                Outcome::Full(_) => return None,
            }
        }
        if everything {
            let visible = machine.inside_atomic(&state).is_none();
            let unfinished = visible && !machine.is_final(&state);
            edges.add(number(&state), &targets, progress, unfinished);
        }
    }
    found.deadlock = everything && edges.first_deadlock().is_some();
    // Only those who ask about everything want to see everything.
    for state in seen.iter().filter(|_| everything) {
        let mut row = Vec::new();
        L::encode(state, &mut row);
        found.states.insert(row);
    }
    Some(found)
}

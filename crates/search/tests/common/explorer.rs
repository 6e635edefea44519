//! Everything the reference machine can reach, with nothing clever.

use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use wattle_evidence::certificate::Coded;
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
}

/// `None` if there are more than `most` states.
pub fn explore(instance: &Instance, model: MemoryModel, most: usize) -> Option<Everything> {
    match model {
        MemoryModel::Sc => run::<Sc>(instance, most),
        MemoryModel::Tso => run::<Tso>(instance, most),
        MemoryModel::Pso => run::<Pso>(instance, most),
    }
}

fn run<L: Coded>(instance: &Instance, most: usize) -> Option<Everything> {
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
        for event in machine.events(&state) {
            match machine.apply(&state, &event) {
                Outcome::Next(next) => {
                    if !seen.contains(&next) {
                        seen.insert(next.clone());
                        work.push(next);
                    }
                }
                Outcome::Fault(_) => found.fault = true,
                Outcome::Full(_) => return None,
            }
        }
    }
    for state in &seen {
        let mut row = Vec::new();
        L::encode(state, &mut row);
        found.states.insert(row);
    }
    Some(found)
}

//! Where a run begins, from what a configuration asks for.

use crate::local::Local;
use wattle_evidence::Task;
use wattle_memory::Start;
use wattle_memory::automaton::Automata;
use wattle_model::instance::Initial;

/// Values for everything, agreeing with what the configuration asks for.
pub fn start(
    task: &Task<'_>,
    automata: &Automata,
    memory: &[Option<i64>],
    locals: &[Local],
) -> Start {
    let memory = (memory.iter().zip(&automata.initial)).map(|(m, values)| m.unwrap_or(values[0]));
    let registers = task.instance.threads.iter().enumerate().map(|(t, thread)| {
        let automaton = &automata.threads[t];
        let here = |q: &&u32| locals[t].contains(**q, automaton);
        let q = automaton
            .initial
            .iter()
            .find(here)
            .unwrap_or(&automaton.initial[0]);
        let known = &automaton.states[*q as usize].registers;
        let values = thread
            .registers
            .iter()
            .zip(known)
            .map(|(r, v)| match r.init {
                Initial::Value(v) => v,
                // A register that is dead at the start is recorded as 0, which may not be its type's.
                Initial::Any if r.ty.admit(*v) == Some(*v) => *v,
                Initial::Any => r.ty.bounds().map_or(0, |(lo, _)| lo),
            });
        values.collect()
    });
    Start {
        memory: memory.collect(),
        registers: registers.collect(),
    }
}

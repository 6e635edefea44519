//! Where a run of the automata begins, as the reference machine wants it.

use super::{Automata, LocalId};
use crate::event::Start;
use wattle_model::Instance;
use wattle_model::instance::Initial;

impl Automata {
    /// The start with these cells and with the threads in these initial local states.
    pub fn start(&self, instance: &Instance, memory: Vec<i64>, locals: &[LocalId]) -> Start {
        let threads = instance.threads.iter().zip(&self.threads).zip(locals);
        let registers = threads.map(|((thread, automaton), q)| {
            let known = &automaton.states[*q as usize].registers;
            let registers = thread.registers.iter().zip(known);
            let values = registers.map(|(r, v)| match r.init {
                Initial::Value(v) => v,
                // A register that is dead at the start is recorded as 0, which may not be its type's.
                Initial::Any if r.ty.admit(*v) == Some(*v) => *v,
                Initial::Any => r.ty.bounds().map_or(0, |(lo, _)| lo),
            });
            values.collect()
        });
        Start {
            memory,
            registers: registers.collect(),
        }
    }
}

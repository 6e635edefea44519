//! Where a run begins, from what a configuration asks for.

use crate::local::Local;
use wattle_evidence::Task;
use wattle_memory::Start;
use wattle_memory::automaton::Automata;

/// Values for everything, agreeing with what the configuration asks for.
pub fn start(
    task: &Task<'_>,
    automata: &Automata,
    memory: &[Option<i64>],
    locals: &[Local],
) -> Start {
    let memory = (memory.iter().zip(&automata.initial)).map(|(m, values)| m.unwrap_or(values[0]));
    let locals = automata.threads.iter().zip(locals).map(|(automaton, l)| {
        let mut initial = automaton.initial.iter();
        let wanted = initial.find(|q| l.contains(**q, automaton));
        *wanted.unwrap_or(&automaton.initial[0])
    });
    let locals: Vec<_> = locals.collect();
    automata.start(task.instance, memory.collect(), &locals)
}

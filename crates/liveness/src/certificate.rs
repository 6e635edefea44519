//! Writing down why no component breaks the demand.

use crate::components::{Numbers, number};
use crate::graph::Graph;
use wattle_evidence::certificate::components::{Automaton, Components, put};
use wattle_evidence::certificate::{ClosedStates, Coded};
use wattle_evidence::live::{LiveTask, Mover};
use wattle_memory::compiled::Unpack;
use wattle_memory::{Exact, MemoryModel, Pso, Sc, Tso};
use wattle_model::instance::Fact;

pub fn certificate(
    task: &LiveTask<'_>,
    graph: &Graph<'_, '_>,
    automaton: Automaton,
    movers: &[Mover],
) -> Option<Components> {
    let numbers = number(graph, movers)?;
    Some(match task.model {
        MemoryModel::Sc => write::<Sc>(task, graph, automaton, numbers),
        MemoryModel::Tso => write::<Tso>(task, graph, automaton, numbers),
        MemoryModel::Pso => write::<Pso>(task, graph, automaton, numbers),
    })
}

fn write<L: Coded + Unpack>(
    task: &LiveTask<'_>,
    graph: &Graph<'_, '_>,
    automaton: Automaton,
    numbers: Numbers,
) -> Components {
    // What is in a register that nobody will read is not part of a state.
    let mut seen: Vec<Vec<bool>> = (task.instance.threads.iter())
        .map(|t| vec![false; t.registers.len()])
        .collect();
    for e in task.atoms() {
        e.for_each_atom(&mut |fact| see(fact, &mut seen));
    }
    let threads = task.instance.threads.iter().zip(&seen);
    let alive: Vec<_> = threads
        .map(|(t, seen)| t.live(vec![seen.clone(); t.locations.len()]))
        .collect();
    let mut rows: Vec<(Vec<i64>, u32, u32)> = Vec::new();
    for n in 0..graph.store.len() as u32 {
        let mut state = graph.machine.unpack::<L, Exact>(graph.state(n));
        let own = state.registers.iter_mut().zip(&state.locations);
        for ((registers, at), alive) in own.zip(&alive) {
            for (value, alive) in registers.iter_mut().zip(&alive[at.index()]) {
                *value *= i64::from(*alive);
            }
        }
        let mut row = Vec::new();
        L::encode(&state, &mut row);
        rows.push((row, graph.obligations(n), n));
    }
    rows.sort_unstable();
    let mut states = ClosedStates::new(task.model);
    let mut nodes = Vec::new();
    for same in rows.chunk_by(|a, b| a.0 == b.0) {
        states.push(&same[0].0);
        // Where the automaton does not go on there is nothing to follow.
        let goes_on = same.iter().map(|(.., n)| *n);
        let goes_on = goes_on.filter(|n| !graph.arcs(*n).is_empty());
        enough(graph, goes_on.min(), &mut nodes);
        put(&mut nodes, same.len() as u64);
        for (_, q, n) in same {
            put(&mut nodes, u64::from(*q));
            for part in numbers.of[*n as usize].chunk_by(|a, b| a.0 == b.0) {
                put(&mut nodes, part.len() as u64);
                for (_, number) in part {
                    put(&mut nodes, u64::from(*number));
                }
            }
        }
    }
    Components {
        fairness: task.fairness,
        automaton,
        states: states.finish(),
        count: numbers.count,
        components: numbers.components,
        nodes,
    }
}

/// Whose moves are enough in the node's state, whatever the automaton's.
fn enough(graph: &Graph<'_, '_>, node: Option<u32>, out: &mut Vec<u8>) {
    let Some(chosen) = node.and_then(|n| graph.chosen[n as usize]) else {
        put(out, 0);
        return;
    };
    put(
        out,
        u64::from(chosen.steps.count_ones() + chosen.drains.count_ones()),
    );
    for t in 0..graph.machine.thread_count() {
        if chosen.steps_of(t) {
            put(out, 2 * t as u64);
        }
        if chosen.drains_of(t) {
            put(out, 2 * t as u64 + 1);
        }
    }
}

fn see(fact: &Fact, seen: &mut [Vec<bool>]) {
    match fact {
        Fact::Register(t, r) => seen[t.index()][r.index()] = true,
        Fact::CellAt { index, .. } => index.for_each_atom(&mut |fact| see(fact, seen)),
        Fact::Cell(_) | Fact::Seen(..) | Fact::At(..) => {}
    }
}

//! Which registers may be forgotten.

use crate::facts::for_each_fact;
use wattle_memory::reference::State;
use wattle_model::instance::{Fact, Thread};
use wattle_model::{Expr, Instance};

/// Per thread, location and register: what it holds may be read, by a step or by one of the conditions,
/// which may be looked at any time, or only where the thread has ended.
pub fn registers_alive(
    instance: &Instance,
    conditions: &[&Expr<Fact>],
    only_final: bool,
) -> Vec<Vec<Vec<bool>>> {
    let mut seen: Vec<Vec<bool>> = instance
        .threads
        .iter()
        .map(|t| vec![false; t.registers.len()])
        .collect();
    for condition in conditions {
        for_each_fact(condition, &mut |fact| match fact {
            Fact::Register(t, r) => seen[t.index()][r.index()] = true,
            Fact::Cell(_) | Fact::Seen(..) | Fact::CellAt { .. } | Fact::At(..) => {}
        });
    }
    let threads = instance.threads.iter().zip(&seen);
    let one = |(thread, seen): (&Thread, &Vec<bool>)| {
        let observed = (0..thread.locations.len()).map(|l| {
            match only_final && !thread.outgoing[l].is_empty() {
                true => vec![false; seen.len()],
                false => seen.clone(),
            }
        });
        thread.live(observed.collect())
    };
    threads.map(one).collect()
}

/// Puts zero into dead registers.
pub fn forget<B>(state: &mut State<B>, alive: &[Vec<Vec<bool>>]) {
    let own = state.registers.iter_mut().zip(&state.locations);
    for ((registers, at), alive) in own.zip(alive) {
        for (value, alive) in registers.iter_mut().zip(&alive[at.index()]) {
            *value *= i64::from(*alive);
        }
    }
}

//! From what the processor does to what a person would write.
//!
//! Each pass keeps the meaning of the graph: the same loads, stores and fences in the same order, with the
//! same values; only work on variables that nobody outside the thread sees is moved, merged or dropped.

mod bounds;
mod coalesce;
mod idle;
mod live;
mod looks;
mod narrow;
mod parts;
mod propagate;
mod rebase;
mod tidy;
mod trim;
mod webs;

pub use narrow::narrow;
pub use propagate::{Solved, effective, solve, solve_within};
pub use rebase::rebase;

use crate::graph::Graph;
use crate::memory::Fields;
use crate::world::{Object, Refusal};

/// Puts values in, drops what is not needed, splits variables. What could not be shown but must be is
/// refused.
pub fn simplify(graph: &mut Graph, fields: &Fields, objects: &[Object]) -> Vec<Refusal> {
    let mut refusals = put_in(graph, fields, objects);
    // From here on words of the stack are variables like others: an access that only now is seen to be one
    // of the stack would not find them, and is refused.
    graph.vars.settled = true;
    trim::trim(graph);
    webs::split(graph);
    parts::split(graph);
    refusals.extend(put_in(graph, fields, objects));
    webs::split(graph);
    refusals
}

/// Puts values in until nothing changes.
fn put_in(graph: &mut Graph, fields: &Fields, objects: &[Object]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for _ in 0..8 {
        let solved = solve(graph, fields, objects);
        let (changed, more) = propagate::rewrite(graph, &solved, fields, objects);
        refusals.extend(more);
        let dropped = live::drop_dead(graph);
        tidy::contract(graph);
        if !changed && !dropped {
            break;
        }
    }
    refusals
}

/// Variables that may be read before they are written.
pub fn live_at_entry(graph: &Graph) -> std::collections::BTreeSet<crate::bits::VarId> {
    live::live(graph).swap_remove(graph.entry)
}

/// Drops what only passes time, and with it what only tells how much.
pub fn without_waiting(graph: &mut Graph) {
    loop {
        live::drop_dead(graph);
        tidy::contract(graph);
        if !idle::drop_loops(graph) && !looks::once(graph) {
            break;
        }
    }
}

/// The last touches, once variables and memory are cut to the bits they need.
pub fn finish(graph: &mut Graph) {
    bounds::drop_asserts(graph);
    without_waiting(graph);
    coalesce::coalesce(graph);
    live::drop_dead(graph);
    tidy::fences(graph);
    tidy::single_loads(graph);
    tidy::contract(graph);
}

#[cfg(test)]
mod tests;

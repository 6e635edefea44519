//! From what the processor does to what a person would write.
//!
//! Each pass keeps the meaning of the graph: the same loads, stores and fences in the same order, with the
//! same values; only work on variables that nobody outside the thread sees is moved, merged or dropped.

mod coalesce;
mod live;
mod narrow;
mod propagate;
mod tidy;
mod webs;

pub use narrow::narrow;
pub use propagate::{effective, solve};

use crate::graph::Graph;
use crate::memory::Fields;
use crate::world::{Object, Refusal};

/// Puts values in, drops what is not needed, splits variables. What could not be shown but must be is
/// refused.
pub fn simplify(graph: &mut Graph, fields: &Fields, objects: &[Object]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for _ in 0..4 {
        let solved = solve(graph, fields, objects);
        let (changed, more) = propagate::rewrite(graph, &solved, objects);
        refusals.extend(more);
        let dropped = live::drop_dead(graph);
        tidy::contract(graph);
        if !changed && !dropped {
            break;
        }
    }
    webs::split(graph);
    refusals
}

/// Variables that may be read before they are written.
pub fn live_at_entry(graph: &Graph) -> std::collections::BTreeSet<crate::bits::VarId> {
    live::live(graph).swap_remove(graph.entry)
}

/// The last touches, once variables and memory are cut to the bits they need.
pub fn finish(graph: &mut Graph) {
    live::drop_dead(graph);
    coalesce::coalesce(graph);
    live::drop_dead(graph);
    tidy::fences(graph);
    tidy::single_loads(graph);
    tidy::contract(graph);
}

//! Chaining: a local state whose every edge only moves on is left at once.
//!
//! Such a step touches nothing but the thread's own registers, so it commutes with every event of
//! the others; a question that cannot tell the state from its successors loses nothing. States on
//! a cycle of such steps are kept, or a thread could spin out of sight for ever.

use super::{Act, Automaton, Edge, LocalId, Observed};

pub fn chain(automaton: &mut Automaton, observed: &Observed) {
    let transient = transient(automaton, observed);
    let mut edges = Vec::new();
    for edge in &automaton.edges {
        if !transient[edge.source as usize] {
            extend(automaton, &transient, edge.clone(), &mut edges);
        }
    }
    automaton.edges = edges;
    automaton.index();
}

/// Follows transient targets, one edge per way to go on.
fn extend(automaton: &Automaton, transient: &[bool], edge: Edge, out: &mut Vec<Edge>) {
    if !transient[edge.target as usize] {
        out.push(edge);
        return;
    }
    for next in automaton.edges_from(edge.target) {
        let mut longer = edge.clone();
        longer.target = next.target;
        longer.steps.extend_from_slice(&next.steps);
        extend(automaton, transient, longer, out);
    }
}

fn transient(automaton: &Automaton, observed: &Observed) -> Vec<bool> {
    let seen = |q: LocalId| -> Vec<bool> {
        let at = automaton.states[q as usize].location;
        observed.at.iter().map(|set| set.contains(&at)).collect()
    };
    let mut transient: Vec<bool> = (0..automaton.states.len() as LocalId)
        .map(|q| {
            let ways_in = automaton.incoming[q as usize].len();
            let ways_out = automaton.outgoing[q as usize].len();
            // Either condition keeps the number of edges from multiplying.
            (ways_out == 1 || (ways_out > 1 && ways_in == 1))
                && observed.registers.is_empty()
                && automaton
                    .edges_from(q)
                    .all(|e| e.act == Act::Local && seen(e.target) == seen(q))
        })
        .collect();
    // No edge leads into an initial state of its own accord: it is where runs begin.
    for q in &automaton.initial {
        transient[*q as usize] = false;
    }
    // Depth-first through transient states; whatever closes a cycle is kept.
    let mut colour = vec![0u8; automaton.states.len()];
    for root in 0..automaton.states.len() {
        if colour[root] != 0 || !transient[root] {
            continue;
        }
        colour[root] = 1;
        let mut stack = vec![(root, 0usize)];
        while let Some((q, i)) = stack.pop() {
            let Some(&e) = automaton.outgoing[q].get(i) else {
                colour[q] = 2;
                continue;
            };
            stack.push((q, i + 1));
            let target = automaton.edges[e as usize].target as usize;
            if !transient[target] {
                continue;
            }
            match colour[target] {
                0 => {
                    colour[target] = 1;
                    stack.push((target, 0));
                }
                1 => transient[target] = false,
                _ => {}
            }
        }
    }
    transient
}

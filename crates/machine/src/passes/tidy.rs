//! Nothing is no step: edges that do nothing are drawn together.

use crate::graph::{Graph, Node, Op};
use wattle_model::Section;
use wattle_model::program::Action;

/// Draws edges that do nothing together. A node with a label stays apart from what comes after, unless
/// nothing else leads there; an endless loop of nothing keeps one edge.
pub fn contract(graph: &mut Graph) {
    loop {
        // A branch to one place either way is none.
        for node in &mut graph.nodes {
            if let [a, b] = node.out.as_slice()
                && a.to == b.to
                && (complementary(&a.op, &b.op) || (a.op == Op::Nop && b.op == Op::Nop))
            {
                node.out.truncate(1);
                node.out[0].op = Op::Nop;
            }
        }
        let n = graph.nodes.len();
        let mut incoming = vec![0usize; n];
        for at in graph.reached() {
            for e in &graph.nodes[at].out {
                incoming[e.to] += 1;
            }
        }
        incoming[graph.entry] += 1;
        // Where a node goes instead.
        let mut forward: Vec<usize> = (0..n).collect();
        let mut changed = false;
        for at in 0..n {
            let Node { labels, out, .. } = &graph.nodes[at];
            let [edge] = out.as_slice() else { continue };
            if edge.op != Op::Nop || edge.to == at {
                continue;
            }
            let to = edge.to;
            if labels.is_empty() {
                // Not round in a circle of nothing.
                let mut end = to;
                while forward[end] != end {
                    end = forward[end];
                }
                if end != at {
                    forward[at] = end;
                    changed = true;
                }
            }
        }
        if !changed {
            // A labelled node that does nothing but lead to a place only it leads to is that place.
            let merged = (0..n).find(|at| {
                let Node { labels, out, .. } = &graph.nodes[*at];
                matches!(out.as_slice(), [e] if e.op == Op::Nop && e.to != *at && incoming[e.to] == 1)
                    && !labels.is_empty()
                    && incoming[*at] > 0
            });
            let Some(at) = merged else { break };
            let to = graph.nodes[at].out[0].to;
            let gone = std::mem::take(&mut graph.nodes[to]);
            graph.nodes[at].out = gone.out;
            graph.nodes[at].labels.extend(gone.labels);
            continue;
        }
        let find = |mut l: usize| {
            while forward[l] != l {
                l = forward[l];
            }
            l
        };
        graph.entry = find(graph.entry);
        for (at, next) in forward.iter().enumerate() {
            for k in 0..graph.nodes[at].out.len() {
                let to = graph.nodes[at].out[k].to;
                graph.nodes[at].out[k].to = find(to);
            }
            if *next != at {
                let to = find(at);
                let origin = graph.nodes[at].origin;
                graph.nodes[at].out.clear();
                if graph.nodes[to].origin.is_none() {
                    graph.nodes[to].origin = origin;
                }
            }
        }
    }
}

/// Whether one of two conditions always holds, and never both.
pub fn complementary(a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::Assume(a), Op::Assume(b)) => a.clone().inverted() == *b || b.clone().inverted() == *a,
        _ => false,
    }
}

/// A locked instruction that touches nothing shared is a fence.
pub fn fences(graph: &mut Graph) {
    contract(graph);
    let mut incoming = vec![0usize; graph.nodes.len()];
    for at in graph.reached() {
        for e in &graph.nodes[at].out {
            incoming[e.to] += 1;
        }
    }
    for at in 0..graph.nodes.len() {
        for k in 0..graph.nodes[at].out.len() {
            let edge = &graph.nodes[at].out[k];
            let to = edge.to;
            if edge.op != Op::Begin || incoming[to] != 1 || !graph.nodes[to].labels.is_empty() {
                continue;
            }
            if let [end] = graph.nodes[to].out.as_slice()
                && end.op == Op::End
            {
                graph.nodes[at].out[k].op = Op::Fence;
                graph.nodes[to].out[0].op = Op::Nop;
            }
        }
    }
}

/// A load that is alone in a block that waits for no buffer needs no block.
pub fn single_loads(graph: &mut Graph) {
    contract(graph);
    let mut incoming = vec![0usize; graph.nodes.len()];
    for at in graph.reached() {
        for e in &graph.nodes[at].out {
            incoming[e.to] += 1;
        }
    }
    let begin = Op::Model(Action::AtomicBegin(Section::Buffered));
    let alone = |graph: &Graph, n: usize| incoming[n] == 1 && graph.nodes[n].out.len() == 1;
    for at in 0..graph.nodes.len() {
        for k in 0..graph.nodes[at].out.len() {
            let first = graph.nodes[at].out[k].to;
            if graph.nodes[at].out[k].op != begin || !alone(graph, first) {
                continue;
            }
            let load = &graph.nodes[first].out[0];
            let second = load.to;
            if !matches!(load.op, Op::Load { .. }) || !alone(graph, second) {
                continue;
            }
            if graph.nodes[second].out[0].op == Op::Model(Action::AtomicEnd) {
                graph.nodes[at].out[k].op = Op::Nop;
                graph.nodes[second].out[0].op = Op::Nop;
            }
        }
    }
}

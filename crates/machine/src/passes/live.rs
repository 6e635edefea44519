//! Who is still needed: the backward analysis over variables. What is only needed to compute what nobody
//! needs is not needed: a counter that only counts itself is gone with its last reader.

use crate::bits::{E, VarId};
use crate::graph::{Graph, Op};
use std::collections::BTreeSet;

/// Variables whose value may still be read, for every node.
pub fn live(graph: &Graph) -> Vec<BTreeSet<VarId>> {
    let n = graph.nodes.len();
    let mut live: Vec<BTreeSet<VarId>> = vec![BTreeSet::new(); n];
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); n];
    let order = graph.reached();
    for from in &order {
        for edge in &graph.nodes[*from].out {
            incoming[edge.to].push(*from);
        }
    }
    let mut waiting = vec![true; n];
    let mut work: Vec<usize> = order;
    while let Some(at) = work.pop() {
        waiting[at] = false;
        let mut now = BTreeSet::new();
        for edge in &graph.nodes[at].out {
            let mut one = live[edge.to].clone();
            if let Some(v) = edge.op.written() {
                one.remove(&v);
            }
            let idle = match &edge.op {
                Op::Assign(v, _) => !live[edge.to].contains(v),
                _ => false,
            };
            for e in edge.op.expressions().into_iter().filter(|_| !idle) {
                e.for_each_var(&mut |v| {
                    one.insert(v);
                });
            }
            now.extend(one);
        }
        if now.len() != live[at].len() {
            live[at] = now;
            for p in &incoming[at] {
                if !std::mem::replace(&mut waiting[*p], true) {
                    work.push(*p);
                }
            }
        }
    }
    live
}

/// Drops work whose result nobody reads; whether there was any. A load of a place that is there for sure
/// has no other effect.
pub fn drop_dead(graph: &mut Graph) -> bool {
    let mut any = false;
    loop {
        let live = live(graph);
        let mut changed = false;
        for node in &mut graph.nodes {
            for edge in &mut node.out {
                let dead = |v: &VarId| !live[edge.to].contains(v);
                let gone = match &edge.op {
                    Op::Assign(v, _) | Op::Havoc(v) | Op::Import { to: v, .. } => dead(v),
                    Op::Load { to, at } => dead(to) && matches!(at.address, E::Address(..)),
                    _ => false,
                };
                if gone {
                    edge.op = Op::Nop;
                    changed = true;
                }
            }
        }
        if !changed {
            return any;
        }
        any = true;
    }
}

//! Bytes that nobody reads any more are not carried along: storing part of a word keeps the rest of it only
//! where the rest is still needed. So a place on the stack that was another variable before is not mixed
//! with it.

use super::narrow::demand;
use crate::bits::{E, VarId, mask};
use crate::graph::{Graph, Op};
use std::collections::BTreeMap;

type Bits = BTreeMap<VarId, u64>;

/// Which bits of which variables may still be read, for every node.
fn wanted(graph: &Graph) -> Vec<Bits> {
    let n = graph.nodes.len();
    let order = graph.reached();
    let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); n];
    for from in &order {
        for edge in &graph.nodes[*from].out {
            incoming[edge.to].push(*from);
        }
    }
    let mut wanted: Vec<Bits> = vec![Bits::new(); n];
    let mut waiting = vec![true; n];
    let mut work = order;
    while let Some(at) = work.pop() {
        waiting[at] = false;
        let mut now = Bits::new();
        for edge in &graph.nodes[at].out {
            let after = &wanted[edge.to];
            let written = edge.op.written();
            for (v, bits) in after.iter().filter(|(v, _)| Some(**v) != written) {
                *now.entry(*v).or_default() |= bits;
            }
            let mut add = |v: VarId, bits: u64| *now.entry(v).or_default() |= bits;
            match &edge.op {
                Op::Assign(v, e) => {
                    demand(e, after.get(v).copied().unwrap_or(0), &mut add);
                }
                op => {
                    for e in op.expressions() {
                        demand(e, mask(e.width()), &mut add);
                    }
                }
            }
        }
        if now != wanted[at] {
            wanted[at] = now;
            for p in &incoming[at] {
                if !std::mem::replace(&mut waiting[*p], true) {
                    work.push(*p);
                }
            }
        }
    }
    wanted
}

/// The same as far as these bits go.
fn part(e: &E, bits: u64) -> E {
    match e {
        e if bits == 0 => E::constant(0, e.width()),
        E::Insert(whole, put, low) => {
            let field = mask(put.width()) << low;
            let whole = part(whole, bits & !field);
            match bits & field {
                0 => whole,
                _ => whole.insert((**put).clone(), *low),
            }
        }
        e => e.clone(),
    }
}

pub fn trim(graph: &mut Graph) {
    let wanted = wanted(graph);
    for at in graph.reached() {
        for edge in &mut graph.nodes[at].out {
            if let Op::Assign(v, e) = &mut edge.op {
                *e = part(e, wanted[edge.to].get(v).copied().unwrap_or(0));
            }
        }
    }
}

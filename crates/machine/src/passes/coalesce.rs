//! Copies between variables that are never needed at the same time are no copies.

use crate::bits::{E, VarId};
use crate::graph::{Graph, Op};
use std::collections::BTreeSet;

pub fn coalesce(graph: &mut Graph) {
    let mut refused: BTreeSet<(VarId, VarId)> = BTreeSet::new();
    loop {
        let live = super::live::live(graph);
        let order = graph.reached();
        let copy = order
            .iter()
            .flat_map(|at| &graph.nodes[*at].out)
            .find_map(|e| match &e.op {
                Op::Assign(v, E::Var(t, w))
                    if v != t && graph.vars.width(*v) == *w && !refused.contains(&(*v, *t)) =>
                {
                    Some((*v, *t))
                }
                _ => None,
            });
        let Some((v, t)) = copy else { return };
        // Neither is needed where the other gets a value, but for copies of one into the other: after
        // those both are the same until one of them gets a value again.
        let apart = order.iter().flat_map(|at| &graph.nodes[*at].out).all(|e| {
            let copied = matches!(&e.op, Op::Assign(a, E::Var(b, _)) if (*a, *b) == (v, t) || (*a, *b) == (t, v));
            match e.op.written() {
                Some(w) if w == v => copied || !live[e.to].contains(&t),
                Some(w) if w == t => copied || !live[e.to].contains(&v),
                _ => true,
            }
        });
        // What was there at first is in neither.
        let fresh = !live[graph.entry].contains(&v) && !live[graph.entry].contains(&t);
        if !apart || !fresh {
            refused.insert((v, t));
            continue;
        }
        let width = graph.vars.width(v);
        for at in order {
            for e in &mut graph.nodes[at].out {
                for x in e.op.expressions_mut() {
                    if x.mentions(t) {
                        *x = x.replace(&|w| (w == t).then_some(E::Var(v, width)));
                    }
                }
                match &mut e.op {
                    Op::Assign(w, _)
                    | Op::Havoc(w)
                    | Op::Load { to: w, .. }
                    | Op::Import { to: w, .. }
                        if *w == t =>
                    {
                        *w = v;
                    }
                    _ => {}
                }
                if matches!(&e.op, Op::Assign(a, E::Var(b, _)) if a == b) {
                    e.op = Op::Nop;
                }
            }
        }
    }
}

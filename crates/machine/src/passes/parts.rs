//! Bytes that are used apart are kept apart: two small variables in one word of the stack, or in one
//! register, become two variables.
//!
//! A part is a run of bytes that every use takes whole or not at all. A use of a part is a use of its own
//! variable; an assignment gives each part its bytes of the value; parts that nobody uses are dropped.

use crate::bits::{E, VarId};
use crate::graph::{Graph, Op};
use std::collections::BTreeMap;

/// Bit `k` is set if bytes `k` and `k + 1` of the variable are used together somewhere, and which bytes are
/// used at all.
#[derive(Clone, Copy, Default)]
struct Used {
    joined: u8,
    bytes: u8,
}

impl Used {
    fn range(&mut self, low: u32, width: u32) {
        let (first, last) = (low / 8, (low + width - 1) / 8);
        for k in first..=last {
            self.bytes |= 1 << k;
            if k < last {
                self.joined |= 1 << k;
            }
        }
    }

    /// Lowest bit and width of every part that is used.
    fn parts(self) -> Vec<(u32, u32)> {
        let mut all: Vec<(u32, u32)> = Vec::new();
        for k in 0..8 {
            let with_last = k > 0 && self.joined & (1 << (k - 1)) != 0;
            match all.last_mut() {
                Some(last) if with_last => last.1 += 8,
                _ if self.bytes & (1 << k) != 0 => all.push((k * 8, 8)),
                _ => {}
            }
        }
        all
    }
}

type Uses = BTreeMap<VarId, Used>;

fn visit(e: &E, uses: &mut Uses) {
    match e {
        E::Extract(of, low, w) if matches!(**of, E::Var(_, 64)) => {
            if let E::Var(v, _) = **of {
                uses.entry(v).or_default().range(*low, *w);
            }
        }
        E::Var(v, 64) => uses.entry(*v).or_default().range(0, 64),
        E::Var(..) | E::Const(..) | E::Address(..) | E::Unknown(_) => {}
        E::Not(a) | E::Zext(a, _) | E::Sext(a, _) | E::Extract(a, _, _) => visit(a, uses),
        E::Bin(_, a, b) | E::Cmp(_, a, b) | E::Insert(a, b, _) => {
            visit(a, uses);
            visit(b, uses);
        }
        E::Ite(c, a, b) => {
            visit(c, uses);
            visit(a, uses);
            visit(b, uses);
        }
    }
}

/// What a variable is given: bytes put into what it was leave the others alone.
fn visit_assigned(v: VarId, e: &E, uses: &mut Uses) {
    match e {
        E::Insert(whole, part, low) => {
            uses.entry(v).or_default().range(*low, part.width());
            visit(part, uses);
            visit_assigned(v, whole, uses);
        }
        E::Var(u, _) if *u == v => {}
        e => visit(e, uses),
    }
}

/// Splits the variables of 64 bits that have parts.
pub fn split(graph: &mut Graph) {
    let mut uses = Uses::new();
    let order = graph.reached();
    for edge in order.iter().flat_map(|n| &graph.nodes[*n].out) {
        match &edge.op {
            Op::Assign(v, e) if e.width() == 64 => visit_assigned(*v, e, &mut uses),
            op => {
                op.expressions()
                    .into_iter()
                    .for_each(|e| visit(e, &mut uses));
                if let Some(v) = op.written() {
                    uses.entry(v).or_default().range(0, 64);
                }
            }
        }
    }
    let mut split: BTreeMap<VarId, Vec<(VarId, u32)>> = BTreeMap::new();
    let mut wholes: BTreeMap<VarId, E> = BTreeMap::new();
    for (v, used) in uses {
        let parts = used.parts();
        if graph.vars.width(v) != 64 || parts.is_empty() || parts == [(0, 64)] {
            continue;
        }
        let name = graph.vars.names[v.0 as usize].clone();
        let mut whole = E::constant(0, 64);
        let mut all = Vec::new();
        for (low, width) in parts {
            let part = graph.vars.fresh(width, &name);
            whole = whole.insert(E::Var(part, width), low);
            all.push((part, low));
        }
        split.insert(v, all);
        wholes.insert(v, whole);
    }
    for at in order {
        for k in 0..graph.nodes[at].out.len() {
            let edge = &mut graph.nodes[at].out[k];
            for e in edge.op.expressions_mut() {
                *e = e.replace(&|v| wholes.get(&v).cloned());
            }
            let Op::Assign(v, e) = &edge.op else { continue };
            let Some(parts) = split.get(v) else { continue };
            let e = e.clone();
            // All values first: they are made of the old parts.
            let mut ops = Vec::new();
            let mut moves = Vec::new();
            for (part, low) in parts {
                let width = graph.vars.width(*part);
                let value = e.clone().extract(*low, width);
                if value == E::Var(*part, width) {
                    continue;
                }
                let kept = graph.vars.fresh(width, "part");
                ops.push(Op::Assign(kept, value));
                moves.push(Op::Assign(*part, E::Var(kept, width)));
            }
            ops.extend(moves);
            graph.put_in_place(at, k, ops);
        }
    }
}

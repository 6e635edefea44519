//! Live bytes only: a variable keeps the bits somebody looks at.
//!
//! Backwards from what others see (stores, addresses, conditions) to which bits of each variable matter;
//! a variable of which only low bits matter becomes a narrower one. Bits that do not matter may be
//! anything, zero in particular.

use crate::bits::{Bin, E, VarId, mask};
use crate::graph::{Graph, Op};
use std::collections::BTreeMap;

/// All bits from 0 to the highest one.
fn below(bits: u64) -> u64 {
    mask(64 - bits.leading_zeros())
}

/// Which bits of variables matter for these bits of an expression.
fn demand(e: &E, bits: u64, add: &mut impl FnMut(VarId, u64)) {
    if bits == 0 {
        return;
    }
    match e {
        E::Var(v, w) => add(*v, bits & mask(*w)),
        E::Const(..) | E::Address(..) | E::Unknown(_) => {}
        E::Not(a) => demand(a, bits, add),
        E::Zext(a, _) => demand(a, bits & mask(a.width()), add),
        E::Sext(a, _) => {
            let w = a.width();
            let sign = if bits & !mask(w) != 0 {
                1 << (w - 1)
            } else {
                0
            };
            demand(a, bits & mask(w) | sign, add);
        }
        E::Extract(a, low, w) => demand(a, (bits & mask(*w)) << low, add),
        E::Insert(a, b, low) => {
            let field = mask(b.width()) << low;
            demand(a, bits & !field, add);
            demand(b, (bits & field) >> low, add);
        }
        E::Ite(c, a, b) => {
            demand(c, 1, add);
            demand(a, bits, add);
            demand(b, bits, add);
        }
        E::Cmp(_, a, b) => {
            let all = mask(a.width());
            demand(a, all, add);
            demand(b, all, add);
        }
        E::Bin(op, a, b) => match (op, b.as_const()) {
            (Bin::And, Some(c)) => demand(a, bits & c, add),
            (Bin::And | Bin::Or | Bin::Xor, _) => {
                demand(a, bits, add);
                demand(b, bits, add);
            }
            (Bin::Add | Bin::Sub | Bin::Mul, _) => {
                demand(a, below(bits), add);
                demand(b, below(bits), add);
            }
            (Bin::Shl, Some(c)) if c < 64 => demand(a, bits >> c, add),
            (Bin::Shr, Some(c)) if c < 64 => demand(a, (bits << c) & mask(a.width()), add),
            _ => {
                let all = mask(a.width());
                demand(a, all, add);
                demand(b, all, add);
            }
        },
    }
}

pub fn narrow(graph: &mut Graph) {
    let mut wanted: BTreeMap<VarId, u64> = BTreeMap::new();
    let order = graph.reached();
    loop {
        let mut changed = false;
        for at in &order {
            for edge in &graph.nodes[*at].out {
                let written = edge.op.written().and_then(|v| wanted.get(&v).copied());
                let mut add = |v: VarId, bits: u64| {
                    let known = wanted.entry(v).or_insert(0);
                    changed |= bits & !*known != 0;
                    *known |= bits;
                };
                match &edge.op {
                    Op::Assign(_, e) => demand(e, written.unwrap_or(0), &mut add),
                    op => {
                        for e in op.expressions() {
                            demand(e, mask(e.width()), &mut add);
                        }
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    let mut narrower: BTreeMap<VarId, E> = BTreeMap::new();
    for (v, bits) in &wanted {
        let width = graph.vars.width(*v);
        let needed = 64 - bits.leading_zeros();
        let new = [1, 8, 16, 32, 64].into_iter().find(|w| *w >= needed);
        let new = new.unwrap_or(64).min(width);
        if new < width {
            graph.vars.widths[v.0 as usize] = new;
            narrower.insert(*v, E::Var(*v, new).zext(width));
        }
    }
    for at in order {
        for edge in &mut graph.nodes[at].out {
            for e in edge.op.expressions_mut() {
                *e = e.replace(&|v| narrower.get(&v).cloned());
            }
            match &mut edge.op {
                Op::Assign(v, e) if narrower.contains_key(v) => {
                    *e = e.clone().extract(0, graph.vars.widths[v.0 as usize]);
                }
                _ => {}
            }
        }
    }
}

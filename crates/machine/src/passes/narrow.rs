//! Live bytes only: a variable keeps the bits somebody looks at.
//!
//! Backwards from what others see (stores, addresses, conditions) to which bits of each variable matter;
//! a variable of which only low bits matter becomes a narrower one. Bits that do not matter may be
//! anything, zero in particular.

use crate::bits::{Bin, E, VarId, mask};
use crate::graph::{Access, Graph, Op};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::RegionId;

/// All bits from 0 to the highest one.
fn below(bits: u64) -> u64 {
    mask(64 - bits.leading_zeros())
}

/// Which bits of variables matter for these bits of an expression.
pub fn demand(e: &E, bits: u64, add: &mut impl FnMut(VarId, u64)) {
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

/// Narrows the variables of all graphs. `cell` tells the region of numbers an access goes to, `seen` which
/// regions others look at as a whole; the bits each region needs are given back.
pub fn narrow(
    graphs: &mut [Graph],
    cell: &dyn Fn(usize, &Access) -> Option<RegionId>,
    seen: &BTreeSet<RegionId>,
) -> BTreeMap<RegionId, u32> {
    let mut wanted: BTreeMap<Holder, u64> = BTreeMap::new();
    for r in seen {
        wanted.insert(Holder::Cell(*r), u64::MAX);
    }
    loop {
        let mut changed = false;
        for (g, graph) in graphs.iter().enumerate() {
            for edge in graph
                .reached()
                .into_iter()
                .flat_map(|n| &graph.nodes[n].out)
            {
                let of = |h: Holder| wanted.get(&h).copied().unwrap_or(0);
                let place = match &edge.op {
                    Op::Load { at, .. } | Op::Store { at, .. } => cell(g, at).map(Holder::Cell),
                    _ => None,
                };
                let written = edge.op.written().map_or(0, |v| of(Holder::Var(g, v)));
                let stored = place.map_or(u64::MAX, of);
                let mut put = |h: Holder, bits: u64| {
                    let known = wanted.entry(h).or_insert(0);
                    changed |= bits & !*known != 0;
                    *known |= bits;
                };
                let mut add = |v: VarId, bits: u64| put(Holder::Var(g, v), bits);
                match &edge.op {
                    Op::Assign(_, e) => demand(e, written & mask(e.width()), &mut add),
                    Op::Store { at, value } => {
                        demand(&at.address, u64::MAX, &mut add);
                        demand(value, stored & mask(value.width()), &mut add);
                    }
                    op => {
                        for e in op.expressions() {
                            demand(e, mask(e.width()), &mut add);
                        }
                    }
                }
                if let (Op::Load { .. }, Some(place)) = (&edge.op, place) {
                    put(place, written);
                }
            }
        }
        if !changed {
            break;
        }
    }
    for (g, graph) in graphs.iter_mut().enumerate() {
        let mut narrower: BTreeMap<VarId, E> = BTreeMap::new();
        for (h, bits) in &wanted {
            let Holder::Var(of, v) = h else { continue };
            if *of != g {
                continue;
            }
            let width = graph.vars.width(*v);
            let needed = 64 - bits.leading_zeros();
            let new = [1, 8, 16, 32, 64].into_iter().find(|w| *w >= needed);
            let new = new.unwrap_or(64).min(width);
            if new < width {
                graph.vars.widths[v.0 as usize] = new;
                narrower.insert(*v, E::Var(*v, new).zext(width));
            }
        }
        for at in graph.reached() {
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
    let cells = wanted.iter().filter_map(|(h, bits)| match h {
        Holder::Cell(r) => Some((*r, 64 - bits.leading_zeros())),
        Holder::Var(..) => None,
    });
    cells.collect()
}

/// Who holds bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Var(usize, VarId),
    Cell(RegionId),
}

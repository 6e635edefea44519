//! A pointer that walks over an object is an index: compilers turn `a[i]` into a pointer that is moved on.
//!
//! A variable every assignment of which is an address in one object, or itself or another such variable
//! moved by a constant, is that address plus `w · 2ˢ`, where `2ˢ` divides all the distances. `w` has `64 − s`
//! bits, so that going round is as the processor has it, and comparing such pointers is comparing numbers.

use crate::bits::{Base, Bin, Cmp, E, VarId};
use crate::graph::{Graph, Op};
use std::collections::{BTreeMap, BTreeSet};

/// A pointer as object, the variable it is relative to, and a distance.
type Walked = (usize, Option<VarId>, i64);

fn walked(e: &E, of: &BTreeMap<VarId, usize>) -> Option<Walked> {
    match e {
        E::Address(Base::Object(o), k) => Some((*o, None, *k)),
        E::Var(v, 64) => Some((*of.get(v)?, Some(*v), 0)),
        E::Bin(Bin::Add, a, k) => {
            let (o, v, by) = walked(a, of)?;
            Some((o, v, by.checked_add(k.as_const()? as i64)?))
        }
        _ => None,
    }
}

/// Which variables walk over which objects.
fn walkers(graph: &Graph) -> BTreeMap<VarId, usize> {
    let order = graph.reached();
    let edges = || order.iter().flat_map(|n| &graph.nodes[*n].out);
    let nothing = BTreeMap::new();
    let mut of: BTreeMap<VarId, usize> = BTreeMap::new();
    // Whoever is given an address, or is reached from there by moves.
    loop {
        let before = of.len();
        for e in edges() {
            if let Op::Assign(v, e) = &e.op
                && let Some((o, _, _)) = walked(e, &of).or(walked(e, &nothing))
            {
                of.entry(*v).or_insert(o);
            }
        }
        if of.len() == before {
            break;
        }
    }
    // But for those that may be something else.
    let early = super::live_at_entry(graph);
    of.retain(|v, _| !early.contains(v));
    loop {
        let wrong: BTreeSet<VarId> = edges()
            .filter_map(|e| {
                let v = e.op.written().filter(|v| of.contains_key(v))?;
                let fine = match &e.op {
                    Op::Assign(_, e) => walked(e, &of).is_some_and(|(o, _, _)| o == of[&v]),
                    _ => false,
                };
                (!fine).then_some(v)
            })
            .collect();
        if wrong.is_empty() {
            return of;
        }
        of.retain(|v, _| !wrong.contains(v));
    }
}

/// How pointers into an object are written: first offset, and the power of two that distances are
/// multiples of.
#[derive(Clone, Copy)]
struct Scale {
    first: i64,
    shift: u32,
}

/// Replaces pointers that walk by indices; whether there was one.
pub fn rebase(graph: &mut Graph) -> bool {
    let of = walkers(graph);
    let order = graph.reached();
    let mut scales: BTreeMap<usize, Scale> = BTreeMap::new();
    let mut moved: BTreeSet<usize> = BTreeSet::new();
    let moves: Vec<Walked> = (order.iter().flat_map(|n| &graph.nodes[*n].out))
        .filter_map(|e| match &e.op {
            Op::Assign(v, value) if of.contains_key(v) => walked(value, &of),
            _ => None,
        })
        .collect();
    for (o, from, by) in &moves {
        if from.is_none() {
            let (first, shift) = (*by, 62);
            scales.entry(*o).or_insert(Scale { first, shift });
        }
    }
    for (o, from, by) in moves {
        let Some(scale) = scales.get_mut(&o) else {
            continue;
        };
        let distance = match from {
            Some(_) => by,
            None => by.wrapping_sub(scale.first),
        };
        if distance != 0 {
            moved.insert(o);
            scale.shift = scale.shift.min(distance.trailing_zeros());
        }
    }
    scales.retain(|o, _| moved.contains(o));
    let mut index: BTreeMap<VarId, (VarId, Scale)> = BTreeMap::new();
    for (v, o) in &of {
        if let Some(scale) = scales.get(o) {
            let name = graph.vars.names[v.0 as usize].clone();
            index.insert(*v, (graph.vars.fresh(64 - scale.shift, &name), *scale));
        }
    }
    if index.is_empty() {
        return false;
    }
    let walk = Walk {
        of: &of,
        scales: &scales,
        index: &index,
    };
    for n in order {
        for edge in &mut graph.nodes[n].out {
            if let Op::Assign(v, value) = &edge.op
                && let Some((w, scale)) = index.get(v)
                && let Some(count) = walk.count(value, *scale)
            {
                edge.op = Op::Assign(*w, count);
                continue;
            }
            for e in edge.op.expressions_mut() {
                *e = walk.put(e);
            }
        }
    }
    true
}

struct Walk<'a> {
    of: &'a BTreeMap<VarId, usize>,
    scales: &'a BTreeMap<usize, Scale>,
    index: &'a BTreeMap<VarId, (VarId, Scale)>,
}

impl Walk<'_> {
    /// How many steps a pointer is from the first offset; none if it is between two.
    fn count(&self, e: &E, scale: Scale) -> Option<E> {
        let (_, from, by) = walked(e, self.of)?;
        let width = 64 - scale.shift;
        let (start, distance) = match from {
            Some(v) => (E::Var(self.index.get(&v)?.0, width), by),
            None => (E::constant(0, width), by.wrapping_sub(scale.first)),
        };
        let whole = distance % (1i64 << scale.shift) == 0;
        let steps = E::constant((distance >> scale.shift) as u64, width);
        whole.then(|| E::sum(start, steps))
    }

    fn put(&self, e: &E) -> E {
        if let E::Cmp(op @ (Cmp::Eq | Cmp::Ne), a, b) = e
            && let (Some((o, ..)), Some((p, ..))) = (walked(a, self.of), walked(b, self.of))
            && o == p
            && let Some(scale) = self.scales.get(&o)
            && let (Some(x), Some(y)) = (self.count(a, *scale), self.count(b, *scale))
        {
            return E::test(*op, x, y);
        }
        match e {
            E::Var(v, _) => match self.index.get(v) {
                Some((w, scale)) => {
                    let count = E::Var(*w, 64 - scale.shift).zext(64);
                    let by = E::constant(u64::from(scale.shift), 64);
                    let first = E::Address(Base::Object(self.of[v]), scale.first);
                    E::sum(E::bin(Bin::Shl, count, by), first)
                }
                None => e.clone(),
            },
            E::Const(..) | E::Address(..) | E::Unknown(_) => e.clone(),
            E::Not(a) => self.put(a).inverted(),
            E::Bin(op, a, b) => E::bin(*op, self.put(a), self.put(b)),
            E::Cmp(op, a, b) => E::test(*op, self.put(a), self.put(b)),
            E::Zext(a, w) => self.put(a).zext(*w),
            E::Sext(a, w) => self.put(a).sext(*w),
            E::Extract(a, low, w) => self.put(a).extract(*low, *w),
            E::Insert(a, b, low) => self.put(a).insert(self.put(b), *low),
            E::Ite(c, a, b) => E::ite(self.put(c), self.put(a), self.put(b)),
        }
    }
}

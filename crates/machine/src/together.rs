//! Objects that one pointer may point at in turn: the nodes of a queue that are variables of their own.
//!
//! A pointer is written down as the number of an element of one object. Where something may hold addresses
//! of two objects of the file, alike in size, these become elements of one.

use crate::bits::{Base, Bin, E, VarId};
use crate::graph::{Graph, Op};
use crate::memory::{Field, Fields, Kind, Target, spot};
use crate::world::{Copies, World};
use std::collections::{BTreeMap, BTreeSet};

/// Who holds an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Var(usize, VarId),
    Field(Field),
}

/// The objects an expression may be the address of, with the offset.
fn targets(e: &E, kinds: &BTreeMap<VarId, Kind>, found: &mut BTreeSet<(usize, i64)>) {
    match e {
        E::Address(Base::Object(o) | Base::Element(o, _), k) => drop(found.insert((*o, *k))),
        E::Var(v, 64) => {
            if let Some(Kind::Pointer(Target::Object(o) | Target::Elements(o), k)) = kinds.get(v) {
                found.insert((*o, *k));
            }
        }
        E::Bin(Bin::Add, a, k) if k.as_const().is_some() => {
            let mut below = BTreeSet::new();
            targets(a, kinds, &mut below);
            let by = k.as_const().unwrap_or(0) as i64;
            found.extend(below.into_iter().map(|(o, k)| (o, k.wrapping_add(by))));
        }
        E::Ite(_, a, b) => {
            targets(a, kinds, found);
            targets(b, kinds, found);
        }
        _ => {}
    }
}

/// Starts of objects that belong together; whether that is more than before.
pub fn together(
    graphs: &[Graph],
    kinds: &[BTreeMap<VarId, Kind>],
    fields: &Fields,
    world: &mut World,
) -> bool {
    let mut held: BTreeMap<Holder, BTreeSet<(usize, i64)>> = BTreeMap::new();
    for (g, (graph, kinds)) in graphs.iter().zip(kinds).enumerate() {
        let of = |v: VarId| kinds.get(&v).copied().unwrap_or(Kind::Number);
        for edge in graph
            .reached()
            .into_iter()
            .flat_map(|n| &graph.nodes[n].out)
        {
            match &edge.op {
                Op::Assign(v, e) => {
                    targets(e, kinds, held.entry(Holder::Var(g, *v)).or_default());
                }
                Op::Load { to, at } => {
                    if let Some(s) = spot(&at.address, &of)
                        && let Kind::Pointer(Target::Object(o) | Target::Elements(o), k) =
                            fields.kind(&world.objects, (s.object, s.offset), at.bytes)
                    {
                        held.entry(Holder::Var(g, *to)).or_default().insert((o, k));
                    }
                }
                Op::Store { at, value } => {
                    if let Some(s) = spot(&at.address, &of) {
                        let field = Holder::Field((s.object, s.offset));
                        targets(value, kinds, held.entry(field).or_default());
                    }
                }
                _ => {}
            }
        }
    }
    for (n, o) in world.objects.iter().enumerate() {
        for (at, base) in o.contents.iter().flat_map(|c| &c.pointers) {
            if let Some((Base::Object(to) | Base::Element(to, _), k)) = base {
                let field = Holder::Field((n, *at as i64));
                held.entry(field).or_default().insert((*to, *k));
            }
        }
    }
    let mut changed = false;
    for all in held.into_values() {
        for (a, b) in all.iter().zip(all.iter().skip(1)) {
            changed |= a.0 != b.0 && a.1 == b.1 && join(world, a.0, b.0);
        }
    }
    changed
}

/// Puts two objects together if they are alike.
fn join(world: &mut World, a: usize, b: usize) -> bool {
    let (x, y) = (&world.objects[a], &world.objects[b]);
    let alike = x.size == y.size && x.constant == y.constant;
    let ours = |o: &crate::world::Object| o.start.is_some() && o.copies_are_of_file();
    if !alike || !ours(x) || !ours(y) {
        return false;
    }
    let starts = |o: &crate::world::Object| o.contents.iter().map(|c| c.start).collect::<Vec<_>>();
    let mut all: Vec<u64> = starts(x).into_iter().chain(starts(y)).collect();
    // Others may have been put to either already.
    world.together.retain(|set| {
        let meets = set.iter().any(|s| all.contains(s));
        if meets {
            all.extend(set);
        }
        !meets
    });
    all.sort_unstable();
    all.dedup();
    world.together.push(all);
    true
}

impl crate::world::Object {
    fn copies_are_of_file(&self) -> bool {
        match self.copies {
            Copies::One => true,
            Copies::Array(n) => n as usize == self.contents.len(),
            Copies::PerThread(_) => false,
        }
    }
}

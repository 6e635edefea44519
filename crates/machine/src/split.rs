//! Accesses of different sizes to one place, exactly.
//!
//! A word that is also accessed by its halves is kept as halves. Then a half is one access, and a whole
//! word is several: in a locked instruction they are one step anyway; a plain load reads them in an atomic
//! block that waits for no buffer, so each part comes from the thread's own latest store to it or from
//! memory, as bytes do on the processor. A plain store of the whole would have to leave the buffer at
//! once, which the model cannot say: it is refused, unless nobody ever looks at more than one of the parts,
//! as where a flag is cleared together with the room behind it.

use crate::bits::E;
use crate::graph::{Access, Graph, Op, Origin};
use crate::layout::Seen;
use crate::memory::Spot;
use crate::world::{Refusal, World};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::Section;
use wattle_model::program::Action;

/// The parts of each object, where accesses overlap: offset and bytes.
pub type Parts = BTreeMap<usize, BTreeSet<(i64, u32)>>;

/// Which objects must be kept in parts.
pub fn parts(seen: &[Seen]) -> Parts {
    let mut all: BTreeMap<usize, BTreeSet<(i64, u32)>> = BTreeMap::new();
    for s in seen.iter().filter(|s| s.spot.index.is_none()) {
        let aligned = s.spot.offset.rem_euclid(i64::from(s.bytes)) == 0;
        if aligned && s.spot.offset >= 0 {
            all.entry(s.spot.object)
                .or_default()
                .insert((s.spot.offset, s.bytes));
        }
    }
    all.retain(|_, fields| {
        let overlap = |a: &(i64, u32), b: &(i64, u32)| {
            a != b && a.0 < b.0 + i64::from(b.1) && b.0 < a.0 + i64::from(a.1)
        };
        fields.iter().any(|a| fields.iter().any(|b| overlap(a, b)))
    });
    for fields in all.values_mut() {
        let cuts: BTreeSet<i64> = (fields.iter())
            .flat_map(|(o, n)| [*o, o + i64::from(*n)])
            .collect();
        let covered = |at: i64| {
            fields
                .iter()
                .any(|(o, n)| *o <= at && at < o + i64::from(*n))
        };
        let mut pieces = BTreeSet::new();
        for (from, to) in cuts.iter().zip(cuts.iter().skip(1)) {
            let mut at = *from;
            while at < *to && covered(at) {
                // The largest aligned piece that fits.
                let fits = |n: &i64| at % n == 0 && at + n <= *to;
                let n = [8, 4, 2, 1].into_iter().find(fits).unwrap_or(1);
                pieces.insert((at, n as u32));
                at += n;
            }
        }
        *fields = pieces;
    }
    all
}

/// The parts that somebody looks at. `looked_at` are objects whose first field the program itself looks at.
pub fn loaded(seen: &[Seen], parts: &Parts, looked_at: &BTreeSet<usize>) -> BTreeSet<(usize, i64)> {
    let mut all = BTreeSet::new();
    for (object, pieces) in parts {
        let loads = || seen.iter().filter(|s| s.load && s.spot.object == *object);
        for (from, n) in pieces {
            let to = from + i64::from(*n);
            let within = |s: &Seen| {
                let end = s.spot.offset.saturating_add(i64::from(s.bytes));
                s.spot.index.is_some() || s.spot.offset < to && *from < end
            };
            if loads().any(within) || *from == 0 && looked_at.contains(object) {
                all.insert((*object, *from));
            }
        }
    }
    all
}

/// Takes accesses of whole words apart. `spot` tells where an access of this graph goes, `loaded` which parts
/// somebody looks at.
pub fn split(
    graph: &mut Graph,
    parts: &Parts,
    loaded: &BTreeSet<(usize, i64)>,
    spot: &dyn Fn(&Access) -> Option<Spot>,
    world: &World,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for n in graph.reached() {
        for k in 0..graph.nodes[n].out.len() {
            let edge = graph.nodes[n].out[k].clone();
            let at = match &edge.op {
                Op::Load { at, .. } | Op::Store { at, .. } => at.clone(),
                _ => continue,
            };
            let Some(s) = spot(&at).filter(|s| s.index.is_none()) else {
                continue;
            };
            let end = s.offset + i64::from(at.bytes);
            let pieces: Vec<(i64, u32)> = (parts.get(&s.object).into_iter().flatten())
                .filter(|(o, _)| s.offset <= *o && *o < end)
                .copied()
                .collect();
            if pieces.len() < 2 {
                continue;
            }
            let alone = |pieces: &[(i64, u32)]| {
                let looked_at = pieces.iter().filter(|p| loaded.contains(&(s.object, p.0)));
                looked_at.count() <= 1
            };
            let piece = |(o, bytes): (i64, u32)| Access {
                address: at.address.clone().plus(o - s.offset),
                bytes,
                locked: at.locked,
            };
            let low = |o: i64| (o - s.offset) as u32 * 8;
            let mut ops = Vec::new();
            match &edge.op {
                Op::Load { to, .. } => {
                    let mut whole = E::constant(0, at.bytes * 8);
                    let section = !at.locked;
                    if section {
                        ops.push(Op::Model(Action::AtomicBegin(Section::Buffered)));
                    }
                    for p in &pieces {
                        let part = graph.vars.fresh(p.1 * 8, "part");
                        ops.push(Op::Load {
                            to: part,
                            at: piece(*p),
                        });
                        whole = whole.insert(graph.vars.read(part), low(p.0));
                    }
                    if section {
                        ops.push(Op::Model(Action::AtomicEnd));
                    }
                    ops.push(Op::Assign(*to, whole));
                }
                Op::Store { value, .. } if at.locked || alone(&pieces) => {
                    let needed =
                        |p: &&(i64, u32)| !alone(&pieces) || loaded.contains(&(s.object, p.0));
                    for p in pieces.iter().filter(needed) {
                        let value = value.clone().extract(low(p.0), p.1 * 8);
                        ops.push(Op::Store {
                            at: piece(*p),
                            value,
                        });
                    }
                }
                _ => {
                    if let Origin::Code(address) = edge.origin {
                        let name = &world.objects[s.object].name;
                        let what = format!(
                            "a plain store of {} bytes to `{name}`, of which parts are accessed elsewhere, is not supported",
                            at.bytes
                        );
                        refusals.push(Refusal::at(address, what));
                    }
                    continue;
                }
            }
            graph.put_in_place(n, k, ops);
        }
    }
    refusals
}

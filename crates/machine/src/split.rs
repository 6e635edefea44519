//! Accesses of different sizes to one place, exactly.
//!
//! A word that is also accessed by its halves is kept as halves. Then a half is one access, and a whole
//! word is several: in a locked instruction they are one step anyway; a plain load reads them in an atomic
//! block that waits for no buffer, so each part comes from the thread's own latest store to it or from
//! memory, as bytes do on the processor. A plain store of the whole leaves the buffer at once, which the
//! model cannot say: the thread holds it back ([`crate::held`]).

use crate::bits::E;
use crate::graph::{Access, Graph, Op, Origin};
use crate::held::{self, Places};
use crate::layout::Seen;
use crate::memory::Spot;
use crate::world::{Object, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::Action;
use wattle_model::{Place, Section};

/// The parts of each object, where accesses overlap: offset and bytes.
pub type Parts = BTreeMap<usize, BTreeSet<(i64, u32)>>;

/// Objects with more elements are not looked at.
const MAX_ELEMENTS: u64 = 1 << 10;

/// The places in an object that an access may be of: the first, the distance, how many.
fn elements(s: &Spot, bytes: u32, size: u64) -> Option<(i64, u64, u64)> {
    let Some((index, stride)) = &s.index else {
        return Some((s.offset, u64::from(bytes), 1));
    };
    let room = size.checked_sub(u64::try_from(s.offset).ok()? + u64::from(bytes))?;
    let n = (room / stride).min(index.most()) + 1;
    (n <= MAX_ELEMENTS).then_some((s.offset, *stride, n))
}

/// Which objects must be kept in parts.
pub fn parts(seen: &[Seen], objects: &[Object]) -> Parts {
    let mut places: BTreeMap<usize, BTreeSet<(i64, u32, u64, u64)>> = BTreeMap::new();
    for s in seen {
        let bytes = i64::from(s.bytes);
        let size = objects[s.spot.object].size;
        if let Some((at, stride, n)) = elements(&s.spot, s.bytes, size)
            && at >= 0
            && at % bytes == 0
            && stride % u64::from(s.bytes) == 0
        {
            let all = places.entry(s.spot.object).or_default();
            all.insert((at, s.bytes, stride, n));
        }
    }
    let mut all = Parts::new();
    for (object, places) in places {
        let place = |(at, bytes, stride, n): &(i64, u32, u64, u64)| {
            let (at, bytes, stride) = (*at, *bytes, *stride);
            (0..*n).map(move |k| (at + (stride * k) as i64, bytes))
        };
        let fields: BTreeSet<(i64, u32)> = places.iter().flat_map(place).collect();
        let mut end = i64::MIN;
        let mut last = None;
        // Sorted by where they begin: two that meet are found beside each other.
        let overlap = fields.iter().any(|(at, bytes)| {
            let meets = *at < end && last != Some((*at, *bytes));
            end = end.max(at + i64::from(*bytes));
            last = Some((*at, *bytes));
            meets
        });
        if !overlap {
            continue;
        }
        // Where one element of an array is cut, all are.
        let mut cuts: BTreeSet<i64> = (fields.iter())
            .flat_map(|(o, n)| [*o, o + i64::from(*n)])
            .collect();
        loop {
            let before = cuts.len();
            for (at, bytes, stride, n) in places.iter().filter(|p| p.3 > 1) {
                let within =
                    |c: &i64| (0..i64::from(*bytes)).contains(&(c - at).rem_euclid(*stride as i64));
                let inside = |c: &&i64| *at <= **c && **c < at + (stride * n) as i64 && within(c);
                let cut: BTreeSet<i64> = cuts
                    .iter()
                    .filter(inside)
                    .map(|c| (c - at).rem_euclid(*stride as i64))
                    .collect();
                cuts.extend(
                    (0..*n).flat_map(|k| cut.iter().map(move |c| at + (stride * k) as i64 + c)),
                );
            }
            if cuts.len() == before {
                break;
            }
        }
        let mut pieces = BTreeSet::new();
        for (from, to) in cuts.iter().zip(cuts.iter().skip(1)) {
            let covered = (fields.range(..=(*from, u32::MAX)).rev())
                .take_while(|(o, _)| *o + 8 > *from)
                .any(|(o, n)| o + i64::from(*n) > *from);
            let mut at = *from;
            while at < *to && covered {
                // The largest aligned piece that fits.
                let fits = |n: &i64| at % n == 0 && at + n <= *to;
                let n = [8, 4, 2, 1].into_iter().find(fits).unwrap_or(1);
                pieces.insert((at, n as u32));
                at += n;
            }
        }
        all.insert(object, pieces);
    }
    all
}

/// Takes accesses of whole words apart; what cannot be is refused. `spot` tells where an access of this graph goes.
pub fn split(
    graph: &mut Graph,
    parts: &Parts,
    spot: &dyn Fn(&Access) -> Option<Spot>,
    objects: &[Object],
) -> Option<Refusal> {
    let pieces = |at: &Access| -> Vec<(i64, u32)> {
        let Some((s, all)) = spot(at).and_then(|s| parts.get(&s.object).map(|p| (s, p))) else {
            return Vec::new();
        };
        let of = |start: i64| {
            let within = all.range((start, 0)..(start + i64::from(at.bytes), 0));
            within
                .map(|(o, bytes)| (o - start, *bytes))
                .collect::<Vec<_>>()
        };
        let Some((start, stride, n)) = elements(&s, at.bytes, objects[s.object].size) else {
            return Vec::new();
        };
        let first = of(start);
        // All elements alike, or none is taken apart.
        let alike = (1..n).all(|k| of(start + (stride * k) as i64) == first);
        if alike { first } else { Vec::new() }
    };
    let mut plain = Vec::new();
    for n in graph.reached() {
        for k in 0..graph.nodes[n].out.len() {
            let edge = graph.nodes[n].out[k].clone();
            let at = match &edge.op {
                Op::Load { at, .. } | Op::Store { at, .. } => at.clone(),
                _ => continue,
            };
            let pieces = pieces(&at);
            if pieces.len() < 2 {
                continue;
            }
            let piece = |(o, bytes): (i64, u32)| Access {
                address: at.address.clone().plus(o),
                bytes,
                locked: at.locked,
            };
            let low = |o: i64| o as u32 * 8;
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
                Op::Store { value, .. } if at.locked => {
                    for p in &pieces {
                        let value = value.clone().extract(low(p.0), p.1 * 8);
                        ops.push(Op::Store {
                            at: piece(*p),
                            value,
                        });
                    }
                }
                _ => {
                    plain.push((n, k));
                    continue;
                }
            }
            graph.put_in_place(n, k, ops);
        }
    }
    let region = |r| objects.iter().any(|o| o.region == Some(r));
    let places = Places {
        spot,
        parts: &pieces,
        apart: &|place| matches!(place, Place::Region(r, _) if !region(*r)),
    };
    match held::hold(graph, &plain, places) {
        Ok(()) => None,
        Err((origin, what)) => Some(match origin {
            Origin::Code(address) => Refusal::at(address, what),
            Origin::Text(_) => Refusal {
                address: None,
                what,
            },
        }),
    }
}

#[cfg(test)]
mod tests;

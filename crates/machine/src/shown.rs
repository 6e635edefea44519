//! Variables of a thread (`_Thread_local`) whose address other threads get: the node of a queue lock.
//!
//! They become an object of which each thread has one. What the file puts there at first the thread's first steps store; every byte that
//! anybody looks at must have been written before its own thread looks, and be in memory before the address goes
//! anywhere, whatever order stores arrive in.

use crate::bits::{Base, E, VarId};
use crate::graph::{Graph, Op, Origin, Shown};
use crate::layout::Seen;
use crate::memory::{Kind, Target, Which, kind_of, spot};
use crate::thread;
use crate::world::{Contents, Copies, Object, Refusal, World};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wattle_model::{FamilyId, Span};

/// Larger ones are refused.
const MAX_BYTES: i64 = 4096;

/// Finds variables of threads whose address is stored, and how large they are; whether that is more than before.
pub fn more(graphs: &[Graph], kinds: &[BTreeMap<VarId, Kind>], world: &mut World) -> bool {
    let mut all = world.shown.clone();
    for (family, (graph, kinds)) in graphs.iter().zip(kinds).enumerate() {
        let of = |v: VarId| kinds.get(&v).copied().unwrap_or(Kind::Number);
        let reached = graph.reached().into_iter();
        for edge in reached.flat_map(|n| &graph.nodes[n].out) {
            let at = match &edge.op {
                Op::Load { at, .. } => at,
                Op::Store { at, value } => {
                    value.for_each(&mut |e| {
                        if let E::Address(Base::Stack, k) = e
                            && lasts(*k)
                        {
                            all.entry(family)
                                .or_default()
                                .push((*k, k.saturating_add(1)));
                        }
                    });
                    at
                }
                _ => continue,
            };
            let Some(s) = spot(&at.address, &of).filter(|s| s.index.is_none()) else {
                continue;
            };
            let o = &world.objects[s.object];
            let (Some(start), Copies::PerThread(f)) = (o.stack, o.copies) else {
                continue;
            };
            let from = start.saturating_add(s.offset.min(0));
            let past = s.offset.saturating_add(i64::from(at.bytes));
            let to = start.saturating_add(past.max(o.size as i64));
            all.entry(f.index()).or_default().push((from, to));
        }
    }
    for spans in all.values_mut() {
        *spans = joined(std::mem::take(spans));
    }
    std::mem::replace(&mut world.shown, all) != world.shown
}

/// Whether what is there lives as long as the thread: what functions put on the stack is gone when they return, and who looks at it
/// then looks at anything.
fn lasts(at: i64) -> bool {
    at > thread::POINTER / 2
}

/// Whole words, those that overlap put together.
fn joined(mut spans: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    spans.sort_unstable();
    let mut all: Vec<(i64, i64)> = Vec::new();
    for (from, to) in spans {
        let (from, to) = (from & !7, to.saturating_add(7) & !7);
        match all.last_mut() {
            Some(last) if from < last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all.retain(|(from, to)| to - from <= MAX_BYTES);
    all
}

/// Makes objects of them.
pub fn declare(world: &mut World) {
    for (family, spans) in &world.shown {
        for (start, end) in spans {
            world.objects.push(Object {
                name: "local".to_string(),
                size: (end - start) as u64,
                copies: Copies::PerThread(FamilyId::new(*family)),
                contents: vec![Contents::default()],
                start: None,
                span: Span::NONE,
                constant: false,
                region: None,
                stack: Some(*start),
            });
        }
    }
}

/// Those of a family.
pub fn of(family: FamilyId, world: &World) -> Vec<Shown> {
    let all = world.objects.iter().enumerate();
    let own = all.filter(|(_, o)| o.copies == Copies::PerThread(family));
    own.filter_map(|(object, o)| {
        let start = o.stack?;
        Some(Shown {
            start,
            end: start + o.size as i64,
            object,
        })
    })
    .collect()
}

/// Bytes of objects.
type Bytes = BTreeSet<(usize, i64)>;

/// What is certain at a place: which bytes the thread has written, and which of these are in memory.
#[derive(Clone, Default, PartialEq, Eq)]
struct Known {
    written: Bytes,
    arrived: Bytes,
}

/// Places that look at what nobody wrote, or let others.
pub fn unwritten(
    graphs: &[Graph],
    kinds: &[BTreeMap<VarId, Kind>],
    seen: &[Seen],
    world: &World,
) -> Vec<Refusal> {
    let mut looked_at = Bytes::new();
    for s in seen {
        if world.objects[s.spot.object].stack.is_some() {
            looked_at.extend(bytes(s.spot.object, s.spot.offset, s.bytes));
        }
    }
    let mut refusals = Vec::new();
    for (graph, kinds) in graphs.iter().zip(kinds) {
        if !graph.vars.shown.is_empty() {
            refusals.extend(unwritten_by(graph, kinds, &looked_at));
        }
    }
    refusals
}

fn bytes(object: usize, offset: i64, n: u32) -> impl Iterator<Item = (usize, i64)> {
    (0..i64::from(n)).map(move |k| (object, offset.saturating_add(k)))
}

fn unwritten_by(graph: &Graph, kinds: &BTreeMap<VarId, Kind>, looked_at: &Bytes) -> Vec<Refusal> {
    let of = |v: VarId| kinds.get(&v).copied().unwrap_or(Kind::Number);
    let own = |o: usize| graph.vars.shown.iter().any(|s| s.object == o);
    // The bytes an access of the thread's own is about.
    let about = |at: &crate::graph::Access| {
        let s = spot(&at.address, &of)?;
        let plain = own(s.object) && s.which == Which::Own && s.index.is_none();
        plain.then(|| bytes(s.object, s.offset, at.bytes))
    };
    let after = |op: &Op, known: &mut Known| match op {
        Op::Store { at, .. } => known.written.extend(about(at).into_iter().flatten()),
        Op::Fence | Op::Begin => known.arrived = known.written.clone(),
        _ => {}
    };
    let mut known: Vec<Option<Known>> = vec![None; graph.nodes.len()];
    known[graph.entry] = Some(Known::default());
    let mut work = VecDeque::from([graph.entry]);
    while let Some(n) = work.pop_front() {
        for edge in &graph.nodes[n].out {
            let Some(mut here) = known[n].clone() else {
                continue;
            };
            after(&edge.op, &mut here);
            if let Some(there) = &known[edge.to] {
                here.written.retain(|b| there.written.contains(b));
                here.arrived.retain(|b| there.arrived.contains(b));
            }
            if known[edge.to].as_ref() != Some(&here) {
                known[edge.to] = Some(here);
                work.push_back(edge.to);
            }
        }
    }
    let mut refusals = Vec::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let Some(known) = &known[n] else { continue };
        for edge in &node.out {
            let what = match &edge.op {
                Op::Load { at, .. } => about(at)
                    .is_some_and(|mut all| all.any(|b| !known.written.contains(&b)))
                    .then_some("this variable may be looked at before it has a value"),
                Op::Store { value, .. } => {
                    let mut shown = BTreeSet::new();
                    value.for_each(&mut |e| {
                        if let E::Address(Base::Own(o), _) = e {
                            shown.insert(*o);
                        }
                    });
                    if let Kind::Pointer(Target::Elements(o), _) = kind_of(value, &of) {
                        shown.insert(o);
                    }
                    let all = looked_at
                        .iter()
                        .filter(|(o, _)| own(*o) && shown.contains(o));
                    let early = all.into_iter().any(|b| !known.arrived.contains(b));
                    early.then_some(
                        "other threads get the address of a variable on the stack of which not everything that is \
                         looked at is in memory",
                    )
                }
                _ => None,
            };
            let address = match edge.origin {
                Origin::Code(a) => Some(a),
                Origin::Text(_) => None,
            };
            refusals.extend(what.map(|what| Refusal {
                address,
                what: what.to_string(),
            }));
        }
    }
    refusals
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn spans_are_whole_words_and_apart() {
        assert_eq!(joined(vec![(12, 13), (0, 1)]), [(0, 8), (8, 16)]);
        assert_eq!(joined(vec![(0, 12), (8, 9), (-3, -2)]), [(-8, 0), (0, 16)]);
        assert_eq!(joined(vec![(0, 5000)]), []);
    }
}

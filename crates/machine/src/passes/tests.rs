//! Each pass keeps the meaning: random graphs, carried out before and after. What others see of a thread
//! must be the same: every store with its place and value, fences, assertions, in this order. What a load
//! gives changes with every store, as if others had written in between, so that none may be moved.

use super::{
    coalesce, finish, idle, live, narrow, parts, rebase, simplify, solve_within, tidy, trim, webs,
};
use crate::bits::{Base, Bin, Cmp, E, VarId, mask};
use crate::graph::{Access, Graph, Op, Origin, RSP};
use crate::memory::Fields;
use crate::world::{Copies, Object};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::{RegionId, Span};

const HERE: Origin = Origin::Code(0);
/// Registers the random graphs use, and two flags.
const WORDS: [u32; 5] = [0, 1, 2, 3, 6];
const FLAGS: [u32; 2] = [16, 17];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Store(i64, u32, u64),
    Fence,
    Failed,
}

/// What a run shows, and whether it came to an end.
#[derive(Debug)]
struct Seen {
    events: Vec<Event>,
    ended: bool,
}

/// Carries a graph out. `bits` tells how many bits of a field others look at.
fn run(graph: &Graph, steps: usize, bits: &BTreeMap<RegionId, u32>) -> Seen {
    let mut values: BTreeMap<VarId, u64> = BTreeMap::new();
    let mut stack: BTreeMap<i64, u8> = BTreeMap::new();
    let mut seen = Seen {
        events: Vec::new(),
        ended: false,
    };
    let mut at = graph.entry;
    let mut clock = 0;
    for _ in 0..steps {
        let get = |e: &E, values: &BTreeMap<VarId, u64>| {
            e.eval(&|v| values.get(&v).copied().unwrap_or(0))
        };
        // Addresses of the stack are numbers from the top here, those of the object begin at 2³².
        let number = |e: &E, values: &BTreeMap<VarId, u64>| {
            let e = placed(e);
            get(&e, values).map(|a| a as i64)
        };
        let out = &graph.nodes[at].out;
        let taken = out.iter().find(|e| match &e.op {
            Op::Assume(c) => get(&placed(c), &values) == Some(1),
            _ => true,
        });
        let Some(edge) = taken else {
            seen.ended = true;
            return seen;
        };
        at = edge.to;
        match &edge.op {
            Op::Assign(v, e) => {
                let value = number(e, &values).unwrap_or(0) as u64;
                values.insert(*v, value & mask(graph.vars.width(*v)));
            }
            Op::Load { to, at } => {
                let from = number(&at.address, &values).unwrap();
                let value = match from < 0 {
                    true => (0..i64::from(at.bytes)).rev().fold(0, |v, k| {
                        v << 8 | u64::from(stack.get(&(from + k)).copied().unwrap_or(0))
                    }),
                    false => environment(seen.events.len(), from) & mask(at.bytes * 8),
                };
                values.insert(*to, value & mask(graph.vars.width(*to)));
            }
            Op::Store { at, value } => {
                let to = number(&at.address, &values).unwrap();
                let value = number(value, &values).unwrap_or(0) as u64 & mask(at.bytes * 8);
                match to < 0 {
                    true => (0..i64::from(at.bytes)).for_each(|k| {
                        stack.insert(to + k, (value >> (8 * k)) as u8);
                    }),
                    false => {
                        let kept = bits.get(&region(to)).copied().unwrap_or(0).min(64);
                        let looked_at = if bits.is_empty() { 64 } else { kept };
                        let value = value & mask(looked_at);
                        seen.events.push(Event::Store(to, at.bytes, value));
                    }
                }
            }
            Op::Assert(c, _) if get(&placed(c), &values) != Some(1) => {
                seen.events.push(Event::Failed);
                seen.ended = true;
                return seen;
            }
            Op::Fence => seen.events.push(Event::Fence),
            // Graphs are made so that nobody sees which value it was.
            Op::Havoc(v) => {
                clock += 1;
                values.insert(*v, clock % 8);
            }
            _ => {}
        }
    }
    seen
}

/// The expression with its addresses as numbers.
fn placed(e: &E) -> E {
    match e {
        E::Address(Base::Stack, k) => E::constant(*k as u64, 64),
        E::Address(_, k) => E::constant((1 << 32) + *k as u64, 64),
        E::Var(..) | E::Const(..) | E::Unknown(_) => e.clone(),
        E::Not(a) => placed(a).inverted(),
        E::Bin(op, a, b) => E::bin(*op, placed(a), placed(b)),
        E::Cmp(op, a, b) => E::test(*op, placed(a), placed(b)),
        E::Zext(a, w) => placed(a).zext(*w),
        E::Sext(a, w) => placed(a).sext(*w),
        E::Extract(a, low, w) => placed(a).extract(*low, *w),
        E::Insert(a, b, low) => placed(a).insert(placed(b), *low),
        E::Ite(c, a, b) => E::ite(placed(c), placed(a), placed(b)),
    }
}

/// What others have put there by now; small numbers are likely.
fn environment(time: usize, place: i64) -> u64 {
    let mixed = (time as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (place as u64) << 7;
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    match mixed >> 61 {
        0..4 => mixed >> 20 & 3,
        _ => mixed,
    }
}

fn region(place: i64) -> RegionId {
    RegionId(u32::try_from(place & 0xffff).unwrap())
}

struct Random {
    rng: SmallRng,
}

impl Random {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.rng.random_range(0..of.len())]
    }

    fn word(&mut self) -> VarId {
        VarId(self.pick(&WORDS))
    }

    fn value(&mut self, width: u32, depth: u32) -> E {
        let leaf = depth == 0 || self.rng.random_range(0..4) == 0;
        if leaf {
            return match self.rng.random_range(0..3) {
                0 => E::constant(self.pick(&[0, 1, 2, 3, 7, 8, 255, u64::MAX]), width),
                _ if width == 1 => E::Var(VarId(self.pick(&FLAGS)), 1),
                _ => {
                    let low = self.pick(&[0, 0, 0, 8, 16, 32]);
                    let low = if low + width > 64 { 0 } else { low };
                    E::Var(self.word(), 64).extract(low, width)
                }
            };
        }
        let d = depth - 1;
        match self.rng.random_range(0..10) {
            0..4 => {
                let op = self.pick(&[Bin::Add, Bin::Sub, Bin::And, Bin::Or, Bin::Xor, Bin::Mul]);
                E::bin(op, self.value(width, d), self.value(width, d))
            }
            4 => {
                let by = E::constant(self.rng.random_range(0..u64::from(width)), width);
                E::bin(
                    self.pick(&[Bin::Shl, Bin::Shr, Bin::Sar]),
                    self.value(width, d),
                    by,
                )
            }
            5 => E::ite(self.value(1, d), self.value(width, d), self.value(width, d)),
            6 if width > 8 => self.value(8, d).zext(width),
            7 if width > 8 => self.value(8, d).sext(width),
            8 if width > 8 => self
                .value(width, d)
                .insert(self.value(8, d), self.pick(&[0, 8])),
            _ if width == 1 => {
                let op = self.pick(&[Cmp::Eq, Cmp::Ne, Cmp::Ult, Cmp::Ule, Cmp::Slt, Cmp::Sle]);
                let w = self.pick(&[8, 32, 64]);
                E::test(op, self.value(w, d), self.value(w, d))
            }
            _ => self.value(width, d).inverted(),
        }
    }

    fn access(&mut self) -> Access {
        let bytes = self.pick(&[1, 4, 8]);
        let place = i64::from(self.rng.random_range(0..8 / bytes) * bytes);
        // Each size has a word of its own: sizes that overlap are another matter.
        let address = match self.rng.random_range(0..2) {
            0 => E::Address(Base::Object(0), i64::from(bytes) * 16 + place),
            _ => E::Var(RSP, 64).plus(place - 8 * self.rng.random_range(1..4)),
        };
        Access {
            address,
            bytes,
            locked: false,
        }
    }

    fn op(&mut self, graph: &mut Graph) -> Op {
        match self.rng.random_range(0..12) {
            0..4 => Op::Assign(self.word(), self.value(64, 2)),
            4 => {
                let v = self.word();
                let width = self.pick(&[8, 32]);
                let part = self.value(width, 2);
                Op::Assign(v, E::Var(v, 64).insert(part, 0))
            }
            5 => Op::Assign(VarId(self.pick(&FLAGS)), self.value(1, 2)),
            6..8 => {
                let at = self.access();
                let to = graph.vars.fresh(at.bytes * 8, "m");
                Op::Load { to, at }
            }
            8..11 => {
                let at = self.access();
                let value = self.value(at.bytes * 8, 2);
                Op::Store { at, value }
            }
            _ => Op::Fence,
        }
    }

    fn graph(&mut self) -> Graph {
        let mut graph = Graph::default();
        let mut at = graph.node();
        graph.entry = at;
        for v in WORDS.into_iter().chain(FLAGS).map(VarId) {
            let start = E::constant(self.rng.random_range(0..4), graph.vars.width(v));
            at = graph.then(at, Op::Assign(v, start), HERE);
        }
        at = graph.then(at, Op::Assign(RSP, E::Address(Base::Stack, -8)), HERE);
        let mut places = vec![at];
        for _ in 0..self.rng.random_range(4..24) {
            match self.rng.random_range(0..8) {
                // Back to, or on to, somewhere.
                0 => {
                    let c = self.value(1, 2);
                    let back = self.pick(&places);
                    graph.edge(at, Op::Assume(c.clone()), back, HERE);
                    at = graph.then(at, Op::Assume(c.inverted()), HERE);
                }
                // Waiting: counts up or down to something, or to what something else says.
                1 => {
                    let i = self.word();
                    let step = self.pick(&[1, 1, u64::MAX, 3, 2]);
                    let limit = E::constant(self.rng.random_range(0..5), 32);
                    let start = E::constant(self.rng.random_range(0..3), 64);
                    at = graph.then(at, Op::Assign(i, start), HERE);
                    let head = at;
                    let op = self.pick(&[Cmp::Eq, Cmp::Ule, Cmp::Ne, Cmp::Sle]);
                    let by_the_clock = self.rng.random_range(0..3) == 0;
                    let (seen, ahead) = match by_the_clock {
                        true => (E::Var(i, 64), Op::Havoc(i)),
                        false => {
                            let low = E::Var(i, 64).extract(0, 32);
                            let sum = E::sum(low.clone(), E::constant(step, 32));
                            (low, Op::Assign(i, sum.zext(64)))
                        }
                    };
                    let out = E::test(op, limit.resize(seen.width()), seen);
                    let next = graph.then(at, Op::Assume(out.clone().inverted()), HERE);
                    graph.edge(next, ahead, head, HERE);
                    at = graph.then(at, Op::Assume(out), HERE);
                    if by_the_clock || self.rng.random_range(0..2) == 0 {
                        at = graph.then(at, Op::Assign(i, E::constant(1, 64)), HERE);
                    }
                }
                // A pointer that walks over part of the object and writes there.
                2 => {
                    let (p, n) = (self.word(), self.rng.random_range(1..4));
                    let bytes = self.pick(&[1, 4, 8]);
                    let place = |k: i64| E::Address(Base::Object(0), 512 + k * i64::from(bytes));
                    at = graph.then(at, Op::Assign(p, place(0)), HERE);
                    let head = at;
                    let address = E::Var(p, 64);
                    let (locked, value) = (false, self.value(bytes * 8, 1));
                    let store = Op::Store {
                        at: Access {
                            address,
                            bytes,
                            locked,
                        },
                        value,
                    };
                    at = graph.then(at, store, HERE);
                    let next = E::Var(p, 64).plus(i64::from(bytes));
                    at = graph.then(at, Op::Assign(p, next), HERE);
                    let done = E::same(E::Var(p, 64), place(n));
                    graph.edge(at, Op::Assume(done.clone().inverted()), head, HERE);
                    at = graph.then(at, Op::Assume(done), HERE);
                    at = graph.then(at, Op::Assign(p, E::constant(1, 64)), HERE);
                }
                _ => {
                    let op = self.op(&mut graph);
                    let loaded = op.written().filter(|_| matches!(op, Op::Load { .. }));
                    at = graph.then(at, op, HERE);
                    if let Some(m) = loaded {
                        let value = E::Var(m, graph.vars.width(m)).zext(64);
                        at = graph.then(at, Op::Assign(self.word(), value), HERE);
                    }
                }
            }
            places.push(at);
        }
        graph
    }
}

fn object() -> Object {
    Object {
        name: "o".to_string(),
        size: 256,
        copies: Copies::One,
        contents: vec![crate::world::Contents::default()],
        start: None,
        span: Span::NONE,
        constant: false,
        region: None,
        stack: None,
    }
}

/// The same is seen, as far as both were watched.
fn same(name: &str, before: &Graph, after: &Graph, bits: &BTreeMap<RegionId, u32>) -> bool {
    let old = run(before, 400, bits);
    // Splitting a variable makes several steps of one.
    let new = run(after, 4000, bits);
    let common = old.events.len().min(new.events.len());
    let (a, b) = (&old.events[..common], &new.events[..common]);
    assert_eq!(a, b, "{name}: {before:#?}\n{after:#?}");
    if old.ended {
        assert!(new.ended, "{name}: {before:#?}\n{after:#?}");
        assert_eq!(old.events, new.events, "{name}: {before:#?}\n{after:#?}");
    }
    old.ended && !old.events.is_empty()
}

/// What was spent too early says nothing; what was enough says the same as without a limit.
#[test]
fn values_are_found_within_limits_or_not_at_all() {
    let (objects, fields) = ([object()], Fields::default());
    let mut random = Random {
        rng: SmallRng::seed_from_u64(14),
    };
    for _ in 0..100 {
        let mut graph = random.graph();
        let mut steps = u64::MAX;
        let whole = solve_within(&mut graph, &fields, &objects, &mut steps).expect("no limit");
        let spent = u64::MAX - steps;
        let mut enough = spent + 1;
        let same = solve_within(&mut graph, &fields, &objects, &mut enough).expect("enough");
        assert_eq!(same.facts, whole.facts);
        let mut few = spent / 2;
        assert!(solve_within(&mut graph, &fields, &objects, &mut few).is_none());
    }
}

#[test]
fn passes_keep_the_meaning() {
    let objects = [object()];
    let fields = Fields::default();
    let all = BTreeMap::new();
    let mut random = Random {
        rng: SmallRng::seed_from_u64(13),
    };
    let (mut told, mut loops, mut walks) = (0, 0, 0);
    for _ in 0..1500 {
        let first = random.graph();
        let mut graph = first.clone();
        assert_eq!(simplify(&mut graph, &fields, &objects), []);
        told += usize::from(same("simplify", &first, &graph, &all));
        type Pass<'a> = (&'a str, &'a mut dyn FnMut(&mut Graph));
        let mut dropped = false;
        let single: [Pass; 8] = [
            ("live", &mut |g| {
                live::drop_dead(g);
            }),
            ("idle", &mut |g| dropped = idle::drop_loops(g)),
            ("coalesce", &mut coalesce::coalesce),
            ("webs", &mut webs::split),
            ("parts", &mut parts::split),
            ("trim", &mut trim::trim),
            ("rebase", &mut |g| walks += usize::from(rebase(g))),
            ("fences", &mut tidy::fences),
        ];
        for (name, pass) in single {
            let mut after = graph.clone();
            pass(&mut after);
            same(name, &graph, &after, &all);
        }
        loops += usize::from(dropped);
        let mut narrowed = [graph.clone()];
        let cell = |_: usize, at: &Access| match &at.address {
            E::Address(Base::Object(_), k) => Some(region((1 << 32) + k)),
            _ => None,
        };
        let looked_at = match random.rng.random_range(0..2) {
            0 => BTreeSet::new(),
            _ => (0..256).map(RegionId).collect(),
        };
        let mut bits = narrow(&mut narrowed, &cell, &looked_at);
        bits.entry(RegionId(u32::MAX)).or_insert(0);
        same("narrow", &graph, &narrowed[0], &bits);
        let narrow = narrowed[0].clone();
        finish(&mut narrowed[0]);
        same("finish", &narrow, &narrowed[0], &bits);
    }
    println!("{told} runs to the end, {loops} loops dropped, {walks} graphs with walks");
    assert!(
        told > 300 && loops > 20 && walks > 100,
        "{told} {loops} {walks}"
    );
}

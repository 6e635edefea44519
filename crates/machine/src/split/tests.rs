//! Two random threads on memory of bytes, and the same taken apart: every outcome of one is an outcome of
//! the other.

use super::{parts, split};
use crate::bits::{Base, Bin, E, VarId};
use crate::graph::{Access, Graph, Op, Origin};
use crate::layout::Seen;
use crate::memory::{Kind, Target, spot};
use crate::world::{Contents, Copies, Object};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::Action;
use wattle_model::{Section, Span};

const HERE: Origin = Origin::Code(0);
const OBJECT: u64 = 8;
/// The only variable that holds a pointer: to an element of the third object.
const POINTER: VarId = VarId(7);

fn number(e: &E, registers: &BTreeMap<VarId, u64>) -> u64 {
    fn placed(e: &E) -> E {
        match e {
            E::Address(Base::Object(o), k) => E::constant(*o as u64 * OBJECT + *k as u64, 64),
            E::Address(Base::Element(o, n), k) => {
                E::constant((*o as u64 + u64::from(*n)) * OBJECT + *k as u64, 64)
            }
            E::Var(..) | E::Const(..) => e.clone(),
            _ => e.rebuilt(&placed),
        }
    }
    let of = |v: VarId| registers.get(&v).copied().unwrap_or(0);
    placed(e).eval(&of).expect("every value is known")
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Thread {
    at: usize,
    registers: BTreeMap<VarId, u64>,
    /// Address, bytes, value; the oldest first.
    buffer: Vec<(u64, u32, u64)>,
    inside: Option<bool>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    threads: [Thread; 2],
    memory: Vec<u8>,
}

type Outcome = (Vec<Vec<u64>>, Vec<u8>);

fn write(memory: &mut [u8], (at, bytes, value): (u64, u32, u64)) {
    for k in 0..u64::from(bytes) {
        memory[(at + k) as usize] = (value >> (8 * k)) as u8;
    }
}

/// What the first `known[t]` variables of each thread and memory may be in the end.
fn outcomes(graphs: &[Graph; 2], known: [usize; 2]) -> BTreeSet<Outcome> {
    let thread = |g: &Graph| Thread {
        at: g.entry,
        registers: BTreeMap::new(),
        buffer: Vec::new(),
        inside: None,
    };
    let start = State {
        threads: [thread(&graphs[0]), thread(&graphs[1])],
        memory: vec![0; 4 * OBJECT as usize],
    };
    let mut seen = BTreeSet::from([start.clone()]);
    let mut work = vec![start];
    let mut ends = BTreeSet::new();
    while let Some(state) = work.pop() {
        let mut next = Vec::new();
        for (t, graph) in graphs.iter().enumerate() {
            if state.threads[1 - t].inside.is_some() {
                continue;
            }
            let me = &state.threads[t];
            if let Some(oldest) = me.buffer.first() {
                let mut after = state.clone();
                write(&mut after.memory, *oldest);
                after.threads[t].buffer.remove(0);
                next.push(after);
            }
            for edge in &graph.nodes[me.at].out {
                let mut after = state.clone();
                let now = &mut after.threads[t];
                now.at = edge.to;
                let of = |e: &E| number(e, &me.registers);
                match &edge.op {
                    Op::Nop => {}
                    Op::Assign(v, e) => drop(now.registers.insert(*v, of(e))),
                    Op::Assume(c) => {
                        if of(c) == 0 {
                            continue;
                        }
                    }
                    Op::Load { to, at } => {
                        let from = of(&at.address);
                        let byte = |k: u64| {
                            let own = (me.buffer.iter().rev())
                                .find(|(a, n, _)| (*a..a + u64::from(*n)).contains(&k));
                            let own = own.map(|(a, _, v)| (v >> (8 * (k - a))) as u8);
                            u64::from(own.unwrap_or(state.memory[k as usize]))
                        };
                        let whole = (0..u64::from(at.bytes)).rev();
                        let value = whole.fold(0, |v, k| v << 8 | byte(from + k));
                        now.registers.insert(*to, value);
                    }
                    Op::Store { at, value } => {
                        let entry = (of(&at.address), at.bytes, of(value));
                        match me.inside {
                            Some(true) => write(&mut after.memory, entry),
                            Some(false) | None => now.buffer.push(entry),
                        }
                    }
                    Op::Fence if me.buffer.is_empty() => {}
                    Op::Begin if me.buffer.is_empty() => now.inside = Some(true),
                    Op::Fence | Op::Begin => continue,
                    Op::Model(Action::AtomicBegin(Section::Buffered)) => now.inside = Some(false),
                    Op::End | Op::Model(Action::AtomicEnd) => now.inside = None,
                    other => panic!("{other:?}"),
                }
                next.push(after);
            }
        }
        let ended = |t: usize| {
            let me = &state.threads[t];
            graphs[t].nodes[me.at].out.is_empty() && me.buffer.is_empty()
        };
        if ended(0) && ended(1) {
            let all = |t: usize| {
                let of = |v: usize| state.threads[t].registers.get(&VarId(v as u32)).copied();
                (0..known[t]).map(|v| of(v).unwrap_or(0)).collect()
            };
            ends.insert((vec![all(0), all(1)], state.memory.clone()));
        }
        next.retain(|s| seen.insert(s.clone()));
        work.extend(next);
    }
    ends
}

struct Random(SmallRng);

impl Random {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.random_range(0..of.len())]
    }

    /// A place of the first object, of which parts are accessed, or of the second.
    fn access(&mut self, loaded: &[VarId]) -> Access {
        if self.0.random_range(0..3) == 0 {
            // One of the two elements of the third, by a pointer or by name.
            let bytes = self.pick(&[2, 4, 4, 8]);
            let at = self.0.random_range(0..8 / bytes) * bytes;
            let element =
                self.pick(&[E::Var(POINTER, 64), E::Address(Base::Element(2, 1), 0)].each_ref());
            let address = element.clone().plus(i64::from(at));
            return Access {
                address,
                bytes,
                locked: false,
            };
        }
        let object = self.pick(&[0, 0, 0, 1]);
        let bytes = if object == 1 {
            8
        } else {
            self.pick(&[1, 2, 4, 8, 8])
        };
        let address = match loaded.last() {
            Some(v) if bytes == 4 && self.pick(&[true, false]) => {
                let bit = E::bin(Bin::And, E::Var(*v, 64), E::constant(1, 64));
                let by = E::bin(Bin::Shl, bit, E::constant(2, 64));
                E::bin(Bin::Add, E::Address(Base::Object(object), 0), by)
            }
            _ => {
                let at = self.0.random_range(0..8 / bytes) * bytes;
                E::Address(Base::Object(object), i64::from(at))
            }
        };
        Access {
            address,
            bytes,
            locked: false,
        }
    }

    fn thread(&mut self, length: usize) -> Graph {
        let mut graph = Graph::default();
        let mut at = graph.node();
        graph.entry = at;
        let mut loaded: Vec<VarId> = Vec::new();
        let first = E::Address(Base::Element(2, self.pick(&[0, 1])), 0);
        at = graph.then(at, Op::Assign(POINTER, first), HERE);
        for _ in 0..length {
            let access = self.access(&loaded);
            let width = access.bytes * 8;
            let value = match loaded.first() {
                Some(v) if self.pick(&[true, false, false]) => E::Var(*v, 64).extract(0, width),
                _ => E::constant(
                    self.pick(&[0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 3]),
                    width,
                ),
            };
            match self.0.random_range(0..10) {
                0..4 => at = graph.then(at, Op::Store { at: access, value }, HERE),
                4..7 => {
                    let to = graph.vars.fresh(width, "m");
                    at = graph.then(at, Op::Load { to, at: access }, HERE);
                    let kept = graph.vars.fresh(64, "kept");
                    at = graph.then(at, Op::Assign(kept, E::Var(to, width).zext(64)), HERE);
                    loaded.push(kept);
                    if self.pick(&[true, false]) {
                        let none = E::same(E::Var(kept, 64), E::constant(0, 64));
                        let to = [0, 1].map(|n| E::Address(Base::Element(2, n), 0));
                        let [zero, one] = to;
                        let chosen = E::ite(none, zero, one);
                        at = graph.then(at, Op::Assign(POINTER, chosen), HERE);
                    }
                }
                7 => at = graph.then(at, Op::Fence, HERE),
                8 => {
                    let at_once = Access {
                        locked: true,
                        ..access
                    };
                    at = graph.then(at, Op::Begin, HERE);
                    at = graph.then(at, Op::Store { at: at_once, value }, HERE);
                    at = graph.then(at, Op::End, HERE);
                }
                _ => {
                    // Past the next store, sometimes; a variable that changes while a store is held back.
                    let Some(v) = loaded.first().copied() else {
                        continue;
                    };
                    let c = E::same(E::Var(v, 64), E::constant(0, 64));
                    let past = graph.node();
                    graph.edge(at, Op::Assume(c.clone()), past, HERE);
                    at = graph.then(at, Op::Assume(c.inverted()), HERE);
                    at = graph.then(at, Op::Store { at: access, value }, HERE);
                    at = graph.then(at, Op::Assign(v, E::constant(7, 64)), HERE);
                    graph.edge(at, Op::Nop, past, HERE);
                    at = past;
                }
            }
        }
        graph
    }
}

fn object() -> Object {
    Object {
        name: "o".to_string(),
        size: OBJECT,
        copies: Copies::One,
        contents: vec![Contents::default()],
        start: None,
        span: Span::NONE,
        constant: false,
        region: None,
    }
}

#[test]
fn taken_apart_the_same_may_happen() {
    let nodes = Object {
        copies: Copies::Array(2),
        ..object()
    };
    let objects = [object(), object(), nodes];
    let of = |v: VarId| match v {
        POINTER => Kind::Pointer(Target::Elements(2), 0),
        _ => Kind::Number,
    };
    let place = |at: &Access| spot(&at.address, &of);
    let mut random = Random(SmallRng::seed_from_u64(21));
    let (mut compared, mut held, mut several) = (0, 0, 0);
    for _ in 0..2500 {
        let lengths = random.pick(&[[5, 3], [4, 4], [3, 3]]);
        let graphs = lengths.map(|n| random.thread(n));
        let mut seen = Vec::new();
        for edge in graphs
            .iter()
            .flat_map(|g| g.reached().into_iter().flat_map(|n| &g.nodes[n].out))
        {
            if let Op::Load { at, .. } | Op::Store { at, .. } = &edge.op {
                let spot = place(at).unwrap();
                seen.push(Seen {
                    spot,
                    bytes: at.bytes,
                    address: None,
                });
            }
        }
        let parts = parts(&seen, &objects);
        let mut after = graphs.clone();
        let refused = |g: &mut Graph| split(g, &parts, &place, &objects).is_some();
        if parts.is_empty() || after.iter_mut().any(refused) {
            continue;
        }
        let known = [0, 1].map(|t| graphs[t].vars.widths.len());
        let (old, new) = (outcomes(&graphs, known), outcomes(&after, known));
        assert_eq!(old, new, "{graphs:#?}\n{after:#?}");
        compared += 1;
        several += usize::from(old.len() > 2);
        let blocks = |all: &[Graph; 2]| {
            let edges = all.iter().flat_map(|g| g.nodes.iter().flat_map(|n| &n.out));
            edges.filter(|e| e.op == Op::Begin).count()
        };
        held += usize::from(blocks(&after) > blocks(&graphs));
    }
    println!("{compared} compared, {held} with stores held back, {several} with several outcomes");
    assert!(
        compared > 1500 && held > 1000 && several > 600,
        "{compared} {held} {several}"
    );
}

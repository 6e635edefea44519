//! Plain stores of words of which parts are accessed elsewhere.
//!
//! Such a store reaches memory as one, but the model's buffer has entries for the parts. So the thread holds
//! it back: it stays in variables of its own, and so does every store after it, while the thread goes on in
//! a copy of its code. At any time the oldest store held back may reach memory: when everything before it has
//! left the buffer, its parts are written together, and the stores after it are put into the buffer, up to
//! the next that must be held back. What waits for an empty buffer waits for this, too, because it is not in
//! the copy. A load of what is held back gives its value, where that can be said; otherwise it is refused.
//!
//! Where nothing but stores comes until the thread waits for its buffer anyway, nobody can tell a store that
//! waits in the buffer from a thread that waits before it: then there is no copy.

use crate::bits::{Base, E, VarId};
use crate::graph::{Access, Edge, Graph, Op, Origin};
use crate::memory::{Spot, Which};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::program::Action;
use wattle_model::{Local, Place, Section};

/// More stores than this are not held back at a time, nor are more places copied.
const MAX_HELD: usize = 32;
const MAX_COPIES: usize = 1 << 12;

pub struct Places<'a> {
    /// Where an access of the graph goes.
    pub spot: &'a dyn Fn(&Access) -> Option<Spot>,
    /// The parts of an access, if it has several: offset from its beginning, bytes.
    pub parts: &'a dyn Fn(&Access) -> Vec<(i64, u32)>,
    /// Whether a place of the harness is no memory of the code.
    pub apart: &'a dyn Fn(&Place) -> bool,
}

/// A store that is held back, its address and value in variables that nobody else writes.
#[derive(Clone, Debug)]
struct Held {
    op: Op,
    /// For each variable it speaks of the one that keeps what it was.
    own: BTreeMap<VarId, VarId>,
    origin: Origin,
    /// Where it goes; none for a store of the harness to a variable that is no memory of the code.
    spot: Option<(Spot, u32)>,
    parts: Vec<(i64, u32)>,
}

/// Where the thread is: a place of the code, what it holds back, whether it is in an atomic block.
type Where = (usize, Vec<usize>, bool);

struct Holding<'a> {
    graph: &'a mut Graph,
    /// As it was.
    code: Graph,
    places: Places<'a>,
    held: Vec<Held>,
    /// The store of an edge of the code, once it has been captured.
    captured: BTreeMap<(usize, usize), usize>,
    copies: BTreeMap<Where, usize>,
    work: Vec<Where>,
}

/// Holds back the stores on these edges; an error says which cannot be.
pub fn hold(
    graph: &mut Graph,
    edges: &[(usize, usize)],
    places: Places<'_>,
) -> Result<(), (Origin, String)> {
    let code = graph.clone();
    let mut all = Holding {
        graph,
        code,
        places,
        held: Vec::new(),
        captured: BTreeMap::new(),
        copies: BTreeMap::new(),
        work: Vec::new(),
    };
    for &(node, edge) in edges {
        let Edge { to, .. } = all.code.nodes[node].out[edge];
        let start = all.graph.node();
        all.graph.nodes[node].out[edge].op = Op::Nop;
        all.graph.nodes[node].out[edge].to = start;
        all.capture(start, (node, edge), to, &[])?;
        all.finish()?;
    }
    Ok(())
}

impl Holding<'_> {
    fn finish(&mut self) -> Result<(), (Origin, String)> {
        while let Some(at) = self.work.pop() {
            self.place(&at)?;
        }
        Ok(())
    }

    /// The copy of a place.
    fn copy(&mut self, at: Where) -> usize {
        if let Some(n) = self.copies.get(&at) {
            return *n;
        }
        let n = self.graph.node();
        self.graph.nodes[n]
            .labels
            .clone_from(&self.code.nodes[at.0].labels);
        self.graph.nodes[n].origin = self.code.nodes[at.0].origin;
        self.copies.insert(at.clone(), n);
        self.work.push(at);
        n
    }

    /// Puts the store of an edge behind what is held back, and goes on to a place.
    fn capture(
        &mut self,
        from: usize,
        edge: (usize, usize),
        to: usize,
        before: &[usize],
    ) -> Result<(), (Origin, String)> {
        let Edge { op, origin, .. } = self.code.nodes[edge.0].out[edge.1].clone();
        // Held back twice at a time, the variables of one store would not do.
        let again = self.captured.get(&edge).is_some_and(|k| before.contains(k));
        if again || before.len() >= MAX_HELD {
            let what = "too many stores come before this one is known to be in memory, of which parts are \
                        accessed elsewhere";
            return Err((origin, what.to_string()));
        }
        let number = match self.captured.get(&edge) {
            Some(k) => *k,
            None => {
                let held = self.held_store(&op, origin);
                self.held.push(held);
                self.captured.insert(edge, self.held.len() - 1);
                self.held.len() - 1
            }
        };
        let mut at = from;
        for (v, own) in self.held[number].own.clone() {
            let now = self.graph.vars.read(v);
            at = self.graph.then(at, Op::Assign(own, now), origin);
        }
        let mut held = before.to_vec();
        held.push(number);
        let copy = self.copy((to, held, false));
        self.graph.edge(at, Op::Nop, copy, origin);
        Ok(())
    }

    /// A store in variables of its own.
    fn held_store(&mut self, op: &Op, origin: Origin) -> Held {
        let mut held = Held {
            op: op.clone(),
            own: BTreeMap::new(),
            origin,
            spot: None,
            parts: Vec::new(),
        };
        if let Op::Store { at, .. } = op {
            held.spot = (self.places.spot)(at).map(|s| (s, at.bytes));
            held.parts = (self.places.parts)(at);
        }
        for e in held.op.expressions_mut() {
            for v in e.vars() {
                let vars = &mut self.graph.vars;
                let own = || vars.fresh(vars.width(v), "held");
                held.own.entry(v).or_insert_with(own);
            }
            *e = e.replace(&|v| held.own.get(&v).map(|own| self.graph.vars.read(*own)));
        }
        held
    }

    /// What can happen at a place of the copy.
    fn place(&mut self, at: &Where) -> Result<(), (Origin, String)> {
        let (node, held, inside) = at;
        let here = self.copies[at];
        let origin = self.held[held[0]].origin;
        if self.copies.len() > MAX_COPIES {
            let what = "too much is done before this store is known to be in memory, of which parts are \
                        accessed elsewhere";
            return Err((origin, what.to_string()));
        }
        if !inside {
            self.written(here, *node, held);
            if self.quiet(*node) {
                return Ok(());
            }
        }
        for k in 0..self.code.nodes[*node].out.len() {
            let Edge { op, to, origin } = self.code.nodes[*node].out[k].clone();
            let mut inside = *inside;
            match &op {
                Op::Nop
                | Op::Assign(..)
                | Op::Havoc(_)
                | Op::Assume(_)
                | Op::Assert(..)
                | Op::Require(..)
                | Op::Import { .. }
                | Op::Export { .. } => {}
                Op::Load { to: variable, at } => {
                    let copy = self.copy((to, held.clone(), inside));
                    let spot = (self.places.spot)(at).map(|s| (s, at.bytes));
                    let mut from = here;
                    let mut own = false;
                    for h in held.iter().rev().copied() {
                        if !self.meets(h, spot.as_ref()) {
                            continue;
                        }
                        let Some((value, condition)) = self.forwarded(h, spot.as_ref()) else {
                            let what = "what is loaded here may be a store before it that is not in memory \
                                        yet, of which parts are accessed elsewhere";
                            return Err((origin, what.to_string()));
                        };
                        let mut yes = from;
                        own = condition.is_true();
                        if !own {
                            yes = self.graph.then(from, Op::Assume(condition.clone()), origin);
                            from = self
                                .graph
                                .then(from, Op::Assume(condition.inverted()), origin);
                        }
                        self.graph
                            .edge(yes, Op::Assign(*variable, value), copy, origin);
                        if own {
                            break;
                        }
                    }
                    if !own {
                        self.graph.edge(from, op, copy, origin);
                    }
                    continue;
                }
                Op::Store { .. } if !inside => {
                    self.capture(here, (*node, k), to, held)?;
                    continue;
                }
                Op::Store { .. } => return Err(unknown(origin)),
                // It waits for the buffer to be empty.
                Op::Fence | Op::Begin => continue,
                Op::End => return Err(unknown(origin)),
                Op::Model(action) => match action {
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. } => {}
                    Action::Load { place, .. } => {
                        if !(self.places.apart)(place) {
                            return Err(unknown(origin));
                        }
                    }
                    Action::Store { place, value } => {
                        let fixed = value.as_const().is_some()
                            && matches!(place, Place::Region(_, index) if fixed(index));
                        if inside || !fixed || !(self.places.apart)(place) {
                            return Err(unknown(origin));
                        }
                        self.capture(here, (*node, k), to, held)?;
                        continue;
                    }
                    Action::AtomicBegin(Section::Buffered) => inside = true,
                    Action::AtomicEnd if inside => inside = false,
                    Action::AtomicBegin(Section::Drained) | Action::Lock | Action::Unlock => {
                        continue;
                    }
                    Action::Fence(wattle_model::Fence::Full) => continue,
                    Action::Fence(wattle_model::Fence::Store) => {}
                    Action::AtomicEnd => return Err(unknown(origin)),
                },
            }
            let copy = self.copy((to, held.clone(), inside));
            self.graph.edge(here, op, copy, origin);
        }
        Ok(())
    }

    /// The oldest store reaches memory.
    fn written(&mut self, here: usize, node: usize, held: &[usize]) {
        let oldest = self.held[held[0]].clone();
        let mut ops = vec![Op::Begin];
        if let Op::Store { at, value } = &oldest.op {
            for (offset, bytes) in &oldest.parts {
                let at = Access {
                    address: at.address.clone().plus(*offset),
                    bytes: *bytes,
                    locked: true,
                };
                let value = value.clone().extract(*offset as u32 * 8, *bytes * 8);
                ops.push(Op::Store { at, value });
            }
        }
        ops.push(Op::End);
        let mut at = here;
        for op in ops {
            at = self.graph.then(at, op, oldest.origin);
        }
        let mut rest = &held[1..];
        while let Some((next, more)) = rest.split_first() {
            let Held {
                op, origin, parts, ..
            } = self.held[*next].clone();
            if parts.len() > 1 {
                break;
            }
            at = self.graph.then(at, op, origin);
            rest = more;
        }
        let to = match rest {
            [] => node,
            rest => self.copy((node, rest.to_vec(), false)),
        };
        self.graph.edge(at, Op::Nop, to, oldest.origin);
    }

    /// Whether nothing but stores comes until the thread waits for its buffer.
    fn quiet(&self, from: usize) -> bool {
        let mut seen = BTreeSet::new();
        let mut work = vec![from];
        while let Some(n) = work.pop() {
            let node = &self.code.nodes[n];
            // Round in a circle it might never wait.
            if !seen.insert(n) || !node.labels.is_empty() || node.out.is_empty() {
                return false;
            }
            for e in &node.out {
                match &e.op {
                    Op::Nop | Op::Assign(..) | Op::Assume(_) | Op::Store { .. } => work.push(e.to),
                    Op::Fence | Op::Begin => {}
                    Op::Havoc(_)
                    | Op::Load { .. }
                    | Op::Assert(..)
                    | Op::Require(..)
                    | Op::End
                    | Op::Model(_)
                    | Op::Import { .. }
                    | Op::Export { .. } => return false,
                }
            }
        }
        true
    }

    /// What a load gives that is of what a store holds back, and when it is.
    fn forwarded(&self, held: usize, load: Option<&(Spot, u32)>) -> Option<(E, E)> {
        let Held { op, own, spot, .. } = &self.held[held];
        let (Op::Store { value, .. }, Some(((a, n), (b, m)))) = (op, spot.as_ref().zip(load))
        else {
            return None;
        };
        let distance = u32::try_from(b.offset - a.offset).ok()?;
        if a.index.is_some() || b.index.is_some() || distance + m > *n {
            return None;
        }
        let value = value.clone().extract(distance * 8, m * 8);
        let (mine, its) = (self.element(a, None)?, self.element(b, None)?);
        if mine == its && !matches!(a.which, Which::Pointed(_)) {
            return Some((value, E::bool(true)));
        }
        // Pointers are compared where they point at the same offset.
        let at = |s: &Spot| match s.which {
            Which::Pointed(v) => self.pointed(v).map(Some),
            Which::Only | Which::Own | Which::Number(_) => Some(None),
        };
        let offset = match (at(a)?, at(b)?) {
            (Some(x), Some(y)) if x != y => return None,
            (x, y) => x.or(y),
        };
        let mine = self
            .element(a, offset)?
            .replace(&|v| own.get(&v).map(|v| self.graph.vars.read(*v)));
        Some((value, E::same(mine, self.element(b, offset)?)))
    }

    /// The offset at which a pointer in a variable points.
    fn pointed(&self, v: VarId) -> Option<i64> {
        let at = Access {
            address: E::Var(v, 64),
            bytes: 1,
            locked: false,
        };
        Some((self.places.spot)(&at)?.offset)
    }

    /// A pointer to the element that is accessed, at an offset.
    fn element(&self, s: &Spot, offset: Option<i64>) -> Option<E> {
        let offset = offset.unwrap_or(0);
        Some(match s.which {
            Which::Only => E::Address(Base::Object(s.object), offset),
            Which::Own => E::Address(Base::Own(s.object), offset),
            Which::Number(k) => E::Address(Base::Element(s.object, k), offset),
            Which::Pointed(v) => E::Var(v, 64),
        })
    }

    /// Whether a load may be of something that is held back.
    fn meets(&self, held: usize, load: Option<&(Spot, u32)>) -> bool {
        let Held { op, spot, .. } = &self.held[held];
        match (spot, load) {
            (Some((a, n)), Some((b, m))) => {
                let meet =
                    a.offset < b.offset + i64::from(*m) && b.offset < a.offset + i64::from(*n);
                let others =
                    matches!((&a.which, &b.which), (Which::Number(x), Which::Number(y)) if x != y);
                let indexed = a.index.is_some() || b.index.is_some();
                a.object == b.object && !others && (indexed || meet)
            }
            // Memory of the code is no variable of the harness.
            (None, _) if matches!(op, Op::Model(_)) => false,
            _ => true,
        }
    }
}

/// Whether an index is the same wherever the thread is.
fn fixed(index: &wattle_model::Expr<Local>) -> bool {
    let mut all = true;
    index.for_each_atom(&mut |a| all &= matches!(a, Local::SelfIndex));
    all
}

fn unknown(origin: Origin) -> (Origin, String) {
    let what =
        "this comes while a store of which parts are accessed elsewhere may not be in memory yet";
    (origin, what.to_string())
}

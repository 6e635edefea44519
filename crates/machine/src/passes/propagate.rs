//! What variables are equal to, everywhere at once: constants, copies, addresses, conditions.
//!
//! At each node a *fact* `v == e` is known, where `e` speaks of other variables. A fact holds on every path
//! to the node or it is dropped; giving a variable a value drops what was said in terms of the old one.
//! Uses are then replaced by what they are equal to, and what nobody uses any more is found by liveness.
//! Accesses of the stack become variables on the way. An optimistic fixpoint: nodes not yet reached have
//! all facts, and facts are only ever lost.

use crate::bits::{Base, Cmp, E, VarId};
use crate::graph::{Graph, Op, Origin, Vars};
use crate::memory::{Fields, Kind, follows_null, kind_of, spot};
use crate::world::{Object, Refusal};
use std::collections::BTreeMap;

/// Larger expressions stay in a variable of their own.
const MAX_SIZE: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub values: BTreeMap<VarId, E>,
    /// Of variables without a value; a number if absent.
    pub kinds: BTreeMap<VarId, Kind>,
}

impl Facts {
    fn kind(&self, v: VarId) -> Kind {
        match self.values.get(&v) {
            Some(e) => kind_of(e, &|v| self.kinds.get(&v).copied().unwrap_or(Kind::Number)),
            None => self.kinds.get(&v).copied().unwrap_or(Kind::Number),
        }
    }

    pub fn kind_of(&self, e: &E) -> Kind {
        kind_of(e, &|v| self.kind(v))
    }

    pub fn put(&self, e: &E) -> E {
        e.replace(&|v| self.values.get(&v).cloned())
    }

    /// `v` gets a new value; what was said in terms of the old one is no longer known.
    fn forget(&mut self, v: VarId) {
        let lost: Vec<VarId> = (self.values.iter())
            .filter(|(w, e)| **w == v || e.mentions(v))
            .map(|(w, _)| *w)
            .collect();
        for w in lost {
            let kind = self.kind(w);
            self.values.remove(&w);
            self.say(w, kind);
        }
    }

    fn say(&mut self, v: VarId, kind: Kind) {
        match kind {
            Kind::Number => self.kinds.remove(&v),
            kind => self.kinds.insert(v, kind),
        };
    }

    fn assign(&mut self, v: VarId, e: E) {
        let kind = self.kind_of(&e);
        self.forget(v);
        match e.mentions(v) || e.size() > MAX_SIZE {
            true => self.say(v, kind),
            false => {
                self.kinds.remove(&v);
                self.values.insert(v, e);
            }
        }
    }

    /// Keeps what both say; whether that is less than before.
    fn meet(&mut self, other: &Facts) -> bool {
        let mut changed = false;
        let lost: Vec<VarId> = (self.values.iter())
            .filter(|(v, e)| other.values.get(v) != Some(e))
            .map(|(v, _)| *v)
            .collect();
        // Kinds are joined in terms of the facts before any is lost.
        let kinds: Vec<(VarId, Kind)> = lost
            .iter()
            .map(|v| (*v, self.kind(*v).join(other.kind(*v))))
            .collect();
        let known: Vec<VarId> = self
            .kinds
            .keys()
            .chain(other.kinds.keys())
            .copied()
            .collect();
        let mut joined = Vec::new();
        for v in known {
            if !self.values.contains_key(&v) {
                let kind = self.kind(v).join(other.kind(v));
                if kind != self.kind(v) {
                    joined.push((v, kind));
                }
            }
        }
        changed |= !lost.is_empty() || !joined.is_empty();
        for v in &lost {
            self.values.remove(v);
        }
        for (v, kind) in kinds.into_iter().chain(joined) {
            self.say(v, kind);
        }
        changed
    }

    /// What a condition that holds tells.
    fn learn(&mut self, condition: &E) {
        let told = match condition {
            E::Cmp(Cmp::Eq, a, b) => match (&**a, &**b) {
                (E::Var(v, _), c @ E::Const(..)) => Some((*v, c.clone())),
                _ => None,
            },
            E::Var(v, 1) => Some((*v, E::bool(true))),
            E::Not(a) => match **a {
                E::Var(v, 1) => Some((v, E::bool(false))),
                _ => None,
            },
            _ => None,
        };
        if let Some((v, c)) = told {
            self.values.entry(v).or_insert(c);
        }
    }
}

/// Facts of every node that can be reached.
pub struct Solved {
    pub facts: Vec<Option<Facts>>,
}

/// The operation with values put in, the stack made into variables, and what nobody ever changes read.
pub fn effective(
    op: &Op,
    facts: &Facts,
    vars: &mut Vars,
    fields: &Fields,
    objects: &[Object],
) -> Op {
    let mut op = op.clone();
    for e in op.expressions_mut() {
        *e = facts.put(e);
        if !vars.shown.is_empty() {
            *e = vars.placed(e);
        }
    }
    match op {
        Op::Load { to, at } => match stack_part(&at.address, at.bytes, vars) {
            Some((offset, low)) => {
                let slot = vars.slot(offset);
                let value = facts.put(&vars.read(slot)).extract(low, at.bytes * 8);
                Op::Assign(to, value)
            }
            // A variable of another file: what it holds nobody can say.
            None if matches!(at.address, E::Address(Base::Code, _)) => {
                Op::Assign(to, E::Unknown(at.bytes * 8))
            }
            None => {
                let spot = spot(&at.address, &|v| facts.kind(v));
                match spot.and_then(|s| fields.constant(objects, &s, at.bytes)) {
                    Some(value) => Op::Assign(to, value.resize(vars.width(to))),
                    None => Op::Load { to, at },
                }
            }
        },
        Op::Store { at, value } => match stack_part(&at.address, at.bytes, vars) {
            Some((offset, low)) => {
                let slot = vars.slot(offset);
                let whole = facts.put(&vars.read(slot));
                Op::Assign(slot, whole.insert(value, low))
            }
            None => Op::Store { at, value },
        },
        other => other,
    }
}

/// The word of the stack an access is part of, and its lowest bit there.
fn stack_part(address: &E, bytes: u32, vars: &Vars) -> Option<(i64, u32)> {
    let E::Address(Base::Stack, offset) = address else {
        return None;
    };
    if vars.settled {
        return None;
    }
    let end = offset.checked_add(i64::from(bytes))?;
    let within = |(from, to): &(i64, i64)| from <= offset && end <= *to;
    if *offset >= crate::private::START && !vars.kept.iter().any(within) {
        return None;
    }
    let word = offset & !7;
    let low = u32::try_from(offset - word).ok()? * 8;
    (low + bytes * 8 <= 64).then_some((word, low))
}

pub fn solve(graph: &mut Graph, fields: &Fields, objects: &[Object]) -> Solved {
    let (solved, _) = solve_while(graph, fields, objects, &mut |_| true);
    solved
}

/// The same where it takes so many steps at most, each counted with the facts it carries on.
pub fn solve_within(
    graph: &mut Graph,
    fields: &Fields,
    objects: &[Object],
    steps: &mut u64,
) -> Option<Solved> {
    let mut go_on = |facts: &Facts| {
        *steps = steps.saturating_sub(1 + facts.values.len() as u64);
        *steps > 0
    };
    let (solved, done) = solve_while(graph, fields, objects, &mut go_on);
    done.then_some(solved)
}

/// Nothing of it may be used if it was told to stop.
fn solve_while(
    graph: &mut Graph,
    fields: &Fields,
    objects: &[Object],
    go_on: &mut dyn FnMut(&Facts) -> bool,
) -> (Solved, bool) {
    let mut facts: Vec<Option<Facts>> = vec![None; graph.nodes.len()];
    facts[graph.entry] = Some(Facts::default());
    // Where several edges meet, facts are lost one by one, and so this ends: every circle has such a node.
    // Elsewhere they are what the one edge says, however often that changes.
    let mut incoming = vec![0usize; graph.nodes.len()];
    incoming[graph.entry] += 1;
    for n in graph.reached() {
        for edge in &graph.nodes[n].out {
            incoming[edge.to] += 1;
        }
    }
    let mut waiting = vec![false; graph.nodes.len()];
    let mut work = std::collections::VecDeque::from([graph.entry]);
    waiting[graph.entry] = true;
    let mut vars = std::mem::take(&mut graph.vars);
    let mut done = true;
    while let Some(n) = work.pop_front() {
        waiting[n] = false;
        let Some(before) = facts[n].clone() else {
            continue;
        };
        if !go_on(&before) {
            done = false;
            break;
        }
        for edge in &graph.nodes[n].out {
            let op = effective(&edge.op, &before, &mut vars, fields, objects);
            let Some(after) = transfer(&op, before.clone(), fields, objects) else {
                continue;
            };
            let changed = match &mut facts[edge.to] {
                Some(known) if incoming[edge.to] == 1 => {
                    let changed = *known != after;
                    *known = after;
                    changed
                }
                Some(known) => known.meet(&after),
                none => {
                    *none = Some(after);
                    true
                }
            };
            if changed && !waiting[edge.to] {
                waiting[edge.to] = true;
                work.push_back(edge.to);
            }
        }
    }
    graph.vars = vars;
    (Solved { facts }, done)
}

/// The facts after an operation with values put in; none if it is never done.
fn transfer(op: &Op, mut facts: Facts, fields: &Fields, objects: &[Object]) -> Option<Facts> {
    match op {
        Op::Assign(v, e) => facts.assign(*v, e.clone()),
        Op::Havoc(v) | Op::Import { to: v, .. } => {
            facts.forget(*v);
            facts.say(*v, Kind::Number);
        }
        Op::Load { to, at } => {
            let kind = match spot(&at.address, &|v| facts.kind(v)) {
                Some(s) if s.index.is_none() => {
                    fields.kind(objects, (s.object, s.offset), at.bytes)
                }
                Some(_) => Kind::Number,
                // Nothing comes after, unless more is learnt of what is stored there.
                None if follows_null(&at.address, &|v| facts.kind(v)) => Kind::Null,
                None => Kind::Mixed,
            };
            facts.forget(*to);
            facts.say(*to, kind);
        }
        Op::Assume(e) | Op::Assert(e, _) => {
            if e.is_false() {
                return None;
            }
            facts.learn(e);
        }
        Op::Nop
        | Op::Store { .. }
        | Op::Require(..)
        | Op::Fence
        | Op::Begin
        | Op::End
        | Op::Model(_)
        | Op::Export { .. } => {}
    }
    Some(facts)
}

/// Rewrites every operation; whether anything changed, and what is refused.
pub fn rewrite(
    graph: &mut Graph,
    solved: &Solved,
    fields: &Fields,
    objects: &[Object],
) -> (bool, Vec<Refusal>) {
    let mut changed = false;
    let mut refusals = Vec::new();
    let mut vars = std::mem::take(&mut graph.vars);
    for (n, node) in graph.nodes.iter_mut().enumerate() {
        let Some(facts) = &solved.facts[n] else {
            changed |= !node.out.is_empty();
            node.out.clear();
            continue;
        };
        let before = node.out.len();
        for edge in &mut node.out {
            let mut op = effective(&edge.op, facts, &mut vars, fields, objects);
            match &op {
                Op::Assume(e) | Op::Assert(e, _) | Op::Require(e, _) if e.is_true() => op = Op::Nop,
                Op::Require(_, why) => {
                    if let Origin::Code(address) = edge.origin {
                        refusals.push(Refusal::at(address, why.clone()));
                    }
                    op = Op::Nop;
                }
                Op::Assign(v, e) if *e == vars.read(*v) => op = Op::Nop,
                _ => {}
            }
            if op != edge.op {
                changed = true;
                edge.op = op;
            }
        }
        node.out
            .retain(|e| !matches!(&e.op, Op::Assume(c) if c.is_false()));
        changed |= before != node.out.len();
    }
    graph.vars = vars;
    (changed, refusals)
}

//! Which numbers are read with a sign.
//!
//! The processor's words have none; comparisons do. A counter that is compared with `jl` is a signed
//! number to whoever wrote it, and so is the field it was read from, what is stored there, and what it is
//! compared with. Either reading is right: the other one costs a cut (`i32(x)`) at every use, and engines
//! for any number of threads know little about cuts.

use crate::bits::{Bin, Cmp, E, VarId, signed};
use crate::graph::{Access, Graph, Op};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::RegionId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Var(usize, VarId),
    Cell(RegionId),
}

#[derive(Clone, Debug, Default)]
pub struct Signs {
    /// For each graph.
    pub vars: Vec<BTreeSet<VarId>>,
    pub regions: BTreeSet<RegionId>,
}

#[derive(Default)]
struct Votes {
    up: BTreeMap<Key, Key>,
    /// With a sign, without, and what may be negative.
    counts: BTreeMap<Key, (u32, u32, u32)>,
}

impl Votes {
    fn find(&self, mut k: Key) -> Key {
        while let Some(up) = self.up.get(&k) {
            k = *up;
        }
        k
    }

    fn tie(&mut self, a: Key, b: Key) {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            self.up.insert(a.max(b), a.min(b));
        }
    }

    fn vote(&mut self, k: Key, sign: bool) {
        let count = self.counts.entry(k).or_default();
        if sign {
            count.0 += 1;
        } else {
            count.1 += 1;
        }
    }

    /// A negative constant, or a number that is counted down: it may go below zero.
    fn negative(&mut self, k: Key, e: &E) {
        let below = |e: &E| matches!(e, E::Const(c, w) if *w < 64 && signed(*c, *w) < 0);
        let down = match e {
            E::Bin(Bin::Add, a, b) => below(a) || below(b),
            E::Bin(Bin::Sub, _, b) => matches!(**b, E::Const(c, w) if w < 64 && signed(c, w) > 0),
            e => below(e),
        };
        if down {
            self.counts.entry(k).or_default().2 += 1;
        }
    }

    /// Whoever the values of an expression are of the same sort as.
    fn roots(g: usize, e: &E, found: &mut Vec<Key>) {
        match e {
            E::Var(v, _) => found.push(Key::Var(g, *v)),
            E::Bin(Bin::Add | Bin::Sub | Bin::Or | Bin::Xor, a, b) => {
                Votes::roots(g, a, found);
                Votes::roots(g, b, found);
            }
            E::Ite(_, a, b) => {
                Votes::roots(g, a, found);
                Votes::roots(g, b, found);
            }
            _ => {}
        }
    }

    fn all(&mut self, g: usize, e: &E, sign: bool) {
        let mut found = Vec::new();
        Votes::roots(g, e, &mut found);
        for k in found {
            self.vote(k, sign);
        }
    }

    /// A place that takes a value.
    fn takes(&mut self, g: usize, k: Key, e: &E) {
        self.negative(k, e);
        let mut found = Vec::new();
        Votes::roots(g, e, &mut found);
        for root in found {
            self.tie(k, root);
        }
    }

    fn expression(&mut self, g: usize, e: &E) {
        match e {
            E::Const(..) | E::Var(..) | E::Address(..) | E::Unknown(_) => {}
            E::Not(a) | E::Extract(a, _, _) => self.expression(g, a),
            E::Zext(a, _) => {
                self.all(g, a, false);
                self.expression(g, a);
            }
            E::Sext(a, _) => {
                self.all(g, a, true);
                self.expression(g, a);
            }
            E::Insert(a, b, _) => {
                self.expression(g, a);
                self.expression(g, b);
            }
            E::Ite(c, a, b) => {
                self.expression(g, c);
                self.expression(g, a);
                self.expression(g, b);
            }
            E::Bin(op, a, b) => {
                match op {
                    Bin::Shr | Bin::Udiv | Bin::Urem => self.all(g, a, false),
                    Bin::Sar | Bin::Sdiv | Bin::Srem => self.all(g, a, true),
                    Bin::Add | Bin::Sub | Bin::Mul | Bin::And | Bin::Or | Bin::Xor | Bin::Shl => {}
                }
                self.expression(g, a);
                self.expression(g, b);
            }
            E::Cmp(op, a, b) => {
                match op {
                    Cmp::Eq | Cmp::Ne => {
                        let mut found = Vec::new();
                        Votes::roots(g, a, &mut found);
                        Votes::roots(g, b, &mut found);
                        if let Some((first, rest)) = found.split_first() {
                            rest.iter().for_each(|k| self.tie(*first, *k));
                            self.negative(*first, a);
                            self.negative(*first, b);
                        }
                    }
                    Cmp::Ult | Cmp::Ule | Cmp::Slt | Cmp::Sle => {
                        let sign = matches!(op, Cmp::Slt | Cmp::Sle);
                        self.all(g, a, sign);
                        self.all(g, b, sign);
                    }
                }
                self.expression(g, a);
                self.expression(g, b);
            }
        }
    }
}

/// `cell` tells where an access of a graph goes.
pub fn signs(graphs: &[Graph], cell: &dyn Fn(usize, &Access) -> Option<RegionId>) -> Signs {
    let mut votes = Votes::default();
    let mut known = BTreeSet::new();
    for (g, graph) in graphs.iter().enumerate() {
        for edge in graph
            .reached()
            .into_iter()
            .flat_map(|n| &graph.nodes[n].out)
        {
            for e in edge.op.expressions() {
                votes.expression(g, e);
            }
            if let Some(v) = edge.op.written() {
                known.insert(Key::Var(g, v));
            }
            match &edge.op {
                Op::Assign(v, e) => votes.takes(g, Key::Var(g, *v), e),
                Op::Load { to, at } => {
                    if let Some(r) = cell(g, at).filter(|_| graph.vars.width(*to) == at.bytes * 8) {
                        known.insert(Key::Cell(r));
                        votes.tie(Key::Var(g, *to), Key::Cell(r));
                    }
                }
                Op::Store { at, value } => {
                    if let Some(r) = cell(g, at) {
                        known.insert(Key::Cell(r));
                        votes.takes(g, Key::Cell(r), value);
                    }
                }
                _ => {}
            }
        }
    }
    let mut sums: BTreeMap<Key, (u32, u32, u32)> = BTreeMap::new();
    for (k, (s, u, n)) in &votes.counts {
        let sum = sums.entry(votes.find(*k)).or_default();
        *sum = (sum.0 + s, sum.1 + u, sum.2 + n);
    }
    let mut signs = Signs {
        vars: vec![BTreeSet::new(); graphs.len()],
        regions: BTreeSet::new(),
    };
    for k in known {
        let (s, u, n) = sums.get(&votes.find(k)).copied().unwrap_or_default();
        if s > u || (s == u && n > 0) {
            match k {
                Key::Var(g, v) => {
                    signs.vars[g].insert(v);
                }
                Key::Cell(r) => {
                    signs.regions.insert(r);
                }
            }
        }
    }
    signs
}

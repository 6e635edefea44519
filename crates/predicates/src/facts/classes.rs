//! Which variables have to do with each other, and which numbers a program speaks of.

use super::element::Thresholds;
use crate::reduce::System;
use std::collections::BTreeSet;
use wattle_logic::Var;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact, Question};
use wattle_model::{CellId, Expr, Op1, Op2, RegisterId, ThreadId};

/// A class for every register and cell: values of one class flow into each other or are compared.
pub struct Classes {
    parent: Vec<usize>,
    pub thresholds: Thresholds,
    /// Cells of arrays with the numbers by which indices into them are remainders.
    pub remainders: BTreeSet<(Var, i64)>,
    /// Variables of which conditions take a remainder, and all that have to do with them.
    pub parities: BTreeSet<(Var, i64)>,
    /// Pairs that are tested for being equal: registers, and cells that they are read from.
    pub equal: BTreeSet<(Var, Var)>,
}

/// Larger numbers are no distances between variables.
const MOST: i64 = 1 << 40;

/// Remainders by larger numbers are not told apart.
const MOST_REMAINDERS: i64 = 16;
/// The same for variables of which conditions take a remainder: these are many.
const MOST_PARITIES: i64 = 4;

impl Classes {
    pub fn new(system: &System<'_>, question: Option<&Question>) -> Self {
        let instance = system.instance;
        let size = system.choice().0 as usize;
        let threads = instance.threads.len() as i64;
        let near = -(threads + 2)..=threads + 2;
        let mut classes = Classes {
            parent: (0..size).collect(),
            thresholds: near.collect(),
            remainders: BTreeSet::new(),
            parities: BTreeSet::new(),
            equal: BTreeSet::new(),
        };
        for t in instance.thread_ids() {
            for step in &instance.thread(t).steps {
                classes.action(system, t, &step.action);
            }
        }
        if let Some(q) = question {
            classes.values(&q.target, &|fact: &Fact| match fact {
                Fact::Cell(c) | Fact::Seen(_, c) => vec![system.cell(*c)],
                Fact::CellAt { base, length, .. } => span(system, *base, *length),
                Fact::Register(t, r) => vec![system.register(*t, *r)],
                Fact::At(..) => Vec::new(),
            });
        }
        classes.spread(system);
        classes
    }

    /// What is said of a variable of which a remainder is taken is said of its class, and what is said of a
    /// register of the cells it is read from.
    fn spread(&mut self, system: &System<'_>) {
        let size = self.parent.len() as u32;
        for (v, m) in std::mem::take(&mut self.parities) {
            let class = (0..size).map(Var).filter(|u| self.of(*u) == self.of(v));
            let class: Vec<(Var, i64)> = class.map(|u| (u, m)).collect();
            self.parities.extend(class);
        }
        let instance = system.instance;
        let mut read: BTreeSet<(Var, Var)> = BTreeSet::new();
        for t in instance.thread_ids() {
            for step in &instance.thread(t).steps {
                if let Action::Load {
                    register,
                    place: Address::Cell(c),
                } = &step.action
                {
                    read.insert((system.register(t, *register), system.cell(*c)));
                }
            }
        }
        let sources = |v: Var| read.range((v, Var(0))..=(v, Var(u32::MAX))).map(|r| r.1);
        let mut equal = BTreeSet::new();
        for (a, b) in &self.equal {
            let all_a = std::iter::once(*a).chain(sources(*a));
            for x in all_a {
                let all_b = std::iter::once(*b).chain(sources(*b));
                equal.extend(all_b.map(|y| (x.min(y), x.max(y))));
            }
        }
        self.equal = equal;
    }

    pub fn of(&self, v: Var) -> u32 {
        self.root(v.0 as usize) as u32
    }

    fn action(&mut self, system: &System<'_>, t: ThreadId, action: &Action<RegisterId, Address>) {
        let register = |r: &RegisterId| vec![system.register(t, *r)];
        let (mut place, mut value) = (None, Vec::new());
        match action {
            Action::Assume(e) | Action::Assert { condition: e, .. } => {
                self.values(e, &register);
                self.tests(system, t, e);
            }
            Action::Assign {
                register: r,
                value: e,
            } => {
                value = self.values(e, &register);
                value.extend(register(r));
            }
            Action::Load {
                register: r,
                place: p,
            } => {
                value = register(r);
                place = Some(p);
            }
            Action::Store { place: p, value: e } => {
                value = self.values(e, &register);
                place = Some(p);
            }
            Action::Skip
            | Action::Havoc { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => {}
        }
        match place {
            Some(Address::Cell(c)) => value.push(system.cell(*c)),
            Some(Address::Computed {
                base,
                length,
                index,
            }) => {
                self.values(index, &register);
                let mut moduli = BTreeSet::new();
                remainders(index, &mut moduli);
                for v in span(system, *base, *length) {
                    self.remainders.extend(moduli.iter().map(|m| (v, *m)));
                }
                // Elements of an array are each on their own: the value goes into one of them.
                value.extend(span(system, *base, *length));
            }
            None => {}
        }
        self.join(&value);
    }

    /// Notes remainders that the condition takes and registers that it compares for equality.
    fn tests(&mut self, system: &System<'_>, t: ThreadId, e: &Expr<RegisterId>) {
        match e {
            Expr::Const(_) | Expr::Atom(_) => {}
            Expr::Unary(_, a) => self.tests(system, t, a),
            Expr::Binary(op, a, b) => {
                let mut moduli = BTreeSet::new();
                if matches!(op, Op2::Rem | Op2::BitAnd) {
                    remainders(e, &mut moduli);
                }
                for m in moduli.into_iter().filter(|m| *m <= MOST_PARITIES) {
                    e.for_each_atom(&mut |r| {
                        self.parities.insert((system.register(t, *r), m));
                    });
                }
                if let (Op2::Eq | Op2::Ne, Expr::Atom(x), Expr::Atom(y)) = (op, &**a, &**b) {
                    let (x, y) = (system.register(t, *x), system.register(t, *y));
                    self.equal.insert((x, y));
                }
                self.tests(system, t, a);
                self.tests(system, t, b);
            }
            Expr::Ite(c, a, b) => [c, a, b].iter().for_each(|e| self.tests(system, t, e)),
        }
    }

    /// The variables that flow into the value; what is compared on the way is joined.
    fn values<A>(&mut self, e: &Expr<A>, atom: &dyn Fn(&A) -> Vec<Var>) -> Vec<Var> {
        match e {
            Expr::Const(c) => {
                for near in [-1, 0, 1] {
                    let near = c.saturating_add(near);
                    if near.abs() < MOST {
                        self.thresholds.extend([near, -near]);
                    }
                }
                Vec::new()
            }
            Expr::Atom(a) => atom(a),
            Expr::Unary(Op1::Not, a) => {
                self.values(a, atom);
                Vec::new()
            }
            Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, a) => self.values(a, atom),
            Expr::Binary(op, a, b) => {
                let mut both = self.values(a, atom);
                let second = self.values(b, atom);
                match op {
                    Op2::And | Op2::Or => return Vec::new(),
                    Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge => {
                        both.extend(second);
                        self.join(&both);
                        return Vec::new();
                    }
                    Op2::Add
                    | Op2::Sub
                    | Op2::Mul
                    | Op2::Div
                    | Op2::Rem
                    | Op2::BitAnd
                    | Op2::BitOr
                    | Op2::BitXor
                    | Op2::Shl
                    | Op2::Shr => {}
                }
                both.extend(second);
                both
            }
            Expr::Ite(c, a, b) => {
                self.values(c, atom);
                let mut both = self.values(a, atom);
                both.extend(self.values(b, atom));
                both
            }
        }
    }

    fn join(&mut self, vars: &[Var]) {
        for pair in vars.windows(2) {
            let (a, b) = (self.root(pair[0].0 as usize), self.root(pair[1].0 as usize));
            self.parent[a.max(b)] = a.min(b);
        }
    }

    fn root(&self, mut i: usize) -> usize {
        while self.parent[i] != i {
            i = self.parent[i];
        }
        i
    }
}

fn span(system: &System<'_>, base: CellId, length: u32) -> Vec<Var> {
    (base.0..base.0 + length)
        .map(|c| system.cell(CellId(c)))
        .collect()
}

/// The numbers by which the expression takes remainders, as an operator or as a mask.
fn remainders<A>(e: &Expr<A>, out: &mut BTreeSet<i64>) {
    match e {
        Expr::Binary(op, a, b) => {
            let m = match op {
                Op2::Rem => b.as_const(),
                Op2::BitAnd => b.as_const().and_then(|m| m.checked_add(1)),
                Op2::Add
                | Op2::Sub
                | Op2::Mul
                | Op2::Div
                | Op2::BitOr
                | Op2::BitXor
                | Op2::Shl
                | Op2::Shr
                | Op2::Eq
                | Op2::Ne
                | Op2::Lt
                | Op2::Le
                | Op2::Gt
                | Op2::Ge
                | Op2::And
                | Op2::Or => None,
            };
            out.extend(m.filter(|m| (2..=MOST_REMAINDERS).contains(m)));
            remainders(a, out);
            remainders(b, out);
        }
        Expr::Unary(_, a) => remainders(a, out),
        Expr::Ite(c, a, b) => [c, a, b].iter().for_each(|e| remainders(e, out)),
        Expr::Const(_) | Expr::Atom(_) => {}
    }
}

//! Quantifier-free formulas, always in negation normal form.
//!
//! There is no `Not` node: [`Formula::negated`] pushes the negation to the
//! atoms, each of which has an atomic negation over the integers. `And` and
//! `Or` are flattened, sorted and without duplicates, so equal sets of
//! conjuncts are equal formulas.

mod tools;

pub use tools::{gt, ite};

use crate::atom::{Atom, Rel};
use crate::int::Int;
use crate::term::{Term, Var};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A formula; cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Formula {
    /// Always true.
    True,
    /// Never true.
    False,
    /// A single constraint.
    Atom(Arc<Atom>),
    /// All of these (at least two, none an `And` or a constant).
    And(Arc<[Formula]>),
    /// One of these (at least two, none an `Or` or a constant).
    Or(Arc<[Formula]>),
}

impl From<bool> for Formula {
    fn from(value: bool) -> Formula {
        if value { Formula::True } else { Formula::False }
    }
}

/// `a <= b`
pub fn le(a: impl Into<Term>, b: impl Into<Term>) -> Formula {
    Atom::normal(a.into() - b.into(), Rel::Le)
}

/// `a < b`, which over the integers is `a + 1 <= b`
pub fn lt(a: impl Into<Term>, b: impl Into<Term>) -> Formula {
    Atom::normal(a.into() - b.into() + 1, Rel::Le)
}

/// `a >= b`
pub fn ge(a: impl Into<Term>, b: impl Into<Term>) -> Formula {
    le(b, a)
}

/// `a == b`
pub fn eq(a: impl Into<Term>, b: impl Into<Term>) -> Formula {
    Atom::normal(a.into() - b.into(), Rel::Eq)
}

/// `a != b`
pub fn ne(a: impl Into<Term>, b: impl Into<Term>) -> Formula {
    Atom::normal(a.into() - b.into(), Rel::Ne)
}

/// `m | t`: the term is a multiple of `m`
pub fn divides(m: impl Into<Int>, t: impl Into<Term>) -> Formula {
    Atom::normal(t.into(), Rel::Divides(m.into()))
}

/// All of them.
pub fn and(parts: impl IntoIterator<Item = Formula>) -> Formula {
    joined(parts, Formula::True, Formula::False)
}

/// At least one of them.
pub fn or(parts: impl IntoIterator<Item = Formula>) -> Formula {
    joined(parts, Formula::False, Formula::True)
}

/// With `True` for none of them all of them, with `False` one of them; the other one decides it.
fn joined(parts: impl IntoIterator<Item = Formula>, empty: Formula, decisive: Formula) -> Formula {
    let all = empty == Formula::True;
    let mut flat = Vec::new();
    for part in parts {
        match part {
            Formula::And(inner) if all => flat.extend(inner.iter().cloned()),
            Formula::Or(inner) if !all => flat.extend(inner.iter().cloned()),
            Formula::True | Formula::False if part == decisive => return decisive,
            Formula::True | Formula::False => {}
            other @ (Formula::Atom(_) | Formula::And(_) | Formula::Or(_)) => flat.push(other),
        }
    }
    flat.sort();
    flat.dedup();
    match flat.len() {
        0 => empty,
        1 => flat.swap_remove(0),
        _ if all => Formula::And(flat.into()),
        _ => Formula::Or(flat.into()),
    }
}

/// The negation of `f`.
pub fn not(f: &Formula) -> Formula {
    f.negated()
}

/// `a` implies `b`.
pub fn implies(a: &Formula, b: &Formula) -> Formula {
    or([a.negated(), b.clone()])
}

/// `a` if and only if `b`.
pub fn iff(a: &Formula, b: &Formula) -> Formula {
    or([and([a.clone(), b.clone()]), and([a.negated(), b.negated()])])
}

impl Formula {
    /// The negation, in negation normal form.
    pub fn negated(&self) -> Formula {
        match self {
            Formula::True => Formula::False,
            Formula::False => Formula::True,
            Formula::Atom(a) => Formula::Atom(Arc::new(a.negated())),
            Formula::And(fs) => or(fs.iter().map(Formula::negated)),
            Formula::Or(fs) => and(fs.iter().map(Formula::negated)),
        }
    }

    /// The atom, if the formula is one.
    pub fn as_atom(&self) -> Option<&Atom> {
        match self {
            Formula::Atom(a) => Some(a),
            Formula::True | Formula::False | Formula::And(_) | Formula::Or(_) => None,
        }
    }

    /// The conjuncts: those of an `And`, none for `True`, else the formula itself.
    pub fn conjuncts(&self) -> &[Formula] {
        match self {
            Formula::True => &[],
            Formula::And(fs) => fs,
            other @ (Formula::False | Formula::Atom(_) | Formula::Or(_)) => {
                std::slice::from_ref(other)
            }
        }
    }

    /// The variables that occur.
    pub fn vars(&self) -> BTreeSet<Var> {
        let mut out = BTreeSet::new();
        self.collect_vars(&mut out);
        out
    }

    /// Adds the variables that occur to `into`.
    pub fn collect_vars(&self, into: &mut BTreeSet<Var>) {
        self.for_each_atom(&mut |a| a.term().collect_vars(into));
    }

    /// Visits every atom.
    pub fn for_each_atom(&self, visit: &mut dyn FnMut(&Arc<Atom>)) {
        match self {
            Formula::True | Formula::False => {}
            Formula::Atom(a) => visit(a),
            Formula::And(fs) | Formula::Or(fs) => fs.iter().for_each(|f| f.for_each_atom(visit)),
        }
    }
}

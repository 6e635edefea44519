//! What engines build, ask and make of formulas besides.

use super::{Formula, and, lt, or};
use crate::atom::{Atom, holds};
use crate::model::Model;
use crate::term::{Term, Var};
use std::collections::BTreeSet;
use std::sync::Arc;

/// `a > b`
pub fn gt(a: impl Into<Term>, b: impl Into<Term>) -> Formula {
    lt(b, a)
}

/// `c` and `a`, or not `c` and `b`.
pub fn ite(c: &Formula, a: &Formula, b: &Formula) -> Formula {
    or([and([c.clone(), a.clone()]), and([c.negated(), b.clone()])])
}

impl Formula {
    /// The disjuncts: those of an `Or`, none for `False`, else the formula itself.
    pub fn disjuncts(&self) -> &[Formula] {
        match self {
            Formula::False => &[],
            Formula::Or(fs) => fs,
            other @ (Formula::True | Formula::Atom(_) | Formula::And(_)) => {
                std::slice::from_ref(other)
            }
        }
    }

    /// Truth under a model.
    pub fn eval(&self, model: &Model) -> bool {
        match self {
            Formula::True => true,
            Formula::False => false,
            Formula::Atom(a) => a.eval(model),
            Formula::And(fs) => fs.iter().all(|f| f.eval(model)),
            Formula::Or(fs) => fs.iter().any(|f| f.eval(model)),
        }
    }

    /// All variables replaced at once; `None` keeps a variable. The weakest
    /// precondition of `x := t` is `f.subst(x ↦ t)`.
    pub fn subst(&self, map: &dyn Fn(Var) -> Option<Term>) -> Formula {
        match self {
            Formula::True | Formula::False => self.clone(),
            Formula::Atom(a) => {
                if a.term().coeffs().iter().all(|(v, _)| map(*v).is_none()) {
                    return self.clone();
                }
                Atom::normal(a.term().subst(map), a.rel().clone())
            }
            Formula::And(fs) => and(fs.iter().map(|f| f.subst(map))),
            Formula::Or(fs) => or(fs.iter().map(|f| f.subst(map))),
        }
    }

    /// One variable replaced: the weakest precondition of `x := t`.
    pub fn assign(&self, x: Var, t: &Term) -> Formula {
        if !self.mentions(x) {
            return self.clone();
        }
        self.subst(&|v| (v == x).then(|| t.clone()))
    }

    /// Variables renamed.
    pub fn rename(&self, map: &dyn Fn(Var) -> Var) -> Formula {
        self.subst(&|v| {
            let w = map(v);
            (w != v).then(|| Term::from(w))
        })
    }

    /// Whether `x` occurs.
    pub fn mentions(&self, x: Var) -> bool {
        match self {
            Formula::True | Formula::False => false,
            Formula::Atom(a) => a.term().mentions(x),
            Formula::And(fs) | Formula::Or(fs) => fs.iter().any(|f| f.mentions(x)),
        }
    }

    /// The distinct atoms, sorted: candidate predicates.
    pub fn atoms(&self) -> BTreeSet<Arc<Atom>> {
        let mut out = BTreeSet::new();
        self.for_each_atom(&mut |a| {
            out.insert(a.clone());
        });
        out
    }

    /// How many nodes the formula has.
    pub fn size(&self) -> usize {
        match self {
            Formula::And(fs) | Formula::Or(fs) => 1 + fs.iter().map(Formula::size).sum::<usize>(),
            Formula::True | Formula::False | Formula::Atom(_) => 1,
        }
    }
}

impl Atom {
    /// Truth under a model.
    pub fn eval(&self, model: &Model) -> bool {
        holds(self.rel(), &self.term().eval(model))
    }
}

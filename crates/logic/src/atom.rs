//! Atomic constraints in normal form.
//!
//! Coefficients are divided by their gcd (inequalities are tightened to the
//! integers: `2x <= 3` is `x <= 1`), equalities and disequalities start with a
//! positive coefficient, divisibilities are reduced modulo their modulus. Two
//! atoms over the same direction therefore differ only in the constant.

use crate::formula::Formula;
use crate::int::Int;
use crate::term::Term;
use std::sync::Arc;

/// How an atom's term is compared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rel {
    /// `t <= 0`
    Le,
    /// `t == 0`
    Eq,
    /// `t != 0`
    Ne,
    /// `m | t` for a modulus of at least 2
    Divides(Int),
    /// not `m | t`
    NotDivides(Int),
}

/// A constraint on one linear term. Made by the builders of [`Formula`], always
/// in normal form and never constant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Atom {
    term: Term,
    rel: Rel,
}

impl Atom {
    /// The term compared with zero.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// The comparison.
    pub fn rel(&self) -> &Rel {
        &self.rel
    }

    /// The negation, again an atom (`t <= 0` becomes `1 - t <= 0`).
    pub fn negated(&self) -> Atom {
        let (term, rel) = match &self.rel {
            Rel::Le => (self.term.map_parts(|a| -a, |c| &Int::ONE - c), Rel::Le),
            Rel::Eq => (self.term.clone(), Rel::Ne),
            Rel::Ne => (self.term.clone(), Rel::Eq),
            Rel::Divides(m) => (self.term.clone(), Rel::NotDivides(m.clone())),
            Rel::NotDivides(m) => (self.term.clone(), Rel::Divides(m.clone())),
        };
        Atom { term, rel }
    }

    /// The normal form of `term rel 0`: an atom, or a truth value.
    pub(crate) fn normal(term: Term, rel: Rel) -> Formula {
        let (term, rel) = match rel {
            Rel::Divides(m) => return divisibility(&m, &term, true),
            Rel::NotDivides(m) => return divisibility(&m, &term, false),
            other @ (Rel::Le | Rel::Eq | Rel::Ne) => (term, other),
        };
        if let Some(c) = term.as_constant() {
            return Formula::from(holds(&rel, c));
        }
        let mut g = divisor(&term, term.content());
        if rel != Rel::Le {
            if !g.divides(term.constant_part()) {
                return Formula::from(rel == Rel::Ne);
            }
            if term.coeffs()[0].1.is_negative() {
                g = -g;
            }
        }
        let term = match g.is_one() {
            true => term,
            false => term.map_parts(|a| a.div_exact(&g), |c| c.div_ceil(&g)),
        };
        Formula::Atom(Arc::new(Atom { term, rel }))
    }
}

/// The number, if it divides all coefficients; how it was found does not matter.
fn divisor(term: &Term, guess: Int) -> Int {
    let divides = |guess: &Int| term.coeffs().iter().all(|(_, a)| guess.divides(a));
    match guess.is_one() || guess.is_positive() && divides(&guess) {
        true => guess,
        false => Int::ONE,
    }
}

fn divisibility(m: &Int, term: &Term, positive: bool) -> Formula {
    let m = m.abs();
    if m.is_zero() {
        return Atom::normal(term.clone(), if positive { Rel::Eq } else { Rel::Ne });
    }
    let term = term.map_parts(|a| a.mod_floor(&m), |c| c.mod_floor(&m));
    let g = divisor(&term, term.content().gcd(&m));
    let g = if g.divides(&m) { g } else { Int::ONE };
    if !g.divides(term.constant_part()) {
        return Formula::from(!positive);
    }
    let term = term.map_parts(|a| a.div_exact(&g), |c| c.div_exact(&g));
    let m = m.div_exact(&g);
    if m.is_one() {
        return Formula::from(positive);
    }
    let rel = if positive {
        Rel::Divides(m)
    } else {
        Rel::NotDivides(m)
    };
    Formula::Atom(Arc::new(Atom { term, rel }))
}

pub(crate) fn holds(rel: &Rel, value: &Int) -> bool {
    match rel {
        Rel::Le => !value.is_positive(),
        Rel::Eq => value.is_zero(),
        Rel::Ne => !value.is_zero(),
        Rel::Divides(m) => m.divides(value),
        Rel::NotDivides(m) => !m.divides(value),
    }
}

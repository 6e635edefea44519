//! What runs must do in the long run: formulas of linear time without *next*, and progress.
//!
//! A run is seen as the sequence of its states outside atomic blocks; a run that has come to its end
//! repeats its last state. Without *next* nobody can tell how often a state is repeated, so that
//! reductions keep what a formula says.

mod asked;

use crate::expr::Expr;
use crate::property::{Condition, IndexVariable, Observation};
use crate::span::Span;
use serde::Serialize;

/// A demand on runs, as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Temporal {
    pub kind: TemporalKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemporalKind {
    /// `ltl f;`: every run satisfies the formula, for all choices of its index variables.
    Ltl(Vec<IndexVariable>, Formula<Expr<Observation>>),
    /// `p ~> q;`: whenever p, then at that time or later q.
    LeadsTo(Condition, Expr<Observation>),
    /// `progress;`: see [`crate::waiting`].
    Progress,
}

/// A formula over conditions `A` on single states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Formula<A> {
    /// The condition holds now.
    Now(A),
    Not(Box<Formula<A>>),
    And(Box<Formula<A>>, Box<Formula<A>>),
    Or(Box<Formula<A>>, Box<Formula<A>>),
    Implies(Box<Formula<A>>, Box<Formula<A>>),
    /// `G f`: now and always.
    Globally(Box<Formula<A>>),
    /// `F f`: now or at some time.
    Finally(Box<Formula<A>>),
    /// `f U g`: g at some time, f until then.
    Until(Box<Formula<A>>, Box<Formula<A>>),
    /// `f R g`: g up to and including the time when f; for ever, if there is none.
    Release(Box<Formula<A>>, Box<Formula<A>>),
    /// `f W g`: f until g, or for ever.
    WeakUntil(Box<Formula<A>>, Box<Formula<A>>),
}

impl<A> Formula<A> {
    /// The parts, from left to right.
    pub fn parts(&self) -> Vec<&Formula<A>> {
        match self {
            Formula::Now(_) => Vec::new(),
            Formula::Not(f) | Formula::Globally(f) | Formula::Finally(f) => vec![f],
            Formula::And(f, g)
            | Formula::Or(f, g)
            | Formula::Implies(f, g)
            | Formula::Until(f, g)
            | Formula::Release(f, g)
            | Formula::WeakUntil(f, g) => vec![f, g],
        }
    }

    /// Every condition, from left to right.
    pub fn for_each_now<'f>(&'f self, visit: &mut dyn FnMut(&'f A)) {
        if let Formula::Now(a) = self {
            visit(a);
        }
        for part in self.parts() {
            part.for_each_now(visit);
        }
    }

    /// The same formula over other conditions.
    pub fn map<B, E>(&self, f: &mut dyn FnMut(&A) -> Result<B, E>) -> Result<Formula<B>, E> {
        let mut sub = |g: &Formula<A>| g.map(f).map(Box::new);
        Ok(match self {
            Formula::Now(a) => Formula::Now(f(a)?),
            Formula::Not(g) => Formula::Not(sub(g)?),
            Formula::Globally(g) => Formula::Globally(sub(g)?),
            Formula::Finally(g) => Formula::Finally(sub(g)?),
            Formula::And(g, h) => Formula::And(sub(g)?, sub(h)?),
            Formula::Or(g, h) => Formula::Or(sub(g)?, sub(h)?),
            Formula::Implies(g, h) => Formula::Implies(sub(g)?, sub(h)?),
            Formula::Until(g, h) => Formula::Until(sub(g)?, sub(h)?),
            Formula::Release(g, h) => Formula::Release(sub(g)?, sub(h)?),
            Formula::WeakUntil(g, h) => Formula::WeakUntil(sub(g)?, sub(h)?),
        })
    }

    /// `G(p -> F q)`.
    pub fn leads_to(p: A, q: A) -> Self {
        let later = Formula::Finally(Box::new(Formula::Now(q)));
        let whenever = Formula::Implies(Box::new(Formula::Now(p)), Box::new(later));
        Formula::Globally(Box::new(whenever))
    }
}

//! Refutations: Farkas sums, integer cuts, case splits and lemmas.
//!
//! A proof works on *facts* named by [`FactId`]s: the assertions are facts
//! `0..n`, [`Step`]s introduce further ones, and an [`End`] refutes what is in
//! scope, possibly by cases with a proof each. The language is complete for
//! quantifier-free linear integer arithmetic and small enough that [`check`]
//! fits on three screens; it knows nothing of how proofs are found.

mod check;
mod error;
mod size;

pub use check::check;
pub use error::ProofError;

use crate::formula::Formula;
use crate::int::Int;
use crate::term::{Term, Var};

/// The name of a fact within one proof.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FactId(pub u32);

/// `Σ λ·fact`: multipliers of inequalities `t <= 0` are positive, those of
/// equalities `t == 0` any.
pub type Sum = Vec<(FactId, Int)>;

/// A refutation of the facts in scope.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Facts that follow, in order.
    pub steps: Vec<Step>,
    /// Why they cannot all hold.
    pub end: End,
}

/// Facts that follow from those in scope.
#[derive(Clone, Debug)]
pub enum Step {
    /// The sum's coefficients are multiples of `divisor`; over the integers its
    /// constant may be rounded up after division. Introduces that inequality.
    Cut {
        /// What is added up.
        sum: Sum,
        /// What the sum is divided by.
        divisor: Int,
        /// The name of the rounded inequality.
        fact: FactId,
    },
    /// All conjuncts of the `And` fact `of`, named `first`, `first + 1`, …
    Conjuncts {
        /// The conjunction.
        of: FactId,
        /// The name of its first conjunct.
        first: FactId,
    },
    /// A quotient for a divisibility fact: `m | t` gives `t - m·k == 0`, its
    /// negation gives `1 <= t - m·k` (named `first`) and `t - m·k <= m - 1`.
    Quotient {
        /// The divisibility or its negation.
        of: FactId,
        /// The variable `k`, which nothing else mentions.
        var: Var,
        /// The name of the first fact.
        first: FactId,
    },
    /// One of the literals, because their negations are refuted.
    Lemma {
        /// The clause.
        literals: Vec<Formula>,
        /// The names of the literals' negations, in the lemma's proof.
        assume: Vec<FactId>,
        /// Refutes the negations.
        proof: Proof,
        /// The name of the clause.
        fact: FactId,
    },
    /// The disjunct number `keep` of `of`, because the others, in order, are the
    /// negations of the facts `against`.
    Unit {
        /// A lemma or an `Or`.
        of: FactId,
        /// Which disjunct remains.
        keep: usize,
        /// The facts that exclude the other disjuncts.
        against: Vec<FactId>,
        /// The name of the remaining disjunct.
        fact: FactId,
    },
}

/// Why facts cannot all hold.
#[derive(Clone, Debug)]
pub enum End {
    /// The sum is a positive constant, yet at most zero.
    Farkas(Sum),
    /// The fact is `false`.
    Absurd(FactId),
    /// All disjuncts of the lemma or `Or`, in order, are the negations of the
    /// facts `against`.
    Refuted {
        /// The lemma or `Or`.
        of: FactId,
        /// The facts that exclude its disjuncts.
        against: Vec<FactId>,
    },
    /// Either `term <= 0` or `term >= 1`.
    Split {
        /// An integer term.
        term: Term,
        /// The name of the case's inequality, in both branches.
        fact: FactId,
        /// The proof for `term <= 0`.
        low: Box<Proof>,
        /// The proof for `1 - term <= 0`.
        high: Box<Proof>,
    },
    /// One of the disjuncts of `of` (an `Or`, or a disequality `t != 0` read as
    /// `t + 1 <= 0` or `1 - t <= 0`).
    Cases {
        /// The fact with several cases.
        of: FactId,
        /// The name of the case, in every branch.
        fact: FactId,
        /// One proof per case, in order.
        branches: Vec<Proof>,
    },
}

//! Refutations: Farkas sums, integer cuts and case splits.
//!
//! A proof is a tree. Every node works on *facts* named by [`FactId`]s: the
//! assertions are facts `0..n`, and nodes introduce further facts for their
//! subtrees. Leaves add facts up to a contradiction. The language is complete
//! for quantifier-free linear integer arithmetic and small enough that
//! [`check`] fits on two screens; it knows nothing of how proofs are found.

mod check;

pub use check::{ProofError, check};

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
pub enum Proof {
    /// The sum is a positive constant, yet at most zero.
    Farkas(Sum),
    /// The fact is `false`.
    Absurd(FactId),
    /// The sum's coefficients are multiples of `divisor`; over the integers its
    /// constant may be rounded up after division. Introduces that inequality.
    Cut {
        /// What is added up.
        sum: Sum,
        /// What the sum is divided by.
        divisor: Int,
        /// The name of the rounded inequality.
        fact: FactId,
        /// The rest of the proof.
        then: Box<Proof>,
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
    /// All conjuncts of the `And` fact `of`, named `first`, `first + 1`, …
    Conjuncts {
        /// The conjunction.
        of: FactId,
        /// The name of its first conjunct.
        first: FactId,
        /// The rest of the proof.
        then: Box<Proof>,
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
        /// The rest of the proof.
        then: Box<Proof>,
    },
}

impl Proof {
    /// How many nodes the proof has.
    pub fn size(&self) -> usize {
        match self {
            Proof::Farkas(_) | Proof::Absurd(_) => 1,
            Proof::Cut { then, .. }
            | Proof::Conjuncts { then, .. }
            | Proof::Quotient { then, .. } => 1 + then.size(),
            Proof::Split { low, high, .. } => 1 + low.size() + high.size(),
            Proof::Cases { branches, .. } => 1 + branches.iter().map(Proof::size).sum::<usize>(),
        }
    }
}

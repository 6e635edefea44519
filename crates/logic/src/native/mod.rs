//! Our own solver.
//!
//! [`Native`] answers a conjunction of formulas by lazy case splitting: the
//! linear facts go to the theory solver, its integer model is tried on the
//! disjunctions and disequalities, and only one that the model violates is
//! split. A refutation of a case that does not use the case's fact refutes the
//! whole (conflict-directed backjumping), so irrelevant disjunctions cost
//! nothing but the attempt. A query on which that takes long starts again with
//! clauses and lemmas (DPLL(T)).

mod branch;
mod clauses;
mod diff;
mod facts;
mod hull;
mod lattice;
mod learn;
mod search;
mod simplex;
mod theory;

use crate::formula::Formula;
use crate::solver::{Answer, Solver};
use std::cell::Cell;

/// What a query may take: work, and whether it goes on at all; and where what it took is added up.
type Allowed<'w> = (Limits, &'w dyn Fn() -> bool, &'w Cell<u64>);

/// How much work one query may take before the answer is `Unknown`.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Elementary steps (about one tableau row operation each).
    pub work: u64,
    /// Nested case splits.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            work: 2_000_000,
            depth: 400,
        }
    }
}

/// How boolean structure is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Case splitting, and lemmas once that takes long.
    #[default]
    Mixed,
    /// Case splitting only: the proofs have no lemmas and can be interpolated.
    Splitting,
    /// Lemmas from the start.
    Learning,
}

/// The linear-integer solver of this crate: exact, deterministic, and every
/// `Unsat` with a proof.
#[derive(Clone, Debug, Default)]
pub struct Native {
    limits: Limits,
    strategy: Strategy,
    spent: Cell<u64>,
}

impl Native {
    /// A solver with the default limits.
    pub fn new() -> Native {
        Native::default()
    }

    /// A solver with these limits.
    pub fn with_limits(limits: Limits) -> Native {
        Native {
            limits,
            ..Native::default()
        }
    }

    /// What all queries so far have taken, in the steps that [`Limits`] count: the same on every machine.
    pub fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// The solver with this strategy.
    pub fn with_strategy(mut self, strategy: Strategy) -> Native {
        self.strategy = strategy;
        self
    }
}

impl Solver for Native {
    fn check(&mut self, assertions: &[Formula]) -> Answer {
        self.check_while(assertions, &|| true)
    }

    fn check_while(&mut self, assertions: &[Formula], goes_on: &dyn Fn() -> bool) -> Answer {
        let allowed = (self.limits, goes_on, &self.spent);
        search::solve(assertions, allowed, self.strategy)
    }
}

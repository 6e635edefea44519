//! What the parts of the solver hand each other: linear facts, conflicts with
//! the facts they use, and the proof steps that introduce facts.

use super::Limits;
use crate::int::Int;
use crate::proof::{FactId, Proof, Sum};
use crate::solver::Reason;
use crate::term::{Term, Var};
use std::borrow::Cow;

/// `term <= 0`, or `term == 0`.
#[derive(Clone, Debug)]
pub(super) struct Fact<'a> {
    pub(super) id: FactId,
    pub(super) term: Cow<'a, Term>,
    pub(super) equality: bool,
}

/// A proof with the facts it uses from outside itself, sorted.
pub(super) struct Conflict {
    pub(super) proof: Proof,
    pub(super) used: Vec<FactId>,
}

impl Conflict {
    pub(super) fn farkas(sum: Sum) -> Conflict {
        let mut used: Vec<FactId> = sum.iter().map(|(id, _)| *id).collect();
        used.sort_unstable();
        used.dedup();
        Conflict {
            proof: Proof::Farkas(sum),
            used,
        }
    }

    pub(super) fn uses(&self, id: FactId) -> bool {
        self.used.binary_search(&id).is_ok()
    }

    /// Puts the steps that introduced used facts around the proof, last first.
    pub(super) fn wrapped(mut self, steps: Vec<Step>) -> Conflict {
        for step in steps.into_iter().rev() {
            let (first, end) = step.introduces();
            if !self.used.iter().any(|id| (first..end).contains(&id.0)) {
                continue;
            }
            self.used.retain(|id| !(first..end).contains(&id.0));
            let then = Box::new(self.proof);
            self.proof = match step {
                Step::Conjuncts { of, first, .. } => {
                    self.used.push(of);
                    Proof::Conjuncts { of, first, then }
                }
                Step::Quotient { of, var, first, .. } => {
                    self.used.push(of);
                    Proof::Quotient {
                        of,
                        var,
                        first,
                        then,
                    }
                }
                Step::Cut { sum, divisor, fact } => {
                    self.used.extend(sum.iter().map(|(id, _)| *id));
                    Proof::Cut {
                        sum,
                        divisor,
                        fact,
                        then,
                    }
                }
            };
            self.used.sort_unstable();
            self.used.dedup();
        }
        self
    }
}

/// A proof step that introduces facts without branching.
pub(super) enum Step {
    Conjuncts {
        of: FactId,
        first: FactId,
        count: u32,
    },
    Quotient {
        of: FactId,
        var: Var,
        first: FactId,
        count: u32,
    },
    Cut {
        sum: Sum,
        divisor: Int,
        fact: FactId,
    },
}

impl Step {
    fn introduces(&self) -> (u32, u32) {
        match self {
            Step::Conjuncts { first, count, .. } | Step::Quotient { first, count, .. } => {
                (first.0, first.0 + count)
            }
            Step::Cut { fact, .. } => (fact.0, fact.0 + 1),
        }
    }
}

/// Adds `k · other` to `sum`; both sorted by fact.
pub(super) fn add_scaled(sum: &mut Sum, k: &Int, other: &Sum) {
    for (id, a) in other {
        let a = a * k;
        match sum.binary_search_by_key(id, |e| e.0) {
            Ok(i) => {
                sum[i].1 += &a;
                if sum[i].1.is_zero() {
                    sum.remove(i);
                }
            }
            Err(i) => sum.insert(i, (*id, a)),
        }
    }
}

/// Fresh names and the work left, shared by all parts of one query.
pub(super) struct Ledger {
    next_fact: u32,
    work: u64,
    pub(super) max_depth: u32,
}

impl Ledger {
    pub(super) fn new(first_fact: u32, limits: Limits) -> Ledger {
        Ledger {
            next_fact: first_fact,
            work: limits.work,
            max_depth: limits.depth,
        }
    }

    /// Names for `count` new facts; the first of them.
    pub(super) fn fresh(&mut self, count: u32) -> FactId {
        let id = FactId(self.next_fact);
        self.next_fact = self.next_fact.saturating_add(count);
        id
    }

    pub(super) fn spend(&mut self, work: u64) -> Result<(), Stop> {
        match self.work.checked_sub(work) {
            Some(left) => {
                self.work = left;
                Ok(())
            }
            None => Err(Stop::GaveUp(Reason::Budget)),
        }
    }
}

/// Why a search does not end in a model.
pub(super) enum Stop {
    Conflict(Conflict),
    GaveUp(Reason),
}

impl From<Conflict> for Stop {
    fn from(c: Conflict) -> Stop {
        Stop::Conflict(c)
    }
}

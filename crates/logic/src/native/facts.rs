//! What the parts of the solver hand each other: linear facts, conflicts with
//! the facts they use, and the proof steps that introduce facts.

use super::Allowed;
use crate::int::Int;
use crate::proof::{End, FactId, Proof, Step, Sum};
use crate::solver::Reason;
use crate::term::{Term, Var};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;

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
        let used = sum.iter().map(|(id, _)| *id).collect();
        Conflict::new(End::Farkas(sum), used)
    }

    /// A conflict without steps.
    pub(super) fn new(end: End, mut used: Vec<FactId>) -> Conflict {
        used.sort_unstable();
        used.dedup();
        Conflict {
            proof: end.into(),
            used,
        }
    }

    pub(super) fn uses(&self, id: FactId) -> bool {
        self.used.binary_search(&id).is_ok()
    }

    /// Puts the steps that introduced used facts before the proof.
    pub(super) fn wrapped(self, steps: Vec<Intro>) -> Conflict {
        if steps.is_empty() {
            return self;
        }
        let Conflict { mut proof, used } = self;
        let mut used: BTreeSet<FactId> = used.into_iter().collect();
        let mut needed = Vec::new();
        for intro in steps.into_iter().rev() {
            let own = FactId(intro.first.0)..FactId(intro.first.0 + intro.count);
            if used.range(own.clone()).next().is_some() {
                used.retain(|id| !own.contains(id));
                used.extend(intro.uses);
                needed.push(intro.step);
            }
        }
        needed.reverse();
        needed.append(&mut proof.steps);
        proof.steps = needed;
        Conflict {
            proof,
            used: used.into_iter().collect(),
        }
    }
}

/// A proof step with what it introduces and what it uses.
pub(super) struct Intro {
    pub(super) step: Step,
    pub(super) first: FactId,
    pub(super) count: u32,
    pub(super) uses: Vec<FactId>,
}

impl Intro {
    pub(super) fn cut(sum: Sum, divisor: Int, fact: FactId) -> Intro {
        let uses = sum.iter().map(|(id, _)| *id).collect();
        Intro {
            step: Step::Cut { sum, divisor, fact },
            first: fact,
            count: 1,
            uses,
        }
    }

    pub(super) fn conjuncts(of: FactId, first: FactId, count: u32) -> Intro {
        Intro {
            step: Step::Conjuncts { of, first },
            first,
            count,
            uses: vec![of],
        }
    }

    pub(super) fn quotient(of: FactId, var: Var, first: FactId, count: u32) -> Intro {
        Intro {
            step: Step::Quotient { of, var, first },
            first,
            count,
            uses: vec![of],
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
pub(super) struct Ledger<'w> {
    next_fact: u32,
    work: u64,
    /// Look up when no more than this is left.
    look: u64,
    goes_on: &'w dyn Fn() -> bool,
    pub(super) max_depth: u32,
    /// What all queries of the solver have taken.
    spent: &'w Cell<u64>,
}

/// Work from one look up to the next: about a millisecond.
const LOOK: u64 = 1 << 13;

impl<'w> Ledger<'w> {
    pub(super) fn new(first_fact: u32, (limits, goes_on, spent): Allowed<'w>) -> Ledger<'w> {
        Ledger {
            next_fact: first_fact,
            work: limits.work,
            look: limits.work.saturating_sub(LOOK),
            goes_on,
            max_depth: limits.depth,
            spent,
        }
    }

    /// Names for `count` new facts; the first of them.
    pub(super) fn fresh(&mut self, count: u32) -> FactId {
        let id = FactId(self.next_fact);
        self.next_fact = self.next_fact.saturating_add(count);
        id
    }

    pub(super) fn spend(&mut self, work: u64) -> Result<(), Stop> {
        self.spent.set(self.spent.get() + work);
        match self.work.checked_sub(work) {
            Some(left) => {
                self.work = left;
                if left < self.look {
                    self.look = left.saturating_sub(LOOK);
                    if !(self.goes_on)() {
                        return Err(Stop::GaveUp(Reason::Stopped));
                    }
                }
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

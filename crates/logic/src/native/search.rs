//! Case splitting over disjunctions and disequalities.

use super::facts::{Conflict, Fact, Intro, Ledger, Stop};
use super::{Allowed, Limits, Strategy};
use super::{hull, learn, theory};
use crate::atom::{Atom, Rel};
use crate::formula::Formula;
use crate::int::Int;
use crate::model::Model;
use crate::proof::{End, FactId};
use crate::solver::{Answer, Reason, Refutation};
use crate::term::{Term, Var};
use std::borrow::Cow;

/// Work for plain case splitting before lemmas are learnt instead.
const PLAIN_WORK: u64 = 12_000;

/// Decides the conjunction of `assertions`.
pub(super) fn solve(assertions: &[Formula], allowed: Allowed<'_>, strategy: Strategy) -> Answer {
    let (limits, goes_on, spent) = allowed;
    let outcome = match strategy {
        Strategy::Splitting => split(assertions, allowed),
        Strategy::Learning => learn::solve(assertions, first_free_var(assertions), allowed),
        Strategy::Mixed => {
            let short = Limits {
                work: limits.work.min(PLAIN_WORK),
                ..limits
            };
            match split(assertions, (short, goes_on, spent)) {
                Err(Stop::GaveUp(why)) if why != Reason::Stopped => {
                    learn::solve(assertions, first_free_var(assertions), allowed)
                }
                other => other,
            }
        }
    };
    match outcome {
        Ok(model) => Answer::Sat(model),
        Err(Stop::GaveUp(reason)) => Answer::Unknown(reason),
        Err(Stop::Conflict(conflict)) => Answer::Unsat(Refutation {
            core: conflict.used.iter().map(|id| id.0 as usize).collect(),
            proof: Some(conflict.proof),
        }),
    }
}

fn split<'a>(assertions: &'a [Formula], allowed: Allowed<'a>) -> Result<Model, Stop> {
    let mut search = Search {
        ledger: Ledger::new(assertions.len() as u32, allowed),
        facts: Vec::with_capacity(assertions.len()),
        pending: Vec::new(),
        next_var: None,
        assertions,
    };
    let mut model = search.run()?;
    if let Some(end) = search.next_var {
        (first_free_var(assertions)..end).for_each(|v| model.forget(Var(v)));
    }
    Ok(model)
}

/// Something with several cases.
#[derive(Clone, Copy)]
enum Choice<'a> {
    Or(&'a [Formula]),
    Ne(&'a Atom),
}

/// A choice; closed while one of its cases is assumed, whose own choices then
/// stand for it.
struct Pending<'a> {
    id: FactId,
    choice: Choice<'a>,
    open: bool,
}

impl<'a> Pending<'a> {
    fn new(id: FactId, choice: Choice<'a>) -> Pending<'a> {
        Pending {
            id,
            choice,
            open: true,
        }
    }
}

struct Search<'a> {
    ledger: Ledger<'a>,
    facts: Vec<Fact<'a>>,
    pending: Vec<Pending<'a>>,
    /// The next quotient variable, once one was needed.
    next_var: Option<u32>,
    assertions: &'a [Formula],
}

impl<'a> Search<'a> {
    fn run(&mut self) -> Result<Model, Stop> {
        let mut steps = Vec::new();
        for (i, formula) in self.assertions.iter().enumerate() {
            self.assume(FactId(i as u32), formula, &mut steps)?;
        }
        self.add_hulls(&mut steps);
        wrap(self.descend(0), steps)
    }

    /// Adds the bounds that top-level disjunctions imply.
    fn add_hulls(&mut self, steps: &mut Vec<Intro>) {
        for pending in &self.pending {
            if let Choice::Or(parts) = pending.choice {
                for bound in hull::bounds(pending.id, parts, &mut self.ledger) {
                    if let Some(atom) = bound.literal.as_atom() {
                        let term = Cow::Owned(atom.term().clone());
                        self.facts.push(Fact {
                            id: bound.fact,
                            term,
                            equality: false,
                        });
                        steps.extend(bound.steps);
                    }
                }
            }
        }
    }

    /// Takes a formula on board, taking conjunctions apart.
    fn assume(&mut self, id: FactId, f: &'a Formula, steps: &mut Vec<Intro>) -> Result<(), Stop> {
        match f {
            Formula::True => {}
            Formula::False => {
                let conflict = Conflict::new(End::Absurd(id), vec![id]);
                return Err(conflict.wrapped(std::mem::take(steps)).into());
            }
            Formula::Or(parts) => self.pending.push(Pending::new(id, Choice::Or(parts))),
            Formula::And(parts) => {
                let first = self.ledger.fresh(parts.len() as u32);
                steps.push(Intro::conjuncts(id, first, parts.len() as u32));
                for (k, part) in parts.iter().enumerate() {
                    self.assume(FactId(first.0 + k as u32), part, steps)?;
                }
            }
            Formula::Atom(atom) => self.assume_atom(id, atom, steps)?,
        }
        Ok(())
    }

    fn assume_atom(
        &mut self,
        id: FactId,
        atom: &'a Atom,
        steps: &mut Vec<Intro>,
    ) -> Result<(), Stop> {
        match atom.rel() {
            Rel::Le | Rel::Eq => self.facts.push(Fact {
                id,
                term: Cow::Borrowed(atom.term()),
                equality: *atom.rel() == Rel::Eq,
            }),
            Rel::Ne => self.pending.push(Pending::new(id, Choice::Ne(atom))),
            Rel::Divides(m) => {
                let var = self.fresh_var()?;
                let first = self.ledger.fresh(1);
                steps.push(Intro::quotient(id, var, first, 1));
                let term = atom.term().plus_scaled(&-m, &Term::from(var));
                self.facts.push(Fact {
                    id: first,
                    term: Cow::Owned(term),
                    equality: true,
                });
            }
            Rel::NotDivides(m) => {
                let var = self.fresh_var()?;
                let first = self.ledger.fresh(2);
                steps.push(Intro::quotient(id, var, first, 2));
                let rest = atom.term().plus_scaled(&-m, &Term::from(var));
                let low = -&rest + 1;
                let high = rest - (m - &Int::ONE);
                self.facts.push(Fact {
                    id: first,
                    term: Cow::Owned(low),
                    equality: false,
                });
                let second = FactId(first.0 + 1);
                self.facts.push(Fact {
                    id: second,
                    term: Cow::Owned(high),
                    equality: false,
                });
            }
        }
        Ok(())
    }

    fn fresh_var(&mut self) -> Result<Var, Stop> {
        let v = self
            .next_var
            .unwrap_or_else(|| first_free_var(self.assertions));
        match v.checked_add(1) {
            Some(next) => self.next_var = Some(next),
            None => return Err(Stop::GaveUp(Reason::Budget)),
        }
        Ok(Var(v))
    }

    fn descend(&mut self, depth: u32) -> Result<Model, Stop> {
        let choices: usize = self.pending.iter().map(|p| cases(&p.choice)).sum();
        self.ledger
            .spend((1 + self.facts.len() + choices / 4) as u64)?;
        let model = match theory::solve(&self.facts, &mut self.ledger) {
            Ok(model) => Ok(model),
            // Without a model any choice may help.
            Err(Stop::GaveUp(Reason::Depth)) => Err(Stop::GaveUp(Reason::Depth)),
            Err(other) => return Err(other),
        };
        let wanted =
            |p: &Pending<'_>| p.open && model.as_ref().map_or(true, |m| !satisfied(&p.choice, m));
        let next = (0..self.pending.len())
            .filter(|&i| wanted(&self.pending[i]))
            .min_by_key(|&i| cases(&self.pending[i].choice));
        let Some(at) = next else {
            return model;
        };
        if depth >= self.ledger.max_depth {
            return Err(Stop::GaveUp(Reason::Depth));
        }
        self.pending[at].open = false;
        let outcome = self.cases(at, depth);
        self.pending[at].open = true;
        outcome
    }

    /// Tries the cases of a choice one by one.
    fn cases(&mut self, at: usize, depth: u32) -> Result<Model, Stop> {
        let Pending { id: of, choice, .. } = self.pending[at];
        let fact = self.ledger.fresh(1);
        let mut branches = Vec::with_capacity(cases(&choice));
        let mut used = vec![of];
        let mut too_deep = false;
        for case in 0..cases(&choice) {
            let (facts, pending) = (self.facts.len(), self.pending.len());
            let outcome = self.case(choice, case, fact, depth);
            self.facts.truncate(facts);
            self.pending.truncate(pending);
            match outcome {
                Ok(model) => return Ok(model),
                Err(Stop::Conflict(c)) if c.uses(fact) => {
                    used.extend(c.used.iter().filter(|id| **id != fact));
                    branches.push(c.proof);
                }
                Err(Stop::GaveUp(Reason::Depth)) => too_deep = true,
                Err(other) => return Err(other),
            }
        }
        if too_deep {
            return Err(Stop::GaveUp(Reason::Depth));
        }
        Err(Conflict::new(End::Cases { of, fact, branches }, used).into())
    }

    fn case(
        &mut self,
        choice: Choice<'a>,
        case: usize,
        fact: FactId,
        depth: u32,
    ) -> Result<Model, Stop> {
        let mut steps = Vec::new();
        match choice {
            Choice::Or(parts) => self.assume(fact, &parts[case], &mut steps)?,
            Choice::Ne(atom) => {
                let term = if case == 0 {
                    atom.term() + 1
                } else {
                    -atom.term() + 1
                };
                self.facts.push(Fact {
                    id: fact,
                    term: Cow::Owned(term),
                    equality: false,
                });
            }
        }
        wrap(self.descend(depth + 1), steps)
    }
}

fn wrap(outcome: Result<Model, Stop>, steps: Vec<Intro>) -> Result<Model, Stop> {
    match outcome {
        Err(Stop::Conflict(c)) => Err(c.wrapped(steps).into()),
        other => other,
    }
}

fn satisfied(choice: &Choice<'_>, model: &Model) -> bool {
    match choice {
        Choice::Or(parts) => parts.iter().any(|f| f.eval(model)),
        Choice::Ne(atom) => atom.eval(model),
    }
}

fn cases(choice: &Choice<'_>) -> usize {
    match choice {
        Choice::Or(parts) => parts.len(),
        Choice::Ne(_) => 2,
    }
}

fn first_free_var(assertions: &[Formula]) -> u32 {
    let mut max = 0;
    for f in assertions {
        f.for_each_atom(&mut |a| {
            if let Some((v, _)) = a.term().coeffs().last() {
                max = max.max(v.0.saturating_add(1));
            }
        });
    }
    max
}

//! The proof checker: about a hundred lines that share nothing with the solver
//! but the data types.

use super::{FactId, Proof, Sum};
use crate::atom::Rel;
use crate::formula::Formula;
use crate::int::Int;
use crate::term::{Term, Var};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A proof step that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofError {
    /// The step, in words.
    pub step: &'static str,
    /// The fact it concerns, if one.
    pub fact: Option<FactId>,
}

impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fact {
            Some(id) => write!(f, "proof step does not hold: {} (fact {})", self.step, id.0),
            None => write!(f, "proof step does not hold: {}", self.step),
        }
    }
}

impl std::error::Error for ProofError {}

#[derive(Clone)]
enum Fact {
    Le(Term),
    Eq(Term),
    Other(Formula),
}

impl Fact {
    fn new(formula: &Formula) -> Fact {
        match formula.as_atom().map(|a| (a.rel(), a.term())) {
            Some((Rel::Le, t)) => Fact::Le(t.clone()),
            Some((Rel::Eq, t)) => Fact::Eq(t.clone()),
            _ => Fact::Other(formula.clone()),
        }
    }
}

/// The facts in scope and every variable spoken of so far.
struct Scope {
    facts: BTreeMap<FactId, Fact>,
    vars: BTreeSet<Var>,
}

/// Whether `proof` refutes the conjunction of `assertions`.
pub fn check(assertions: &[Formula], proof: &Proof) -> Result<(), ProofError> {
    let mut scope = Scope {
        facts: BTreeMap::new(),
        vars: BTreeSet::new(),
    };
    for (i, formula) in assertions.iter().enumerate() {
        formula.collect_vars(&mut scope.vars);
        scope.facts.insert(FactId(i as u32), Fact::new(formula));
    }
    scope.refutes(proof)
}

fn fail<T>(step: &'static str, fact: Option<FactId>) -> Result<T, ProofError> {
    Err(ProofError { step, fact })
}

impl Scope {
    fn refutes(&mut self, proof: &Proof) -> Result<(), ProofError> {
        match proof {
            Proof::Farkas(sum) => match self.add_up(sum)?.as_constant() {
                Some(c) if c.is_positive() => Ok(()),
                _ => fail("the sum is not a positive constant", None),
            },
            Proof::Absurd(id) => match self.facts.get(id) {
                Some(Fact::Other(Formula::False)) => Ok(()),
                _ => fail("the fact is not false", Some(*id)),
            },
            Proof::Cut {
                sum,
                divisor,
                fact,
                then,
            } => {
                let total = self.add_up(sum)?;
                if !divisor.is_positive() || total.coeffs().iter().any(|(_, a)| !divisor.divides(a))
                {
                    return fail("the cut's divisor does not divide", Some(*fact));
                }
                let coeffs = total
                    .coeffs()
                    .iter()
                    .map(|(v, a)| (*v, a.div_exact(divisor)));
                let rounded = total.constant_part().div_ceil(divisor);
                self.with(
                    *fact,
                    vec![Fact::Le(Term::linear(coeffs.collect(), rounded))],
                    then,
                )
            }
            Proof::Split {
                term,
                fact,
                low,
                high,
            } => {
                term.collect_vars(&mut self.vars);
                self.with(*fact, vec![Fact::Le(term.clone())], low)?;
                self.with(*fact, vec![Fact::Le(-term + 1)], high)
            }
            Proof::Cases { of, fact, branches } => {
                let cases = match self.facts.get(of) {
                    Some(Fact::Other(Formula::Or(parts))) => parts.iter().map(Fact::new).collect(),
                    Some(Fact::Other(Formula::Atom(a))) if *a.rel() == Rel::Ne => {
                        vec![Fact::Le(a.term() + 1), Fact::Le(-a.term() + 1)]
                    }
                    _ => return fail("the fact has no cases", Some(*of)),
                };
                if cases.len() != branches.len() {
                    return fail("a case is missing", Some(*of));
                }
                cases
                    .into_iter()
                    .zip(branches)
                    .try_for_each(|(c, p)| self.with(*fact, vec![c], p))
            }
            Proof::Conjuncts { of, first, then } => match self.facts.get(of) {
                Some(Fact::Other(Formula::And(parts))) => {
                    let parts = parts.iter().map(Fact::new).collect();
                    self.with(*first, parts, then)
                }
                _ => fail("the fact is not a conjunction", Some(*of)),
            },
            Proof::Quotient {
                of,
                var,
                first,
                then,
            } => {
                if !self.vars.insert(*var) {
                    return fail("the quotient is not a new variable", Some(*of));
                }
                let atom = match self.facts.get(of) {
                    Some(Fact::Other(Formula::Atom(a))) => a.clone(),
                    _ => return fail("the fact is not a divisibility", Some(*of)),
                };
                let rest = |m: &Int| atom.term().plus_scaled(&-m, &Term::from(*var));
                let facts = match atom.rel() {
                    Rel::Divides(m) => vec![Fact::Eq(rest(m))],
                    Rel::NotDivides(m) => {
                        vec![Fact::Le(-rest(m) + 1), Fact::Le(rest(m) - (m - &Int::ONE))]
                    }
                    _ => return fail("the fact is not a divisibility", Some(*of)),
                };
                self.with(*first, facts, then)
            }
        }
    }

    /// Refutes with further facts named from `first` on, which then go out of scope.
    fn with(&mut self, first: FactId, facts: Vec<Fact>, proof: &Proof) -> Result<(), ProofError> {
        let end = first.0 + facts.len() as u32;
        for (id, fact) in (first.0..end).map(FactId).zip(facts) {
            if self.facts.insert(id, fact).is_some() {
                return fail("a fact's name is already taken", Some(id));
            }
        }
        self.refutes(proof)?;
        (first.0..end).for_each(|id| drop(self.facts.remove(&FactId(id))));
        Ok(())
    }

    fn add_up(&self, sum: &Sum) -> Result<Term, ProofError> {
        let mut total = Term::default();
        for (id, k) in sum {
            total = match self.facts.get(id) {
                Some(Fact::Eq(t)) => total.plus_scaled(k, t),
                Some(Fact::Le(t)) if !k.is_negative() => total.plus_scaled(k, t),
                Some(Fact::Le(_)) => {
                    return fail("an inequality with a negative multiplier", Some(*id));
                }
                _ => return fail("the fact is not linear", Some(*id)),
            };
        }
        Ok(total)
    }
}

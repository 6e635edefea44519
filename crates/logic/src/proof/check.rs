//! The proof checker: a hundred and some lines that share nothing with the
//! solver but the data types.

use super::{End, FactId, Proof, ProofError, Step, Sum};
use crate::atom::Rel;
use crate::formula::{Formula, eq, le};
use crate::int::Int;
use crate::term::{Term, Var};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, PartialEq)]
enum Fact {
    Le(Term),
    Eq(Term),
    Clause(Vec<Formula>),
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

/// The facts in scope, in the order they came, and every variable spoken of.
/// Quotients leave with the facts that introduced them.
struct Scope {
    facts: BTreeMap<FactId, Fact>,
    order: Vec<FactId>,
    vars: BTreeSet<Var>,
    quotients: Vec<Var>,
}

/// Whether `proof` refutes the conjunction of `assertions`.
pub fn check(assertions: &[Formula], proof: &Proof) -> Result<(), ProofError> {
    let mut scope = Scope {
        facts: BTreeMap::new(),
        order: Vec::new(),
        vars: BTreeSet::new(),
        quotients: Vec::new(),
    };
    for (i, formula) in assertions.iter().enumerate() {
        formula.collect_vars(&mut scope.vars);
        scope.add(FactId(i as u32), Fact::new(formula))?;
    }
    scope.refutes(proof)
}

fn fail<T>(step: &'static str, fact: FactId) -> Result<T, ProofError> {
    Err(ProofError {
        step,
        fact: Some(fact),
    })
}

impl Scope {
    fn refutes(&mut self, proof: &Proof) -> Result<(), ProofError> {
        self.refutes_with(Vec::new(), proof)
    }

    fn refutes_with(
        &mut self,
        facts: Vec<(FactId, Fact)>,
        proof: &Proof,
    ) -> Result<(), ProofError> {
        let (mark, quotients) = (self.order.len(), self.quotients.len());
        facts
            .into_iter()
            .try_for_each(|(id, fact)| self.add(id, fact))?;
        proof.steps.iter().try_for_each(|step| self.follow(step))?;
        self.end(&proof.end)?;
        for id in self.order.drain(mark..) {
            self.facts.remove(&id);
        }
        for var in self.quotients.drain(quotients..) {
            self.vars.remove(&var);
        }
        Ok(())
    }

    fn add(&mut self, id: FactId, fact: Fact) -> Result<(), ProofError> {
        self.order.push(id);
        match self.facts.insert(id, fact) {
            None => Ok(()),
            Some(_) => fail("a fact's name is already taken", id),
        }
    }

    fn follow(&mut self, step: &Step) -> Result<(), ProofError> {
        match step {
            Step::Cut { sum, divisor, fact } => {
                let total = self.add_up(sum)?;
                if !divisor.is_positive() || total.coeffs().iter().any(|(_, a)| !divisor.divides(a))
                {
                    return fail("the cut's divisor does not divide", *fact);
                }
                let coeffs = total
                    .coeffs()
                    .iter()
                    .map(|(v, a)| (*v, a.div_exact(divisor)));
                let rounded = total.constant_part().div_ceil(divisor);
                self.add(*fact, Fact::Le(Term::linear(coeffs.collect(), rounded)))
            }
            Step::Conjuncts { of, first } => match self.facts.get(of) {
                Some(Fact::Other(Formula::And(parts))) => {
                    let parts = parts.clone();
                    (first.0..)
                        .zip(parts.iter())
                        .try_for_each(|(id, f)| self.add(FactId(id), Fact::new(f)))
                }
                _ => fail("the fact is not a conjunction", *of),
            },
            Step::Quotient { of, var, first } => {
                if !self.vars.insert(*var) {
                    return fail("the quotient is not a new variable", *of);
                }
                self.quotients.push(*var);
                let atom = match self.facts.get(of) {
                    Some(Fact::Other(Formula::Atom(a))) => a.clone(),
                    _ => return fail("the fact is not a divisibility", *of),
                };
                let rest = |m: &Int| atom.term().plus_scaled(&-m, &Term::from(*var));
                match atom.rel() {
                    Rel::Divides(m) => self.add(*first, Fact::Eq(rest(m))),
                    Rel::NotDivides(m) => {
                        self.add(*first, Fact::Le(-rest(m) + 1))?;
                        self.add(FactId(first.0 + 1), Fact::Le(rest(m) - (m - &Int::ONE)))
                    }
                    Rel::Le | Rel::Eq | Rel::Ne => fail("the fact is not a divisibility", *of),
                }
            }
            Step::Lemma {
                literals,
                assume,
                proof,
                fact,
            } => {
                if literals.len() != assume.len() {
                    return fail("a literal of the lemma is not assumed away", *fact);
                }
                literals.iter().for_each(|f| f.collect_vars(&mut self.vars));
                let facts = assume
                    .iter()
                    .copied()
                    .zip(literals.iter().map(|f| Fact::new(&f.negated())));
                self.refutes_with(facts.collect(), proof)?;
                self.add(*fact, Fact::Clause(literals.clone()))
            }
            Step::Unit {
                of,
                keep,
                against,
                fact,
            } => {
                let mut disjuncts = self.disjuncts(*of)?;
                if *keep >= disjuncts.len() {
                    return fail("there is no such disjunct", *of);
                }
                let kept = disjuncts.remove(*keep);
                self.excluded(*of, &disjuncts, against)?;
                self.add(*fact, Fact::new(&kept))
            }
        }
    }

    fn end(&mut self, end: &End) -> Result<(), ProofError> {
        match end {
            End::Farkas(sum) => match self.add_up(sum)?.as_constant() {
                Some(c) if c.is_positive() => Ok(()),
                _ => Err(ProofError {
                    step: "the sum is not a positive constant",
                    fact: None,
                }),
            },
            End::Absurd(id) => match self.facts.get(id) {
                Some(Fact::Other(Formula::False)) => Ok(()),
                _ => fail("the fact is not false", *id),
            },
            End::Refuted { of, against } => self.excluded(*of, &self.disjuncts(*of)?, against),
            End::Split {
                term,
                fact,
                low,
                high,
            } => {
                term.collect_vars(&mut self.vars);
                self.refutes_with(vec![(*fact, Fact::Le(term.clone()))], low)?;
                self.refutes_with(vec![(*fact, Fact::Le(-term + 1))], high)
            }
            End::Cases { of, fact, branches } => {
                let cases: Vec<Fact> = match self.facts.get(of) {
                    Some(Fact::Other(Formula::Atom(a))) if *a.rel() == Rel::Ne => {
                        vec![Fact::Le(a.term() + 1), Fact::Le(-a.term() + 1)]
                    }
                    _ => self.disjuncts(*of)?.iter().map(Fact::new).collect(),
                };
                if cases.len() != branches.len() {
                    return fail("a case is missing", *of);
                }
                let mut cases = cases.into_iter().zip(branches);
                cases.try_for_each(|(case, proof)| self.refutes_with(vec![(*fact, case)], proof))
            }
        }
    }

    /// The disjuncts of a fact; a fact of any other kind is its only one.
    fn disjuncts(&self, of: FactId) -> Result<Vec<Formula>, ProofError> {
        match self.facts.get(&of) {
            Some(Fact::Clause(parts)) => Ok(parts.clone()),
            Some(Fact::Other(Formula::Or(parts))) => Ok(parts.to_vec()),
            Some(Fact::Other(other)) => Ok(vec![other.clone()]),
            Some(Fact::Le(t)) => Ok(vec![le(t, 0)]),
            Some(Fact::Eq(t)) => Ok(vec![eq(t, 0)]),
            None => fail("there is no such fact", of),
        }
    }

    /// Whether each disjunct is the negation of the fact at its place.
    fn excluded(
        &self,
        of: FactId,
        disjuncts: &[Formula],
        against: &[FactId],
    ) -> Result<(), ProofError> {
        let excludes = |f: &Formula, id| self.facts.get(id) == Some(&Fact::new(&f.negated()));
        if disjuncts.len() == against.len()
            && disjuncts.iter().zip(against).all(|(f, id)| excludes(f, id))
        {
            return Ok(());
        }
        fail("a disjunct is not excluded", of)
    }

    fn add_up(&self, sum: &Sum) -> Result<Term, ProofError> {
        let mut total = Term::default();
        for (id, k) in sum {
            total = match self.facts.get(id) {
                Some(Fact::Eq(t)) => total.plus_scaled(k, t),
                Some(Fact::Le(t)) if !k.is_negative() => total.plus_scaled(k, t),
                Some(Fact::Le(_)) => return fail("an inequality with a negative multiplier", *id),
                _ => return fail("the fact is not linear", *id),
            };
        }
        Ok(total)
    }
}

//! Conflict-driven search for queries with much boolean structure.
//!
//! Where plain case splitting ([`super::search`]) takes too long, formulas become
//! clauses over literals (atoms and conjunctions), and conflicts, boolean and
//! arithmetic alike, are learnt as lemmas: DPLL(T). As there, the theory's
//! integer model decides what to look at next, so literals that no violated
//! clause needs are never decided. Every learnt clause is a proof step.

use super::Allowed;
use super::clauses::{Clauses, Lesson, Lit};
use super::facts::{Conflict, Fact, Intro, Ledger, Stop};
use super::{hull, theory};
use crate::atom::Rel;
use crate::formula::{Formula, ge, le};
use crate::int::Int;
use crate::model::Model;
use crate::proof::{End, FactId, Proof, Step};
use crate::solver::Reason;
use crate::term::{Term, Var};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// A linear fact that a literal stands for.
struct Linear {
    id: FactId,
    term: Term,
    equality: bool,
}

/// What is known of a literal.
struct Meaning {
    formula: Formula,
    /// The name of the literal when it is assumed.
    fact: FactId,
    linear: Vec<Linear>,
    /// The quotient variable and its first fact, for divisibilities.
    quotient: Option<(Var, FactId)>,
    /// Its parts, or its two sides, are clauses already.
    unfolded: bool,
}

pub(super) struct Learner<'a> {
    assertions: &'a [Formula],
    ledger: Ledger<'a>,
    clauses: Clauses,
    meaning: Vec<Meaning>,
    by_formula: FxHashMap<Formula, Lit>,
    /// Clauses that a model must satisfy; learnt ones follow from them.
    inputs: Vec<u32>,
    steps: Vec<Intro>,
    next_var: u32,
}

/// Decides the conjunction of `assertions`; quotient variables are numbered
/// from `first_var` on.
pub(super) fn solve<'a>(
    assertions: &'a [Formula],
    first_var: u32,
    allowed: Allowed<'a>,
) -> Result<Model, Stop> {
    let mut learner = Learner {
        assertions,
        ledger: Ledger::new(assertions.len() as u32, allowed),
        clauses: Clauses::default(),
        meaning: Vec::new(),
        by_formula: FxHashMap::default(),
        inputs: Vec::new(),
        steps: Vec::new(),
        next_var: first_var,
    };
    match learner.run() {
        Ok(mut model) => {
            (first_var..learner.next_var).for_each(|v| model.forget(Var(v)));
            Ok(model)
        }
        Err(Stop::Conflict(c)) => Err(c.wrapped(learner.steps).into()),
        Err(other) => Err(other),
    }
}

impl Learner<'_> {
    fn run(&mut self) -> Result<Model, Stop> {
        for (i, formula) in self.assertions.iter().enumerate() {
            self.assert(FactId(i as u32), formula)?;
        }
        loop {
            self.ledger
                .spend(1 + self.clauses.trail().len() as u64 / 4)?;
            if let Err(conflict) = self.clauses.propagate() {
                self.learn(conflict)?;
                continue;
            }
            match self.ask_theory() {
                Ok(model) => match self.next_decision(Some(&model))? {
                    Some(lit) => self.clauses.decide(lit),
                    None if self.split_disequality(&model)? => {}
                    None if self.assertions.iter().all(|f| f.eval(&model)) => return Ok(model),
                    None => return Err(Stop::GaveUp(Reason::Budget)),
                },
                Err(Stop::Conflict(conflict)) => self.learn_from_theory(conflict)?,
                Err(Stop::GaveUp(Reason::Depth)) => match self.next_decision(None)? {
                    Some(lit) => self.clauses.decide(lit),
                    None => return Err(Stop::GaveUp(Reason::Depth)),
                },
                Err(other) => return Err(other),
            }
        }
    }

    fn assert(&mut self, id: FactId, formula: &Formula) -> Result<(), Stop> {
        match formula {
            Formula::True => Ok(()),
            Formula::False => Err(Conflict::new(End::Absurd(id), vec![id]).into()),
            Formula::And(parts) => {
                let first = self.ledger.fresh(parts.len() as u32);
                self.steps
                    .push(Intro::conjuncts(id, first, parts.len() as u32));
                for (k, part) in parts.iter().enumerate() {
                    self.assert(FactId(first.0 + k as u32), part)?;
                }
                Ok(())
            }
            Formula::Or(parts) => {
                for bound in hull::bounds(id, parts, &mut self.ledger) {
                    self.steps.extend(bound.steps);
                    let lit = self.literal(&bound.literal)?;
                    self.add_clause(vec![lit], bound.fact, true, false)?;
                }
                let lits = self.literals(parts)?;
                self.add_clause(lits, id, false, true)
            }
            Formula::Atom(_) => {
                let lit = self.literal(formula)?;
                self.add_clause(vec![lit], id, true, true)
            }
        }
    }

    fn literals(&mut self, parts: &[Formula]) -> Result<Vec<Lit>, Stop> {
        parts.iter().map(|f| self.literal(f)).collect()
    }

    /// The literal of an atom or a conjunction, whose parts become clauses.
    fn literal(&mut self, formula: &Formula) -> Result<Lit, Stop> {
        let lit = match self.by_formula.get(formula) {
            Some(&lit) => lit,
            None => {
                let negation = formula.negated();
                let var = self.clauses.add_var();
                for (f, positive) in [(formula, true), (&negation, false)] {
                    self.by_formula.insert(f.clone(), Lit::new(var, positive));
                    let meaning = self.mean(f)?;
                    self.meaning.push(meaning);
                }
                Lit::new(var, true)
            }
        };
        if let Formula::And(parts) = formula
            && !std::mem::replace(&mut self.meaning[lit.index()].unfolded, true)
        {
            for (k, part) in parts.iter().enumerate() {
                self.unfold(lit, parts.len() as u32, k, part)?;
            }
        }
        Ok(lit)
    }

    /// The clause "not `lit`, or its part number `k`".
    fn unfold(&mut self, lit: Lit, count: u32, k: usize, part: &Formula) -> Result<(), Stop> {
        let cases = self.literals(part.disjuncts())?;
        let own = self.meaning[lit.index()].fact;
        let first = self.ledger.fresh(count);
        let against = cases
            .iter()
            .map(|l| self.meaning[l.negated().index()].fact)
            .collect();
        let end = End::Refuted {
            of: FactId(first.0 + k as u32),
            against,
        };
        let proof = Proof {
            steps: vec![Step::Conjuncts { of: own, first }],
            end,
        };
        let mut order = vec![lit.negated()];
        order.extend(cases);
        let fact = self.lemma(&order, proof, Vec::new());
        self.add_clause(order, fact, false, true)
    }

    fn mean(&mut self, formula: &Formula) -> Result<Meaning, Stop> {
        let fact = self.ledger.fresh(1);
        let mut linear = Vec::new();
        let mut quotient = None;
        if let Some(atom) = formula.as_atom() {
            let t = atom.term();
            match atom.rel() {
                Rel::Le => linear.push(Linear {
                    id: fact,
                    term: t.clone(),
                    equality: false,
                }),
                Rel::Eq => linear.push(Linear {
                    id: fact,
                    term: t.clone(),
                    equality: true,
                }),
                Rel::Ne => {}
                Rel::Divides(m) | Rel::NotDivides(m) => {
                    let (var, first) = (Var(self.next_var), self.ledger.fresh(2));
                    self.next_var = self
                        .next_var
                        .checked_add(1)
                        .ok_or(Stop::GaveUp(Reason::Budget))?;
                    quotient = Some((var, first));
                    let rest = t.plus_scaled(&-m, &Term::from(var));
                    if matches!(atom.rel(), Rel::Divides(_)) {
                        linear.push(Linear {
                            id: first,
                            term: rest,
                            equality: true,
                        });
                    } else {
                        let high = &rest - (m - &Int::ONE);
                        linear.push(Linear {
                            id: first,
                            term: -rest + 1,
                            equality: false,
                        });
                        let second = FactId(first.0 + 1);
                        linear.push(Linear {
                            id: second,
                            term: high,
                            equality: false,
                        });
                    }
                }
            }
        }
        Ok(Meaning {
            formula: formula.clone(),
            fact,
            linear,
            quotient,
            unfolded: false,
        })
    }

    /// The name of a true literal where it is derived or assumed.
    fn name(&self, lit: Lit) -> FactId {
        match self.clauses.reason(lit) {
            Some(reason) if reason.bare && reason.order[0] == lit => reason.fact,
            _ => self.meaning[lit.index()].fact,
        }
    }

    /// A proof step that states a clause; `uses` are facts from outside.
    fn lemma(&mut self, order: &[Lit], proof: Proof, uses: Vec<FactId>) -> FactId {
        let literals = order
            .iter()
            .map(|l| self.meaning[l.index()].formula.clone())
            .collect();
        let assume = order
            .iter()
            .map(|l| self.meaning[l.negated().index()].fact)
            .collect();
        let fact = self.ledger.fresh(1);
        let step = Step::Lemma {
            literals,
            assume,
            proof,
            fact,
        };
        self.steps.push(Intro {
            step,
            first: fact,
            count: 1,
            uses,
        });
        fact
    }

    fn add_clause(
        &mut self,
        order: Vec<Lit>,
        fact: FactId,
        bare: bool,
        input: bool,
    ) -> Result<(), Stop> {
        if order.iter().any(|l| order.contains(&l.negated())) {
            return Ok(());
        }
        if input {
            self.inputs.push(self.clauses.list.len() as u32);
        }
        match self.clauses.add(order, fact, bare) {
            Ok(_) => Ok(()),
            Err(conflict) => self.learn(conflict),
        }
    }

    /// Learns from a false clause, or ends the search if nothing was decided.
    fn learn(&mut self, conflict: u32) -> Result<(), Stop> {
        self.ledger
            .spend(4 + self.clauses.trail().len() as u64 / 4)?;
        let Lesson {
            learnt,
            chain,
            level,
        } = self.clauses.analyse(conflict);
        let clause = &self.clauses.list[conflict as usize];
        let against: Vec<FactId> = clause
            .order
            .iter()
            .map(|l| self.name(l.negated()))
            .collect();
        let mut used = against.clone();
        used.push(clause.fact);
        let mut refutation = Conflict::new(
            End::Refuted {
                of: clause.fact,
                against,
            },
            used,
        );
        let replay = chain.iter().filter_map(|lit| self.replay(*lit)).collect();
        refutation = refutation.wrapped(replay);
        if learnt.is_empty() {
            return Err(refutation.into());
        }
        let assumed: Vec<FactId> = learnt
            .iter()
            .map(|l| self.meaning[l.negated().index()].fact)
            .collect();
        let uses = refutation
            .used
            .into_iter()
            .filter(|id| !assumed.contains(id))
            .collect();
        self.clauses.back_to(level);
        let fact = self.lemma(&learnt, refutation.proof, uses);
        self.add_clause(learnt, fact, false, false)
    }

    /// The proof step of a propagation.
    fn replay(&self, lit: Lit) -> Option<Intro> {
        let reason = self.clauses.reason(lit)?;
        if reason.bare {
            return None;
        }
        let keep = reason.order.iter().position(|l| *l == lit)?;
        let others = reason.order.iter().filter(|l| **l != lit);
        let against: Vec<FactId> = others.map(|l| self.name(l.negated())).collect();
        let mut uses = against.clone();
        uses.push(reason.fact);
        let fact = self.meaning[lit.index()].fact;
        Some(Intro {
            step: Step::Unit {
                of: reason.fact,
                keep,
                against,
                fact,
            },
            first: fact,
            count: 1,
            uses,
        })
    }

    fn ask_theory(&mut self) -> Result<Model, Stop> {
        let mut facts = Vec::with_capacity(self.clauses.trail().len());
        for lit in self.clauses.trail() {
            for linear in &self.meaning[lit.index()].linear {
                let term = Cow::Borrowed(&linear.term);
                facts.push(Fact {
                    id: linear.id,
                    term,
                    equality: linear.equality,
                });
            }
        }
        self.ledger.spend(1 + facts.len() as u64)?;
        theory::solve(&facts, &mut self.ledger)
    }

    fn learn_from_theory(&mut self, conflict: Conflict) -> Result<(), Stop> {
        let mut quotients = Vec::new();
        for lit in self.clauses.trail() {
            let meaning = &self.meaning[lit.index()];
            if let Some((var, first)) = meaning.quotient {
                let count = meaning.linear.len() as u32;
                quotients.push(Intro::quotient(meaning.fact, var, first, count));
            }
        }
        let conflict = conflict.wrapped(quotients);
        let trail = self.clauses.trail().iter();
        let used = trail.filter(|l| conflict.uses(self.meaning[l.index()].fact));
        let order: Vec<Lit> = used.map(|l| l.negated()).collect();
        let fact = self.lemma(&order, conflict.proof, Vec::new());
        self.add_clause(order, fact, false, false)
    }

    /// A literal of a clause that the model violates (without a model: of any
    /// clause without a true literal), from the clause with the fewest left.
    fn next_decision(&mut self, model: Option<&Model>) -> Result<Option<Lit>, Stop> {
        let mut truth: Vec<Option<bool>> = vec![None; self.meaning.len()];
        let mut best: Option<(usize, Lit)> = None;
        let mut looked_at = 0;
        for &id in &self.inputs {
            let clause = &self.clauses.list[id as usize];
            let mut open: Option<Lit> = None;
            let mut count = 0;
            let mut satisfied = false;
            for &lit in &clause.order {
                looked_at += 1;
                match self.clauses.value(lit) {
                    Some(true) => satisfied = true,
                    Some(false) => continue,
                    None => {
                        let formula = &self.meaning[lit.index()].formula;
                        let holds = *truth[lit.index()]
                            .get_or_insert_with(|| model.is_some_and(|m| formula.eval(m)));
                        satisfied = holds;
                        count += 1;
                        let better =
                            |o: &Lit| self.clauses.activity(lit) > self.clauses.activity(*o);
                        if open.as_ref().is_none_or(better) {
                            open = Some(lit);
                        }
                    }
                }
                if satisfied {
                    break;
                }
            }
            if let Some(lit) = open
                && !satisfied
                && best.is_none_or(|(fewest, _)| count < fewest)
            {
                best = Some((count, lit));
            }
        }
        self.ledger.spend(looked_at / 16)?;
        Ok(best.map(|(_, lit)| lit))
    }

    /// Splits a true disequality that the model violates; whether there was one.
    fn split_disequality(&mut self, model: &Model) -> Result<bool, Stop> {
        let violated = self.clauses.trail().iter().copied().find(|lit| {
            let meaning = &self.meaning[lit.index()];
            let atom = meaning.formula.as_atom();
            atom.is_some_and(|a| *a.rel() == Rel::Ne && !a.eval(model)) && !meaning.unfolded
        });
        let Some(lit) = violated else {
            return Ok(false);
        };
        self.meaning[lit.index()].unfolded = true;
        let term = match self.meaning[lit.index()].formula.as_atom() {
            Some(atom) => atom.term().clone(),
            None => return Ok(false),
        };
        let own = self.meaning[lit.index()].fact;
        let low = self.literal(&le(&term, -1))?;
        let high = self.literal(&ge(&term, 1))?;
        let fact = self.ledger.fresh(1);
        let branches = [low, high].map(|l| {
            let other = self.meaning[l.negated().index()].fact;
            Proof::from(End::Farkas(vec![(fact, Int::ONE), (other, Int::ONE)]))
        });
        let end = End::Cases {
            of: own,
            fact,
            branches: branches.into(),
        };
        let order = vec![lit.negated(), low, high];
        let name = self.lemma(&order, end.into(), Vec::new());
        self.add_clause(order, name, false, true)?;
        Ok(true)
    }
}

//! Sequence interpolants along a trace.
//!
//! For an infeasible trace `A₁ … Aₙ` the interpolants `I₁ … Iₙ₋₁` satisfy
//! `A₁ ⟹ I₁`, `Iᵢ ∧ Aᵢ₊₁ ⟹ Iᵢ₊₁`, `Iₙ₋₁ ∧ Aₙ ⟹ false`, and `Iᵢ` speaks only of
//! symbols that occur both up to `Aᵢ` and after it.
//!
//! They are read off *one* proof (McMillan): at a Farkas leaf, the part of the
//! sum that comes from `A₁ … Aᵢ`; at a case split of a fact of `Aₚ`, the
//! disjunction of the cases' interpolants if `p <= i`, else their conjunction. A
//! split on a term that is no one's fact is placed at a position where all its
//! variables are alive; a cut over several positions is first turned into such a
//! split (`t <= 0`, or `t >= 1` which contradicts the cut's sum). If some split
//! has no place, the strongest postconditions of the proof's core are taken
//! instead, by exact [`crate::project`]ion. Either way the sequence is checked
//! with solver queries before it is handed out.

use crate::atom::Rel;
use crate::formula::{Formula, and, le, or};
use crate::int::Int;
use crate::model::Model;
use crate::native::{Native, Strategy};
use crate::project::project;
use crate::proof::{End, FactId, Proof, Step, Sum};
use crate::solver::{Answer, Reason, Solver};
use crate::term::{Term, Var};
use std::collections::{BTreeMap, BTreeSet};

/// What became of a trace.
#[derive(Clone, Debug)]
pub enum Interpolation {
    /// The trace is infeasible: `I₁ … Iₙ₋₁`, verified.
    Sequence(Vec<Formula>),
    /// The trace is feasible.
    Feasible(Model),
    /// Neither could be shown.
    Unknown(Reason),
}

/// Sequence interpolants of a trace; `solver` verifies them.
pub fn interpolants<S: Solver + ?Sized>(solver: &mut S, trace: &[Formula]) -> Interpolation {
    // Proofs by splitting alone can be read; others still give a core.
    let splitting = Native::new()
        .with_strategy(Strategy::Splitting)
        .check_while(trace, &|| solver.goes_on());
    let answer = match splitting {
        Answer::Unknown(_) => solver.check(trace),
        answer @ (Answer::Sat(_) | Answer::Unsat(_)) => answer,
    };
    let refutation = match answer {
        Answer::Sat(model) => return Interpolation::Feasible(model),
        Answer::Unknown(reason) => return Interpolation::Unknown(reason),
        Answer::Unsat(refutation) => refutation,
    };
    if trace.len() < 2 {
        return Interpolation::Sequence(Vec::new());
    }
    if !solver.goes_on() {
        return Interpolation::Unknown(Reason::Stopped);
    }
    if let Some(proof) = &refutation.proof
        && let Some(sequence) = from_proof(trace, proof)
        && verify(solver, trace, &sequence)
    {
        return Interpolation::Sequence(sequence);
    }
    let keep = |i: usize| {
        if refutation.core.contains(&i) {
            trace[i].clone()
        } else {
            Formula::True
        }
    };
    let core: Vec<Formula> = (0..trace.len()).map(keep).collect();
    match postconditions(&core, &|| solver.goes_on()) {
        Some(sequence) if verify(solver, trace, &sequence) => Interpolation::Sequence(sequence),
        _ => Interpolation::Unknown(Reason::Interpolation),
    }
}

/// As [`interpolants`], but as weak as the proof allows: read from the trace's
/// end, each is the negation of what the rest of the trace needs. Where the
/// strong ones follow the trace too closely (`x >= 3` after three rounds), these
/// often say what matters (`x >= 1`).
pub fn weak_interpolants<S: Solver + ?Sized>(solver: &mut S, trace: &[Formula]) -> Interpolation {
    let backwards: Vec<Formula> = trace.iter().rev().cloned().collect();
    match interpolants(solver, &backwards) {
        Interpolation::Sequence(sequence) => {
            let weak: Vec<Formula> = sequence
                .iter()
                .rev()
                .map(|f| f.negated().simplified())
                .collect();
            if verify(solver, trace, &weak) {
                Interpolation::Sequence(weak)
            } else {
                Interpolation::Unknown(Reason::Interpolation)
            }
        }
        other @ (Interpolation::Feasible(_) | Interpolation::Unknown(_)) => other,
    }
}

/// Whether `sequence` are sequence interpolants of `trace`, by solver queries.
pub fn verify<S: Solver + ?Sized>(solver: &mut S, trace: &[Formula], sequence: &[Formula]) -> bool {
    if sequence.len() + 1 != trace.len() {
        return false;
    }
    let scopes = Scopes::new(trace);
    for (i, formula) in sequence.iter().enumerate() {
        let shared = |v: &Var| {
            scopes
                .spans
                .get(v)
                .is_some_and(|(first, last)| *first <= i && i < *last)
        };
        if !formula.vars().iter().all(shared) {
            return false;
        }
    }
    let mut before = Formula::True;
    for (i, step) in trace.iter().enumerate() {
        let after = sequence.get(i).cloned().unwrap_or(Formula::False);
        let query = [before, step.clone(), after.negated()];
        if !solver.check(&query).is_unsat() {
            return false;
        }
        before = after;
    }
    true
}

/// `Iᵢ` is what the first `i` formulas say about the symbols still to come.
fn postconditions(trace: &[Formula], goes_on: &dyn Fn() -> bool) -> Option<Vec<Formula>> {
    let scopes = Scopes::new(trace);
    let mut out = Vec::with_capacity(trace.len());
    let mut known = Formula::True;
    for (i, step) in trace.iter().enumerate().take(trace.len() - 1) {
        if !goes_on() {
            return None;
        }
        let now = and([known, step.clone()]);
        let dead = |v: &Var| scopes.spans.get(v).is_none_or(|(_, last)| *last <= i);
        let gone: BTreeSet<Var> = now.vars().into_iter().filter(dead).collect();
        known = project(&now, &gone)?.simplified();
        out.push(known.clone());
    }
    Some(out)
}

/// The first and last position of every variable.
struct Scopes {
    spans: BTreeMap<Var, (usize, usize)>,
}

impl Scopes {
    fn new(trace: &[Formula]) -> Scopes {
        let mut spans: BTreeMap<Var, (usize, usize)> = BTreeMap::new();
        for (i, f) in trace.iter().enumerate() {
            for v in f.vars() {
                spans.entry(v).or_insert((i, i)).1 = i;
            }
        }
        Scopes { spans }
    }

    /// A position at which a split on `term` adds no symbol to any side.
    fn place(&self, term: &Term) -> Option<usize> {
        let (mut first, mut last) = (0, usize::MAX);
        for (v, _) in term.coeffs() {
            let (f, l) = self.spans.get(v)?;
            first = first.max(*f);
            last = last.min(*l);
        }
        (first <= last).then_some(last)
    }
}

/// Where a fact comes from.
#[derive(Clone)]
enum Origin {
    /// Linear: `den` times it is the sum of these parts by position.
    Linear {
        parts: BTreeMap<usize, Term>,
        den: Int,
    },
    /// Anything else: its position and what it says.
    Other(usize, Formula),
}

impl Origin {
    fn of(position: usize, formula: &Formula) -> Origin {
        match formula.as_atom() {
            Some(a) if matches!(a.rel(), Rel::Le | Rel::Eq) => {
                Origin::at(position, a.term().clone())
            }
            _ => Origin::Other(position, formula.clone()),
        }
    }

    fn at(position: usize, term: Term) -> Origin {
        Origin::Linear {
            parts: BTreeMap::from([(position, term)]),
            den: Int::ONE,
        }
    }
}

struct Reader {
    scopes: Scopes,
    cuts: usize,
    facts: BTreeMap<FactId, Origin>,
}

fn from_proof(trace: &[Formula], proof: &Proof) -> Option<Vec<Formula>> {
    let facts = trace
        .iter()
        .enumerate()
        .map(|(i, f)| (FactId(i as u32), Origin::of(i, f)));
    let mut reader = Reader {
        scopes: Scopes::new(trace),
        cuts: trace.len() - 1,
        facts: facts.collect(),
    };
    let sequence = reader.read(proof)?;
    Some(sequence.iter().map(Formula::simplified).collect())
}

impl Reader {
    /// The partial interpolants of a subproof, one per cut.
    fn read(&mut self, proof: &Proof) -> Option<Vec<Formula>> {
        self.follow(&proof.steps, &proof.end)
    }

    fn follow(&mut self, steps: &[Step], end: &End) -> Option<Vec<Formula>> {
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Conjuncts { of, first } => {
                    let Origin::Other(position, Formula::And(parts)) = self.facts.get(of)?.clone()
                    else {
                        return None;
                    };
                    for (k, part) in parts.iter().enumerate() {
                        self.facts
                            .insert(FactId(first.0 + k as u32), Origin::of(position, part));
                    }
                }
                Step::Quotient { of, var, first } => self.quotient(*of, *var, *first)?,
                Step::Cut { sum, divisor, fact } => {
                    if let Some((position, rounded)) = self.cut(sum, divisor, *fact)? {
                        self.facts
                            .insert(*fact, Origin::at(position, -&rounded + 1));
                        let mut contradiction = sum.clone();
                        contradiction.push((*fact, divisor.clone()));
                        let high = self.leaf(&contradiction)?;
                        self.facts.insert(*fact, Origin::at(position, rounded));
                        let low = self.follow(&steps[at + 1..], end)?;
                        return Some(self.join(position, vec![low, high]));
                    }
                }
                // A lemma of one disjunction belongs where the disjunction does;
                // others are not made by the search that is asked for traces.
                Step::Lemma {
                    literals,
                    proof,
                    fact,
                    ..
                } => {
                    let End::Cases { of, .. } = &proof.end else {
                        return None;
                    };
                    let ([literal], Origin::Other(position, _)) =
                        (literals.as_slice(), self.facts.get(of)?)
                    else {
                        return None;
                    };
                    let origin = Origin::of(*position, literal);
                    self.facts.insert(*fact, origin);
                }
                Step::Unit {
                    of, against, fact, ..
                } if against.is_empty() => {
                    let origin = self.facts.get(of)?.clone();
                    self.facts.insert(*fact, origin);
                }
                Step::Unit { .. } => return None,
            }
        }
        self.end(end)
    }

    fn end(&mut self, end: &End) -> Option<Vec<Formula>> {
        match end {
            End::Farkas(sum) => self.leaf(sum),
            End::Refuted { .. } => None,
            End::Absurd(id) => {
                let Origin::Other(position, _) = self.facts.get(id)? else {
                    return None;
                };
                let position = *position;
                Some(
                    (0..self.cuts)
                        .map(|i| Formula::from(position > i))
                        .collect(),
                )
            }
            End::Cases { of, fact, branches } => {
                let Origin::Other(position, formula) = self.facts.get(of)?.clone() else {
                    return None;
                };
                let cases: Vec<Origin> = match &formula {
                    Formula::Or(parts) => parts.iter().map(|p| Origin::of(position, p)).collect(),
                    Formula::Atom(a) => vec![
                        Origin::at(position, a.term() + 1),
                        Origin::at(position, -a.term() + 1),
                    ],
                    Formula::True | Formula::False | Formula::And(_) => return None,
                };
                let mut sides = Vec::with_capacity(branches.len());
                for (case, branch) in cases.into_iter().zip(branches) {
                    self.facts.insert(*fact, case);
                    sides.push(self.read(branch)?);
                }
                Some(self.join(position, sides))
            }
            End::Split {
                term,
                fact,
                low,
                high,
            } => {
                let position = self.scopes.place(term)?;
                self.facts.insert(*fact, Origin::at(position, term.clone()));
                let low = self.read(low)?;
                self.facts.insert(*fact, Origin::at(position, -term + 1));
                let high = self.read(high)?;
                Some(self.join(position, vec![low, high]))
            }
        }
    }

    fn quotient(&mut self, of: FactId, var: Var, first: FactId) -> Option<()> {
        let Origin::Other(position, Formula::Atom(atom)) = self.facts.get(&of)?.clone() else {
            return None;
        };
        self.scopes.spans.insert(var, (position, position));
        let rest = |m: &Int| atom.term().plus_scaled(&-m, &Term::from(var));
        match atom.rel() {
            Rel::Divides(m) => {
                self.facts.insert(first, Origin::at(position, rest(m)));
            }
            Rel::NotDivides(m) => {
                self.facts.insert(first, Origin::at(position, -rest(m) + 1));
                let high = rest(m) - (m - &Int::ONE);
                self.facts
                    .insert(FactId(first.0 + 1), Origin::at(position, high));
            }
            Rel::Le | Rel::Eq | Rel::Ne => return None,
        }
        Some(())
    }

    /// Cases of a fact at `position`: on its own side any of them may be the one.
    fn join(&self, position: usize, sides: Vec<Vec<Formula>>) -> Vec<Formula> {
        let at = |i: usize| {
            let parts = sides.iter().map(|side| side[i].clone());
            if position <= i { or(parts) } else { and(parts) }
        };
        (0..self.cuts).map(at).collect()
    }

    /// Takes a cut on board where it belongs to one position or rounds nothing;
    /// else says which split stands for it: a position and `t` of `t <= 0`.
    fn cut(&mut self, sum: &Sum, divisor: &Int, fact: FactId) -> Option<Option<(usize, Term)>> {
        let (parts, den) = self.add_up(sum)?;
        let total = parts.values().fold(Term::default(), |acc, t| acc + t);
        let whole = &den * divisor;
        if whole.divides(total.constant_part()) {
            // A rational multiple of the sum.
            self.facts
                .insert(fact, Origin::Linear { parts, den: whole });
            return Some(None);
        }
        let rounded = total.map_parts(|a| a.div_exact(&whole), |c| c.div_ceil(&whole));
        if parts.len() <= 1 {
            let position = parts.keys().next().copied().unwrap_or(0);
            self.facts.insert(fact, Origin::at(position, rounded));
            return Some(None);
        }
        let position = self.scopes.place(&rounded)?;
        Some(Some((position, rounded)))
    }

    fn leaf(&self, sum: &Sum) -> Option<Vec<Formula>> {
        let (parts, _) = self.add_up(sum)?;
        let mut so_far = Term::default();
        let mut out = Vec::with_capacity(self.cuts);
        for i in 0..self.cuts {
            if let Some(part) = parts.get(&i) {
                so_far = so_far + part;
            }
            out.push(le(&so_far, 0));
        }
        Some(out)
    }

    /// A sum of facts by position, with the denominator of all parts.
    fn add_up(&self, sum: &Sum) -> Option<(BTreeMap<usize, Term>, Int)> {
        let mut common = Int::ONE;
        for (id, _) in sum {
            let Origin::Linear { den, .. } = self.facts.get(id)? else {
                return None;
            };
            common = common.lcm(den);
        }
        let mut out: BTreeMap<usize, Term> = BTreeMap::new();
        for (id, k) in sum {
            let Origin::Linear { parts, den } = self.facts.get(id)? else {
                return None;
            };
            let k = k * &common.div_exact(den);
            for (position, term) in parts {
                let slot = out.entry(*position).or_default();
                *slot = slot.plus_scaled(&k, term);
            }
        }
        Some((out, common))
    }
}

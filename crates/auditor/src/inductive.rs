//! Formulas per control state: initiation, consecution and safety by fresh solver queries.
//!
//! The certificate proves what it says if every initial state satisfies the formula of its control
//! state, if no event of the machine leads from a state that satisfies its formula to one that does
//! not (control states without a formula are `false`), and if no such state satisfies the target or
//! has a step that is a fault. Whatever is stored passes a type's range check, so types hold of every
//! value and are used as facts. So are the certificate's ranges, once it is shown that every initial
//! value lies in them and that no event gives a register, a cell or a pending store a value outside,
//! if all others lie inside. Every "unsatisfiable" of the solver is taken only with a proof
//! that checks.

pub(super) mod buffer;
pub(super) mod machine;
mod ranges;

use super::{AuditError, Audited, Solvers};
use buffer::Keep;
use machine::{Machine, State, control as control_of, number};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::{ControlState, Corrupt, Inductive};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::task::Task;
use wattle_logic::{Formula, Var, and, eq, not, or};
use wattle_memory::MemoryModel;
use wattle_model::Type;
use wattle_model::instance::Initial;

pub fn audit(
    solvers: &Solvers,
    task: &Task<'_>,
    certificate: &Inductive,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if certificate.model != task.model {
        return Err(AuditError::WrongModel(certificate.model));
    }
    if task.deadlock {
        let why = "an inductive formula says nothing about deadlocks";
        return Err(AuditError::Refused(why.into()));
    }
    let cells = task.instance.cells.iter().map(|c| (c.ty, c.init));
    let registers = task.instance.threads.iter().flat_map(|t| &t.registers);
    for (ty, init) in cells.chain(registers.map(|r| (r.ty, r.init))) {
        let fits = match init {
            Initial::Value(v) => ty.admit(v) == Some(v),
            Initial::Any => true,
        };
        if matches!(ty, Type::Thread(_)) || !fits {
            return Err(AuditError::Refused(
                "an initial value outside its type".into(),
            ));
        }
    }
    let mut formulas = Formulas::new();
    for invariant in &certificate.invariants {
        let cubes = formulas.entry(&invariant.control).or_default();
        cubes.extend(invariant.cubes.iter().map(Vec::as_slice));
    }
    let threads = task.instance.threads.len();
    let keeps = match &certificate.blur {
        None => vec![None; threads],
        Some(blur) => Keep::all(blur, threads, task.instance.cells.len())?,
    };
    let queries = Queries {
        solvers,
        control,
        asked: 0,
    };
    match task.model {
        MemoryModel::Sc => run::<0>(queries, task, certificate, &keeps, formulas),
        MemoryModel::Tso => run::<1>(queries, task, certificate, &keeps, formulas),
        MemoryModel::Pso => run::<2>(queries, task, certificate, &keeps, formulas),
    }
}

fn run<const MODEL: usize>(
    queries: Queries<'_>,
    task: &Task<'_>,
    certificate: &Inductive,
    keeps: &[Option<Keep>],
    formulas: Formulas<'_>,
) -> Result<Audited, AuditError> {
    let mut auditor = Auditor::<MODEL> {
        queries,
        task,
        certificate,
        machine: Machine::new(task.instance, keeps, &certificate.ranges)?,
        formulas,
        checked: 0,
    };
    auditor.initiation()?;
    for n in 0..auditor.certificate.invariants.len() {
        auditor.consecution(n)?;
    }
    Ok(Audited {
        checked: auditor.checked,
    })
}

/// The cubes of each control state.
type Formulas<'a> = BTreeMap<&'a ControlState, Vec<&'a [i32]>>;

/// Cubes of literals, each literal with its negation.
type Cubes = Vec<Vec<(Formula, Formula)>>;

/// What one query may take: an answer is wanted here even if it is slow.
const WORK: u64 = 20_000_000;

struct Queries<'a> {
    solvers: &'a Solvers,
    control: &'a Control<'a>,
    asked: u64,
}

impl Queries<'_> {
    /// Whether the conditions cannot hold together.
    fn impossible(&mut self, query: &[Formula]) -> Result<bool, AuditError> {
        self.asked += 1;
        if self.asked.is_multiple_of(32) {
            let progress = Progress {
                states: self.asked,
                ..Progress::default()
            };
            self.control.poll("audit", progress)?;
        }
        self.solvers.impossible(query, WORK, self.control)
    }
}

struct Auditor<'a, 'k, const MODEL: usize> {
    queries: Queries<'a>,
    task: &'a Task<'a>,
    certificate: &'a Inductive,
    machine: Machine<'a, 'k, MODEL>,
    formulas: Formulas<'a>,
    checked: u64,
}

impl<'k, const MODEL: usize> Auditor<'_, 'k, MODEL> {
    fn cube(&self, state: &State<'_>, cube: &[i32]) -> Result<Vec<Formula>, AuditError> {
        let literals = self.cubes(state, &[cube])?.pop();
        let literals = literals.unwrap_or_default().into_iter();
        Ok(literals.map(|(literal, _)| literal).collect())
    }

    /// The cubes' literals in the state, each with its negation.
    fn cubes(&self, state: &State<'_>, cubes: &[&[i32]]) -> Result<Cubes, AuditError> {
        let corrupt = || AuditError::Corrupt(Corrupt("a literal without a predicate"));
        let mut made: BTreeMap<usize, (Formula, Formula)> = BTreeMap::new();
        let mut all = Vec::new();
        for cube in cubes {
            let mut literals = Vec::new();
            for literal in *cube {
                let n = (literal.unsigned_abs() as usize).checked_sub(1);
                let n = n.ok_or_else(corrupt)?;
                let (f, negation) = match made.get(&n) {
                    Some(pair) => pair.clone(),
                    None => {
                        let p = self.certificate.predicates.get(n).ok_or_else(corrupt)?;
                        let f = self.machine.predicate(state, p)?;
                        let pair = (f.clone(), not(&f));
                        made.insert(n, pair.clone());
                        pair
                    }
                };
                literals.push(if *literal > 0 {
                    (f, negation)
                } else {
                    (negation, f)
                });
            }
            all.push(literals);
        }
        Ok(all)
    }

    /// The formula of the state, by the certificate.
    fn formula(&self, state: &State<'_>) -> Result<Cubes, AuditError> {
        match self.formulas.get(&control_of(state)) {
            Some(cubes) => self.cubes(state, cubes),
            None => Ok(Vec::new()),
        }
    }

    /// Whether what is known implies the formula, where the conditions hold.
    fn covered(
        &mut self,
        known: &[Formula],
        when: &[Formula],
        formula: &Cubes,
    ) -> Result<bool, AuditError> {
        let facts: FxHashSet<&Formula> = known.iter().chain(when).collect();
        let mut cubes = Vec::new();
        for cube in formula {
            if cube.iter().any(|(_, negation)| facts.contains(negation)) {
                continue;
            }
            let open = cube.iter().filter(|(literal, _)| !facts.contains(literal));
            cubes.push(and(open.map(|(literal, _)| literal.clone())));
        }
        let outside = not(&or(cubes));
        if outside == Formula::False {
            return Ok(true);
        }
        let mut goal = outside.conjuncts().to_vec();
        goal.extend_from_slice(when);
        self.queries.impossible(&connected(known, goal))
    }

    fn initiation(&mut self) -> Result<(), AuditError> {
        let instance = self.task.instance;
        let threads = &instance.threads;
        let first = ControlState {
            locations: threads.iter().map(|t| t.entry).collect(),
            buffers: vec![Default::default(); threads.len()],
            holder: None,
        };
        let (state, mut known) = self.machine.any(&first)?;
        let cells = state
            .memory
            .iter()
            .zip(instance.cells.iter().map(|c| c.init));
        let registers = threads.iter().flat_map(|t| &t.registers).map(|r| r.init);
        let registers = state.registers.iter().flatten().zip(registers);
        for (value, init) in cells.chain(registers) {
            if let Initial::Value(v) = init {
                known.push(eq(number(value)?.clone(), v));
            }
        }
        for fact in self.machine.ranges.facts(&state)? {
            if !self.covered(&known, &[], &vec![vec![(fact.clone(), not(&fact))]])? {
                return Err(AuditError::MissesInitial);
            }
        }
        let formula = self.formula(&state)?;
        match self.covered(&known, &[], &formula)? {
            true => Ok(()),
            false => Err(AuditError::MissesInitial),
        }
    }

    /// From the n-th control state: nothing bad, and no way out.
    fn consecution(&mut self, n: usize) -> Result<(), AuditError> {
        let invariant = &self.certificate.invariants[n];
        let (state, domain) = self.machine.any(&invariant.control)?;
        let domain = domain.into_iter().chain(self.machine.ranges.facts(&state)?);
        let domain: Vec<Formula> = and(domain).conjuncts().to_vec();
        let ways = self.machine.ways(&state)?;
        let bad = self.bad(&state)?;
        let mut after = Vec::new();
        for way in &ways {
            let formula = way.to.as_ref().map(|to| self.formula(to)).transpose()?;
            let when = and(way.when.iter().cloned());
            let news = match &way.to {
                Some(to) => self.machine.ranges.news(&state, to)?,
                None => Vec::new(),
            };
            for fact in news {
                let inside = vec![vec![(fact.clone(), not(&fact))]];
                if when != Formula::False && !self.covered(&domain, when.conjuncts(), &inside)? {
                    let (state, event) = (n as u64, way.what.clone());
                    return Err(AuditError::NotClosed { state, event });
                }
            }
            after.push((when, formula));
        }
        for cube in &invariant.cubes {
            self.checked += 1;
            let mut known = self.cube(&state, cube)?;
            known.extend(domain.iter().cloned());
            for bad in &bad {
                let query = [known.as_slice(), bad].concat();
                if !self.queries.impossible(&query)? {
                    return Err(AuditError::Bad { state: n as u64 });
                }
            }
            for (way, (when, formula)) in ways.iter().zip(&after) {
                if *when == Formula::False {
                    continue;
                }
                let when = when.conjuncts();
                let fine = match formula {
                    Some(formula) => self.covered(&known, when, formula)?,
                    None => self.queries.impossible(&connected(&known, when.to_vec()))?,
                };
                if fine {
                    continue;
                }
                let state = n as u64;
                let event = way.what.clone();
                return Err(match way.to {
                    Some(_) => AuditError::NotClosed { state, event },
                    None => {
                        AuditError::Other(format!("faults: {event} can be one in state {state}"))
                    }
                });
            }
        }
        Ok(())
    }

    /// When the target is true in the state, or has no value; never where nobody looks.
    fn bad(&mut self, state: &State<'k>) -> Result<Vec<Vec<Formula>>, AuditError> {
        match self.task.question() {
            Some(q) if self.machine.looked_at(state, q.only_final) => {
                self.machine.target(state, &q.target)
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// The goal with those of the facts that share variables with it, directly or through others. Leaving
/// out the rest only weakens what is known.
fn connected(facts: &[Formula], mut goal: Vec<Formula>) -> Vec<Formula> {
    let mut vars = BTreeSet::new();
    goal.iter().for_each(|f| f.collect_vars(&mut vars));
    let mut left: Vec<(&Formula, BTreeSet<Var>)> = facts.iter().map(|f| (f, f.vars())).collect();
    loop {
        let before = left.len();
        left.retain(|(f, theirs)| {
            let apart = theirs.is_disjoint(&vars);
            if !apart {
                vars.extend(theirs);
                goal.push((*f).clone());
            }
            apart
        });
        if left.len() == before {
            return goal;
        }
    }
}

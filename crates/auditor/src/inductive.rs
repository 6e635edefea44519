//! Formulas per control state: initiation, consecution and safety by fresh solver queries.
//!
//! The certificate proves what it says if every initial state satisfies the formula of its control
//! state, if no event of the machine leads from a state that satisfies its formula to one that does
//! not (control states without a formula are `false`), and if no such state satisfies the target or
//! has a step that is a fault. Whatever is stored passes a type's range check, so types hold of every
//! value and are used as facts. So are the certificate's ranges, once it is shown that every initial
//! value lies in them and that no event gives a register, a cell or a pending store a value outside,
//! if all others lie inside.
//!
//! A certificate in parts has formulas about some threads each. What the others do changes neither these
//! threads' registers and buffers nor a cell that the formulas speak of (that is looked at), so it leads
//! out of no formula; and whatever these threads read of other cells is left open. Every disjunct of the
//! target must be excluded by a part about all threads it speaks of, and every thread, for faults and
//! ranges, be in some part. Every "unsatisfiable" of the solver is taken only with a proof
//! that checks.

mod blurred;
mod exact;
pub(super) mod machine;
mod parts;
mod ranges;
mod relevant;
mod stores;
mod viewed;
mod views;

use super::symbols::Value;
use super::{AuditError, Audited, Solvers};
use machine::{Machine, Pending, Runs, State, control as control_of, number, predicate};
use relevant::relevant;
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::collections::BTreeMap;
use wattle_evidence::certificate::{
    ControlState, Corrupt, Inductive, Invariant, PendingStores, Predicate, Quantity,
};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::task::Task;
use wattle_logic::{Formula, and, eq, not, or};
use wattle_memory::{Exact, Layout, MemoryModel, Pso, Sc, Tso};
use wattle_model::instance::{Fact, Initial};
use wattle_model::{CellId, Expr, ThreadId, Type};

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
            let why = "an initial value outside its type";
            return Err(AuditError::Refused(why.into()));
        }
    }
    if certificate.blur.is_some() && !certificate.views.is_empty() {
        return Err(corrupt("buffers both blurred and known by views"));
    }
    let about = match certificate.parts.is_empty() {
        true => vec![About::everything(task, certificate)],
        false => parts::divided(task, certificate)?,
    };
    let mut checked = 0;
    for about in about {
        let queries = Queries {
            solvers,
            control,
            asked: 0,
        };
        checked += match task.model {
            MemoryModel::Sc => with::<Sc, 0>(queries, task, certificate, about)?,
            MemoryModel::Tso => with::<Tso, 1>(queries, task, certificate, about)?,
            MemoryModel::Pso => with::<Pso, 2>(queries, task, certificate, about)?,
        };
    }
    Ok(Audited { checked })
}

/// With the buffers that the certificate speaks of: those that forget nothing, or others.
fn with<L: Layout, const MODEL: usize>(
    queries: Queries<'_>,
    task: &Task<'_>,
    certificate: &Inductive,
    about: About<'_>,
) -> Result<u64, AuditError>
where
    L::Buffer<Exact<Value>>: Pending<Bound = ()>,
{
    if let Some(blur) = &certificate.blur {
        return blurred::audit::<MODEL>(queries, task, (certificate, blur), about);
    }
    if !certificate.views.is_empty() {
        return viewed::audit::<MODEL>(queries, task, certificate, about);
    }
    let bounds = vec![(); task.instance.threads.len()];
    let machine = Machine::<L, Exact<Value>>::new(task.instance, bounds, &certificate.ranges)?;
    run(queries, task, certificate, machine, about)
}

fn corrupt(why: &'static str) -> AuditError {
    AuditError::Corrupt(Corrupt(why))
}

/// Formulas about some threads, and what of the target they must exclude.
struct About<'c> {
    threads: Vec<ThreadId>,
    invariants: &'c [Invariant],
    targets: Vec<&'c Expr<Fact>>,
    /// Cells that other threads may write.
    foreign: Vec<CellId>,
}

impl<'c> About<'c> {
    /// One formula about all threads.
    fn everything(task: &'c Task<'c>, certificate: &'c Inductive) -> Self {
        About {
            threads: task.instance.thread_ids().collect(),
            invariants: &certificate.invariants,
            targets: task.question().map(|q| &q.target).into_iter().collect(),
            foreign: Vec::new(),
        }
    }
}

fn run<R: Runs>(
    queries: Queries<'_>,
    task: &Task<'_>,
    certificate: &Inductive,
    machine: R,
    about: About<'_>,
) -> Result<u64, AuditError> {
    let mut formulas = Formulas::new();
    for invariant in about.invariants {
        if formulas.insert(&invariant.control, invariant).is_some() {
            return Err(corrupt("a control state has two formulas"));
        }
    }
    let mut auditor = Auditor {
        queries,
        task,
        certificate,
        machine,
        formulas,
        about,
        checked: 0,
    };
    auditor.initiation()?;
    for n in 0..auditor.about.invariants.len() {
        auditor.consecution(n)?;
    }
    Ok(auditor.checked)
}

/// The formula of each control state.
type Formulas<'a> = BTreeMap<&'a ControlState, &'a Invariant>;

/// Cubes of literals, each literal with its negation.
type Cubes = Vec<Vec<(Formula, Formula)>>;

/// What one query may take: an answer is wanted here even if it is slow.
const WORK: u64 = 20_000_000;

struct Queries<'a> {
    solvers: &'a Solvers,
    control: &'a Control<'a>,
    asked: u64,
}

/// The ways a state is read, and what must be true of them all for something bad.
type Bad<B> = (Vec<State<B>>, Vec<Formula>);

impl Queries<'_> {
    /// Whether the conditions cannot hold together.
    fn impossible(&mut self, query: &[Formula]) -> Result<bool, AuditError> {
        self.asked += 1;
        if self.asked.is_multiple_of(32) {
            self.control.poll("audit", Progress::of(self.asked))?;
        }
        self.solvers.impossible(query, WORK, self.control)
    }
}

struct Auditor<'a, R: Runs> {
    queries: Queries<'a>,
    task: &'a Task<'a>,
    certificate: &'a Inductive,
    machine: R,
    formulas: Formulas<'a>,
    about: About<'a>,
    checked: u64,
}

impl<R: Runs> Auditor<'_, R> {
    /// The cube in the state, and the clauses beside it.
    fn cube(
        &self,
        state: &State<R::Buffer>,
        cube: &Vec<i32>,
        clauses: &[Vec<i32>],
    ) -> Result<Vec<Formula>, AuditError> {
        let literals = self.cubes(state, std::slice::from_ref(cube))?;
        let literals = literals.into_iter().flatten().map(|(literal, _)| literal);
        let mut all: Vec<Formula> = literals.collect();
        for clause in self.cubes(state, clauses)? {
            all.push(or(clause.into_iter().map(|(literal, _)| literal)));
        }
        Ok(all)
    }

    /// The cubes' literals in the state, each with its negation.
    fn cubes(&self, state: &State<R::Buffer>, cubes: &[Vec<i32>]) -> Result<Cubes, AuditError> {
        let corrupt = || corrupt("a literal without a predicate");
        let mut made: BTreeMap<usize, (Formula, Formula)> = BTreeMap::new();
        let mut all = Vec::new();
        for cube in cubes {
            let mut literals = Vec::new();
            for literal in cube {
                let n = (literal.unsigned_abs() as usize).checked_sub(1);
                let n = n.ok_or_else(corrupt)?;
                let (f, negation) = match made.get(&n) {
                    Some(pair) => pair.clone(),
                    None => {
                        let p = self.certificate.predicates.get(n).ok_or_else(corrupt)?;
                        self.may_say(p)?;
                        let f = predicate(state, p)?;
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

    /// Whether the predicate speaks only of what other threads, and drains of buffers known by views,
    /// leave alone.
    fn may_say(&self, predicate: &Predicate) -> Result<(), AuditError> {
        let ours = |c: &CellId| !self.about.foreign.contains(c);
        let fine = |q: &Quantity| match q {
            Quantity::Register(t, _) | Quantity::Entry(t, _) => self.about.threads.contains(t),
            Quantity::Cell(c) => ours(c) && !self.machine.is_viewed(*c),
            Quantity::View(t, _, c) => self.about.threads.contains(t) && ours(c),
        };
        match predicate.sum.iter().all(|(_, q)| fine(q)) {
            true => Ok(()),
            false => Err(corrupt("a predicate speaks of what its part leaves open")),
        }
    }

    /// Of threads it is not about a part says nothing: they are where they begin.
    fn fits(&self, control: &ControlState) -> Result<(), AuditError> {
        let ours = |t: &ThreadId| self.about.threads.contains(t);
        for t in self.task.instance.thread_ids().filter(|t| !ours(t)) {
            let begins =
                control.locations.get(t.index()) == Some(&self.task.instance.thread(t).entry);
            let idle = control.buffers.get(t.index()) == Some(&PendingStores::default());
            if !begins || !idle || control.holder == Some(t) {
                return Err(corrupt("a part has another thread elsewhere"));
            }
        }
        Ok(())
    }

    /// The formula of the state, by the certificate: all of these hold.
    fn formula(&self, state: &State<R::Buffer>) -> Result<Vec<Cubes>, AuditError> {
        let Some(invariant) = self.formulas.get(&control_of(state)) else {
            return Ok(vec![Vec::new()]);
        };
        let mut all = vec![self.cubes(state, &invariant.cubes)?];
        for clause in self.cubes(state, &invariant.clauses)? {
            all.push(clause.into_iter().map(|literal| vec![literal]).collect());
        }
        Ok(all)
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
        let state = self.machine.emptied(state);
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
        let ranges = self.machine.ranges().facts(&state)?.into_iter();
        let ranges = ranges.map(|fact| vec![vec![(fact.clone(), not(&fact))]]);
        for formula in ranges.chain(self.formula(&state)?) {
            if !self.covered(&known, &[], &formula)? {
                return Err(AuditError::MissesInitial);
            }
        }
        Ok(())
    }

    /// From the n-th control state: nothing bad, and no way out.
    fn consecution(&mut self, n: usize) -> Result<(), AuditError> {
        let invariant = &self.about.invariants[n];
        self.fits(&invariant.control)?;
        let (state, domain) = self.machine.any(&invariant.control)?;
        let domain = domain
            .into_iter()
            .chain(self.machine.ranges().facts(&state)?);
        let domain: Vec<Formula> = and(domain).conjuncts().to_vec();
        let mut ways = Vec::new();
        for t in self.task.instance.thread_ids() {
            if self.about.threads.contains(&t) {
                ways.extend(self.machine.ways_of(&state, t)?);
            }
        }
        let bad = self.bad(&state)?;
        let mut after = Vec::new();
        for way in &ways {
            let formula = way.to.as_ref().map(|to| self.formula(to)).transpose()?;
            let when = and(way.when.iter().cloned());
            let news = match &way.to {
                Some(to) => self.machine.ranges().news(&state, to)?,
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
            let mut known = self.cube(&state, cube, &invariant.clauses)?;
            known.extend(domain.iter().cloned());
            for (readings, bad) in &bad {
                let known = self.read((cube, &invariant.clauses), readings, &known, &domain)?;
                let query = [known.as_ref(), bad].concat();
                if !self.queries.impossible(&query)? {
                    return Err(AuditError::Bad { state: n as u64 });
                }
            }
            for (way, (when, formula)) in ways.iter().zip(&after) {
                if *when == Formula::False {
                    continue;
                }
                let known =
                    self.read((cube, &invariant.clauses), &way.readings, &known, &domain)?;
                let when = when.conjuncts();
                let fine = match formula {
                    Some(formula) => {
                        let mut fine = true;
                        for part in formula {
                            fine = fine && self.covered(&known, when, part)?;
                        }
                        fine
                    }
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

    /// The cube in every reading of the state, with the domain; without readings what is known anyway.
    fn read<'f>(
        &self,
        (cube, clauses): (&Vec<i32>, &[Vec<i32>]),
        readings: &[State<R::Buffer>],
        known: &'f [Formula],
        domain: &[Formula],
    ) -> Result<Cow<'f, [Formula]>, AuditError> {
        if readings.is_empty() {
            return Ok(Cow::Borrowed(known));
        }
        let mut all = Vec::new();
        for reading in readings {
            all.extend(self.cube(reading, cube, clauses)?);
        }
        all.sort_unstable();
        all.dedup();
        all.extend_from_slice(domain);
        Ok(Cow::Owned(all))
    }

    /// When the target is true in the state, or has no value, and how the state is read for it; never
    /// where nobody looks.
    fn bad(&mut self, state: &State<R::Buffer>) -> Result<Vec<Bad<R::Buffer>>, AuditError> {
        let mut all = Vec::new();
        let Some(q) = self.task.question() else {
            return Ok(all);
        };
        for target in &self.about.targets {
            let readings = self.machine.looking(state, target, q.only_final);
            let state = readings.first().unwrap_or(state).clone();
            if !self.machine.looked_at(&state, q.only_final) {
                continue;
            }
            for bad in self.machine.target(&state, target)? {
                all.push((readings.clone(), bad));
            }
        }
        Ok(all)
    }
}

/// The goal with those of the facts that matter to it. Leaving out the rest only weakens what is known.
fn connected(facts: &[Formula], mut goal: Vec<Formula>) -> Vec<Formula> {
    let kept = relevant(facts, &goal).into_iter();
    goal.extend(kept.map(|i| facts[i].clone()));
    goal
}

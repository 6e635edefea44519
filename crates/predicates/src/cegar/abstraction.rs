//! Boolean abstraction: an abstract state is a shape and the truth of every predicate that matters
//! there. Successors are exact for that abstraction (every consistent combination of truth values,
//! not their cartesian hull), so a refuted trace never comes back and no `enforce` is needed.
//!
//! A predicate whose variables a move leaves alone keeps its value; one whose weakest precondition is
//! a predicate already known takes that one's. Only what is left is asked of the solver, with those
//! literals of the state that share variables with the question.

use crate::reduce::expr::Unfit;
use crate::reduce::{Pending, Shape, System};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::rc::Rc;
use wattle_evidence::{Control, Progress, Stop};
use wattle_logic::{Answer, Formula, Native, Reason, Rel, Solver, Term, Var, not};

/// Why the abstraction has no answer.
#[derive(Clone, Debug)]
pub enum Halt {
    Stopped(Stop),
    Unknown(Reason),
    Other(String),
}

impl From<Unfit> for Halt {
    fn from(unfit: Unfit) -> Self {
        Halt::Other(unfit.why)
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Halt::Stopped(stop)
    }
}

#[derive(Default)]
pub struct Predicates {
    pub all: Vec<Formula>,
    vars: Vec<BTreeSet<Var>>,
    /// Both a predicate and its negation.
    index: FxHashMap<Formula, (usize, bool)>,
}

impl Predicates {
    /// Takes the atoms of the formula; says whether one is new.
    pub fn add(&mut self, f: &Formula) -> bool {
        let mut new = false;
        for atom in f.atoms() {
            let atom = Formula::Atom(atom);
            if self.index.contains_key(&atom) {
                continue;
            }
            let negation = not(&atom);
            let positive = match (&atom, &negation) {
                (Formula::Atom(a), _) if matches!(a.rel(), Rel::Ne | Rel::NotDivides(_)) => {
                    negation.clone()
                }
                (a, n) if matches!(n.as_atom().map(|n| n.rel()), Some(Rel::Le)) => {
                    a.clone().min(n.clone())
                }
                (a, _) => a.clone(),
            };
            let n = self.all.len();
            self.vars.push(positive.vars());
            self.index.insert(not(&positive), (n, false));
            self.index.insert(positive.clone(), (n, true));
            self.all.push(positive);
            new = true;
        }
        new
    }

    pub fn literal(&self, p: usize, value: bool) -> Formula {
        match value {
            true => self.all[p].clone(),
            false => not(&self.all[p]),
        }
    }

    /// The predicates that matter in the shape.
    pub fn relevant(&self, system: &System<'_>, shape: &Shape) -> Rc<[usize]> {
        let matters = |p: &usize| self.vars[*p].iter().all(|v| system.matters(shape, *v));
        (0..self.all.len()).filter(matters).collect()
    }
}

/// Where a predicate's value after a move comes from.
enum Source {
    Fixed(bool),
    /// Position among the predicates before, and whether to keep or flip its value.
    Copy(usize, bool),
    Open,
}

/// How to compute the successors by one move. Moves that differ only in what other threads are up to
/// share one.
pub struct Plan {
    /// The number of the question asked; equal questions have equal numbers.
    question: u32,
    sources: Vec<Source>,
    open: Vec<Formula>,
    guard: Formula,
    /// Positions of the predicates before that share variables with guard and open questions.
    premises: Vec<usize>,
    /// What the types say about all variables involved.
    domain: Vec<Formula>,
}

impl Plan {
    fn new(
        system: &System<'_>,
        predicates: &Predicates,
        (shape, before): (&Shape, &[usize]),
        (guard, updates): (&Formula, &[(Var, Term)]),
        after: &[usize],
    ) -> Plan {
        let position: FxHashMap<usize, usize> =
            before.iter().enumerate().map(|(i, p)| (*p, i)).collect();
        let update = |v: Var| {
            let found = updates.iter().find(|(x, _)| *x == v);
            found.map(|(_, t)| t.clone())
        };
        let mut sources = Vec::new();
        let mut open = Vec::new();
        for &p in after {
            let wp = predicates.all[p].subst(&update);
            let known = predicates.index.get(&wp);
            let known = known.and_then(|(q, sign)| Some((*position.get(q)?, *sign)));
            sources.push(match (&wp, known) {
                (Formula::True, _) => Source::Fixed(true),
                (Formula::False, _) => Source::Fixed(false),
                (_, Some((i, sign))) => Source::Copy(i, sign),
                _ => {
                    open.push(wp);
                    Source::Open
                }
            });
        }
        let mut vars = guard.vars();
        open.iter().for_each(|f| f.collect_vars(&mut vars));
        let mut premises = BTreeSet::new();
        loop {
            let size = premises.len();
            for (i, p) in before.iter().enumerate() {
                let theirs = &predicates.vars[*p];
                if !premises.contains(&i) && theirs.iter().any(|v| vars.contains(v)) {
                    vars.extend(theirs);
                    premises.insert(i);
                }
            }
            if premises.len() == size {
                break;
            }
        }
        let domain = vars.iter().map(|v| system.domain(shape, *v));
        Plan {
            question: 0,
            sources,
            open,
            guard: guard.clone(),
            premises: premises.into_iter().collect(),
            domain: domain.filter(|f| *f != Formula::True).collect(),
        }
    }
}

/// What a plan is made for: guard, updates, predicates before and after, and which cells are pending.
type Made = (
    Formula,
    Vec<(Var, Term)>,
    Rc<[usize]>,
    Rc<[usize]>,
    Vec<Pending>,
);

/// Truth values of the open predicates of a plan, every way they can be.
type Combinations = Rc<[Vec<bool>]>;

/// The solver with what it was asked before.
pub struct Asker {
    solver: Native,
    questions: FxHashMap<(Formula, Vec<Formula>, Vec<Formula>), u32>,
    plans: FxHashMap<Made, Rc<Plan>>,
    /// By question and premises (signed predicates).
    known: FxHashMap<(u32, Vec<i32>), Combinations>,
    asked: u64,
}

impl Default for Asker {
    fn default() -> Self {
        Asker {
            solver: Native::new(),
            questions: FxHashMap::default(),
            plans: FxHashMap::default(),
            known: FxHashMap::default(),
            asked: 0,
        }
    }
}

impl Asker {
    /// Forgets the plans: there are new predicates, or another system.
    pub fn new_round(&mut self) {
        self.plans.clear();
    }

    pub fn plan(
        &mut self,
        system: &System<'_>,
        predicates: &Predicates,
        (shape, before): (&Shape, &Rc<[usize]>),
        (guard, updates): (&Formula, &[(Var, Term)]),
        after: &Rc<[usize]>,
    ) -> Rc<Plan> {
        let pending = shape.pending.clone();
        let made = (
            guard.clone(),
            updates.to_vec(),
            before.clone(),
            after.clone(),
            pending,
        );
        if let Some(plan) = self.plans.get(&made) {
            return plan.clone();
        }
        let mut plan = Plan::new(system, predicates, (shape, before), (guard, updates), after);
        let next = self.questions.len() as u32;
        let asks = (plan.guard.clone(), plan.open.clone(), plan.domain.clone());
        plan.question = *self.questions.entry(asks).or_insert(next);
        let plan = Rc::new(plan);
        self.plans.insert(made, plan.clone());
        plan
    }

    fn check(&mut self, query: &[Formula], control: &Control<'_>) -> Result<Answer, Halt> {
        self.asked += 1;
        if self.asked.is_multiple_of(64) {
            let progress = Progress {
                states: self.asked,
                frontier: 0,
                memory: self.known.len() as u64 * 256,
            };
            control.poll("cegar", progress)?;
        }
        match self.solver.check(query) {
            Answer::Unknown(reason) => Err(Halt::Unknown(reason)),
            answer => Ok(answer),
        }
    }

    /// Every combination of truth values of `open` that agrees with `base`.
    pub fn combinations(
        &mut self,
        base: &[Formula],
        open: &[Formula],
        control: &Control<'_>,
    ) -> Result<Vec<Vec<bool>>, Halt> {
        let mut found = Vec::new();
        let mut work = Vec::new();
        if let Answer::Sat(model) = self.check(base, control)? {
            work.push((Vec::new(), model));
        }
        let mut query = base.to_vec();
        while let Some((prefix, model)) = work.pop() {
            let Some(next) = open.get(prefix.len()) else {
                found.push(prefix);
                continue;
            };
            let value = next.eval(&model);
            query.truncate(base.len());
            for (f, v) in open.iter().zip(&prefix) {
                query.push(if *v { f.clone() } else { not(f) });
            }
            query.push(if value { not(next) } else { next.clone() });
            if let Answer::Sat(other) = self.check(&query, control)? {
                let mut flipped: Vec<bool> = prefix.clone();
                flipped.push(!value);
                work.push((flipped, other));
            }
            let mut same = prefix;
            same.push(value);
            work.push((same, model));
        }
        found.sort();
        Ok(found)
    }

    /// The truth values after the move, from those before; none if the move is not possible.
    pub fn successors(
        &mut self,
        plan: &Plan,
        predicates: &Predicates,
        (before, bits): (&[usize], &[bool]),
        control: &Control<'_>,
    ) -> Result<Vec<Vec<bool>>, Halt> {
        let combinations: Combinations = if plan.open.is_empty() && plan.guard == Formula::True {
            Rc::new([Vec::new()])
        } else {
            let signed = |i: &usize| {
                let n = before[*i] as i32 + 1;
                if bits[*i] { n } else { -n }
            };
            let key = (plan.question, plan.premises.iter().map(signed).collect());
            match self.known.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let mut base: Vec<Formula> = plan.domain.clone();
                    let premises = plan.premises.iter();
                    base.extend(premises.map(|i| predicates.literal(before[*i], bits[*i])));
                    base.extend(plan.guard.conjuncts().iter().cloned());
                    let found: Combinations = self.combinations(&base, &plan.open, control)?.into();
                    self.known.insert(key, found.clone());
                    found
                }
            }
        };
        let value = |combination: &Vec<bool>| {
            let mut open = combination.iter();
            let sources = plan.sources.iter().map(|s| match s {
                Source::Fixed(v) => *v,
                Source::Copy(i, sign) => bits[*i] == *sign,
                Source::Open => open.next().copied().unwrap_or(false),
            });
            sources.collect::<Vec<bool>>()
        };
        Ok(combinations.iter().map(value).collect())
    }
}

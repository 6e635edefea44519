//! Boolean abstraction: an abstract state is a shape and a cube, the truth of every predicate that is
//! followed and matters there; what is left open may be either way, independently of the rest.
//! Successors are exact for that abstraction (every consistent combination of truth values, not their
//! cartesian hull; combinations that differ in one value are one cube), so a refuted trace never comes
//! back and no `enforce` is needed. What a cube leaves open is split where a question depends on it.
//!
//! A predicate whose variables a move leaves alone keeps its value; one whose weakest precondition is
//! a predicate already known takes that one's. Only what is left is asked of the solver, with those
//! literals of the state that share variables with the question.

use crate::reduce::expr::Unfit;
use crate::reduce::{Pending, Shape, Symbol, System};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::rc::Rc;
use wattle_evidence::{Control, Progress, Stop};
use wattle_logic::{Answer, Formula, Native, Reason, Rel, Solver, Term, Var, not};
use wattle_model::{LocationId, ThreadId};

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

/// Truth values of the predicates that matter somewhere; open ones may be either way.
pub type Cube = Vec<Option<bool>>;

/// Whether whatever the second says, the first says no more: it covers all its states.
pub fn covers(weaker: &[Option<bool>], stronger: &[Option<bool>]) -> bool {
    let mut pairs = weaker.iter().zip(stronger);
    pairs.all(|(w, s)| w.is_none() || w == s)
}

/// Cubes that differ in one literal become one without it: the same states in fewer cubes.
pub fn merged(cubes: impl IntoIterator<Item = Cube>) -> Vec<Cube> {
    let mut cubes: BTreeSet<Cube> = cubes.into_iter().collect();
    if cubes.len() < 2 {
        return cubes.into_iter().collect();
    }
    let width = cubes.first().map_or(0, Vec::len);
    for i in 0..width {
        let all: Vec<Cube> = cubes.iter().cloned().collect();
        for cube in all {
            if cube[i] != Some(false) || !cubes.contains(&cube) {
                continue;
            }
            let mut other = cube.clone();
            other[i] = Some(true);
            if cubes.remove(&other) {
                cubes.remove(&cube);
                other[i] = None;
                cubes.insert(other);
            }
        }
    }
    cubes.into_iter().collect()
}

/// Where a predicate is followed.
enum Places {
    Everywhere,
    /// Where the threads it speaks of (by registers and pending stores) are.
    At(BTreeSet<Standing>),
}

type Standing = Vec<(ThreadId, LocationId)>;

/// Where the threads are that the variables speak of.
fn place(system: &System<'_>, vars: &BTreeSet<Var>, at: &[LocationId]) -> Standing {
    let owners = vars.iter().filter_map(|v| match system.symbol(*v) {
        Symbol::Register(t, _) | Symbol::Entry(t, _) => Some(t),
        Symbol::Cell(_) | Symbol::Choice => None,
    });
    let owners: BTreeSet<ThreadId> = owners.collect();
    owners.into_iter().map(|t| (t, at[t.index()])).collect()
}

#[derive(Default)]
pub struct Predicates {
    pub all: Vec<Formula>,
    places: Vec<Places>,
    vars: Vec<BTreeSet<Var>>,
    /// Both a predicate and its negation.
    index: FxHashMap<Formula, (usize, bool)>,
}

impl Predicates {
    /// Takes the atoms of the formula everywhere; says whether one is new.
    pub fn add(&mut self, f: &Formula) -> bool {
        self.add_where(f, None)
    }

    /// Takes the atoms of the formula where the threads are that they speak of; one that is wanted at
    /// more than `local` places, and one that speaks of memory alone, is followed everywhere from then
    /// on. Says whether one is new there.
    pub fn add_at(
        &mut self,
        f: &Formula,
        system: &System<'_>,
        at: &[LocationId],
        local: usize,
    ) -> bool {
        self.add_where(f, Some((system, at, local)))
    }

    fn add_where(
        &mut self,
        f: &Formula,
        place_of: Option<(&System<'_>, &[LocationId], usize)>,
    ) -> bool {
        let mut new = false;
        for atom in f.atoms() {
            let atom = Formula::Atom(atom);
            let here = place_of.map(|(system, at, local)| {
                let here = place(system, &atom.vars(), at);
                (here, local)
            });
            if let Some((n, _)) = self.index.get(&atom) {
                let places = &mut self.places[*n];
                if let Places::At(known) = places {
                    let few = here.is_some_and(|(here, local)| {
                        new |= known.insert(here);
                        known.len() <= local
                    });
                    if !few {
                        *places = Places::Everywhere;
                    }
                }
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
            self.places.push(match here {
                Some((here, local)) if local > 0 && !here.is_empty() => Places::At([here].into()),
                _ => Places::Everywhere,
            });
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

    /// The predicates that are followed and matter in the shape.
    pub fn relevant(&self, system: &System<'_>, shape: &Shape) -> Rc<[usize]> {
        let followed = |p: &usize| match &self.places[*p] {
            Places::Everywhere => true,
            Places::At(places) => places.contains(&place(system, &self.vars[*p], &shape.locations)),
        };
        let matters = |p: &usize| self.vars[*p].iter().all(|v| system.matters(shape, *v));
        let all = 0..self.all.len();
        all.filter(followed).filter(matters).collect()
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
pub struct Recipe {
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

impl Recipe {
    fn new(
        system: &System<'_>,
        predicates: &Predicates,
        (shape, before): (&Shape, &[usize]),
        (guard, updates): (&Formula, &[(Var, Term)]),
        after: &[usize],
    ) -> Recipe {
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
        Recipe {
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

/// Work from one poll to the next, in the solver's units: of 67 runs on the examples and the suite of integers a unit took
/// about 40 ns, whatever was done.
pub const POLL: u64 = 3 << 12;
/// What else takes time, in the same units: a query beside the solver's own work, a combination of truth values that is
/// looked up, a predicate of a plan, and the moves of a control state.
const QUERY: u64 = 16;
const WAY: u64 = 8;
const FOLLOWED: u64 = 12;
const MOVES: u64 = 440;

/// The solver with what it was asked before.
pub struct Asker {
    solver: Native,
    questions: FxHashMap<(Formula, Vec<Formula>, Vec<Formula>), u32>,
    plans: FxHashMap<Made, Rc<Recipe>>,
    /// By question and premises (signed predicates).
    known: FxHashMap<(u32, Vec<i32>), Combinations>,
    asked: u64,
    /// Work beside the solver's.
    work: u64,
    polls: u64,
}

impl Default for Asker {
    fn default() -> Self {
        Asker {
            solver: Native::new(),
            questions: FxHashMap::default(),
            plans: FxHashMap::default(),
            known: FxHashMap::default(),
            asked: 0,
            work: 0,
            polls: 0,
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
    ) -> Rc<Recipe> {
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
        self.work += FOLLOWED * (1 + before.len() + after.len()) as u64;
        let mut plan = Recipe::new(system, predicates, (shape, before), (guard, updates), after);
        let next = self.questions.len() as u32;
        let asks = (plan.guard.clone(), plan.open.clone(), plan.domain.clone());
        plan.question = *self.questions.entry(asks).or_insert(next);
        let plan = Rc::new(plan);
        self.plans.insert(made, plan.clone());
        plan
    }

    /// The moves of a control state were made.
    pub fn made_moves(&mut self) {
        self.work += MOVES;
    }

    /// Polls as often as the work done so far is worth.
    pub fn poll(&mut self, control: &Control<'_>) -> Result<(), Halt> {
        let work = self.solver.spent() + QUERY * self.asked + self.work;
        while self.polls < work / POLL {
            self.polls += 1;
            let progress = Progress {
                states: self.asked + self.polls,
                frontier: 0,
                memory: self.known.len() as u64 * 256,
                ..Progress::default()
            };
            control.poll("cegar", progress)?;
        }
        Ok(())
    }

    fn check(&mut self, query: &[Formula], control: &Control<'_>) -> Result<Answer, Halt> {
        self.asked += 1;
        self.poll(control)?;
        let goes_on = || control.stop().is_none();
        match self.solver.check_while(query, &goes_on) {
            Answer::Unknown(_) if control.stop().is_some() => {
                Err(Halt::Stopped(control.stop().unwrap_or(Stop::Time)))
            }
            Answer::Unknown(reason) => Err(Halt::Unknown(reason)),
            answer @ (Answer::Sat(_) | Answer::Unsat(_)) => Ok(answer),
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
        plan: &Recipe,
        predicates: &Predicates,
        (before, cube): (&[usize], &[Option<bool>]),
        control: &Control<'_>,
    ) -> Result<Vec<Cube>, Halt> {
        let mut after = Vec::new();
        let mut ways = vec![cube.to_vec()];
        for &i in plan.premises.iter().filter(|i| cube[**i].is_none()) {
            let mut other = ways.clone();
            ways.iter_mut().for_each(|w| w[i] = Some(false));
            other.iter_mut().for_each(|w| w[i] = Some(true));
            ways.append(&mut other);
        }
        self.work += ways.len() as u64 * (WAY + cube.len() as u64);
        for way in ways {
            self.successors_of(plan, predicates, (before, &way), control, &mut after)?;
        }
        Ok(merged(after))
    }

    /// The same where all premises are known.
    fn successors_of(
        &mut self,
        plan: &Recipe,
        predicates: &Predicates,
        (before, cube): (&[usize], &[Option<bool>]),
        control: &Control<'_>,
        after: &mut Vec<Cube>,
    ) -> Result<(), Halt> {
        let bit = |i: usize| cube[i] == Some(true);
        let combinations: Combinations = if plan.open.is_empty() && plan.guard == Formula::True {
            Rc::new([Vec::new()])
        } else {
            let signed = |i: &usize| {
                let n = before[*i] as i32 + 1;
                if bit(*i) { n } else { -n }
            };
            let key = (plan.question, plan.premises.iter().map(signed).collect());
            match self.known.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let mut base: Vec<Formula> = plan.domain.clone();
                    let premises = plan.premises.iter();
                    base.extend(premises.map(|i| predicates.literal(before[*i], bit(*i))));
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
                Source::Fixed(v) => Some(*v),
                Source::Copy(i, sign) => cube[*i].map(|v| v == *sign),
                Source::Open => open.next().copied(),
            });
            sources.collect::<Cube>()
        };
        after.extend(combinations.iter().map(value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattle_logic::{Limits, gt, lt};

    /// What the solver does not know is no answer: neither possible nor impossible.
    #[test]
    fn a_solver_that_gives_up_halts_the_search() {
        let limits = Limits {
            work: 0,
            ..Limits::default()
        };
        let mut asker = Asker {
            solver: Native::with_limits(limits),
            ..Asker::default()
        };
        let (x, y) = (Var(0), Var(1));
        let query = [gt(x + y, 3), lt(x * 2 - y, 0)];
        let found = asker.combinations(&query, &[gt(x, y)], &Control::unlimited());
        assert!(matches!(found, Err(Halt::Unknown(Reason::Budget))));
    }

    #[test]
    fn what_is_no_query_is_polled_for() {
        let seen = std::sync::atomic::AtomicU64::new(0);
        let sink = |_: &'static str, _: Progress| {
            seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        };
        let control = Control::unlimited().with_sink(&sink);
        let mut asker = Asker::default();
        for _ in 0..10 * POLL / MOVES + 1 {
            asker.made_moves();
            assert!(asker.poll(&control).is_ok());
        }
        assert_eq!(seen.into_inner(), 10);
    }

    #[test]
    fn weaker_cubes_cover_stronger_ones() {
        let (t, f, o) = (Some(true), Some(false), None);
        assert!(covers(&[t, o], &[t, f]) && covers(&[o, o], &[t, o]));
        assert!(!covers(&[t, f], &[t, o]) && !covers(&[t, o], &[f, o]));
        let four = [vec![t, t], vec![t, f], vec![f, t], vec![f, f]];
        assert_eq!(merged(four), [vec![o, o]]);
        assert_eq!(merged([vec![t, t], vec![f, f]]).len(), 2);
    }
}

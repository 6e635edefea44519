//! The least facts: from the initial states upwards, a point at a time (reps-2004, symbolic abstraction).
//!
//! An act breaks what is known where it leads if the solver finds a state, of which all facts where it
//! begins are true, from which it leads to one of which they are not. That point is joined, and what can
//! be done from it is done on numbers while that teaches something new. Nothing is ever known that is too
//! weak: every point joined lies in the least solution. So as soon as something bad is possible under
//! the facts known so far, facts of these forms do not prove the program, and the search ends.

use super::element::{Element, Frame};
use super::world::{Act, Readings, World};
use crate::cegar::abstraction::{Halt, POLL};
use crate::reduce::Shape;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use wattle_evidence::{Control, Progress};
use wattle_logic::{Answer, Formula, Limits, Model, Native, Reason, Solver, Term, Var, not};

pub struct Spot {
    pub shape: Shape,
    pub frame: Frame,
    pub element: Element,
    /// The element's facts, unless it changed since.
    pub facts: Vec<Formula>,
    stale: bool,
    acts: Vec<Doing>,
    target: (Formula, Readings),
    opened: bool,
    waits: bool,
}

/// An act, where it leads, and a value to try for each variable of which no fact speaks.
struct Doing {
    act: Act,
    to: Option<usize>,
    tries: Vec<(Var, i64)>,
}

pub struct Search<'w, 'i> {
    world: &'w World<'i>,
    pub spots: Vec<Spot>,
    numbers: FxHashMap<Shape, usize>,
    work: VecDeque<usize>,
    solver: Native,
    /// What was shown, by act and conclusion, with the premises that this took.
    shown: FxHashMap<(usize, usize, Formula), Vec<Formula>>,
    asked: u64,
    /// Points followed, and what that took.
    followed: u64,
    points: u64,
    polls: u64,
}

/// What a query may take: remainders of several buffers' views are hard.
const WORK: u64 = 20_000_000;
/// What following a point takes beside it, at least, and a query besides the solver. A point is joined to facts about each
/// two variables: of many variables it takes as their square over this.
const POINT: u64 = 32;
const WIDE: u64 = 3;
const QUERY: u64 = 64;

/// What came of it.
pub enum Outcome {
    Proved,
    /// Something bad is possible where all facts are true.
    TooWeak,
}

/// Points that teach something and are not yet followed.
type Fresh = Vec<(usize, Vec<i64>)>;

impl<'w, 'i> Search<'w, 'i> {
    pub fn new(world: &'w World<'i>) -> Self {
        Search {
            world,
            spots: Vec::new(),
            numbers: FxHashMap::default(),
            work: VecDeque::new(),
            solver: Native::with_limits(Limits {
                work: WORK,
                ..Limits::default()
            }),
            shown: FxHashMap::default(),
            asked: 0,
            followed: 0,
            points: 0,
            polls: 0,
        }
    }

    pub fn effort(&self) -> Progress {
        Progress {
            states: self.asked + self.followed,
            frontier: self.work.len() as u64,
            memory: (16384 * self.spots.len() + 512 * self.shown.len()) as u64,
            ..Progress::default()
        }
    }

    pub fn run(&mut self, control: &Control<'_>) -> Result<Outcome, Halt> {
        let (shape, start) = self.world.initial();
        let first = self.number(&shape)?;
        loop {
            let mut query = start.conjuncts().to_vec();
            query.push(self.outside(first));
            let Some(model) = self.ask(&query, control)?.ok() else {
                break;
            };
            let point = self.point(first, &|v| model.value(v).to_i64())?;
            self.learn(first, point, control)?;
        }
        let mut quiet = false;
        while !quiet {
            while let Some(spot) = self.work.pop_front() {
                self.spots[spot].waits = false;
                if !self.settle(spot, control)? {
                    return Ok(Outcome::TooWeak);
                }
            }
            // What is weaker may be said by other facts, so everything that leads there is looked at again.
            for spot in 0..self.spots.len() {
                if !self.spots[spot].element.is_nothing() && !self.settle(spot, control)? {
                    return Ok(Outcome::TooWeak);
                }
            }
            quiet = self.work.is_empty();
        }
        Ok(Outcome::Proved)
    }

    fn number(&mut self, shape: &Shape) -> Result<usize, Halt> {
        if let Some(n) = self.numbers.get(shape) {
            return Ok(*n);
        }
        let n = self.spots.len();
        self.spots.push(Spot {
            shape: shape.clone(),
            frame: self.world.frame(shape),
            element: Element::nothing(),
            facts: Vec::new(),
            stale: false,
            acts: Vec::new(),
            target: self.world.target(shape)?,
            opened: false,
            waits: false,
        });
        self.numbers.insert(shape.clone(), n);
        Ok(n)
    }

    fn open(&mut self, spot: usize) -> Result<(), Halt> {
        if self.spots[spot].opened {
            return Ok(());
        }
        let mut acts = Vec::new();
        for act in self.world.acts(&self.spots[spot].shape)? {
            let to = match &act.to {
                Some(shape) => Some(self.number(shape)?),
                None => None,
            };
            let tries = self.tries(spot, &act);
            acts.push(Doing { act, to, tries });
        }
        self.spots[spot].acts = acts;
        self.spots[spot].opened = true;
        Ok(())
    }

    /// A value that types allow for each variable that the act uses and the spot's facts do not.
    fn tries(&self, spot: usize, act: &Act) -> Vec<(Var, i64)> {
        let here = &self.spots[spot];
        let mut vars = act.guard.vars();
        act.updates
            .iter()
            .for_each(|(_, e)| e.collect_vars(&mut vars));
        for v in here
            .frame
            .vars
            .iter()
            .chain(act.under.iter().flatten().map(|(_, v)| v))
        {
            vars.remove(v);
        }
        let value = |v: &Var| {
            let domain = self.world.domain(&here.shape, &BTreeSet::from([*v]));
            let fits = |x: &i64| {
                let mut one = Model::new();
                one.set(*v, *x);
                domain.iter().all(|f| f.eval(&one))
            };
            (0..64).find(fits).unwrap_or(0)
        };
        vars.iter().map(|v| (*v, value(v))).collect()
    }

    /// Brings the spot's facts up to date.
    fn refresh(&mut self, spot: usize) {
        let spot = &mut self.spots[spot];
        if std::mem::take(&mut spot.stale) {
            spot.facts = spot.element.facts(&spot.frame);
        }
    }

    /// That a fact is not true; of nothing that is always so.
    fn outside(&mut self, spot: usize) -> Formula {
        self.refresh(spot);
        let spot = &self.spots[spot];
        match spot.element.is_nothing() {
            true => Formula::True,
            false => wattle_logic::or(spot.facts.iter().map(not)),
        }
    }

    fn point(&self, spot: usize, value: &dyn Fn(Var) -> Option<i64>) -> Result<Vec<i64>, Halt> {
        let values = self.spots[spot].frame.vars.iter().map(|v| value(*v));
        let point: Option<Vec<i64>> = values.collect();
        point.ok_or_else(|| Halt::Other("the solver's numbers are too large".into()))
    }

    /// Joins the point and whatever new comes of it on numbers.
    fn learn(&mut self, spot: usize, point: Vec<i64>, control: &Control<'_>) -> Result<(), Halt> {
        let mut fresh: Fresh = Vec::new();
        self.join(spot, point, &mut fresh);
        while let Some((spot, point)) = fresh.pop() {
            self.followed += 1;
            let width = self.spots[spot].frame.vars.len() as u64;
            self.points += POINT.max(width * width / WIDE);
            self.poll(control)?;
            control.go_on()?;
            self.open(spot)?;
            let mut model = Model::new();
            for (v, x) in self.spots[spot].frame.vars.iter().zip(&point) {
                model.set(*v, *x);
            }
            for a in 0..self.spots[spot].acts.len() {
                if let Some((to, point)) = self.done(spot, a, &model) {
                    self.join(to, point, &mut fresh);
                }
            }
        }
        Ok(())
    }

    fn join(&mut self, n: usize, point: Vec<i64>, fresh: &mut Fresh) {
        let thresholds = &self.world.classes.thresholds;
        let spot = &mut self.spots[n];
        if !spot.element.join(&spot.frame, &point, thresholds) {
            return;
        }
        spot.stale = true;
        if !spot.waits {
            spot.waits = true;
            self.work.push_back(n);
        }
        fresh.push((n, point));
    }

    /// Where the act leads from the point, if that can be said without asking: one value is tried for
    /// what the point leaves open, and facts (perhaps of a moment ago) are read as the act wants.
    fn done(&self, spot: usize, act: usize, point: &Model) -> Option<(usize, Vec<i64>)> {
        let here = &self.spots[spot];
        let Doing { act, to, tries } = &here.acts[act];
        let to = (*to)?;
        let plain = tries.is_empty() && act.under.iter().all(Vec::is_empty);
        let mut model = Cow::Borrowed(point);
        if !plain {
            let model = model.to_mut();
            for (from, read) in act.under.iter().flatten() {
                if model.get(*read).is_none() {
                    let value = model.get(*from)?.clone();
                    model.set(*read, value);
                }
            }
            tries.iter().for_each(|(v, x)| model.set(*v, *x));
        }
        if !act.guard.eval(&model) {
            return None;
        }
        for way in act.under.iter().filter(|w| !w.is_empty()) {
            let mut read = model.clone().into_owned();
            for (from, to) in way {
                read.set(*from, model.value(*to).clone());
            }
            if !here.facts.iter().all(|f| f.eval(&read)) {
                return None;
            }
        }
        let after = |v: Var| match act.updates.iter().find(|(x, _)| *x == v) {
            Some((_, e)) => e.eval(&model).to_i64(),
            None => model.value(v).to_i64(),
        };
        Some((to, self.point(to, &after).ok()?))
    }

    /// What is known at the spot under the readings.
    fn known(&self, spot: usize, under: &[Vec<(Var, Var)>]) -> Vec<Formula> {
        let facts = &self.spots[spot].facts;
        let mut known = Vec::new();
        for way in under {
            let read = |v: Var| way.iter().find(|(x, _)| *x == v).map_or(v, |(_, y)| *y);
            known.extend(facts.iter().map(|f| f.rename(&read)));
        }
        known.retain(|f| *f != Formula::True);
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Makes what is known where the spot's acts lead follow from what is known here; says whether
    /// nothing bad is possible.
    fn settle(&mut self, spot: usize, control: &Control<'_>) -> Result<bool, Halt> {
        self.open(spot)?;
        self.refresh(spot);
        let (bad, under) = self.spots[spot].target.clone();
        if bad != Formula::False {
            let mut query = self.known(spot, &under);
            query.push(bad);
            if self.possible(spot, &query, control)?.is_ok() {
                return Ok(false);
            }
        }
        for a in 0..self.spots[spot].acts.len() {
            let known = self.known(spot, &self.spots[spot].acts[a].act.under);
            let facts: FxHashSet<Formula> = known.iter().cloned().collect();
            let Doing { act, to, .. } = &self.spots[spot].acts[a];
            let (guard, to) = (act.guard.clone(), *to);
            let Some(to) = to else {
                let mut query = known.clone();
                query.push(guard);
                if self.possible(spot, &query, control)?.is_ok() {
                    return Ok(false);
                }
                continue;
            };
            loop {
                self.refresh(to);
                let Some(goal) = self.open_goal(spot, a, to, &facts) else {
                    break;
                };
                let mut query = known.clone();
                query.push(guard.clone());
                if goal != Formula::False {
                    query.push(not(&goal));
                }
                match self.possible(spot, &query, control)? {
                    Err(core) => {
                        let premises = core.into_iter().filter_map(|i| known.get(i).cloned());
                        self.shown.insert((spot, a, goal), premises.collect());
                    }
                    Ok(model) => {
                        let act = &self.spots[spot].acts[a].act;
                        let after = |v: Var| match act.updates.iter().find(|(x, _)| *x == v) {
                            Some((_, e)) => e.eval(&model).to_i64(),
                            None => model.value(v).to_i64(),
                        };
                        let point = self.point(to, &after)?;
                        self.learn(to, point, control)?;
                    }
                }
            }
        }
        Ok(true)
    }

    /// A fact where the act leads, said of the state before it, that is not yet shown.
    fn open_goal(
        &self,
        spot: usize,
        a: usize,
        to: usize,
        facts: &FxHashSet<Formula>,
    ) -> Option<Formula> {
        let shown = |goal: &Formula| {
            let premises = self.shown.get(&(spot, a, goal.clone()));
            premises.is_some_and(|p| p.iter().all(|f| facts.contains(f)))
        };
        let act = &self.spots[spot].acts[a].act;
        if self.spots[to].element.is_nothing() {
            return Some(Formula::False).filter(|f| !shown(f));
        }
        let update = |v: Var| -> Option<Term> {
            act.updates
                .iter()
                .find(|(x, _)| *x == v)
                .map(|(_, e)| e.clone())
        };
        for fact in &self.spots[to].facts {
            if let Some(about) = &act.about
                && fact.vars().is_disjoint(about)
            {
                continue;
            }
            let goal = fact.subst(&update);
            if goal != Formula::True && !facts.contains(&goal) && !shown(&goal) {
                return Some(goal);
            }
        }
        None
    }

    /// A model of the query and of what types say, or the positions that contradict each other.
    fn possible(
        &mut self,
        spot: usize,
        query: &[Formula],
        control: &Control<'_>,
    ) -> Result<Result<Model, Vec<usize>>, Halt> {
        let mut vars = BTreeSet::new();
        query.iter().for_each(|f| f.collect_vars(&mut vars));
        vars.extend(&self.spots[spot].frame.vars);
        let mut all = query.to_vec();
        all.extend(self.world.domain(&self.spots[spot].shape, &vars));
        self.ask(&all, control)
    }

    /// Polls as often as the work done so far is worth.
    fn poll(&mut self, control: &Control<'_>) -> Result<(), Halt> {
        let work = self.solver.spent() + QUERY * self.asked + self.points;
        while self.polls < work / POLL {
            self.polls += 1;
            let progress = Progress {
                // Each is about more than the one before.
                states: self.polls,
                frontier: 0,
                ..self.effort()
            };
            control.poll("facts", progress)?;
        }
        Ok(())
    }

    fn ask(
        &mut self,
        query: &[Formula],
        control: &Control<'_>,
    ) -> Result<Result<Model, Vec<usize>>, Halt> {
        self.asked += 1;
        self.poll(control)?;
        match self.solver.check_while(query, &|| control.stop().is_none()) {
            Answer::Sat(model) => Ok(Ok(model)),
            Answer::Unsat(refutation) => Ok(Err(refutation.core)),
            Answer::Unknown(Reason::Stopped) => {
                control.go_on()?;
                Err(Halt::Unknown(Reason::Stopped))
            }
            Answer::Unknown(why) => Err(Halt::Unknown(why)),
        }
    }
}

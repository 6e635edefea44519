//! One round: all abstract states with the predicates known so far, breadth first. A state that an
//! already kept one at the same control state covers is left out (abdulla-2012, Alg. 1 line 10).

use super::abstraction::{Asker, Cube, Halt, Predicates, Recipe, covers, merged};
use super::coarse::{Finding, look};
use super::refine::{Refined, refine};
use super::templates;
use crate::reduce::{Move, Next, Shape, Symbol, System};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use wattle_evidence::{Control, Progress, Task};
use wattle_logic::{Formula, Var, le};
use wattle_memory::{Event, Start};
use wattle_model::{CellId, ThreadId};

pub enum Outcome {
    /// A spurious trace was excluded by new predicates.
    Excluded,
    Run(Start, Vec<Event>),
    /// A run needs a longer buffer.
    Overflow,
    /// A spurious trace shows that blurred buffers are too coarse.
    Coarse {
        cuts: Vec<(CellId, i64)>,
        threads: Vec<ThreadId>,
    },
    /// Nothing bad is reachable.
    Closed,
}

/// A shape with its moves; targets of moves are positions.
struct Spot {
    shape: Shape,
    moves: Option<Vec<(Move, Option<usize>)>>,
    target: Formula,
}

pub struct Node {
    pub spot: usize,
    pub cube: Cube,
    parent: Option<(usize, usize)>,
}

/// A spot's plans in this round, one per move.
struct Plans {
    moves: Vec<Rc<Recipe>>,
    target: Option<Rc<Recipe>>,
}

/// How predicates are found and where they are followed.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// A predicate wanted at more places than this is followed everywhere.
    pub local: usize,
    /// Whether templates are tried before interpolants.
    pub templates: bool,
    /// The values of a variable with at most so many are told apart all at once.
    pub few: u64,
}

pub struct Search<'i> {
    manner: Manner,
    pub system: System<'i>,
    /// The system with exact buffers, where those of `system` are blurred.
    exact: Option<System<'i>>,
    pub predicates: Predicates,
    asker: Asker,
    spots: Vec<Spot>,
    numbers: FxHashMap<Shape, usize>,
    pub nodes: Vec<Node>,
    pub relevant: Vec<Rc<[usize]>>,
    explored: u64,
}

impl<'i> Search<'i> {
    pub fn new(system: System<'i>, manner: Manner) -> Self {
        let mut predicates = Predicates::default();
        for hint in &system.instance.predicates {
            if let Some(f) = system.hint(hint) {
                predicates.add(&f);
            }
        }
        let exact = system.blur.is_some();
        Search {
            manner,
            exact: exact.then(|| system.clone().unbounded(None)),
            system,
            predicates,
            asker: Asker::default(),
            spots: Vec::new(),
            numbers: FxHashMap::default(),
            nodes: Vec::new(),
            relevant: Vec::new(),
            explored: 0,
        }
    }

    /// The same predicates for a system with longer buffers.
    pub fn with_system(self, system: System<'i>) -> Self {
        Search {
            predicates: self.predicates,
            asker: self.asker,
            explored: self.explored,
            ..Search::new(system, self.manner)
        }
    }

    pub fn effort(&self) -> Progress {
        Progress {
            states: self.explored + self.nodes.len() as u64,
            frontier: 0,
            memory: self.nodes.len() as u64 * (64 + self.predicates.all.len() as u64),
            ..Progress::default()
        }
    }

    fn number(&mut self, task: &Task<'_>, shape: &Shape) -> Result<usize, Halt> {
        if let Some(n) = self.numbers.get(shape) {
            return Ok(*n);
        }
        let target = match task.question() {
            Some(q) => self.system.target(shape, q)?,
            None => Formula::False,
        };
        let n = self.spots.len();
        self.spots.push(Spot {
            shape: shape.clone(),
            moves: None,
            target,
        });
        self.numbers.insert(shape.clone(), n);
        Ok(n)
    }

    fn expand(&mut self, task: &Task<'_>, spot: usize) -> Result<(), Halt> {
        if self.spots[spot].moves.is_some() {
            return Ok(());
        }
        self.asker.made_moves();
        let moves = self.system.moves(&self.spots[spot].shape);
        let mut listed = Vec::new();
        for mv in moves? {
            let to = match &mv.next {
                Next::To(shape) => Some(self.number(task, shape)?),
                Next::Fault | Next::Overflow => None,
            };
            listed.push((mv, to));
        }
        self.spots[spot].moves = Some(listed);
        Ok(())
    }

    fn relevant(&mut self, spot: usize) -> Rc<[usize]> {
        if self.relevant.len() < self.spots.len() {
            for n in self.relevant.len()..self.spots.len() {
                let found = self.predicates.relevant(&self.system, &self.spots[n].shape);
                self.relevant.push(found);
            }
        }
        self.relevant[spot].clone()
    }

    /// Explores; `follow` says whether an overflow counts as something to look into.
    pub fn round(
        &mut self,
        task: &Task<'_>,
        control: &Control<'_>,
        follow: bool,
    ) -> Result<Outcome, Halt> {
        self.explored += self.nodes.len() as u64;
        self.nodes.clear();
        self.relevant.clear();
        self.asker.new_round();
        let mut plans: Vec<Option<Plans>> = Vec::new();
        let mut kept = Kept::default();
        let mut overflow = None;
        let (shape, initial) = self.system.initial();
        let spot = self.number(task, &shape)?;
        let open = self.relevant(spot);
        let open: Vec<Formula> = open
            .iter()
            .map(|p| self.predicates.all[*p].clone())
            .collect();
        let base = initial.conjuncts().to_vec();
        let first = self.asker.combinations(&base, &open, control)?;
        let first = first.into_iter().map(|c| c.into_iter().map(Some).collect());
        for cube in merged(first) {
            kept.keep(spot, &cube);
            let parent = None;
            self.nodes.push(Node { spot, cube, parent });
        }
        let mut next = 0;
        while next < self.nodes.len() {
            let n = next;
            next += 1;
            self.asker.poll(control)?;
            let (spot, cube) = (self.nodes[n].spot, self.nodes[n].cube.clone());
            if kept.is_covered_since(spot, &cube) {
                continue;
            }
            self.expand(task, spot)?;
            if plans.len() < self.spots.len() {
                plans.resize_with(self.spots.len(), || None);
            }
            let before = self.relevant(spot);
            let here = match plans[spot].take() {
                Some(here) => here,
                None => self.plan(spot, &before),
            };
            let state = (&*before, cube.as_slice());
            if let Some(plan) = &here.target
                && self.possible(plan, state, control)?
            {
                let target = self.spots[spot].target.clone();
                return self.look_into(n, &target, None, control);
            }
            for (m, plan) in here.moves.iter().enumerate() {
                let (mv, to) = &self.spots[spot].moves.as_deref().unwrap_or_default()[m];
                let Some(to) = *to else {
                    let fault = matches!(mv.next, Next::Fault);
                    if !fault && (!follow || overflow.is_some()) {
                        continue;
                    }
                    let mv = mv.clone();
                    if !self.possible(plan, state, control)? {
                        continue;
                    }
                    if fault {
                        return self.look_into(n, &mv.guard, Some(&mv), control);
                    }
                    overflow = Some((n, mv));
                    continue;
                };
                let values = self
                    .asker
                    .successors(plan, &self.predicates, state, control)?;
                for cube in values {
                    if kept.keep(to, &cube) {
                        self.nodes.push(Node {
                            spot: to,
                            cube,
                            parent: Some((n, m)),
                        });
                    }
                }
            }
            plans[spot] = Some(here);
        }
        match overflow {
            Some((n, mv)) => {
                let guard = mv.guard.clone();
                match self.look_into(n, &guard, Some(&mv), control)? {
                    Outcome::Run(..) => Ok(Outcome::Overflow),
                    outcome @ (Outcome::Excluded
                    | Outcome::Overflow
                    | Outcome::Coarse { .. }
                    | Outcome::Closed) => Ok(outcome),
                }
            }
            None => Ok(Outcome::Closed),
        }
    }

    /// How to leave the spot, and how to see whether it is bad.
    fn plan(&mut self, spot: usize, before: &Rc<[usize]>) -> Plans {
        let nothing: Rc<[usize]> = Rc::new([]);
        let count = self.spots[spot].moves.as_ref().map_or(0, Vec::len);
        let mut moves = Vec::new();
        for m in 0..count {
            let to = self.spots[spot].moves.as_deref().unwrap_or_default()[m].1;
            let after = to.map_or_else(|| nothing.clone(), |to| self.relevant(to));
            let at = &self.spots[spot];
            let mv = &at.moves.as_deref().unwrap_or_default()[m].0;
            moves.push(self.asker.plan(
                &self.system,
                &self.predicates,
                (&at.shape, before),
                (&mv.guard, &mv.updates),
                &after,
            ));
        }
        let at = &self.spots[spot];
        let target = (at.target != Formula::False).then(|| {
            let condition = (&at.target, [].as_slice());
            let (system, predicates) = (&self.system, &self.predicates);
            let place = (&at.shape, before);
            self.asker
                .plan(system, predicates, place, condition, &nothing)
        });
        Plans { moves, target }
    }

    /// Whether the abstract state allows what the plan asks.
    fn possible(
        &mut self,
        plan: &Recipe,
        state: (&[usize], &[Option<bool>]),
        control: &Control<'_>,
    ) -> Result<bool, Halt> {
        let after = self
            .asker
            .successors(plan, &self.predicates, state, control)?;
        Ok(!after.is_empty())
    }

    fn look_into(
        &mut self,
        node: usize,
        last: &Formula,
        step: Option<&Move>,
        control: &Control<'_>,
    ) -> Result<Outcome, Halt> {
        let mut moves = Vec::new();
        let mut path = vec![node];
        let mut at = node;
        while let Some((parent, m)) = self.nodes[at].parent {
            let spot = self.nodes[parent].spot;
            let listed = self.spots[spot].moves.as_deref().unwrap_or_default();
            moves.push(&listed[m].0);
            path.push(parent);
            at = parent;
        }
        moves.reverse();
        path.reverse();
        let (_, initial) = self.system.initial();
        let found = match &self.exact {
            Some(exact) => look(&self.system, exact, &moves, last, step, control)?,
            None => {
                let found = refine(&self.system, &initial, &moves, last, step, control)?;
                Finding::Refined(found)
            }
        };
        let mut formulas = match found {
            Finding::Refined(Refined::Run(start, events)) => {
                return Ok(Outcome::Run(start, events));
            }
            Finding::Refined(Refined::Excluded(formulas)) => formulas,
            Finding::Coarse { cuts, threads } => return Ok(Outcome::Coarse { cuts, threads }),
        };
        let shape = |n: &usize| &self.spots[self.nodes[*n].spot].shape;
        if self.manner.templates {
            let states = path.iter().map(|n| (shape(n), self.known(*n)));
            let states: Vec<_> = states.collect();
            let excluded = templates::exclude(&self.system, &states, &moves, last, control)?;
            if let Some(sequence) = excluded {
                formulas.insert(0, sequence);
            }
        }
        let places: Vec<_> = path.iter().map(|n| shape(n).locations.clone()).collect();
        let spots: Vec<usize> = path.iter().map(|n| self.nodes[*n].spot).collect();
        for sequence in formulas {
            let mut new = false;
            for (i, f) in sequence.iter().enumerate() {
                new |= match places.get(i) {
                    Some(at) => {
                        let local = self.manner.local;
                        self.predicates.add_at(f, &self.system, at, local)
                    }
                    None => self.predicates.add(f),
                };
            }
            if new {
                for (i, f) in sequence.iter().enumerate() {
                    self.tell_apart(f, spots.get(i).copied());
                }
                return Ok(Outcome::Excluded);
            }
        }
        Err(Halt::Other("a spurious trace gave no new predicate".into()))
    }

    /// A variable with a few values of which some had to be told apart soon needs the others told apart too, and so
    /// do pending stores of its cell: all of them at once are one round instead of many.
    fn tell_apart(&mut self, f: &Formula, spot: Option<usize>) {
        for atom in f.atoms() {
            let [(v, _)] = atom.term().coeffs() else {
                continue;
            };
            let slot = |spot: usize, t: ThreadId, i: usize| {
                let pending = &self.spots[spot].shape.pending[t.index()];
                pending.slots.get(i).map(|s| s.cell)
            };
            let cell = match self.system.symbol(*v) {
                Symbol::Cell(c) => Some(c),
                Symbol::Entry(t, i) => spot.and_then(|spot| slot(spot, t, i)),
                Symbol::Register(..) | Symbol::Choice => None,
            };
            let variables: BTreeSet<Var> = match cell {
                None => [*v].into(),
                Some(cell) => {
                    let mut all = BTreeSet::from([self.system.cell(cell)]);
                    for spot in &self.spots {
                        for (t, pending) in spot.shape.pending.iter().enumerate() {
                            let slots = pending.slots.iter().enumerate();
                            let own = slots.filter(|(_, s)| s.cell == cell);
                            let t = ThreadId::new(t);
                            all.extend(own.map(|(i, _)| self.system.entry(t, i)));
                        }
                    }
                    all
                }
            };
            let first = cell.map_or(*v, |c| self.system.cell(c));
            let Some((lo, hi)) = self.system.few(first, self.manner.few) else {
                continue;
            };
            for v in variables {
                for cut in lo..hi {
                    self.predicates.add(&le(v, cut));
                }
            }
        }
    }

    /// What an abstract state says.
    fn known(&self, node: usize) -> Vec<Formula> {
        let node = &self.nodes[node];
        let relevant = self.relevant[node.spot].iter().zip(&node.cube);
        let known = relevant.filter_map(|(p, v)| Some(self.predicates.literal(*p, (*v)?)));
        known.collect()
    }

    /// The abstract states reached, by control state.
    pub fn by_spot(&self) -> BTreeMap<&Shape, (usize, Vec<&Cube>)> {
        let mut found: BTreeMap<&Shape, (usize, Vec<&Cube>)> = BTreeMap::new();
        for node in &self.nodes {
            let at = found.entry(&self.spots[node.spot].shape);
            at.or_insert_with(|| (node.spot, Vec::new()))
                .1
                .push(&node.cube);
        }
        found
    }
}

/// The cubes kept at every spot.
#[derive(Default)]
struct Kept(FxHashMap<usize, Vec<Cube>>);

impl Kept {
    /// Keeps the cube unless one that is there covers it; says which.
    fn keep(&mut self, spot: usize, cube: &Cube) -> bool {
        let there = self.0.entry(spot).or_default();
        if there.iter().any(|k| covers(k, cube)) {
            return false;
        }
        // What it covers stays reached, but need not be looked at again.
        there.retain(|k| !covers(cube, k));
        there.push(cube.clone());
        true
    }

    /// Whether the cube was kept, and then one that covers it.
    fn is_covered_since(&self, spot: usize, cube: &Cube) -> bool {
        !self.0.get(&spot).is_some_and(|there| there.contains(cube))
    }
}

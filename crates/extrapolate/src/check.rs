//! The three-valued checker of boolean programs (dan-2013 §6.1).
//!
//! A state is where the threads are and a cube: what is not in it is unknown. Assumptions are made
//! definite by splitting what they speak of (the paper's partial concretisation), and `enforce` cuts
//! off contradictions and fills in what follows. Unknown values that an assignment reads make the
//! result unknown, or are split too ([`Splitting`]): then values that are copied stay correlated. A
//! state weaker than another one covers it.

use crate::boolean::{Program, Transfer, Update};
use crate::cube::{Bits, Cube};
use crate::sites::{Lock, To};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use wattle_evidence::{Control, Progress, Task};
use wattle_logic::{Formula, Model};
use wattle_model::instance::Initial;
use wattle_model::{CellId, RegisterId, ThreadId};
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::reduce::{Move, Shape};

/// What is split into known and unknown, beside what assumptions read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Splitting {
    Assumptions,
    /// Values copied from one predicate to another.
    Copies,
    /// Everything an assignment reads.
    Everything,
}

/// One state is split into at most this many; what is left stays unknown.
const MOST_SPLITS: usize = 256;

/// A control state: the site of every thread, and who holds the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Control3 {
    pub sites: Vec<u32>,
    pub holder: Option<ThreadId>,
}

struct Spot {
    control: Control3,
    dead: Bits,
    /// The thread inside an atomic block.
    alone: Option<ThreadId>,
    target: Formula,
    /// Cubes that exclude the target.
    safe: Rc<Vec<Cube>>,
    nodes: Vec<u32>,
}

struct Node {
    spot: u32,
    cube: Cube,
    covered: bool,
    /// The state before and the move: thread, lock view, number.
    parent: Option<(u32, ThreadId, usize, u32)>,
}

/// Transfers tried from one poll to the next, about 0.8 µs each.
const POLL: usize = 512;

/// How a check ended.
pub enum Outcome {
    Closed,
    /// Something bad.
    Bad(Path),
    /// Nothing bad, but a store into a full buffer.
    Overflow(Path),
}

/// A path of the abstraction: the moves, what holds at its end, and the step that is taken there.
pub struct Path {
    pub moves: Vec<Move>,
    pub last: Formula,
    pub step: Option<Move>,
}

/// What checking took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    pub states: u64,
    pub memory: u64,
    pub time: Duration,
}

pub struct Checker<'p, 'i> {
    pub program: &'p mut Program<'i>,
    splitting: Splitting,
    spots: Vec<Spot>,
    numbers: FxHashMap<Control3, u32>,
    nodes: Vec<Node>,
    queue: VecDeque<u32>,
    /// Per predicate, the impossible cubes it is in.
    enforce: Vec<Vec<u32>>,
    safe: FxHashMap<Formula, Rc<Vec<Cube>>>,
}

impl<'p, 'i> Checker<'p, 'i> {
    pub fn new(program: &'p mut Program<'i>, splitting: Splitting) -> Self {
        let mut enforce = vec![Vec::new(); program.vocabulary.len()];
        for (n, cube) in program.enforce.iter().enumerate() {
            cube.known.iter().for_each(|p| enforce[p].push(n as u32));
        }
        Checker {
            program,
            splitting,
            spots: Vec::new(),
            numbers: FxHashMap::default(),
            nodes: Vec::new(),
            queue: VecDeque::new(),
            enforce,
            safe: FxHashMap::default(),
        }
    }

    pub fn effort(&self) -> Progress {
        let size = size_of::<Node>() as u64 + 8;
        Progress {
            states: self.nodes.len() as u64,
            frontier: self.queue.len() as u64,
            memory: self.nodes.len() as u64 * size + self.spots.len() as u64 * 512,
            ..Progress::default()
        }
    }

    /// Explores all states breadth first.
    pub fn run(
        &mut self,
        task: &Task<'_>,
        control: &Control<'_>,
    ) -> Result<(Outcome, Checked), Halt> {
        let started = Instant::now();
        let building = self.program.built().time;
        let outcome = self.explore(task, control)?;
        let effort = self.effort();
        let checked = Checked {
            states: effort.states,
            memory: effort.memory,
            time: started
                .elapsed()
                .saturating_sub(self.program.built().time.saturating_sub(building)),
        };
        Ok((outcome, checked))
    }

    fn explore(&mut self, task: &Task<'_>, control: &Control<'_>) -> Result<Outcome, Halt> {
        let threads = self.program.graphs.len();
        let first = Control3 {
            sites: vec![0; threads],
            holder: None,
        };
        let spot = self.spot(task, first, control)?;
        let start = self.initial(control);
        self.insert(spot, start, None);
        let mut overflow = None;
        let mut tried = 0;
        while let Some(n) = self.queue.pop_front() {
            while tried >= POLL {
                tried -= POLL;
                control.poll("extrapolate", self.effort())?;
            }
            if self.nodes[n as usize].covered {
                continue;
            }
            let spot = self.nodes[n as usize].spot as usize;
            let cube = self.nodes[n as usize].cube;
            if self.spots[spot].target != Formula::False {
                let safe = self.spots[spot].safe.clone();
                if !self.assume(cube, &safe).is_empty() {
                    let target = self.spots[spot].target.clone();
                    return Ok(Outcome::Bad(self.path(n, target, None)));
                }
            }
            for t in 0..threads {
                let t = ThreadId::new(t);
                if self.spots[spot].alone.is_some_and(|a| a != t) {
                    continue;
                }
                let at = &self.spots[spot].control;
                let site = at.sites[t.index()] as usize;
                let view = match at.holder {
                    None => Lock::Free,
                    Some(h) if h == t => Lock::Mine,
                    Some(_) => Lock::Other,
                };
                let transfers = self.program.transfers(t, site, view as usize, control)?;
                tried += transfers.len();
                for (m, transfer) in transfers.iter().enumerate() {
                    let branches = self.assume(cube, &transfer.refuted);
                    if branches.is_empty() {
                        continue;
                    }
                    let (site, lock) = match transfer.to {
                        To::Site { site, lock } => (site, lock),
                        To::Fault | To::Overflow => {
                            if transfer.to == To::Overflow && overflow.is_some() {
                                continue;
                            }
                            let moves = &self.program.graphs[t.index()].moves;
                            let mv = moves[site][view as usize][m].0.clone();
                            let path = self.path(n, mv.guard.clone(), Some(mv));
                            if transfer.to == To::Fault {
                                return Ok(Outcome::Bad(path));
                            }
                            overflow = Some(path);
                            continue;
                        }
                    };
                    let mut next = self.spots[spot].control.clone();
                    next.sites[t.index()] = site as u32;
                    next.holder = match lock {
                        Lock::Free => None,
                        Lock::Mine => Some(t),
                        Lock::Other => next.holder,
                    };
                    let to = self.spot(task, next, control)?;
                    let parent = Some((n, t, view as usize, m as u32));
                    for branch in branches {
                        for after in self.assign(branch, transfer) {
                            self.insert(to, after, parent);
                        }
                    }
                }
            }
        }
        Ok(match overflow {
            Some(path) => Outcome::Overflow(path),
            None => Outcome::Closed,
        })
    }

    fn path(&self, node: u32, last: Formula, step: Option<Move>) -> Path {
        let mut moves = Vec::new();
        let mut at = node;
        while let Some((before, t, view, m)) = self.nodes[at as usize].parent {
            let spot = self.nodes[before as usize].spot as usize;
            let site = self.spots[spot].control.sites[t.index()] as usize;
            let (mv, _) = &self.program.graphs[t.index()].moves[site][view][m as usize];
            moves.push(mv.clone());
            at = before;
        }
        moves.reverse();
        Path { moves, last, step }
    }

    pub fn shape(&self, control: &Control3) -> Shape {
        let (mut shape, _) = self.program.system.initial();
        for (t, site) in control.sites.iter().enumerate() {
            let site = &self.program.graphs[t].sites[*site as usize];
            shape.locations[t] = site.location;
            shape.pending[t] = site.pending.clone();
        }
        shape.holder = control.holder;
        shape
    }

    fn spot(&mut self, task: &Task<'_>, at: Control3, control: &Control<'_>) -> Result<u32, Halt> {
        if let Some(n) = self.numbers.get(&at) {
            return Ok(*n);
        }
        let shape = self.shape(&at);
        let target = match task.question() {
            Some(q) => self.program.system.target(&shape, q)?,
            None => Formula::False,
        };
        let safe = match self.safe.get(&target) {
            Some(known) => known.clone(),
            None => {
                let found = Rc::new(self.program.safe(&target, control)?);
                self.safe.insert(target.clone(), found.clone());
                found
            }
        };
        let dead = self.program.dead.iter().zip(&at.sites);
        let dead = dead.fold(Bits::default(), |d, (of, s)| d.or(of[*s as usize]));
        let n = self.spots.len() as u32;
        self.spots.push(Spot {
            alone: self.program.system.alone(&shape),
            control: at.clone(),
            dead,
            target,
            safe,
            nodes: Vec::new(),
        });
        self.numbers.insert(at, n);
        Ok(n)
    }

    /// What is known of the predicates at the start.
    pub fn initial(&self, control: &Control<'_>) -> Cube {
        let system = &self.program.system;
        let mut fixed = Model::new();
        let mut open = Vec::new();
        let mut place = |v, init| match init {
            Initial::Value(c) => fixed.set(v, c),
            Initial::Any => open.push(v),
        };
        for (c, cell) in system.instance.cells.iter().enumerate() {
            place(system.cell(CellId::new(c)), cell.init);
        }
        for t in system.instance.thread_ids() {
            for (r, reg) in system.instance.thread(t).registers.iter().enumerate() {
                place(system.register(t, RegisterId::new(r)), reg.init);
            }
        }
        let (_, start) = system.initial();
        let mut cube = Cube::default();
        for (p, predicate) in self.program.vocabulary.all.iter().enumerate() {
            if !predicate.vars.iter().any(|v| open.contains(v)) {
                cube = cube.with(p, predicate.formula.eval(&fixed));
                continue;
            }
            for (value, other) in [(true, &predicate.negation), (false, &predicate.formula)] {
                let mut query = start.conjuncts().to_vec();
                query.push(other.clone());
                if self.program.impossible_together(&query, control) {
                    cube = cube.with(p, value);
                }
            }
        }
        cube
    }

    /// Adds what `enforce` implies; `None` if the cube cannot be true. `changed` are the predicates
    /// that were set last.
    fn propagate(&self, mut cube: Cube, changed: Bits) -> Option<Cube> {
        let mut work: Vec<usize> = changed.iter().collect();
        while let Some(p) = work.pop() {
            for n in &self.enforce[p] {
                let clause = &self.program.enforce[*n as usize];
                if cube.conflicts(clause) {
                    continue;
                }
                let open = clause.known.without(cube.known);
                if open.is_empty() {
                    return None;
                }
                if let Some(q) = open.single() {
                    cube = cube.with(q, !clause.value.get(q));
                    work.push(q);
                }
            }
        }
        Some(cube)
    }

    /// The parts of the state in which none of the cubes is true, as far as it takes splitting.
    fn assume(&self, cube: Cube, refuted: &[Cube]) -> Vec<Cube> {
        let mut work = vec![cube];
        let mut found = Vec::new();
        'states: while let Some(mut cube) = work.pop() {
            let mut open: Option<(usize, usize)> = None;
            let mut again = true;
            while again {
                again = false;
                open = None;
                for clause in refuted {
                    if cube.conflicts(clause) {
                        continue;
                    }
                    let unknown = clause.known.without(cube.known);
                    if unknown.is_empty() {
                        continue 'states;
                    }
                    if let Some(q) = unknown.single() {
                        let set = cube.with(q, !clause.value.get(q));
                        match self.propagate(set, [q].into_iter().collect()) {
                            Some(c) => cube = c,
                            None => continue 'states,
                        }
                        again = true;
                    } else if let Some(q) = unknown.iter().next() {
                        let size = unknown.len();
                        if open.is_none_or(|(s, _)| size < s) {
                            open = Some((size, q));
                        }
                    }
                }
            }
            match open {
                Some((_, q)) if found.len() + work.len() < MOST_SPLITS => {
                    self.split(cube, q, &mut work);
                }
                _ => found.push(cube),
            }
        }
        found
    }

    /// The state with the predicate true, and with it false.
    fn split(&self, cube: Cube, p: usize, into: &mut Vec<Cube>) {
        for value in [true, false] {
            into.extend(self.propagate(cube.with(p, value), [p].into_iter().collect()));
        }
    }

    /// The states after the assignments.
    fn assign(&self, cube: Cube, transfer: &Transfer) -> Vec<Cube> {
        if transfer.updates.is_empty() {
            return vec![cube.forget(transfer.forgotten)];
        }
        let mut work = vec![cube];
        let mut found = Vec::new();
        while let Some(cube) = work.pop() {
            let room = found.len() + work.len() < MOST_SPLITS;
            let wanted = transfer
                .updates
                .iter()
                .find_map(|(_, u)| self.wanted(&cube, u));
            if let (Some(p), true) = (wanted, room) {
                self.split(cube, p, &mut work);
                continue;
            }
            let changed: Bits = transfer.updates.iter().map(|(p, _)| *p).collect();
            let mut after = cube.forget(changed.or(transfer.forgotten));
            for (p, update) in &transfer.updates {
                if let Some(value) = value(&cube, update) {
                    after = after.with(*p, value);
                }
            }
            found.extend(self.propagate(after, changed.and(after.known)));
        }
        found
    }

    /// A predicate that must be known for the assignment to be precise.
    fn wanted(&self, cube: &Cube, update: &Update) -> Option<usize> {
        match update {
            Update::Known(_) => None,
            Update::Copy(q, _) => {
                let unknown = self.splitting >= Splitting::Copies && cube.get(*q).is_none();
                unknown.then_some(*q)
            }
            Update::Choose { yes, no } => {
                if self.splitting < Splitting::Everything || value(cube, update).is_some() {
                    return None;
                }
                let open = yes.iter().chain(no).find(|c| !c.conflicts(cube))?;
                open.known.without(cube.known).iter().next()
            }
        }
    }

    fn insert(&mut self, spot: u32, cube: Cube, parent: Option<(u32, ThreadId, usize, u32)>) {
        let here = &mut self.spots[spot as usize];
        let cube = cube.forget(here.dead);
        let nodes = &mut self.nodes;
        if here
            .nodes
            .iter()
            .any(|n| cube.has_all(&nodes[*n as usize].cube))
        {
            return;
        }
        here.nodes.retain(|n| {
            let node = &mut nodes[*n as usize];
            node.covered = node.cube.has_all(&cube);
            !node.covered
        });
        let n = nodes.len() as u32;
        here.nodes.push(n);
        nodes.push(Node {
            spot,
            cube,
            covered: false,
            parent,
        });
        self.queue.push_back(n);
    }

    /// The states that cover all others, by control state.
    pub fn reached(&self) -> Vec<(Shape, Vec<Cube>)> {
        let spots = self.spots.iter().filter(|s| !s.nodes.is_empty());
        let mut all: Vec<(Shape, Vec<Cube>)> = spots
            .map(|s| {
                let cubes = s.nodes.iter().map(|n| self.nodes[*n as usize].cube);
                (self.shape(&s.control), cubes.collect())
            })
            .collect();
        all.sort();
        all
    }
}

fn value(cube: &Cube, update: &Update) -> Option<bool> {
    match update {
        Update::Known(v) => Some(*v),
        Update::Copy(q, sign) => cube.get(*q).map(|v| v == *sign),
        Update::Choose { yes, no } => {
            if yes.iter().any(|c| cube.has_all(c)) {
                return Some(true);
            }
            no.iter().any(|c| cube.has_all(c)).then_some(false)
        }
    }
}

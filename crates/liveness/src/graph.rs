//! The product of program and automaton, explored depth first, with its edges kept.
//!
//! Local steps are chained to the move before them, and of a node's moves only those are followed that are
//! enough ([`reduction`](crate::reduction)).
//!
//! Strongly connected components are found while exploring (Couvreur's algorithm): of each that is
//! still open it is known which acceptance sets its edges meet, who moves on them, and who cannot move
//! in some state of it. As soon as one has all that a fair run that breaks the demand needs, the
//! search ends. Where that cannot be read off (strong fairness, traps), components are looked into
//! when they are complete, and large ones each time they have doubled.

use crate::components::{Judge, look_into};
use crate::moves::{Loops, Move, Moves};
use crate::reduction::Rules;
use crate::tableau::MOST_ATOMS;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use wattle_evidence::certificate::components::Automaton;
use wattle_evidence::live::{LiveTask, Mover, Set};
use wattle_evidence::{Control, Progress, Stop};
use wattle_memory::compiled::{Chosen, Code, Flaw, Found, Machine, Offer};
use wattle_memory::{Event, reference};
use wattle_search::store::{ROOT, Store, hash};

/// What an edge does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Label {
    /// Acceptance sets it is in.
    pub accepting: u64,
    pub moved: Set,
    /// See [`Move`].
    pub away: Set,
    pub left: Loops,
}

impl Label {
    pub fn of(m: &Move, accepting: u64) -> Self {
        Label {
            accepting,
            moved: m.moved,
            away: m.away,
            left: m.left,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Arc {
    pub target: u32,
    pub label: u32,
}

/// An edge of the automaton, with what must be true as masks.
struct Way {
    yes: u64,
    no: u64,
    target: u32,
    accepting: u64,
}

pub struct Graph<'m, 'i> {
    pub machine: &'m Machine<'i>,
    pub judge: Judge,
    ways: Vec<Vec<Way>>,
    atoms: Vec<Code>,
    initial_state: u32,
    pub store: Store,
    pub moves: Moves<'m, 'i>,
    pub roots: Vec<u32>,
    /// Where a node's arcs begin; unset if it has not been expanded.
    begins: Vec<(u32, u32)>,
    pub arcs: Vec<Arc>,
    pub labels: Vec<Label>,
    label_numbers: FxHashMap<Label, u32>,
    /// Who can move, as a number of a label with that set.
    able: Vec<u32>,
    /// Whose moves are followed; none if all are.
    pub chosen: Vec<Option<Chosen>>,
    /// Not all moves need be followed.
    leaves_out: bool,
    offers: Vec<Offer>,
    row: Vec<u64>,
    /// To work in: where a node is among those looked at.
    pub place: RefCell<Vec<u32>>,
}

/// A strongly connected set of nodes with a fair run that breaks the demand.
pub struct Broken {
    pub nodes: Vec<u32>,
    /// The trap it stays in, for progress.
    pub trap: Option<usize>,
}

/// Why exploring ended.
pub enum Finished {
    /// Everything was seen, and no component breaks the demand.
    Closed,
    Broken(Broken),
    Found(Found),
    NoValue(Flaw),
    Stopped(Stop),
    TooMany,
}

const UNSEEN: u32 = u32::MAX;
/// Nodes expanded between two polls.
const POLL: u64 = 1 << 10;
/// Components are looked into while they grow from this size on.
const FIRST_LOOK: usize = 1 << 9;

/// An open component.
struct Open {
    number: u32,
    position: usize,
    accepting: u64,
    moved: Set,
    unable: Set,
    ever: Set,
    /// Some edge is inside.
    inside: bool,
    /// The label of the edge that led to it.
    came: u32,
}

impl<'m, 'i> Graph<'m, 'i> {
    pub fn new(
        task: &LiveTask<'_>,
        machine: &'m Machine<'i>,
        automaton: &Automaton,
        movers: &'m [Mover],
        rules: &Rules,
    ) -> Self {
        let mask = |now: &[(u32, bool)], wanted: bool| {
            let bits = now.iter().filter(|(_, p)| *p == wanted);
            bits.fold(0u64, |all, (i, _)| all | 1 << i)
        };
        let atoms = task.atoms();
        debug_assert!(atoms.len() <= MOST_ATOMS);
        let ways = automaton.states.iter().map(|s| {
            let ways = s.edges.iter().map(|e| Way {
                yes: mask(&e.now, true),
                no: mask(&e.now, false),
                target: e.target,
                accepting: e.accepting.iter().fold(0, |all, k| all | 1 << k),
            });
            ways.collect()
        });
        let all = |n: usize| if n >= 64 { u64::MAX } else { (1 << n) - 1 };
        let everyone = if movers.len() >= 128 {
            Set::MAX
        } else {
            (1 << movers.len()) - 1
        };
        Graph {
            machine,
            judge: Judge {
                fairness: task.fairness,
                sets: all(automaton.untils.len()),
                movers: everyone,
                traps: rules.traps.clone(),
                stays: rules.stays.clone(),
            },
            ways: ways.collect(),
            atoms: atoms.iter().map(|e| machine.condition(e)).collect(),
            initial_state: automaton.initial,
            store: Store::new(machine.words + usize::from(automaton.states.len() > 1)),
            moves: Moves::new(machine, movers, &rules.loops),
            roots: Vec::new(),
            begins: Vec::new(),
            arcs: Vec::new(),
            labels: vec![Label::default()],
            label_numbers: FxHashMap::from_iter([(Label::default(), 0)]),
            able: Vec::new(),
            chosen: Vec::new(),
            leaves_out: rules.reductions.persistent && machine.leaves_out(),
            offers: Vec::new(),
            row: Vec::new(),
            place: RefCell::new(Vec::new()),
        }
    }

    /// The arcs of a node; none if it has not been expanded.
    pub fn arcs(&self, node: u32) -> &[Arc] {
        match self.begins.get(node as usize) {
            Some((from, to)) if *from != UNSEEN => &self.arcs[*from as usize..*to as usize],
            _ => &[],
        }
    }

    pub fn label(&self, arc: &Arc) -> Label {
        self.labels[arc.label as usize]
    }

    /// Who can move there.
    pub fn able(&self, node: u32) -> Set {
        self.labels[self.able[node as usize] as usize].moved
    }

    /// The machine's part of a node.
    pub fn state(&self, node: u32) -> &[u64] {
        &self.store.state(node)[..self.machine.words]
    }

    /// The automaton's part.
    pub fn obligations(&self, node: u32) -> u32 {
        match self.ways.len() > 1 {
            true => self.store.state(node)[self.machine.words] as u32,
            false => 0,
        }
    }

    fn node(&mut self, state: &[u64], q: u32) -> u32 {
        self.row.clear();
        self.row.extend_from_slice(state);
        if self.ways.len() > 1 {
            self.row.push(u64::from(q));
        }
        self.store.insert(&self.row, hash(&self.row), ROOT).index
    }

    fn number(&mut self, label: Label) -> u32 {
        let fresh = self.labels.len() as u32;
        let number = *self.label_numbers.entry(label).or_insert(fresh);
        if number == fresh {
            self.labels.push(label);
        }
        number
    }

    pub fn progress(&self) -> Progress {
        let nodes = self.store.len() as u64;
        let arcs = (self.arcs.capacity() * size_of::<Arc>()) as u64;
        Progress {
            states: nodes,
            frontier: 0,
            memory: self.store.bytes() + arcs + 72 * nodes,
            ..Progress::default()
        }
    }

    /// Room for all nodes.
    fn make_room(&mut self) {
        let nodes = self.store.len();
        if self.begins.len() < nodes {
            self.begins.resize(nodes, (UNSEEN, UNSEEN));
            self.able.resize(nodes, 0);
            self.chosen.resize(nodes, None);
        }
    }

    /// Makes the arcs of a node: all, or those that are enough.
    fn expand(&mut self, node: u32, all: bool) -> Result<(), Finished> {
        let (state, q) = (self.state(node).to_vec(), self.obligations(node));
        self.make_room();
        let from = self.arcs.len() as u32;
        if self.moves.is_discarded(&state) {
            self.begins[node as usize] = (from, from);
            return Ok(());
        }
        let mut truth = 0u64;
        for (i, atom) in self.atoms.iter().enumerate() {
            match self.machine.value(atom, &state) {
                Ok(v) => truth |= u64::from(v != 0) << i,
                Err(flaw) => return Err(Finished::NoValue(*flaw)),
            }
        }
        self.moves.expand(&state, false).map_err(Finished::Found)?;
        let found = std::mem::take(&mut self.moves.found.states);
        let list = std::mem::take(&mut self.moves.found.list);
        let able = Label {
            moved: self.moves.found.able,
            ..Label::default()
        };
        self.able[node as usize] = self.number(able);
        let chosen = match all || !self.leaves_out {
            true => None,
            false => self.choose(&state, &found, &list),
        };
        self.chosen[node as usize] = chosen;
        let wanted = |moves: &Moves<'_, '_>, m: &Move| {
            chosen.is_none_or(|c| match moves.process(m) {
                (t, true) => c.drains_of(t),
                (t, false) => c.steps_of(t),
            })
        };
        for w in 0..self.ways[q as usize].len() {
            let way = &self.ways[q as usize][w];
            if way.yes & !truth != 0 || way.no & truth != 0 {
                continue;
            }
            let (next, accepting) = (way.target, way.accepting);
            for (to, m) in found.chunks_exact(self.machine.words).zip(&list) {
                if wanted(&self.moves, m) {
                    let label = self.number(Label::of(m, accepting));
                    let target = self.node(to, next);
                    self.arcs.push(Arc { target, label });
                }
            }
            // Where nothing can move the last state is repeated.
            if able.moved == 0 {
                let label = self.number(Label::of(&Move::default(), accepting));
                let target = self.node(&state, next);
                self.arcs.push(Arc { target, label });
            }
        }
        self.begins[node as usize] = (from, self.arcs.len() as u32);
        self.moves.found.states = found;
        self.moves.found.list = list;
        Ok(())
    }

    /// Whose moves are enough in a state, if not all are needed: what they do is not seen, and none of them closes a
    /// round. That depends on nothing but the state; see [`reduction`](crate::reduction) for why it must not.
    fn choose(&mut self, state: &[u64], found: &[u64], list: &[Move]) -> Option<Chosen> {
        let threads = self.machine.thread_count();
        self.offers.clear();
        self.offers.resize(threads, Offer::NOTHING);
        for (to, m) in found.chunks_exact(self.machine.words).zip(list) {
            let (t, drain) = self.moves.process(m);
            let seen = m.back || self.machine.is_seen(t, state, to);
            let offer = &mut self.offers[t];
            if drain {
                offer.drains += 1;
                offer.seen_drains |= seen;
            } else {
                offer.steps += 1;
                offer.seen_steps |= seen;
            }
        }
        self.machine.choose(state, &self.offers)
    }

    /// Puts the initial nodes in.
    pub fn begin(&mut self) -> Result<(), Finished> {
        let starts = reference::starts(self.machine.instance).unwrap_or_default();
        let mut state = vec![0; self.machine.words];
        for start in &starts {
            let mut notes = self.machine.notes();
            let begun = self
                .machine
                .begin(start, &mut state, &mut notes, &mut First::default());
            begun.map_err(Finished::Found)?;
            let q = self.initial_state;
            let node = self.node(&state, q);
            if !self.roots.contains(&node) {
                self.roots.push(node);
            }
        }
        Ok(())
    }

    /// Explores breadth first until so many nodes are expanded, or all.
    pub fn widely(&mut self, most: u32, control: &Control<'_>) -> Result<(), Finished> {
        self.begin()?;
        let mut next = 0;
        while next < most && (next as usize) < self.store.len() {
            if u64::from(next).is_multiple_of(POLL) {
                let progress = self.progress();
                control
                    .poll("liveness", progress)
                    .map_err(Finished::Stopped)?;
            }
            self.expand(next, true)?;
            next += 1;
        }
        self.make_room();
        Ok(())
    }

    /// Explores until everything is seen or a component breaks the demand.
    pub fn run(&mut self, control: &Control<'_>) -> Finished {
        let explored = self
            .begin()
            .and_then(|()| Search::default().run(self, control));
        explored.err().unwrap_or(Finished::Closed)
    }
}

/// The state of the depth-first search.
#[derive(Default)]
struct Search {
    /// When a node was entered, counted from 1; 0 before that.
    entered: Vec<u32>,
    closed: Vec<bool>,
    clock: u32,
    /// Nodes entered and not yet in a closed component.
    open: Vec<u32>,
    components: Vec<Open>,
    /// The way to the current node, with the next arc of each.
    path: Vec<(u32, u32)>,
    /// The size of an open component that will be looked into.
    look: usize,
    work: u64,
}

impl Search {
    fn run(&mut self, graph: &mut Graph<'_, '_>, control: &Control<'_>) -> Result<(), Finished> {
        self.look = FIRST_LOOK;
        for root in graph.roots.clone() {
            if self.is_new(root) {
                self.enter(graph, root, 0, control)?;
            }
            while let Some((node, next)) = self.path.last_mut() {
                let (node, at) = (*node, *next);
                let arc = graph.arcs(node).get(at as usize).copied();
                *next += 1;
                match arc {
                    None => {
                        self.path.pop();
                        self.leave(graph, node)?;
                    }
                    Some(arc) if self.is_new(arc.target) => {
                        self.enter(graph, arc.target, arc.label, control)?;
                    }
                    Some(arc) if !self.closed[arc.target as usize] => self.merge(graph, arc)?,
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    fn is_new(&self, node: u32) -> bool {
        self.entered.get(node as usize).is_none_or(|n| *n == 0)
    }

    fn enter(
        &mut self,
        graph: &mut Graph<'_, '_>,
        node: u32,
        came: u32,
        control: &Control<'_>,
    ) -> Result<(), Finished> {
        self.work += 1;
        if self.work.is_multiple_of(POLL) {
            let progress = graph.progress();
            control
                .poll("liveness", progress)
                .map_err(Finished::Stopped)?;
        }
        if graph.store.is_full() || graph.arcs.len() >= (UNSEEN >> 1) as usize {
            return Err(Finished::TooMany);
        }
        graph.expand(node, false)?;
        graph.make_room();
        self.entered.resize(graph.store.len(), 0);
        self.closed.resize(graph.store.len(), false);
        self.clock += 1;
        self.entered[node as usize] = self.clock;
        let able = graph.able(node);
        self.components.push(Open {
            number: self.clock,
            position: self.open.len(),
            accepting: 0,
            moved: 0,
            unable: !able,
            ever: able,
            inside: false,
            came,
        });
        self.open.push(node);
        self.path.push((node, 0));
        Ok(())
    }

    /// An arc to an open node: everything entered since is one component with it.
    fn merge(&mut self, graph: &mut Graph<'_, '_>, arc: Arc) -> Result<(), Finished> {
        let since = self.entered[arc.target as usize];
        let mut label = graph.label(&arc);
        let (mut unable, mut ever) = (0, 0);
        while self.components.last().is_some_and(|c| c.number > since) {
            let Some(c) = self.components.pop() else {
                break;
            };
            let came = graph.labels[c.came as usize];
            label.accepting |= c.accepting | came.accepting;
            label.moved |= c.moved | came.moved;
            unable |= c.unable;
            ever |= c.ever;
        }
        let Some(c) = self.components.last_mut() else {
            return Ok(());
        };
        c.accepting |= label.accepting;
        c.moved |= label.moved;
        c.unable |= unable;
        c.ever |= ever;
        c.inside = true;
        let nodes = &self.open[c.position..];
        let judge = &graph.judge;
        if judge.traps.is_empty() {
            let fair = judge.is_fair(c.moved, c.unable, c.ever);
            if c.accepting & judge.sets == judge.sets && fair {
                let nodes = nodes.to_vec();
                return Err(Finished::Broken(Broken { nodes, trap: None }));
            }
        }
        if nodes.len() >= self.look && !judge.is_plain() {
            self.look = 2 * nodes.len();
            let nodes = nodes.to_vec();
            if let Some(broken) = look_into(graph, &nodes) {
                return Err(Finished::Broken(broken));
            }
        }
        Ok(())
    }

    /// A node has no more arcs; if its component has no more nodes it is closed.
    fn leave(&mut self, graph: &mut Graph<'_, '_>, node: u32) -> Result<(), Finished> {
        let number = self.entered[node as usize];
        if self.components.last().is_none_or(|c| c.number != number) {
            return Ok(());
        }
        let Some(c) = self.components.pop() else {
            return Ok(());
        };
        let nodes = self.open.split_off(c.position);
        for n in &nodes {
            self.closed[*n as usize] = true;
        }
        if c.inside && !graph.judge.is_plain() {
            self.look = FIRST_LOOK.max(2 * self.open.len());
            if let Some(broken) = look_into(graph, &nodes) {
                return Err(Finished::Broken(broken));
            }
        }
        Ok(())
    }
}

/// The local steps from a start to an initial node.
#[derive(Default)]
pub struct First(pub Vec<Event>);

impl wattle_memory::compiled::Sink for First {
    fn event(&mut self, event: impl FnOnce() -> Event) {
        self.0.push(event());
    }

    fn next(&mut self, _: &[u64]) {}
}

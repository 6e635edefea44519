//! The happens-before relation of a concrete run (calin-2016, 2.3.3), and its cycles.
//!
//! Nodes are the loads and stores of the run; a store is one with its drain (↔). Edges: program
//! order within a thread; conflicts between accesses of one cell in the order they reach memory. A
//! load served by its own thread's buffer counts as made just after that store drains: it is before
//! every store that overwrites the value. (The thesis gives such loads no edge to later stores; then
//! `x = 1; z = 1; r = x` beside `x = 2; s = z` would have an acyclic relation for r = 1, s = 0, x = 2,
//! which no SC run has.) Stores still pending at the end count as draining then.
//!
//! One rule the thesis does not need: what is inside an atomic block or a lock region happens
//! together, so whatever comes before (after) one access of such a *unit* comes before (after) all of
//! them. (While a thread holds the lock no other loads and no other store reaches memory; blocks and
//! regions inside each other are one unit.) A run has the relation of some SC run if and only if the
//! relation, closed under this rule, has no cycle.
//!
//! This is the evidence for *not robust*: a run of the reference machine whose relation has a cycle.

use std::collections::BTreeMap;
use wattle_memory::reference::{self, ReplayError, Snapshot};
use wattle_memory::{Event, MemoryModel, Start};
use wattle_model::graph::Action;
use wattle_model::instance::Address;
use wattle_model::{CellId, Instance, RegisterId, ThreadId};

/// A load or a store of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Index of the step among the run's events.
    pub event: usize,
    pub thread: ThreadId,
    pub cell: CellId,
    pub write: bool,
    /// When it reaches memory: an event's index, or past the end for a store still pending.
    pub time: usize,
    /// The store in its own thread's buffer that served a load.
    pub early: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    ProgramOrder,
    /// A store and the load that reads it (or a later load).
    ReadsFrom,
    /// A load and a store that overwrites what it read.
    FromRead,
    /// Two stores in the order they reach memory.
    WriteOrder,
    /// Forced by an atomic block or a lock region.
    Together,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Indices into [`Relation::nodes`].
    pub from: usize,
    pub to: usize,
    pub kind: EdgeKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

/// Accesses of a thread that happen together.
struct Unit {
    nodes: Vec<usize>,
    thread: ThreadId,
}

/// The relation of a run, closed under the rule for blocks and regions.
pub fn relation(
    instance: &Instance,
    model: MemoryModel,
    start: &Start,
    events: &[Event],
) -> Result<Relation, ReplayError> {
    let (states, _) = reference::replay(instance, model, start, events)?;
    let mut build = Build {
        instance,
        model,
        nodes: Vec::new(),
        pending: BTreeMap::new(),
        units: Vec::new(),
        open: BTreeMap::new(),
    };
    for (i, event) in events.iter().enumerate() {
        build.event(i, event, &states[i]);
    }
    let holder = states.last().and_then(|s| s.holder);
    Ok(build.finish(events.len(), holder))
}

struct Build<'i> {
    instance: &'i Instance,
    model: MemoryModel,
    nodes: Vec<Node>,
    /// Stores not drained yet, oldest first.
    pending: BTreeMap<(ThreadId, CellId), Vec<usize>>,
    units: Vec<Unit>,
    /// The unit a thread is in.
    open: BTreeMap<ThreadId, usize>,
}

impl Build<'_> {
    fn event(&mut self, i: usize, event: &Event, before: &Snapshot) {
        match *event {
            Event::Drain { thread, cell, .. } => {
                if let Some(list) = self.pending.get_mut(&(thread, cell))
                    && !list.is_empty()
                {
                    let node = list.remove(0);
                    self.nodes[node].time = i;
                }
            }
            Event::Step { thread, step, .. } => {
                let data = self.instance.thread(thread);
                let step = data.step(step);
                let atomic = data.direct[step.source.index()];
                let holds = before.holder == Some(thread);
                let unit = (atomic || holds).then(|| self.unit(thread));
                match &step.action {
                    Action::Load { place, .. } => {
                        if let Some(cell) = address(before, thread, place) {
                            let own = self.pending.get(&(thread, cell));
                            let early = own.and_then(|p| p.last().copied());
                            self.node(i, thread, cell, false, early, unit);
                        }
                    }
                    Action::Store { place, .. } => {
                        if let Some(cell) = address(before, thread, place) {
                            let node = self.node(i, thread, cell, true, None, unit);
                            if self.model != MemoryModel::Sc && !atomic {
                                self.pending.entry((thread, cell)).or_default().push(node);
                            }
                        }
                    }
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Lock
                    | Action::Unlock => {}
                }
                let still_holds =
                    step.action == Action::Lock || holds && step.action != Action::Unlock;
                if !still_holds && !data.direct[step.target.index()] {
                    self.open.remove(&thread);
                }
            }
        }
    }

    /// The unit the thread is in.
    fn unit(&mut self, thread: ThreadId) -> usize {
        let fresh = self.units.len();
        let unit = *self.open.entry(thread).or_insert(fresh);
        if unit == fresh {
            let nodes = Vec::new();
            self.units.push(Unit { nodes, thread });
        }
        unit
    }

    fn node(
        &mut self,
        event: usize,
        thread: ThreadId,
        cell: CellId,
        write: bool,
        early: Option<usize>,
        unit: Option<usize>,
    ) -> usize {
        let index = self.nodes.len();
        if let Some(unit) = unit {
            self.units[unit].nodes.push(index);
        }
        self.nodes.push(Node {
            event,
            thread,
            cell,
            write,
            time: event,
            early,
        });
        index
    }

    /// What is pending drains in the end; whoever holds the lock comes first.
    fn finish(mut self, end: usize, holder: Option<ThreadId>) -> Relation {
        let mut pending: Vec<_> = self.pending.iter().collect();
        pending.sort_by_key(|((thread, _), _)| Some(*thread) != holder);
        let late = pending.into_iter().flat_map(|(_, nodes)| nodes);
        for (late, node) in (end..).zip(late) {
            self.nodes[*node].time = late;
        }
        for i in 0..self.nodes.len() {
            if let Some(store) = self.nodes[i].early {
                self.nodes[i].time = self.nodes[store].time;
            }
        }
        let mut edges = direct(&self.nodes);
        together(&self.nodes, &self.units, &mut edges);
        Relation {
            nodes: self.nodes,
            edges,
        }
    }
}

fn direct(nodes: &[Node]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (i, a) in nodes.iter().enumerate() {
        let next = nodes[i + 1..].iter().position(|b| b.thread == a.thread);
        if let Some(next) = next {
            edges.push(Edge {
                from: i,
                to: i + 1 + next,
                kind: EdgeKind::ProgramOrder,
            });
        }
        for (j, b) in nodes.iter().enumerate() {
            let conflict = a.cell == b.cell && (a.write || b.write);
            if conflict && a.time < b.time {
                let kind = match (a.write, b.write) {
                    (true, false) => EdgeKind::ReadsFrom,
                    (false, _) => EdgeKind::FromRead,
                    (true, true) => EdgeKind::WriteOrder,
                };
                edges.push(Edge {
                    from: i,
                    to: j,
                    kind,
                });
            }
        }
    }
    edges
}

/// Adds what blocks and regions force, until nothing changes.
fn together(nodes: &[Node], units: &[Unit], edges: &mut Vec<Edge>) {
    let units: Vec<&Unit> = units.iter().filter(|u| !u.nodes.is_empty()).collect();
    if units.is_empty() {
        return;
    }
    // What a unit keeps out: groups of nodes of other threads, moved as one.
    let mut groups: Vec<(Vec<usize>, ThreadId)> = Vec::new();
    for u in &units {
        groups.push((u.nodes.clone(), u.thread));
    }
    for (i, n) in nodes.iter().enumerate() {
        groups.push((vec![i], n.thread));
    }
    loop {
        let reach = reachability(nodes.len(), edges);
        let leads =
            |from: &[usize], to: &[usize]| from.iter().any(|a| to.iter().any(|b| reach[*a][*b]));
        let mut new = Vec::new();
        for u in &units {
            for (group, thread) in &groups {
                if *thread == u.thread {
                    continue;
                }
                for (from, to) in [(&u.nodes, group), (group, &u.nodes)] {
                    if leads(from, to) {
                        let all = from.iter().flat_map(|a| to.iter().map(move |b| (*a, *b)));
                        new.extend(all.filter(|(a, b)| !reach[*a][*b]));
                    }
                }
            }
        }
        if new.is_empty() {
            return;
        }
        new.sort_unstable();
        new.dedup();
        edges.extend(new.into_iter().map(|(from, to)| Edge {
            from,
            to,
            kind: EdgeKind::Together,
        }));
    }
}

fn reachability(n: usize, edges: &[Edge]) -> Vec<Vec<bool>> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); n];
    for e in edges {
        out[e.from].push(e.to);
    }
    (0..n)
        .map(|root| {
            let mut seen = vec![false; n];
            let mut work = out[root].clone();
            while let Some(v) = work.pop() {
                if !std::mem::replace(&mut seen[v], true) {
                    work.extend(&out[v]);
                }
            }
            seen
        })
        .collect()
}

impl Relation {
    /// A shortest path of edges from one node to another (not empty: `from == to` gives a cycle).
    pub fn path(&self, from: usize, to: usize) -> Option<Vec<Edge>> {
        let mut came: Vec<Option<Edge>> = vec![None; self.nodes.len()];
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(v) = queue.pop_front() {
            for e in self.edges.iter().filter(|e| e.from == v) {
                if came[e.to].is_some() {
                    continue;
                }
                came[e.to] = Some(*e);
                if e.to == to {
                    let mut path = vec![*e];
                    while path[path.len() - 1].from != from {
                        let last = path[path.len() - 1].from;
                        path.extend(came[last]);
                    }
                    path.reverse();
                    return Some(path);
                }
                queue.push_back(e.to);
            }
        }
        None
    }

    /// A cycle, if there is one: then no SC run has this relation.
    pub fn cycle(&self) -> Option<Vec<Edge>> {
        let cycles = (0..self.nodes.len()).filter_map(|n| self.path(n, n));
        cycles.min_by_key(Vec::len)
    }
}

/// The cell of a memory operand in a state; none if using it is a fault.
pub fn address(state: &Snapshot, thread: ThreadId, place: &Address) -> Option<CellId> {
    match place {
        Address::Cell(c) => Some(*c),
        Address::Computed {
            base,
            length,
            index,
        } => {
            let registers = &state.registers[thread.index()];
            let index = index.eval(&|r: &RegisterId| registers[r.index()]).ok()?;
            let inside = u32::try_from(index).ok().filter(|i| i < length)?;
            Some(CellId(base.0 + inside))
        }
    }
}

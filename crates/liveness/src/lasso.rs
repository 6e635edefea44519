//! From a component that breaks the demand to a run: a shortest way there, and a short way round that
//! does for everyone what fairness wants.

use crate::graph::{Arc, Broken, First, Graph, Label};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use wattle_evidence::live::lasso::Lasso;
use wattle_evidence::live::{Fairness, Set};
use wattle_memory::reference;
use wattle_memory::{Event, Start};

/// Nodes of the component from which a way round is tried, and the nodes all of them may visit.
const MOST_TURNS: usize = 64;
const MOST_VISITS: usize = 1 << 21;

/// A way through the graph: nodes with the arcs between.
type Way = Vec<(u32, Arc)>;

/// The lasso of a strongly connected set of nodes, sorted or not.
pub fn lasso(graph: &mut Graph<'_, '_>, broken: &Broken, fairness: Fairness) -> Option<Lasso> {
    let mut inside = broken.nodes.clone();
    inside.sort_unstable();
    let before = distances(graph);
    let mut turns: Vec<u32> = inside.clone();
    turns.sort_by_key(|n| (before.get(n).map_or(u32::MAX, |(d, _)| *d), *n));
    let mut best: Option<(usize, u32, Way)> = None;
    let tries = MOST_TURNS.min(1 + MOST_VISITS / (1 + inside.len()));
    for turn in turns.into_iter().take(tries) {
        let Some((steps, _)) = before.get(&turn) else {
            continue;
        };
        let Some(round) = round(graph, turn, &inside, broken.trap) else {
            continue;
        };
        let length = *steps as usize + 2 * round.len();
        if best.as_ref().is_none_or(|(l, ..)| length < *l) {
            best = Some((length, turn, round));
        }
    }
    let (_, turn, round) = best?;
    let mut stem: Way = Vec::new();
    let mut at = turn;
    while let Some((_, Some((from, arc)))) = before.get(&at) {
        stem.push((*from, *arc));
        at = *from;
    }
    stem.reverse();
    let (start, mut first) = start(graph, at)?;
    first.extend(events(graph, &stem)?);
    let stem = first;
    let cycle = events(graph, &round)?;
    Some(Lasso {
        model: graph.machine.model,
        fairness,
        start,
        stem,
        cycle,
        for_ever: None,
    })
}

/// How far nodes are from the initial ones, and from where.
fn distances(graph: &Graph<'_, '_>) -> FxHashMap<u32, (u32, Option<(u32, Arc)>)> {
    let mut known: FxHashMap<u32, (u32, Option<(u32, Arc)>)> = FxHashMap::default();
    let mut work: VecDeque<u32> = VecDeque::new();
    for root in &graph.roots {
        known.insert(*root, (0, None));
        work.push_back(*root);
    }
    while let Some(n) = work.pop_front() {
        let distance = known[&n].0;
        for arc in graph.arcs(n) {
            known.entry(arc.target).or_insert_with(|| {
                work.push_back(arc.target);
                (distance + 1, Some((n, *arc)))
            });
        }
    }
    known
}

/// What a way round still has to do.
struct Wanted {
    sets: u64,
    movers: Set,
    /// Being in a state where a mover cannot move is enough.
    rest_is_enough: bool,
}

/// A way from the node back to it, inside the component, that meets every acceptance set and is fair.
fn round(graph: &Graph<'_, '_>, turn: u32, inside: &[u32], trap: Option<usize>) -> Option<Way> {
    let holds = |arc: &Arc| {
        inside.binary_search(&arc.target).is_ok() && graph.judge.is_inside(graph, trap, arc)
    };
    let holds = &holds;
    let mut wanted = Wanted {
        sets: graph.judge.sets,
        movers: match graph.judge.fairness {
            Fairness::None => 0,
            Fairness::Weak => graph.judge.movers,
            // Only those that can move somewhere in it.
            Fairness::Strong | Fairness::Memory => {
                let ever = inside.iter().fold(0, |all, n| all | graph.able(*n));
                graph.judge.movers & ever
            }
        },
        rest_is_enough: graph.judge.fairness == Fairness::Weak,
    };
    let mut way: Way = Vec::new();
    let mut at = turn;
    wanted.see(graph, at);
    while wanted.sets != 0 || wanted.movers != 0 {
        let more = nearest(graph, at, holds, &|arc| wanted.is_met_by(graph, arc))?;
        for (from, arc) in more {
            wanted.take(graph, &arc);
            way.push((from, arc));
            at = arc.target;
        }
    }
    if at != turn || way.is_empty() {
        way.extend(nearest(graph, at, holds, &|arc| arc.target == turn)?);
    }
    Some(way)
}

impl Wanted {
    fn see(&mut self, graph: &Graph<'_, '_>, node: u32) {
        if self.rest_is_enough {
            self.movers &= graph.able(node);
        }
    }

    fn take(&mut self, graph: &Graph<'_, '_>, arc: &Arc) {
        let label = graph.label(arc);
        self.sets &= !label.accepting;
        self.movers &= !label.moved;
        self.see(graph, arc.target);
    }

    fn is_met_by(&self, graph: &Graph<'_, '_>, arc: &Arc) -> bool {
        let label = graph.label(arc);
        self.sets & label.accepting != 0
            || self.movers & label.moved != 0
            || self.rest_is_enough && self.movers & !graph.able(arc.target) != 0
    }
}

/// The shortest way inside the component whose last arc is one that is wanted.
fn nearest(
    graph: &Graph<'_, '_>,
    from: u32,
    holds: &dyn Fn(&Arc) -> bool,
    wanted: &dyn Fn(&Arc) -> bool,
) -> Option<Way> {
    let mut came: FxHashMap<u32, Option<(u32, Arc)>> = FxHashMap::default();
    came.insert(from, None);
    let mut work = VecDeque::from([from]);
    while let Some(n) = work.pop_front() {
        for arc in graph.arcs(n) {
            if !holds(arc) {
                continue;
            }
            if wanted(arc) {
                let mut way = vec![(n, *arc)];
                let mut at = n;
                while let Some(Some((before, arc))) = came.get(&at) {
                    way.push((*before, *arc));
                    at = *before;
                }
                way.reverse();
                return Some(way);
            }
            came.entry(arc.target).or_insert_with(|| {
                work.push_back(arc.target);
                Some((n, *arc))
            });
        }
    }
    None
}

/// The start that leads to an initial node, and the local steps on the way.
fn start(graph: &Graph<'_, '_>, node: u32) -> Option<(Start, Vec<Event>)> {
    let mut state = vec![0; graph.machine.words];
    let starts = reference::starts(graph.machine.instance).ok()?;
    starts.into_iter().find_map(|start| {
        let mut notes = graph.machine.notes();
        let mut events = First::default();
        let begun = (graph.machine).begin(&start, &mut state, &mut notes, &mut events);
        (begun.is_ok() && state == graph.state(node)).then_some((start, events.0))
    })
}

/// The events of a way, made again from its states.
fn events(graph: &mut Graph<'_, '_>, way: &Way) -> Option<Vec<Event>> {
    let mut all = Vec::new();
    for (from, arc) in way {
        let label = graph.label(arc);
        if label.moved == 0 {
            continue;
        }
        let (state, target) = (
            graph.state(*from).to_vec(),
            graph.state(arc.target).to_vec(),
        );
        graph.moves.expand(&state, true).ok()?;
        let found = &graph.moves.found;
        let mut each = found.states.chunks_exact(state.len()).zip(&found.list);
        let (_, m) =
            each.find(|(to, m)| *to == target && Label::of(m, label.accepting) == label)?;
        all.extend(&m.events);
    }
    Some(all)
}

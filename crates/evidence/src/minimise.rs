//! Traces a person wants to read: shortest first, then fewest thread switches, then fewest delayed
//! stores.
//!
//! A layered search on the reference machine finds the best run exactly: all runs of one length
//! before any longer one, and among runs to the same state the one with fewer switches, then fewer
//! delays. It is tried on everything the program can do while that stays small; on larger programs
//! it follows only the given trace's own steps, thread by thread, in any order (which keeps the
//! length but finds the best interleaving), after cutting loops out. Whatever comes out is replayed;
//! a trace that does not replay is thrown away and the old one kept.

use crate::control::{Control, Progress};
use crate::task::Task;
use crate::trace::{End, Trace};
use rustc_hash::FxHashMap;
use wattle_memory::reference::{Machine, Outcome, Snapshot, State, evaluate, starts};
use wattle_memory::{Event, Exact, Layout, MemoryModel, Pso, Sc, Start, Tso};
use wattle_model::graph::Action;
use wattle_model::{Instance, ThreadId};

/// Nodes of a search before it is given up.
const MAX_NODES: usize = 20_000;
/// Replays spent on cutting loops.
const MAX_CUTS: usize = 2_000;

/// The best trace found with the same kind of end; at worst the one given.
pub fn minimise(task: &Task<'_>, trace: &Trace, control: &Control<'_>) -> Trace {
    match task.model {
        MemoryModel::Sc => run::<Sc>(task, trace, control),
        MemoryModel::Tso => run::<Tso>(task, trace, control),
        MemoryModel::Pso => run::<Pso>(task, trace, control),
    }
}

/// Length, thread switches, delayed stores: what a better trace has less of, in this order.
pub fn cost(task: &Task<'_>, trace: &Trace) -> (usize, usize, usize) {
    let events = &trace.events;
    let switches = events.windows(2).filter(|w| w[0].thread() != w[1].thread());
    let delayed = events.iter().enumerate().filter(|(i, e)| {
        is_put(task.instance, task.model, e)
            && !matches!(events.get(i + 1), Some(Event::Drain { thread, .. }) if *thread == e.thread())
    });
    (events.len(), switches.count(), delayed.count())
}

/// Whether the event puts an entry into a buffer.
fn is_put(instance: &Instance, model: MemoryModel, event: &Event) -> bool {
    match event {
        Event::Drain { .. } => false,
        Event::Step { thread, step, .. } => {
            let thread = instance.thread(*thread);
            let step = thread.step(*step);
            let buffered = model != MemoryModel::Sc && !thread.atomic[step.source.index()];
            buffered && matches!(step.action, Action::Store { .. })
        }
    }
}

fn run<L: Layout>(task: &Task<'_>, given: &Trace, control: &Control<'_>) -> Trace {
    let Ok(machine) = Machine::<L, Exact>::new(task.instance, ()) else {
        return given.clone();
    };
    let search = Search::<L> {
        task,
        machine,
        end: &given.end,
        control,
    };
    let mut best = given.clone();
    let accept = |best: &mut Trace, found: Option<Trace>| {
        let Some(found) = found else { return false };
        if cost(task, &found) < cost(task, best) && found.check(task).is_ok() {
            *best = found;
        }
        true
    };
    let everything = given.end != End::Deadlock && {
        let starts = starts(task.instance).unwrap_or_default();
        accept(&mut best, search.shortest(&starts, None))
    };
    if !everything {
        best = cut_loops(task, best, control);
        let own = own_steps(task.instance, &best);
        let found = search.shortest(std::slice::from_ref(&best.start), Some((&own, &best)));
        accept(&mut best, found);
    }
    best
}

/// Every thread's own steps, in order.
fn own_steps(instance: &Instance, trace: &Trace) -> Vec<Vec<Event>> {
    let mut own = vec![Vec::new(); instance.threads.len()];
    for e in &trace.events {
        if let Event::Step { thread, .. } = e {
            own[thread.index()].push(*e);
        }
    }
    own
}

/// Takes out, while the trace still shows its end: the last event, and every stretch of one
/// thread's events between two visits of the same location.
fn cut_loops(task: &Task<'_>, mut best: Trace, control: &Control<'_>) -> Trace {
    let mut budget = MAX_CUTS;
    loop {
        let Ok(states) = best.check(task) else {
            return best;
        };
        let candidates = cuts(&best, &states);
        let shorter = candidates.into_iter().find_map(|keep| {
            budget = budget.checked_sub(1)?;
            control.poll("minimise", Progress::default()).ok()?;
            let events = best.events.iter().zip(keep);
            let events = events.filter(|(_, keep)| *keep).map(|(e, _)| *e).collect();
            let shorter = Trace {
                events,
                ..best.clone()
            };
            shorter.check(task).is_ok().then_some(shorter)
        });
        match shorter {
            Some(shorter) => best = shorter,
            None => return best,
        }
    }
}

/// Which events to keep, for every cut worth trying; longest cuts first.
fn cuts(trace: &Trace, states: &[Snapshot]) -> Vec<Vec<bool>> {
    let events = &trace.events;
    let mut cuts: Vec<(usize, Vec<bool>)> = Vec::new();
    let fault = usize::from(matches!(trace.end, End::Fault(_)));
    for last in 0..events.len().saturating_sub(fault) {
        // One event alone: a drain nobody needs, a step at the end of its thread.
        let mut keep = vec![true; events.len()];
        keep[last] = false;
        cuts.push((1, keep));
        let t = events[last].thread();
        let location = |i: usize| states[i].locations[t.index()];
        for first in (0..last).rev() {
            if events[first].thread() == t && location(first) == location(last + 1) {
                let mut keep = vec![true; events.len()];
                let mut cut = 0;
                for i in first..=last {
                    if events[i].thread() == t {
                        keep[i] = false;
                        cut += 1;
                    }
                }
                if cut > 1 {
                    cuts.push((cut, keep));
                }
                break;
            }
        }
    }
    cuts.sort_by_key(|(cut, _)| std::cmp::Reverse(*cut));
    cuts.into_iter().map(|(_, keep)| keep).collect()
}

struct Search<'a, L: Layout> {
    task: &'a Task<'a>,
    machine: Machine<'a, L, Exact>,
    end: &'a End,
    control: &'a Control<'a>,
}

/// A run's last state, who moved last, and whether its last event put an entry into a buffer; and,
/// when only own steps may be taken, how many of them each thread has taken.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key<B> {
    state: State<B>,
    taken: Vec<u32>,
    last: Option<ThreadId>,
    put: bool,
}

struct Node<B> {
    key: Key<B>,
    cost: (usize, usize),
    parent: Option<(usize, Event)>,
}

type Own<'a> = (&'a [Vec<Event>], &'a Trace);
type KeyOf<L> = Key<<L as Layout>::Buffer<Exact>>;
type NodeOf<L> = Node<<L as Layout>::Buffer<Exact>>;

impl<L: Layout> Search<'_, L> {
    /// The best run from one of the starts; `None` if it was given up.
    fn shortest(&self, starts: &[Start], own: Option<(&Vec<Vec<Event>>, &Trace)>) -> Option<Trace> {
        let own: Option<Own<'_>> = own.map(|(o, t)| (o.as_slice(), t));
        // Deadlocks are not recognised state by state; the same last state will do.
        let wanted = match self.end {
            End::Deadlock => Some(self.last_state(own?.1)?),
            _ => None,
        };
        let mut layers: Vec<Vec<NodeOf<L>>> = vec![self.first_layer(starts, own)];
        let mut roots: Vec<&Start> = starts.iter().collect();
        roots.truncate(MAX_NODES);
        let mut depth_of: FxHashMap<(State<L::Buffer<Exact>>, Vec<u32>), usize> =
            FxHashMap::default();
        let mut nodes = 0;
        loop {
            let depth = layers.len() - 1;
            let layer = &layers[depth];
            nodes += layer.len();
            if layer.is_empty() || nodes > MAX_NODES {
                return None;
            }
            let progress = Progress {
                states: nodes as u64,
                ..Progress::default()
            };
            self.control.poll("minimise", progress).ok()?;
            if !matches!(self.end, End::Fault(_)) {
                let goals = layer.iter().enumerate();
                let goals = goals.filter(|(_, n)| match &wanted {
                    Some(wanted) => n.key.state == *wanted,
                    None => self.is_target(&n.key.state),
                });
                if let Some((best, _)) = goals.min_by_key(|(_, n)| n.cost) {
                    return self.trace(&layers, &roots, best, None);
                }
            }
            for n in layer {
                let place = (n.key.state.clone(), n.key.taken.clone());
                depth_of.entry(place).or_insert(depth);
            }
            let (next, fault) = self.next_layer(layer, depth, own, &depth_of);
            if let Some((node, event)) = fault {
                return self.trace(&layers, &roots, node, Some(event));
            }
            layers.push(next);
        }
    }

    fn first_layer(&self, starts: &[Start], own: Option<Own<'_>>) -> Vec<NodeOf<L>> {
        let threads = own.map_or(0, |(o, _)| o.len());
        let node = |start: &Start| Node {
            key: Key {
                state: self.machine.initial(start),
                taken: vec![0; threads],
                last: None,
                put: false,
            },
            cost: (0, 0),
            parent: None,
        };
        starts.iter().take(MAX_NODES).map(node).collect()
    }

    /// All runs one event longer, and the cheapest one that ends in the wanted fault.
    fn next_layer(
        &self,
        layer: &[NodeOf<L>],
        depth: usize,
        own: Option<Own<'_>>,
        depth_of: &FxHashMap<(State<L::Buffer<Exact>>, Vec<u32>), usize>,
    ) -> (Vec<NodeOf<L>>, Option<(usize, Event)>) {
        let mut next: Vec<NodeOf<L>> = Vec::new();
        let mut index: FxHashMap<KeyOf<L>, usize> = FxHashMap::default();
        let mut fault: Option<((usize, usize), usize, Event)> = None;
        for (i, node) in layer.iter().enumerate() {
            for event in self.machine.events(&node.key.state) {
                let Some(taken) = take(&node.key.taken, &event, own) else {
                    continue;
                };
                let cost = self.extend(node, &event);
                let state = match self.machine.apply(&node.key.state, &event) {
                    Outcome::Next(state) => state,
                    Outcome::Fault(f) if End::Fault(f.clone()) == *self.end => {
                        if fault.as_ref().is_none_or(|(c, ..)| cost < *c) {
                            fault = Some((cost, i, event));
                        }
                        continue;
                    }
                    Outcome::Fault(_) | Outcome::Full(_) => continue,
                };
                let place = (state, taken);
                if depth_of.get(&place).is_some_and(|d| *d <= depth) {
                    continue;
                }
                let key = Key {
                    state: place.0,
                    taken: place.1,
                    last: Some(event.thread()),
                    put: is_put(self.task.instance, L::MODEL, &event),
                };
                let parent = Some((i, event));
                match index.get(&key) {
                    Some(&j) if next[j].cost <= cost => {}
                    Some(&j) => {
                        next[j].cost = cost;
                        next[j].parent = parent;
                    }
                    None => {
                        index.insert(key.clone(), next.len());
                        next.push(Node { key, cost, parent });
                    }
                }
            }
            if next.len() > MAX_NODES {
                break;
            }
        }
        (next, fault.map(|(_, i, event)| (i, event)))
    }

    fn extend(&self, node: &NodeOf<L>, event: &Event) -> (usize, usize) {
        let switch = node.key.last.is_some_and(|t| t != event.thread());
        let follows =
            matches!(event, Event::Drain { thread, .. } if Some(*thread) == node.key.last);
        let delay = node.key.put && !follows;
        (
            node.cost.0 + usize::from(switch),
            node.cost.1 + usize::from(delay),
        )
    }

    fn is_target(&self, state: &State<L::Buffer<Exact>>) -> bool {
        let Some(question) = self.task.question() else {
            return false;
        };
        self.machine.inside_atomic(state).is_none()
            && (!question.only_final || self.machine.is_final(state))
            && evaluate(state, &question.target).is_ok_and(|v| v != 0)
    }

    fn last_state(&self, trace: &Trace) -> Option<State<L::Buffer<Exact>>> {
        let mut state = self.machine.initial(&trace.start);
        for event in &trace.events {
            match self.machine.apply(&state, event) {
                Outcome::Next(next) => state = next,
                Outcome::Fault(_) | Outcome::Full(_) => return None,
            }
        }
        Some(state)
    }

    fn trace(
        &self,
        layers: &[Vec<NodeOf<L>>],
        starts: &[&Start],
        mut node: usize,
        last: Option<Event>,
    ) -> Option<Trace> {
        let mut events: Vec<Event> = last.into_iter().collect();
        for layer in layers.iter().rev() {
            if let Some((parent, event)) = layer[node].parent {
                events.push(event);
                node = parent;
            }
        }
        events.reverse();
        Some(Trace {
            model: self.task.model,
            start: (*starts.get(node)?).clone(),
            events,
            end: self.end.clone(),
        })
    }
}

/// Counts the event against the thread's own steps; `None` if it is not the next one.
fn take(taken: &[u32], event: &Event, own: Option<Own<'_>>) -> Option<Vec<u32>> {
    let mut taken = taken.to_vec();
    if let (Some((own, _)), Event::Step { thread, .. }) = (own, event) {
        let t = thread.index();
        if own[t].get(taken[t] as usize) != Some(event) {
            return None;
        }
        taken[t] += 1;
    }
    Some(taken)
}

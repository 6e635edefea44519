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
use wattle_model::{Instance, LocationId, ThreadId};

/// Nodes of a search before it is given up, and the numbers all of them together may hold.
const MAX_NODES: usize = 20_000;
const MAX_NUMBERS: usize = 4_000_000;
/// Replays spent on cutting loops, and events that all of them together may take.
const MAX_CUTS: usize = 2_000;
const MAX_REPLAYED: usize = 200_000;

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
    let instance = task.instance;
    let registers: usize = instance.threads.iter().map(|t| t.registers.len()).sum();
    let size = 1 + instance.cells.len() + registers + 4 * instance.threads.len();
    let search = Search::<L> {
        task,
        max_nodes: (MAX_NUMBERS / size).min(MAX_NODES),
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
        best = cut_loops(task, cut_repeats(task, best), control);
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

/// Takes out everything between two visits of the same state.
fn cut_repeats(task: &Task<'_>, trace: Trace) -> Trace {
    let Ok(states) = trace.check(task) else {
        return trace;
    };
    let mut last: FxHashMap<&Snapshot, usize> = FxHashMap::default();
    for (i, state) in states.iter().enumerate() {
        last.insert(state, i);
    }
    let mut events = Vec::new();
    let mut i = 0;
    while i < states.len() {
        i = last.get(&states[i]).copied().unwrap_or(i);
        events.extend(trace.events.get(i));
        i += 1;
    }
    let shorter = Trace {
        events,
        ..trace.clone()
    };
    match shorter.events.len() < trace.events.len() && shorter.check(task).is_ok() {
        true => shorter,
        false => trace,
    }
}

/// Takes out, while the trace still shows its end: single events, and every stretch of one thread's
/// events between two visits of the same location.
fn cut_loops(task: &Task<'_>, mut best: Trace, control: &Control<'_>) -> Trace {
    let replays = match best.end {
        // Each check explores what can still happen.
        End::Deadlock => MAX_CUTS / 40,
        End::Target | End::Fault(_) => MAX_CUTS,
    };
    let mut budget = replays.min(MAX_REPLAYED / (1 + best.events.len()));
    loop {
        let Ok(states) = best.check(task) else {
            return best;
        };
        let shorter = cuts(&best, &states, budget).into_iter().find_map(|cut| {
            budget = budget.checked_sub(1)?;
            control.poll("minimise", Progress::default()).ok()?;
            let events = best.events.iter().enumerate();
            let events = events.filter(|(i, e)| !cut.takes(*i, e)).map(|(_, e)| *e);
            let shorter = Trace {
                events: events.collect(),
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

/// The events of one thread from the first to the last index.
struct Cut {
    thread: ThreadId,
    first: usize,
    last: usize,
    size: usize,
}

impl Cut {
    fn takes(&self, index: usize, event: &Event) -> bool {
        (self.first..=self.last).contains(&index) && event.thread() == self.thread
    }
}

/// The cuts worth trying, at most `most`; longest first.
fn cuts(trace: &Trace, states: &[Snapshot], most: usize) -> Vec<Cut> {
    let events = &trace.events;
    let mut cuts: Vec<Cut> = Vec::new();
    let fault = usize::from(matches!(trace.end, End::Fault(_)));
    // Where each thread was before each of its own events, and the index of that event.
    let mut seen: FxHashMap<(ThreadId, LocationId), (usize, usize)> = FxHashMap::default();
    let mut taken: FxHashMap<ThreadId, usize> = FxHashMap::default();
    let cuttable = events.len().saturating_sub(fault);
    for (last, event) in events[..cuttable].iter().enumerate() {
        let thread = event.thread();
        let location = |i: usize| states[i].locations[thread.index()];
        let count = taken.entry(thread).or_default();
        seen.insert((thread, location(last)), (last, *count));
        *count += 1;
        // One event alone: a drain nobody needs, a step at the end of its thread.
        cuts.push(Cut {
            thread,
            first: last,
            last,
            size: 1,
        });
        if let Some((first, before)) = seen.get(&(thread, location(last + 1)))
            && *first < last
        {
            cuts.push(Cut {
                thread,
                first: *first,
                last,
                size: *count - before,
            });
        }
    }
    cuts.sort_by_key(|cut| std::cmp::Reverse(cut.size));
    cuts.truncate(most);
    cuts
}

struct Search<'a, L: Layout> {
    task: &'a Task<'a>,
    max_nodes: usize,
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
/// The least length of a run to a state, by the own steps taken.
type Depths<L> = FxHashMap<(State<<L as Layout>::Buffer<Exact>>, Vec<u32>), usize>;
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
        roots.truncate(self.max_nodes);
        let mut depth_of: Depths<L> = FxHashMap::default();
        let mut nodes = 0;
        loop {
            let depth = layers.len() - 1;
            let layer = &layers[depth];
            nodes += layer.len();
            if layer.is_empty() || nodes > self.max_nodes {
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
        starts.iter().take(self.max_nodes).map(node).collect()
    }

    /// All runs one event longer, and the cheapest one that ends in the wanted fault.
    fn next_layer(
        &self,
        layer: &[NodeOf<L>],
        depth: usize,
        own: Option<Own<'_>>,
        depth_of: &Depths<L>,
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
            if next.len() > self.max_nodes {
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

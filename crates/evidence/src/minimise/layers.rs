//! The layered search for the best run: all runs of one length before any longer one.
//!
//! A *place* is a state, with the own steps taken to it where only own steps may be taken; its
//! successors are made once. A *node* is the best run to a place among those of its length with the
//! same thread moving last, and with a store just put into a buffer or not: what the cost of going on
//! depends on.

use super::distance::Distance;
use super::{PRETTY_NODES, puts};
use crate::control::{Control, Progress};
use crate::task::Task;
use crate::trace::{End, Trace};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use wattle_memory::reference::{Machine, Outcome, State, evaluate};
use wattle_memory::{Event, Exact, Layout, Start};
use wattle_model::ThreadId;

pub struct Search<'a, L: Layout> {
    pub task: &'a Task<'a>,
    pub max_nodes: usize,
    pub machine: Machine<'a, L, Exact>,
    pub end: &'a End,
    pub control: &'a Control<'a>,
}

/// Layers up to this say nothing about those to come.
const SMALL: usize = 500;

/// Thread switches and delayed stores.
type Cost = (usize, usize);
type StateOf<L> = State<<L as Layout>::Buffer<Exact>>;
/// A state, and how many own steps each thread has taken.
type Standing<L> = (StateOf<L>, Vec<u32>);
type PlaceId = usize;

/// What a run has to come to.
struct Aim<L: Layout> {
    distance: Distance,
    /// The last state, where it is not told by what is asked.
    wanted: Option<StateOf<L>>,
    longest: usize,
}

/// Places by number, with the length of the shortest run to each.
struct Places<L: Layout> {
    numbers: FxHashMap<Rc<Standing<L>>, PlaceId>,
    all: Vec<(Rc<Standing<L>>, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    place: PlaceId,
    last: Option<ThreadId>,
    put: bool,
}

struct Node {
    key: Key,
    cost: Cost,
    parent: Option<(usize, Event)>,
}

/// What can happen next at a place: where an event leads, or that it is the fault looked for.
type Next = Vec<(Event, Option<PlaceId>)>;

impl<L: Layout> Places<L> {
    fn number(&mut self, place: Standing<L>, depth: usize) -> PlaceId {
        if let Some(number) = self.numbers.get(&place) {
            return *number;
        }
        let number = self.all.len();
        let place = Rc::new(place);
        self.all.push((Rc::clone(&place), depth));
        self.numbers.insert(place, number);
        number
    }
}

impl<L: Layout> Search<'_, L> {
    /// A run that costs less than this from one of the starts, the best one; `None` if it was given up or there is
    /// none. With a trace to follow, only the steps of its threads are taken, in any order.
    pub fn best(
        &self,
        starts: &[Start],
        (longest, switches, _): (usize, usize, usize),
        own: Option<(&[Vec<Event>], &Trace)>,
    ) -> Option<Trace> {
        // Deadlocks are not recognised state by state; the same last state will do.
        let wanted = match self.end {
            End::Deadlock => Some(self.states(own?.1)?.pop()?),
            End::Target | End::Fault(_) => None,
        };
        let locations = wanted.as_ref().map(|state| state.locations.as_slice());
        let distance = Distance::to(self.task, self.end, locations);
        let own = own.map(|(own, _)| own);
        let starts = &starts[..starts.len().min(self.max_nodes)];
        let first = starts.iter().map(|start| self.machine.initial(start));
        let first: Vec<StateOf<L>> = first.collect();
        let aim = Aim {
            distance,
            wanted,
            longest,
        };
        let mut nodes = self.max_nodes;
        if first.iter().any(|s| aim.distance.from::<L>(s) < longest) {
            return self.shortest(starts, &aim, own, usize::MAX, &mut nodes)?;
        }
        nodes = nodes.min(PRETTY_NODES);
        let least = first.iter().map(|s| aim.distance.switches::<L>(s, None));
        for most in least.min()?..=switches {
            if let found @ Some(_) = self.shortest(starts, &aim, own, most, &mut nodes)? {
                return found;
            }
        }
        None
    }

    /// The best run with at most so many switches, if there is one; outside, `None` if it was given up.
    fn shortest(
        &self,
        starts: &[Start],
        aim: &Aim<L>,
        own: Option<&[Vec<Event>]>,
        most: usize,
        left: &mut usize,
    ) -> Option<Option<Trace>> {
        let longest = aim.longest;
        let mut places = Places::<L> {
            numbers: FxHashMap::default(),
            all: Vec::new(),
        };
        let taken = vec![0; own.map_or(0, <[_]>::len)];
        let first = starts.iter().map(|start| {
            let place = places.number((self.machine.initial(start), taken.clone()), 0);
            Node {
                key: Key {
                    place,
                    last: None,
                    put: false,
                },
                cost: (0, 0),
                parent: None,
            }
        });
        let mut layers: Vec<Vec<Node>> = vec![first.collect()];
        loop {
            let depth = layers.len() - 1;
            let layer = &layers[depth];
            if layer.is_empty() {
                return Some(None);
            }
            *left = left.checked_sub(layer.len())?;
            // Layers grow for the first half of the way at least: no use in beginning what will be given up.
            let rest = (longest / 2).saturating_sub(depth);
            if layer.len() > SMALL && rest * layer.len() > *left {
                return None;
            }
            let progress = Progress {
                states: places.all.len() as u64,
                ..Progress::default()
            };
            self.control.poll("minimise", progress).ok()?;
            let goals = layer.iter().enumerate().filter(|(_, n)| {
                let (state, _) = &*places.all[n.key.place].0;
                match &aim.wanted {
                    Some(wanted) => state == wanted,
                    None => self.is_target(state),
                }
            });
            if let Some((best, _)) = goals.min_by_key(|(_, n)| n.cost) {
                return Some(self.trace(&layers, starts, best, None));
            }
            // A next state can still be on a run that is short enough.
            let is_near = |state: &StateOf<L>| {
                let rest = aim.distance.from::<L>(state);
                rest.saturating_add(depth + 1) <= longest
            };
            let mut successors: FxHashMap<PlaceId, Next> = FxHashMap::default();
            let mut next: Vec<Node> = Vec::new();
            let mut index: FxHashMap<Key, usize> = FxHashMap::default();
            let mut fault: Option<(Cost, usize, Event)> = None;
            for (i, node) in layer.iter().enumerate() {
                let place = node.key.place;
                let events = successors
                    .entry(place)
                    .or_insert_with(|| self.next(&mut places, place, own, is_near));
                for (event, to) in events {
                    let cost = extended(node, event);
                    let Some(place) = *to else {
                        if cost.0 <= most && fault.as_ref().is_none_or(|(c, ..)| cost < *c) {
                            fault = Some((cost, i, *event));
                        }
                        continue;
                    };
                    let last = Some(event.thread());
                    let (state, _) = &*places.all[place].0;
                    let switches = || aim.distance.switches::<L>(state, last);
                    if most < usize::MAX && cost.0 + switches() > most {
                        continue;
                    }
                    let key = Key {
                        place,
                        last,
                        put: puts(self.task.instance, L::MODEL, event),
                    };
                    let parent = Some((i, *event));
                    match index.get(&key) {
                        Some(&j) if next[j].cost <= cost => {}
                        Some(&j) => {
                            next[j].cost = cost;
                            next[j].parent = parent;
                        }
                        None => {
                            index.insert(key, next.len());
                            next.push(Node { key, cost, parent });
                        }
                    }
                }
                if next.len() > *left {
                    break;
                }
            }
            if let Some((_, node, event)) = fault {
                return Some(self.trace(&layers, starts, node, Some(event)));
            }
            layers.push(next);
        }
    }

    /// The events at a place that lead to a new one that is near enough, or to the wanted fault.
    fn next(
        &self,
        places: &mut Places<L>,
        place: PlaceId,
        own: Option<&[Vec<Event>]>,
        is_near: impl Fn(&StateOf<L>) -> bool,
    ) -> Next {
        let (from, depth) = places.all[place].clone();
        let (state, taken) = &*from;
        let mut next = Next::new();
        for event in self.machine.events(state) {
            let Some(taken) = take(taken, &event, own) else {
                continue;
            };
            match self.machine.apply(state, &event) {
                Outcome::Next(state) if is_near(&state) => {
                    let to = places.number((state, taken), depth + 1);
                    if places.all[to].1 > depth {
                        next.push((event, Some(to)));
                    }
                }
                Outcome::Fault(f) if matches!(self.end, End::Fault(end) if *end == f) => {
                    next.push((event, None));
                }
                Outcome::Next(_) | Outcome::Fault(_) | Outcome::Full(_) => {}
            }
        }
        next
    }

    fn is_target(&self, state: &StateOf<L>) -> bool {
        let (End::Target, Some(question)) = (self.end, self.task.question()) else {
            return false;
        };
        self.machine.inside_atomic(state).is_none()
            && (!question.only_final || self.machine.is_final(state))
            && evaluate(state, &question.target).is_ok_and(|v| v != 0)
    }

    /// The states that a trace passes, the start's first: without the one after a fault, there is none. `None` if
    /// the events are no run.
    pub fn states(&self, trace: &Trace) -> Option<Vec<StateOf<L>>> {
        let mut states = vec![self.machine.initial(&trace.start)];
        for (i, event) in trace.events.iter().enumerate() {
            let state = states.last().filter(|s| self.machine.can(s, event))?;
            match self.machine.apply(state, event) {
                Outcome::Next(next) => states.push(next),
                Outcome::Fault(_) if i + 1 == trace.events.len() => {}
                Outcome::Fault(_) | Outcome::Full(_) => return None,
            }
        }
        Some(states)
    }

    /// Whether these events lead from a state to the end that is looked for; of a deadlock, whether they can all happen.
    pub fn is_shown<'e>(
        &self,
        from: &StateOf<L>,
        mut events: impl Iterator<Item = &'e Event>,
    ) -> bool {
        let mut state = from.clone();
        while let Some(event) = events.next() {
            if !self.machine.can(&state, event) {
                return false;
            }
            match self.machine.apply(&state, event) {
                Outcome::Next(next) => state = next,
                Outcome::Fault(fault) => {
                    let wanted = matches!(self.end, End::Fault(end) if *end == fault);
                    return wanted && events.next().is_none();
                }
                Outcome::Full(_) => return false,
            }
        }
        match self.end {
            End::Target => self.is_target(&state),
            End::Deadlock => true,
            End::Fault(_) => false,
        }
    }

    fn trace(
        &self,
        layers: &[Vec<Node>],
        starts: &[Start],
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
            start: starts.get(node)?.clone(),
            events,
            end: self.end.clone(),
        })
    }
}

/// The cost of a run and one event more.
fn extended(node: &Node, event: &Event) -> Cost {
    let (switches, delays) = node.cost;
    let last = node.key.last;
    let switch = last.is_some_and(|t| t != event.thread());
    let follows = matches!(event, Event::Drain { thread, .. } if Some(*thread) == last);
    let delay = node.key.put && !follows;
    (switches + usize::from(switch), delays + usize::from(delay))
}

/// Counts the event against the thread's own steps; `None` if it is not the next one.
fn take(taken: &[u32], event: &Event, own: Option<&[Vec<Event>]>) -> Option<Vec<u32>> {
    let mut taken = taken.to_vec();
    if let (Some(own), Event::Step { thread, .. }) = (own, event) {
        let t = thread.index();
        if own[t].get(taken[t] as usize) != Some(event) {
            return None;
        }
        taken[t] += 1;
    }
    Some(taken)
}

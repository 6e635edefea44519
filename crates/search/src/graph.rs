//! The whole graph of a small program's states, for a picture: what the search would store, and every
//! event between two of its states.

use crate::rounds::{Sizes, Subject};
use rustc_hash::FxHashMap;
use wattle_evidence::{Control, Progress, Stop};
use wattle_memory::compiled::{Found, Machine, Notes, Offer, Sink};
use wattle_memory::reference::{self, Refusal};
use wattle_memory::{Event, Start};
use wattle_model::{StepId, ThreadId};

/// A state, by a run that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub start: usize,
    pub events: Vec<Event>,
    pub is_final: bool,
}

/// An event with the local steps after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    pub from: usize,
    pub to: usize,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    pub starts: Vec<Start>,
    /// In the order in which a breadth-first search meets them.
    pub nodes: Vec<Node>,
    pub arrows: Vec<Arrow>,
    /// Steps that are faults, and in which state.
    pub faults: Vec<(usize, ThreadId, StepId)>,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoGraph {
    /// There are more states than that.
    TooMany(usize),
    /// A step before the first state is a fault.
    Fault,
    /// A buffer may grow without end.
    Endless,
    Stopped(Stop),
    Refused(Refusal),
}

/// The states and events that a search by this plan goes through, if there are at most so many states.
pub fn graph(plan: &Subject<'_, '_>, most: usize, control: &Control<'_>) -> Result<Graph, NoGraph> {
    let mut sizes = Sizes::guess(plan.instance, plan.model);
    loop {
        let machine = plan.machine(&sizes).map_err(NoGraph::Refused)?;
        let mut notes = machine.notes();
        match draw(&machine, most, &mut notes, control)? {
            Err(Found::Narrow(slot, value)) => {
                sizes.widen(slot, machine.type_of(slot), value);
            }
            Err(Found::Short(thread)) => sizes.lengthen(thread),
            Err(Found::Fault { .. }) => return Err(NoGraph::Fault),
            Ok(_) if notes.full.contains(&true) => {
                if !sizes.grow(&notes.full, plan.most_buffered) {
                    return Err(NoGraph::Endless);
                }
            }
            Ok(graph) => return Ok(graph),
        }
    }
}

/// Successors and how they come about.
#[derive(Default)]
struct Collected {
    events: Vec<Event>,
    all: Vec<(Vec<Event>, Vec<u64>)>,
}

impl Sink for Collected {
    fn begin(&mut self) {
        self.events.clear();
    }

    fn event(&mut self, event: impl FnOnce() -> Event) {
        self.events.push(event());
    }

    fn next(&mut self, state: &[u64]) {
        self.all.push((self.events.clone(), state.to_vec()));
    }
}

fn draw(
    machine: &Machine<'_>,
    most: usize,
    notes: &mut Notes,
    control: &Control<'_>,
) -> Result<Result<Graph, Found>, NoGraph> {
    let starts = reference::starts(machine.instance).map_err(NoGraph::Refused)?;
    let mut graph = Graph {
        starts,
        nodes: Vec::new(),
        arrows: Vec::new(),
        faults: Vec::new(),
    };
    let mut states: Vec<Vec<u64>> = Vec::new();
    let mut numbers: FxHashMap<Vec<u64>, usize> = FxHashMap::default();
    let mut scratch = vec![0; machine.words];
    for start in 0..graph.starts.len() {
        let mut first = Collected::default();
        let begun = machine.begin(&graph.starts[start], &mut scratch, notes, &mut first);
        if let Err(found) = begun {
            return Ok(Err(found));
        }
        for (events, state) in first.all {
            let new = states.len();
            if *numbers.entry(state.clone()).or_insert(new) == new {
                let is_final = machine.is_final(&state);
                states.push(state);
                graph.nodes.push(Node {
                    start,
                    events,
                    is_final,
                });
            }
        }
    }
    let mut at = 0;
    while at < states.len() {
        let progress = Progress {
            states: states.len() as u64,
            ..Progress::default()
        };
        control.poll("states", progress).map_err(NoGraph::Stopped)?;
        let (next, faults) = match successors(machine, &states[at], notes) {
            Ok(made) => made,
            Err(found) => return Ok(Err(found)),
        };
        graph
            .faults
            .extend(faults.into_iter().map(|(t, s)| (at, t, s)));
        // Nobody is put off for ever: with fewer events than all, one leads to a state still to come.
        let later =
            |(_, state): &(Vec<Event>, Vec<u64>)| numbers.get(state).is_none_or(|n| *n > at);
        let enough = next.iter().any(|(few, s)| *few && later(s));
        for (few, (events, state)) in next {
            if enough && !few {
                continue;
            }
            let new = states.len();
            let to = *numbers.entry(state.clone()).or_insert(new);
            if to == new {
                if new >= most {
                    return Err(NoGraph::TooMany(most));
                }
                let node = &graph.nodes[at];
                graph.nodes.push(Node {
                    start: node.start,
                    events: [node.events.clone(), events.clone()].concat(),
                    is_final: machine.is_final(&state),
                });
                states.push(state);
            }
            graph.arrows.push(Arrow {
                from: at,
                to,
                events,
            });
        }
        at += 1;
    }
    Ok(Ok(graph))
}

/// A successor, and whether it is one of those that are enough.
type Successor = (bool, (Vec<Event>, Vec<u64>));

#[expect(
    clippy::type_complexity,
    reason = "successors, and the steps that are faults"
)]
fn successors(
    machine: &Machine<'_>,
    state: &[u64],
    notes: &mut Notes,
) -> Result<(Vec<Successor>, Vec<(ThreadId, StepId)>), Found> {
    let mut scratch = vec![0; machine.words];
    let mut faults = Vec::new();
    let mut minded = |made: Result<(), Found>| match made {
        Err(Found::Fault { thread, step, .. }) => {
            faults.push((thread, step));
            Ok(())
        }
        other => other,
    };
    if machine.inside_atomic(state).is_some() {
        let mut made = Collected::default();
        minded(machine.expand(state, &mut scratch, notes, &mut made))?;
        return Ok((made.all.into_iter().map(|s| (true, s)).collect(), faults));
    }
    let (mut offers, mut of) = (Vec::new(), Vec::new());
    let mut all = Vec::new();
    for t in 0..machine.thread_count() {
        let (mut steps, mut drains) = (Collected::default(), Collected::default());
        minded(machine.expand_steps(state, t, &mut scratch, notes, &mut steps))?;
        minded(machine.expand_drains(state, t, &mut scratch, notes, &mut drains))?;
        let seen = |made: &Collected| {
            let mut next = made.all.iter();
            next.any(|(_, next)| machine.is_seen(t, state, next))
        };
        offers.push(Offer {
            steps: steps.all.len() as u32,
            drains: drains.all.len() as u32,
            seen_steps: seen(&steps),
            seen_drains: seen(&drains),
        });
        of.extend(steps.all.iter().map(|_| (t, true)));
        of.extend(drains.all.iter().map(|_| (t, false)));
        all.extend(steps.all);
        all.extend(drains.all);
    }
    let chosen = machine.choose(state, &offers);
    let wanted = of.into_iter().map(|(t, step)| {
        chosen.is_none_or(|c| match step {
            true => c.steps_of(t),
            false => c.drains_of(t),
        })
    });
    Ok((wanted.zip(all).collect(), faults))
}

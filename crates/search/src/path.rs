//! From a state's number to a run: parents are followed back, then every step between two stored
//! states is taken again, this time writing down its events.
//!
//! Stored states may be permuted (threads that are alike have changed places). Along the way it is kept who
//! each thread of the stored state really is, and events are written down for that one.

use crate::explore::Search;
use crate::store::ROOT;
use wattle_memory::compiled::{Found, Machine, Sink};
use wattle_memory::{Event, Start};

/// Writes down the events of the successor it is looking for.
pub(crate) struct Recorder<'s, 'i> {
    machine: &'s Machine<'i>,
    wanted: Option<&'s [u64]>,
    events: Vec<Event>,
    pub found: Option<(Vec<Event>, Vec<usize>)>,
}

impl<'s, 'i> Recorder<'s, 'i> {
    pub fn new(machine: &'s Machine<'i>, wanted: Option<&'s [u64]>) -> Self {
        Recorder {
            machine,
            wanted,
            events: Vec::new(),
            found: None,
        }
    }
}

impl Sink for Recorder<'_, '_> {
    fn begin(&mut self) {
        self.events.clear();
    }

    fn event(&mut self, event: impl FnOnce() -> Event) {
        self.events.push(event());
    }

    fn next(&mut self, state: &[u64]) {
        let Some(wanted) = self.wanted.filter(|_| self.found.is_none()) else {
            return;
        };
        let mut stored = state.to_vec();
        let mut who = vec![0; self.machine.thread_count()];
        self.machine.canonical(&mut stored, Some(&mut who));
        if wanted == stored {
            self.found = Some((self.events.clone(), who));
        }
    }
}

/// Where a run begins and what happens in it.
pub struct Run {
    pub start: Start,
    pub events: Vec<Event>,
    /// Who each thread of the last stored state really is.
    pub who: Vec<usize>,
}

impl Search<'_, '_> {
    /// The run that leads to a stored state.
    pub fn run_to(&self, index: u32) -> Option<Run> {
        run_along(self.machine, &self.starts, &self.way_to(index)?)
    }

    /// The run that ends with the first fault found when expanding the state (or, if [`ROOT`], before
    /// the first state).
    pub fn run_to_fault(&self, index: u32) -> Option<Run> {
        let way = match index {
            ROOT => None,
            index => Some(self.way_to(index)?),
        };
        let (run, _) = run_into_fault(self.machine, &self.starts, way.as_deref())?;
        Some(run)
    }
}

/// The run along stored states, from a first one on.
pub(crate) fn run_along(machine: &Machine<'_>, starts: &[Start], way: &[Vec<u64>]) -> Option<Run> {
    let mut run = run_to_first(machine, starts, way.first()?)?;
    for step in way.windows(2) {
        let mut recorder = Recorder::new(machine, Some(&step[1]));
        // A fault of another event does not matter here: its state is found before or not at all.
        let _ = expand_into(machine, &step[0], &mut recorder);
        let (events, who) = recorder.found?;
        run.add(machine, &events);
        run.who = who.iter().map(|t| run.who[*t]).collect();
    }
    Some(run)
}

/// The run along stored states that ends with a fault found when expanding the last one, or before the first state if there
/// are none; and what was found.
pub(crate) fn run_into_fault(
    machine: &Machine<'_>,
    starts: &[Start],
    way: Option<&[Vec<u64>]>,
) -> Option<(Run, Found)> {
    let mut recorder = Recorder::new(machine, None);
    if let Some(way) = way {
        let mut run = run_along(machine, starts, way)?;
        let found = expand_into(machine, way.last()?, &mut recorder).err()?;
        run.add(machine, &recorder.events);
        return Some((run, found));
    }
    let mut scratch = vec![0; machine.words];
    let mut notes = machine.notes();
    starts.iter().find_map(|start| {
        let begun = machine.begin(start, &mut scratch, &mut notes, &mut recorder);
        let run = Run {
            start: start.clone(),
            events: recorder.events.clone(),
            who: (0..machine.thread_count()).collect(),
        };
        Some((run, begun.err()?))
    })
}

fn run_to_first(machine: &Machine<'_>, starts: &[Start], state: &[u64]) -> Option<Run> {
    let mut scratch = vec![0; machine.words];
    let mut notes = machine.notes();
    starts.iter().find_map(|start| {
        let mut recorder = Recorder::new(machine, Some(state));
        let begun = machine.begin(start, &mut scratch, &mut notes, &mut recorder);
        begun.ok()?;
        let (events, who) = recorder.found?;
        Some(Run {
            start: start.clone(),
            events,
            who,
        })
    })
}

/// Expands a state, writing down what happens.
pub(crate) fn expand_into(
    machine: &Machine<'_>,
    state: &[u64],
    recorder: &mut Recorder<'_, '_>,
) -> Result<(), Found> {
    let mut scratch = vec![0; machine.words];
    let mut notes = machine.notes();
    machine.expand(state, &mut scratch, &mut notes, recorder)
}

impl Run {
    fn add(&mut self, machine: &Machine<'_>, events: &[Event]) {
        let events = events.iter().map(|e| machine.unpermuted(e, &self.who));
        self.events.extend(events);
    }
}

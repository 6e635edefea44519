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
struct Recorder<'s, 'i> {
    machine: &'s Machine<'i>,
    wanted: Option<&'s [u64]>,
    events: Vec<Event>,
    found: Option<(Vec<Event>, Vec<usize>)>,
}

impl<'s, 'i> Recorder<'s, 'i> {
    fn new(machine: &'s Machine<'i>, wanted: Option<&'s [u64]>) -> Self {
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
        let mut path = vec![index];
        let mut at = index;
        while self.store.parent(at) != ROOT {
            at = self.store.parent(at);
            path.push(at);
        }
        let mut run = self.run_to_first(self.store.state(at))?;
        while let (Some(from), Some(to)) = (path.pop(), path.last()) {
            let mut recorder = Recorder::new(self.machine, Some(self.store.state(*to)));
            // A fault of another event does not matter here: its state is found before or not at all.
            let _ = self.expand_into(from, &mut recorder);
            let (events, who) = recorder.found?;
            run.add(self.machine, &events);
            run.who = who.iter().map(|t| run.who[*t]).collect();
        }
        Some(run)
    }

    /// The run that ends with the first fault found when expanding the state (or, if [`ROOT`], before
    /// the first state).
    pub fn run_to_fault(&self, index: u32) -> Option<Run> {
        let mut recorder = Recorder::new(self.machine, None);
        if index != ROOT {
            let mut run = self.run_to(index)?;
            self.expand_into(index, &mut recorder).err()?;
            run.add(self.machine, &recorder.events);
            return Some(run);
        }
        let mut scratch = vec![0; self.machine.words];
        let mut notes = self.machine.notes();
        let mut starts = self.starts.iter();
        let start = starts.find(|start| {
            let begun = self
                .machine
                .begin(start, &mut scratch, &mut notes, &mut recorder);
            begun.is_err()
        })?;
        Some(Run {
            start: start.clone(),
            events: recorder.events,
            who: (0..self.machine.thread_count()).collect(),
        })
    }

    fn run_to_first(&self, state: &[u64]) -> Option<Run> {
        let mut scratch = vec![0; self.machine.words];
        let mut notes = self.machine.notes();
        self.starts.iter().find_map(|start| {
            let mut recorder = Recorder::new(self.machine, Some(state));
            let begun = self
                .machine
                .begin(start, &mut scratch, &mut notes, &mut recorder);
            begun.ok()?;
            let (events, who) = recorder.found?;
            Some(Run {
                start: start.clone(),
                events,
                who,
            })
        })
    }

    fn expand_into(&self, index: u32, recorder: &mut Recorder<'_, '_>) -> Result<(), Found> {
        let mut scratch = vec![0; self.machine.words];
        let mut notes = self.machine.notes();
        let state = self.store.state(index);
        self.machine
            .expand(state, &mut scratch, &mut notes, recorder)
    }
}

impl Run {
    fn add(&mut self, machine: &Machine<'_>, events: &[Event]) {
        let events = events.iter().map(|e| machine.unpermuted(e, &self.who));
        self.events.extend(events);
    }
}

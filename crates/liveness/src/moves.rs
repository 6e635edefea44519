//! Moves of the compiled machine: from one state outside atomic blocks to the next. The same as
//! [`wattle_evidence::live::big`] on packed states, with the local steps that are chained to a move.

use crate::reduction::back;
use rustc_hash::FxHashSet;
use wattle_evidence::live::big::bit;
use wattle_evidence::live::{Mover, Set, Trap};
use wattle_memory::Event;
use wattle_memory::compiled::{Found, Machine, Notes, Sink};
use wattle_model::ThreadId;

/// What can happen in a state.
pub struct Moves<'m, 'i> {
    machine: &'m Machine<'i>,
    movers: &'m [Mover],
    scratch: Vec<u64>,
    pub notes: Notes,
    /// Threads that ever found their buffer full.
    pub full: Vec<bool>,
    pub found: Successors,
}

/// Places where the thread was on its way are compared with those it must not stay in.
pub type Loops = u128;

/// Where a step leads, as far as it is seen.
#[derive(Clone, Copy, Default)]
struct Arrival {
    /// Unset inside atomic blocks.
    at: Option<u32>,
    /// The loops it is outside of.
    outside: Loops,
    /// It may close a round: see [`back`](crate::reduction::back).
    back: bool,
}

/// The moves from one state.
#[derive(Default)]
pub struct Successors {
    words: usize,
    record: bool,
    /// The states, one after the other.
    pub states: Vec<u64>,
    pub list: Vec<Move>,
    /// Who can move.
    pub able: Set,
    now: Move,
    begin: Move,
    event_bits: Vec<Vec<Set>>,
    /// Per thread and step.
    arrivals: Vec<Vec<Arrival>>,
    /// Where the threads were.
    places: Vec<u32>,
}

/// Who has moved, and who did first.
#[derive(Clone, Debug, Default)]
pub struct Move {
    pub moved: Set,
    /// Threads that were seen elsewhere than before on the way.
    pub away: Set,
    /// Loops that the thread was seen outside of on the way.
    pub left: Loops,
    /// Some step may close a round of its thread.
    pub back: bool,
    pub first: Set,
    /// Only if wanted.
    pub events: Vec<Event>,
}

impl Sink for Successors {
    fn begin(&mut self) {
        self.now.moved = self.begin.moved;
        self.now.first = self.begin.first;
        (self.now.away, self.now.left) = (self.begin.away, self.begin.left);
        self.now.back = self.begin.back;
        if self.record {
            self.now.events.clone_from(&self.begin.events);
        }
    }

    fn event(&mut self, event: impl FnOnce() -> Event) {
        let event = event();
        let bit = match event {
            Event::Step { thread, step, .. } => {
                let t = thread.index();
                let arrival = self.arrivals[t][step.index()];
                self.now.back |= arrival.back;
                if let Some(at) = arrival.at {
                    self.now.left |= arrival.outside;
                    self.now.away |= Set::from(at != self.places[t]) << t;
                }
                1 << t
            }
            Event::Drain { thread, cell, .. } => self.event_bits[thread.index()][cell.index()],
        };
        self.now.moved |= bit;
        if self.now.first == 0 {
            self.now.first = bit;
        }
        if self.record {
            self.now.events.push(event);
        }
    }

    fn next(&mut self, state: &[u64]) {
        debug_assert_eq!(state.len(), self.words);
        self.states.extend_from_slice(state);
        self.list.push(self.now.clone());
    }
}

impl<'m, 'i> Moves<'m, 'i> {
    /// `loops` are numbered by their bits.
    pub fn new(machine: &'m Machine<'i>, movers: &'m [Mover], loops: &[Trap]) -> Self {
        let instance = machine.instance;
        let cells = instance.cells.len();
        let mut buffers = vec![Vec::new(); instance.threads.len()];
        for (t, bits) in buffers.iter_mut().enumerate() {
            if !movers
                .iter()
                .any(|m| matches!(m, Mover::Buffer(u, _) if u.index() == t))
            {
                continue;
            }
            *bits = (0..cells)
                .map(|c| {
                    let drain = Event::Drain {
                        thread: ThreadId::new(t),
                        cell: wattle_model::CellId::new(c),
                        value: 0,
                        keep: false,
                    };
                    bit(movers, &drain)
                })
                .collect();
        }
        let arrivals = instance.thread_ids().map(|t| {
            let thread = instance.thread(t);
            let arrival = |s: &wattle_model::instance::Step| {
                let seen = !thread.atomic[s.target.index()];
                let outside = |l: &Trap| l.thread == t && l.at.binary_search(&s.target).is_err();
                let bits = loops.iter().enumerate().filter(|(_, l)| outside(l));
                Arrival {
                    at: seen.then_some(s.target.0),
                    outside: bits.fold(0, |all, (i, _)| all | 1 << i),
                    back: back(s),
                }
            };
            thread.steps.iter().map(arrival).collect()
        });
        Moves {
            machine,
            movers,
            scratch: vec![0; machine.words],
            notes: machine.notes(),
            full: vec![false; instance.threads.len()],
            found: Successors {
                words: machine.words,
                event_bits: buffers,
                arrivals: arrivals.collect(),
                ..Successors::default()
            },
        }
    }

    /// Finds all moves from the state; `record` keeps their events.
    pub fn expand(&mut self, state: &[u64], record: bool) -> Result<(), Found> {
        let found = &mut self.found;
        found.record = record;
        found.states.clear();
        found.list.clear();
        found.able = 0;
        found.begin = Move::default();
        found.places.clear();
        let threads = self.machine.instance.thread_ids();
        let places = threads.map(|t| self.machine.location(state, t).0);
        found.places.extend(places);
        self.notes.full.fill(false);
        self.machine
            .expand(state, &mut self.scratch, &mut self.notes, found)?;
        if self.machine.has_atomic_states() {
            self.through_blocks()?;
        }
        let found = &mut self.found;
        found.able = found.list.iter().fold(0, |all, m| all | m.first);
        // A store that finds no room here would find it in a real buffer.
        for (t, full) in self.notes.full.iter().enumerate() {
            if *full {
                self.full[t] = true;
                found.able |= 1 << t;
            }
        }
        Ok(())
    }

    /// Goes on from states inside a block until all are outside.
    fn through_blocks(&mut self) -> Result<(), Found> {
        let words = self.machine.words;
        let (mut states, mut list) = (Vec::new(), Vec::new());
        let mut work: Vec<(Vec<u64>, Move)> = Vec::new();
        let mut seen: FxHashSet<(Vec<u64>, [Set; 4], bool)> = FxHashSet::default();
        loop {
            let found = &mut self.found;
            for (state, m) in found.states.chunks_exact(words).zip(found.list.drain(..)) {
                match self.machine.inside_atomic(state) {
                    None => {
                        states.extend_from_slice(state);
                        list.push(m);
                    }
                    Some(_) => {
                        let done = [m.moved, m.first, m.away, m.left];
                        if seen.insert((state.to_vec(), done, m.back)) {
                            work.push((state.to_vec(), m));
                        }
                    }
                }
            }
            found.states.clear();
            let Some((state, m)) = work.pop() else { break };
            found.begin = m;
            self.machine
                .expand(&state, &mut self.scratch, &mut self.notes, &mut self.found)?;
        }
        self.found.states = states;
        self.found.list = list;
        Ok(())
    }

    /// The thread whose move it is, and whether it is its buffer's.
    pub fn process(&self, m: &Move) -> (usize, bool) {
        match self.movers[m.first.trailing_zeros() as usize] {
            Mover::Thread(t) => (t.index(), false),
            Mover::Buffer(t, _) => (t.index(), true),
        }
    }

    pub fn is_discarded(&self, state: &[u64]) -> bool {
        self.machine.is_discarded(state)
    }
}

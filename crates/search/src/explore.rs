//! The search itself: take a state, put its successors into the store, look at the new ones.
//!
//! Successors are collected in a batch before the store is asked about them, so that the memory
//! accesses of many probes overlap; batches do not change the order in which states are numbered.

use crate::store::{ROOT, Store, append, hash};
use wattle_evidence::{Control, Progress, Stop};
use wattle_memory::compiled::{Flaw, Found, Machine, Notes, Sink, Slot};
use wattle_memory::{Start, reference};
use wattle_model::{StepId, ThreadId};

/// Which state is expanded next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The oldest: finds shortest runs.
    #[default]
    BreadthFirst,
    /// The newest: finds deep runs early.
    DepthFirst,
}

/// Why a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every reachable state was seen.
    Exhausted,
    /// The one who looks at states wanted no more after this one.
    Halted(u32),
    /// The one who looks at states could not make sense of this one.
    NoValue(u32, Flaw),
    /// A step is a fault, in the state with this number or (if [`ROOT`]) before the first.
    Fault {
        state: u32,
        thread: ThreadId,
        step: StepId,
        flaw: Flaw,
    },
    /// A value did not fit; widen and begin anew.
    Narrow(Slot, i64),
    Stopped(Stop),
}

/// Looks at every new state outside atomic blocks.
pub trait Look {
    /// Called before the first state, and whenever the machine has changed its layout.
    fn fit(&mut self, _machine: &Machine<'_>) {}

    /// `Ok(true)` ends the search.
    fn look(&mut self, machine: &Machine<'_>, state: &[u64]) -> Result<bool, Flaw>;
}

pub struct Search<'m, 'i> {
    pub machine: &'m Machine<'i>,
    pub store: Store,
    pub notes: Notes,
    pub starts: Vec<Start>,
    order: Order,
    batch: Batch,
    /// States to be expanded (depth-first), newest last.
    stack: Vec<u32>,
    /// States expanded so far.
    expanded: usize,
    /// Successors made so far, new or not.
    pub successors: u64,
    poll_at: u64,
}

/// A search without its machine.
pub struct Carried {
    store: Store,
    notes: Notes,
    starts: Vec<Start>,
    stack: Vec<u32>,
    expanded: usize,
    successors: u64,
}

/// Successors waiting for the store.
struct Batch {
    words: usize,
    states: Vec<u64>,
    hashes: Vec<u64>,
    parents: Vec<u32>,
    parent: u32,
}

/// As many successors as are worth waiting for.
const BATCH: usize = 48;
/// Expansions between two looks at the clock.
const POLL: usize = 1 << 12;

impl Batch {
    fn new(words: usize) -> Self {
        Batch {
            words,
            states: Vec::new(),
            hashes: Vec::new(),
            parents: Vec::new(),
            parent: ROOT,
        }
    }
}

impl Sink for Batch {
    #[inline]
    fn next(&mut self, state: &[u64]) {
        append(&mut self.states, state);
        self.hashes.push(hash(state));
        self.parents.push(self.parent);
    }
}

impl<'m, 'i> Search<'m, 'i> {
    pub fn new(machine: &'m Machine<'i>, order: Order) -> Result<Self, reference::Refusal> {
        Ok(Search {
            machine,
            store: Store::new(machine.words),
            notes: machine.notes(),
            starts: reference::starts(machine.instance)?,
            order,
            batch: Batch::new(machine.words),
            stack: Vec::new(),
            expanded: 0,
            successors: 0,
            poll_at: 0,
        })
    }

    pub fn carry(self) -> Carried {
        Carried {
            store: self.store,
            notes: self.notes,
            starts: self.starts,
            stack: self.stack,
            expanded: self.expanded,
            successors: self.successors,
        }
    }

    /// Goes on with a search of `old` on a machine with wider fields or longer buffers.
    pub fn resume(
        carried: Carried,
        old: &Machine<'_>,
        machine: &'m Machine<'i>,
        order: Order,
    ) -> Self {
        let mut store = Store::new(machine.words);
        let mut state = vec![0; machine.words];
        for index in 0..carried.store.len() as u32 {
            machine.translate(old, carried.store.state(index), &mut state);
            store.reserve(1);
            store.insert(&state, hash(&state), carried.store.parent(index));
        }
        debug_assert_eq!(store.len(), carried.store.len());
        Search {
            machine,
            store,
            notes: carried.notes,
            starts: carried.starts,
            order,
            batch: Batch::new(machine.words),
            stack: carried.stack,
            expanded: carried.expanded,
            successors: carried.successors,
            poll_at: 0,
        }
    }

    pub fn progress(&self) -> Progress {
        let states = self.store.len() as u64;
        Progress {
            states,
            frontier: states - (self.expanded as u64).min(states),
            memory: self.store.bytes() + 4 * self.stack.capacity() as u64,
        }
    }

    /// Searches on until there is a reason to end. After [`Ended::Narrow`] the state whose value did
    /// not fit counts as not yet expanded.
    pub fn run<L: Look>(&mut self, look: &mut L, control: &Control<'_>) -> Ended {
        look.fit(self.machine);
        let mut scratch = vec![0; self.machine.words];
        let mut current = vec![0; self.machine.words];
        // A search that was carried on has begun already; begun states are found again.
        let begun = self.expanded > 0;
        for i in (0..self.starts.len()).filter(|_| !begun) {
            let start = &self.starts[i];
            let begun = self
                .machine
                .begin(start, &mut scratch, &mut self.notes, &mut self.batch);
            if let Err(found) = begun {
                return ended(found, ROOT);
            }
            if let Err(end) = self.flush(look, control) {
                return end;
            }
        }
        loop {
            let Some(index) = self.next() else {
                if let Err(end) = self.flush(look, control) {
                    return end;
                }
                if self.frontier_is_empty() {
                    return Ended::Exhausted;
                }
                continue;
            };
            let due = self.expanded.is_multiple_of(POLL) || self.successors >= self.poll_at;
            if due && let Err(stop) = control.poll("explicit", self.progress()) {
                return Ended::Stopped(stop);
            }
            if due {
                self.poll_at = self.successors + self.successors_between_polls();
            }
            self.expanded += 1;
            current.copy_from_slice(self.store.state(index));
            self.batch.parent = index;
            let expanded =
                self.machine
                    .expand(&current, &mut scratch, &mut self.notes, &mut self.batch);
            if let Err(found) = expanded {
                if let Found::Narrow(..) = found {
                    if let Err(end) = self.flush(look, control) {
                        return end;
                    }
                    self.expanded -= 1;
                    if self.order == Order::DepthFirst {
                        self.stack.push(index);
                    }
                }
                return ended(found, index);
            }
            let enough = self.order == Order::DepthFirst || self.batch.hashes.len() >= BATCH;
            if enough && let Err(end) = self.flush(look, control) {
                return end;
            }
        }
    }

    /// Wide states with many threads take long to expand: they are polled more often.
    fn successors_between_polls(&self) -> u64 {
        (1 << 18) / self.machine.words.max(1) as u64 + 1
    }

    /// Breadth-first the store itself is the queue.
    #[inline]
    fn next(&mut self) -> Option<u32> {
        match self.order {
            Order::BreadthFirst => {
                (self.expanded < self.store.len()).then_some(self.expanded as u32)
            }
            Order::DepthFirst => self.stack.pop(),
        }
    }

    fn frontier_is_empty(&self) -> bool {
        match self.order {
            Order::BreadthFirst => self.expanded >= self.store.len(),
            Order::DepthFirst => self.stack.is_empty(),
        }
    }

    /// Moves the batch into the store.
    fn flush<L: Look>(&mut self, look: &mut L, control: &Control<'_>) -> Result<(), Ended> {
        let n = self.batch.hashes.len();
        self.successors += n as u64;
        if let Some(bytes) = self.store.growth(n) {
            let mut progress = self.progress();
            progress.memory += bytes;
            let room = control.poll("explicit", progress);
            room.map_err(Ended::Stopped)?;
            if self.store.is_full() {
                return Err(Ended::Stopped(Stop::Memory));
            }
            self.store.reserve(n);
        }
        for h in &self.batch.hashes {
            self.store.prefetch_slot(*h);
        }
        for h in &self.batch.hashes {
            self.store.prefetch_state(*h);
        }
        let before = self.stack.len();
        let words = self.batch.words;
        let mut end = Ok(());
        for (i, h) in self.batch.hashes.iter().enumerate() {
            let state = &self.batch.states[i * words..(i + 1) * words];
            let found = self.store.insert(state, *h, self.batch.parents[i]);
            if !found.new {
                continue;
            }
            if self.order == Order::DepthFirst {
                self.stack.push(found.index);
            }
            if self.machine.inside_atomic(state).is_some() {
                continue;
            }
            match look.look(self.machine, state) {
                Ok(false) => {}
                Ok(true) => {
                    end = Err(Ended::Halted(found.index));
                    break;
                }
                Err(flaw) => {
                    end = Err(Ended::NoValue(found.index, flaw));
                    break;
                }
            }
        }
        // The first successor is expanded first.
        self.stack[before..].reverse();
        self.batch.states.clear();
        self.batch.hashes.clear();
        self.batch.parents.clear();
        end
    }
}

fn ended(found: Found, state: u32) -> Ended {
    match found {
        Found::Narrow(slot, value) => Ended::Narrow(slot, value),
        Found::Fault { thread, step, flaw } => Ended::Fault {
            state,
            thread,
            step,
            flaw,
        },
    }
}

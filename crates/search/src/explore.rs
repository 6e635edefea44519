//! The search itself: take a state, put its successors into the store, look at the new ones.
//!
//! Successors are collected in a batch before the store is asked about them, so that the memory
//! accesses of many probes overlap; batches do not change the order in which states are numbered.
//!
//! Where only some events of a state are taken ([`Machine::choose`]) nobody may be put off for ever: one of
//! the successors has to be expanded after the state. Breadth-first that is one with a larger number,
//! otherwise one that is new; a state without any is expanded again, with all its events. *Why that is
//! enough:* let an event be enabled in a state and not among those taken. It stays enabled along the
//! events that are taken instead, so follow a successor that is expanded later, and again: this ends, as
//! there are finitely many states, and it ends in one that was expanded with all its events. Successors inside an
//! atomic block do not count: from there nobody else can move. (Where there is no end of states, breadth-first all
//! events are taken after some dozens of states in a row, so that every run has its turn.)

use crate::expand::{Expand, Kept, Known, MOST_THREADS, Plain, Remembering};
use crate::store::{Key, ROOT, Store, append, hash};
use std::ops::Range;
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
    /// A value did not fit; widen and go on.
    Narrow(Slot, i64),
    /// The row of a thread's buffer is too short; lengthen it and go on.
    Short(ThreadId),
    /// Next to nothing was left out so far: it may be faster to leave out nothing.
    Idle,
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
    /// The states to be expanded (breadth-first), oldest first, after `taken` that were.
    queue: Vec<Known>,
    taken: usize,
    /// States expanded so far.
    expanded: usize,
    /// States that have to be expanded again, with all their events.
    owed: Vec<u32>,
    /// States some of whose events were left out.
    pub left_out: u64,
    /// Successors offered to the store so far, new or not.
    pub successors: u64,
    poll_at: usize,
    poll_at_successors: u64,
    /// Ends soon if next to nothing is left out.
    pub impatient: bool,
    /// Who searches, for those who watch.
    pub name: &'static str,
    /// Successors come from menus, and diamonds are closed once.
    pub shortcuts: bool,
    remembered: u64,
}

/// A search without its machine.
pub struct Carried {
    store: Store,
    notes: Notes,
    starts: Vec<Start>,
    stack: Vec<u32>,
    queue: Vec<Known>,
    taken: usize,
    expanded: usize,
    owed: Vec<u32>,
    left_out: u64,
    successors: u64,
    name: &'static str,
    shortcuts: bool,
}

/// Successors waiting for the store.
pub struct Batch {
    states: Vec<u64>,
    keys: Vec<Key>,
    known: Vec<Known>,
    /// Those that the store did not have.
    new: Vec<u32>,
    /// States whose events were not all taken: their numbers, and which successors are theirs.
    pub chosen: Vec<(u32, Range<usize>)>,
    /// All events are wanted.
    pub whole: bool,
    /// The parent of what comes one by one.
    pub parent: u32,
}

/// As many states as are expanded at a time, breadth-first.
const BATCH: usize = 64;
/// So many known states may be left behind in the queue.
const TAKEN: usize = 1 << 10;
/// As many expansions show whether anything is left out.
const PATIENCE: usize = 1 << 10;
/// Expansions between two looks at the clock.
const POLL: usize = 1 << 12;

impl Batch {
    fn new(words: usize) -> Self {
        Batch {
            states: Vec::with_capacity(2 * BATCH * words),
            keys: Vec::with_capacity(2 * BATCH),
            known: Vec::with_capacity(2 * BATCH),
            new: Vec::new(),
            chosen: Vec::new(),
            whole: false,
            parent: ROOT,
        }
    }

    /// What waits from this place on is not all that the parent could do.
    pub fn chosen(&mut self, from: usize) {
        self.chosen.push((self.parent, from..self.keys.len()));
    }

    /// Successors waiting.
    pub fn waiting(&self) -> usize {
        self.keys.len()
    }

    /// These come after so many states of which events were left out.
    pub fn set_streak(&mut self, waiting: Range<usize>, streak: u32) {
        self.known[waiting]
            .iter_mut()
            .for_each(|k| k.streak = streak);
    }

    fn clear(&mut self) {
        self.states.clear();
        self.keys.clear();
        self.known.clear();
        self.chosen.clear();
    }

    /// Room for so many states in the empty batch, to be filled in: the states, and what comes with
    /// them.
    pub fn make_room<const W: usize>(
        &mut self,
        count: usize,
    ) -> (&mut [[u64; W]], &mut [Key], &mut [Known]) {
        self.states.resize(count * W, 0);
        self.keys.resize(
            count,
            Key {
                hash: 0,
                parent: ROOT,
            },
        );
        self.known.resize(count, Known::NOTHING);
        (
            self.states.as_chunks_mut::<W>().0,
            &mut self.keys,
            &mut self.known,
        )
    }
}

impl Sink for Batch {
    #[inline]
    fn next(&mut self, state: &[u64]) {
        append(&mut self.states, state);
        self.keys.push(Key {
            hash: hash(state),
            parent: self.parent,
        });
        self.known.push(Known::NOTHING);
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
            queue: Vec::new(),
            taken: 0,
            expanded: 0,
            owed: Vec::new(),
            left_out: 0,
            successors: 0,
            poll_at: 0,
            poll_at_successors: 0,
            impatient: false,
            name: "explicit",
            shortcuts: true,
            remembered: 0,
        })
    }

    pub fn carry(self) -> Carried {
        Carried {
            store: self.store,
            notes: self.notes,
            starts: self.starts,
            stack: self.stack,
            queue: self.queue,
            taken: self.taken,
            expanded: self.expanded,
            owed: self.owed,
            left_out: self.left_out,
            successors: self.successors,
            name: self.name,
            shortcuts: self.shortcuts,
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
            queue: carried.queue,
            taken: carried.taken,
            expanded: carried.expanded,
            owed: carried.owed,
            left_out: carried.left_out,
            successors: carried.successors,
            poll_at: 0,
            poll_at_successors: 0,
            impatient: false,
            name: carried.name,
            shortcuts: carried.shortcuts,
            remembered: 0,
        }
    }

    pub fn progress(&self) -> Progress {
        let states = self.store.len() as u64;
        Progress {
            states,
            frontier: states - (self.expanded as u64).min(states),
            memory: self.store.bytes()
                + self.remembered
                + 4 * self.stack.capacity() as u64
                + (size_of::<Known>() * self.queue.capacity()) as u64,
        }
    }

    /// Searches on until there is a reason to end. After [`Ended::Narrow`] and [`Ended::Short`]
    /// the state where it happened counts as not yet expanded.
    pub fn run<L: Look>(&mut self, look: &mut L, control: &Control<'_>) -> Ended {
        let machine = self.machine;
        let breadth_first = self.order == Order::BreadthFirst;
        macro_rules! remembering {
            ($words:literal, $threads:literal) => {
                self.drive(
                    Remembering::<$words, $threads>::new(machine, breadth_first),
                    look,
                    control,
                )
            };
            ($words:literal) => {
                match machine.thread_count() {
                    2 => remembering!($words, 2),
                    3 => remembering!($words, 3),
                    4 => remembering!($words, 4),
                    _ => remembering!($words, 0),
                }
            };
        }
        match machine.words {
            _ if !self.shortcuts || !(1..=MOST_THREADS).contains(&machine.thread_count()) => {
                self.drive(Plain::new(machine), look, control)
            }
            1 => remembering!(1),
            2 => remembering!(2),
            3 => remembering!(3, 0),
            4 => remembering!(4, 0),
            5 => remembering!(5, 0),
            6 => remembering!(6, 0),
            _ => self.drive(Plain::new(machine), look, control),
        }
    }

    fn drive<E: Expand, L: Look>(
        &mut self,
        mut expand: E,
        look: &mut L,
        control: &Control<'_>,
    ) -> Ended {
        look.fit(self.machine);
        // Menus are those of a machine.
        for known in &mut self.queue {
            *known = known.without_menus();
        }
        let mut current = vec![0; self.machine.words];
        let mut stored = current.clone();
        // A search that was carried on has begun already; begun states are found again.
        let begun = self.expanded > 0;
        for i in (0..self.starts.len()).filter(|_| !begun) {
            let start = &self.starts[i];
            let mut kept = Kept::new(self.machine, &mut self.batch, &mut stored);
            let begun = self
                .machine
                .begin(start, &mut current, &mut self.notes, &mut kept);
            if let Err(found) = begun {
                return ended(found, ROOT);
            }
            if let Err(end) = self.flush(look, control) {
                return end;
            }
        }
        loop {
            if let Err(end) = self.settle(&mut expand, look, control) {
                return end;
            }
            let Some((index, count)) = self.next() else {
                return Ended::Exhausted;
            };
            if self.impatient && self.expanded >= PATIENCE {
                self.impatient = false;
                if self.left_out * 8 < self.expanded as u64 {
                    return Ended::Idle;
                }
            }
            let due = self.expanded >= self.poll_at || self.successors >= self.poll_at_successors;
            if due {
                self.remembered = expand.bytes();
                if let Err(stop) = control.poll(self.name, self.progress()) {
                    return Ended::Stopped(stop);
                }
                self.poll_at = self.expanded + POLL;
                self.poll_at_successors = self.successors + self.successors_between_polls();
            }
            let known = match self.order {
                Order::BreadthFirst => &self.queue[self.taken..self.taken + count],
                Order::DepthFirst => &[Known::NOTHING],
            };
            let states = self.store.states(index, count);
            let (notes, batch) = (&mut self.notes, &mut self.batch);
            let expanded = expand.expand(self.machine, states, index, known, notes, batch);
            let (done, cut) = match expanded {
                Ok(done) => (done, None),
                Err((done, found)) => (done, Some(found)),
            };
            self.take(done);
            if !matches!(cut, Some(Found::Fault { .. }))
                && let Err(end) = self.flush(look, control)
            {
                return end;
            }
            if let Some(found) = cut {
                return ended(found, index + done as u32);
            }
        }
    }

    /// Expands what is owed, with all events.
    fn settle<E: Expand, L: Look>(
        &mut self,
        expand: &mut E,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<(), Ended> {
        while let Some(&index) = self.owed.last() {
            let state = self.store.states(index, 1);
            let (notes, batch) = (&mut self.notes, &mut self.batch);
            let known = &[Known::NOTHING];
            batch.whole = true;
            let expanded = expand.expand(self.machine, state, index, known, notes, batch);
            self.batch.whole = false;
            if let Err((_, found)) = expanded {
                self.batch.clear();
                return Err(ended(found, index));
            }
            self.owed.pop();
            self.left_out -= 1;
            self.flush(look, control)?;
        }
        Ok(())
    }

    /// Wide states with many threads take long to expand: they are polled more often.
    fn successors_between_polls(&self) -> u64 {
        (1 << 18) / self.machine.words.max(1) as u64 + 1
    }

    /// The next states to be expanded: the number of the first, and how many. Breadth-first the store
    /// itself is the queue.
    #[inline]
    fn next(&self) -> Option<(u32, usize)> {
        match self.order {
            Order::BreadthFirst => {
                let first = self.expanded as u32;
                let count = (self.queue.len() - self.taken).min(BATCH);
                (count > 0).then(|| (first, count.min(self.store.together(first))))
            }
            Order::DepthFirst => Some((*self.stack.last()?, 1)),
        }
    }

    /// That many of the next states are expanded.
    #[inline]
    fn take(&mut self, count: usize) {
        self.expanded += count;
        match self.order {
            Order::BreadthFirst => {
                self.taken += count;
                if self.taken > TAKEN && self.taken > self.queue.len() / 2 {
                    self.queue.drain(..self.taken);
                    self.taken = 0;
                }
            }
            Order::DepthFirst => self.stack.truncate(self.stack.len() - count),
        }
    }

    /// Moves the batch into the store.
    fn flush<L: Look>(&mut self, look: &mut L, control: &Control<'_>) -> Result<(), Ended> {
        let n = self.batch.keys.len();
        self.successors += n as u64;
        if let Some(bytes) = self.store.growth(n) {
            let mut progress = self.progress();
            progress.memory += bytes;
            let room = control.poll(self.name, progress);
            room.map_err(Ended::Stopped)?;
            if self.store.is_full() {
                return Err(Ended::Stopped(Stop::Memory));
            }
            self.store.reserve(n);
        }
        let Batch {
            states,
            keys,
            known,
            new,
            chosen,
            ..
        } = &mut self.batch;
        if self.store.is_far() {
            for key in &*keys {
                self.store.prefetch_slot(key.hash);
            }
            for key in &*keys {
                self.store.prefetch_state(key.hash);
            }
        }
        let first = self.store.len() as u32;
        self.store.insert_all(states, keys, new);
        self.left_out += chosen.len() as u64;
        for (number, successors) in chosen.drain(..) {
            let from = new.partition_point(|i| (*i as usize) < successors.start);
            let mut fresh = new[from..].iter().map(|i| *i as usize);
            let words = self.machine.words;
            let state = |i: usize| &states[i * words..(i + 1) * words];
            let outside = |i: &usize| self.machine.inside_atomic(state(*i)).is_none();
            let mut later = fresh
                .by_ref()
                .take_while(|i| *i < successors.end)
                .any(|i| outside(&i));
            if !later && self.order == Order::BreadthFirst {
                let after = |i: &usize| self.store.find(state(*i)) > Some(number);
                later = successors.clone().filter(outside).any(|i| after(&i));
            }
            if !later {
                self.owed.push(number);
            }
        }
        let before = self.stack.len();
        match self.order {
            Order::BreadthFirst => self.queue.extend(new.iter().map(|i| known[*i as usize])),
            Order::DepthFirst => self.stack.extend(first..self.store.len() as u32),
        }
        let mut end = Ok(());
        for index in first..self.store.len() as u32 {
            let state = self.store.state(index);
            if self.machine.inside_atomic(state).is_some() {
                continue;
            }
            match look.look(self.machine, state) {
                Ok(false) => {}
                Ok(true) => {
                    end = Err(Ended::Halted(index));
                    break;
                }
                Err(flaw) => {
                    end = Err(Ended::NoValue(index, flaw));
                    break;
                }
            }
        }
        // The first successor is expanded first.
        self.stack[before..].reverse();
        states.clear();
        keys.clear();
        known.clear();
        end
    }
}

fn ended(found: Found, state: u32) -> Ended {
    match found {
        Found::Narrow(slot, value) => Ended::Narrow(slot, value),
        Found::Short(thread) => Ended::Short(thread),
        Found::Fault { thread, step, flaw } => Ended::Fault {
            state,
            thread,
            step,
            flaw,
        },
    }
}

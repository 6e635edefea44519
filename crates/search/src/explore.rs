//! The search itself: take a state, put its successors into the store, look at the new ones.
//!
//! Successors are collected in a batch before the store is asked about them, so that the memory
//! accesses of many probes overlap; batches do not change the order in which states are numbered. Breadth-first
//! states are expanded level by level, and a large level on several workers ([`crate::crew`]): states, numbers and
//! parents are the same for any number of them.
//!
//! Where only some events of a state are taken ([`Machine::choose`]) nobody may be put off for ever: one of
//! the successors has to be expanded after the state. Breadth-first that is one with a larger number,
//! otherwise one that is new; a state without any is expanded again, with all its events (breadth-first when its level
//! is done, so that this does not depend on batches). *Why that is
//! enough:* let an event be enabled in a state and not among those taken. It stays enabled along the
//! events that are taken instead, so follow a successor that is expanded later, and again: this ends, as
//! there are finitely many states, and it ends in one that was expanded with all its events. Successors inside an
//! atomic block do not count: from there nobody else can move. (Where there is no end of states, breadth-first all
//! events are taken after some dozens of states in a row, so that every run has its turn.)

use crate::batch::Batch;
use crate::checkpoint::Keeper;
use crate::crew::{Crew, WORTH_IT};
use crate::expand::{Expand, Kept, Known, MOST_THREADS, Plain, Remembering};
use crate::store::{ROOT, Store, hash};
use std::ops::Range;
use wattle_evidence::{Control, Progress, Stop};
use wattle_memory::compiled::{Flaw, Found, Machine, Notes, Slot};
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
pub trait Look: Send + Sized {
    /// Called before the first state, and whenever the machine has changed its layout.
    fn fit(&mut self, _machine: &Machine<'_>) {}

    /// `Ok(true)` ends the search.
    fn look(&mut self, machine: &Machine<'_>, state: &[u64]) -> Result<bool, Flaw>;

    /// Another one that looks for the same, at other states.
    fn fork(&self) -> Self;

    /// What another one has seen.
    fn join(&mut self, _other: Self) {}
}

pub struct Search<'m, 'i> {
    pub machine: &'m Machine<'i>,
    pub store: Store,
    pub notes: Notes,
    pub starts: Vec<Start>,
    order: Order,
    pub(crate) batch: Batch,
    /// States to be expanded (depth-first), newest last.
    stack: Vec<u32>,
    /// The states to be expanded (breadth-first), oldest first, after `taken` that were.
    pub(crate) queue: Vec<Known>,
    pub(crate) taken: usize,
    pub count: Count,
    /// States that have to be expanded again, with all their events.
    pub(crate) owed: Vec<u32>,
    /// The state that ended the search.
    last: Option<u32>,
    /// Ends soon if next to nothing is left out.
    pub impatient: bool,
    /// Who searches, for those who watch.
    pub name: &'static str,
    /// Successors come from menus, and diamonds are closed once.
    pub shortcuts: bool,
    /// So many states of a level are worth several workers.
    pub worth_it: usize,
    remembered: u64,
}

/// How far a search has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// States expanded so far.
    pub expanded: usize,
    /// Successors offered to the store so far, new or not.
    pub successors: u64,
    /// States some of whose events were left out.
    pub left_out: u64,
    /// The states of the current level end before this one.
    pub level_end: usize,
    /// Breadth-first, the distance from the start of the states being expanded: all that are nearer are.
    pub depth: u32,
    /// Polls so far.
    polls: u64,
}

impl Count {
    pub const WORDS: usize = 6;

    pub(crate) fn to_words(self) -> [u64; Count::WORDS] {
        [
            self.expanded as u64,
            self.successors,
            self.left_out,
            self.level_end as u64,
            u64::from(self.depth),
            self.polls,
        ]
    }

    pub(crate) fn from_words(words: [u64; Count::WORDS]) -> Self {
        let [expanded, successors, left_out, level_end, depth, polls] = words;
        Count {
            expanded: expanded as usize,
            successors,
            left_out,
            level_end: level_end as usize,
            depth: depth as u32,
            polls,
        }
    }
}

/// A search without its machine.
pub struct Carried {
    store: Store,
    notes: Notes,
    starts: Vec<Start>,
    stack: Vec<u32>,
    queue: Vec<Known>,
    taken: usize,
    count: Count,
    owed: Vec<u32>,
    name: &'static str,
    shortcuts: bool,
    worth_it: usize,
}

/// As many states as are expanded at a time, breadth-first.
const BATCH: usize = 64;
/// So many known states may be left behind in the queue.
const TAKEN: usize = 1 << 10;
/// As many expansions show whether anything is left out.
const PATIENCE: usize = 1 << 10;
/// Expansions between two looks at the clock.
const POLL: usize = 1 << 12;

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
            count: Count::default(),
            owed: Vec::new(),
            last: None,
            impatient: false,
            name: "explicit",
            shortcuts: true,
            worth_it: WORTH_IT,
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
            count: self.count,
            owed: self.owed,
            name: self.name,
            shortcuts: self.shortcuts,
            worth_it: self.worth_it,
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
            count: carried.count,
            owed: carried.owed,
            last: None,
            impatient: false,
            name: carried.name,
            shortcuts: carried.shortcuts,
            worth_it: carried.worth_it,
            remembered: 0,
        }
    }

    /// What was done. A search that found what it looked for counts the states up to that.
    pub fn progress(&self) -> Progress {
        let states = self
            .last
            .map_or(self.store.len() as u64, |n| u64::from(n) + 1);
        Progress {
            states,
            frontier: states.saturating_sub(self.count.expanded as u64),
            memory: self.store.bytes()
                + self.remembered
                + 4 * self.stack.capacity() as u64
                + (size_of::<Known>() * self.queue.capacity()) as u64,
            depth: self.complete_depth(),
        }
    }

    /// Every run of so many steps was seen, where that is known: not if some were cut off, nor if events are left out,
    /// which makes runs longer.
    fn complete_depth(&self) -> Option<u32> {
        let notes = &self.notes;
        let all = !notes.full.contains(&true) && notes.overflow.is_none();
        let ordered = self.order == Order::BreadthFirst && !self.machine.leaves_out();
        (all && ordered && !self.store.is_empty()).then_some(self.count.depth)
    }

    /// Searches on until there is a reason to end. After [`Ended::Narrow`] and [`Ended::Short`]
    /// the state where it happened counts as not yet expanded.
    pub fn run<L: Look>(&mut self, look: &mut L, control: &Control<'_>) -> Ended {
        self.run_kept(look, control, None)
    }

    /// The same, written down by a keeper at the ends of levels.
    pub(crate) fn run_kept<L: Look>(
        &mut self,
        look: &mut L,
        control: &Control<'_>,
        keeper: Option<&mut Keeper<'_>>,
    ) -> Ended {
        macro_rules! remembering {
            ($words:literal, $threads:literal) => {
                self.drive::<Remembering<$words, $threads>, L>(look, control, keeper)
            };
            ($words:literal) => {
                match self.machine.thread_count() {
                    2 => remembering!($words, 2),
                    3 => remembering!($words, 3),
                    4 => remembering!($words, 4),
                    _ => remembering!($words, 0),
                }
            };
        }
        let threads = self.machine.thread_count();
        match self.machine.words {
            _ if !self.shortcuts || !(1..=MOST_THREADS).contains(&threads) => {
                self.drive::<Plain, L>(look, control, keeper)
            }
            1 => remembering!(1),
            2 => remembering!(2),
            3 => remembering!(3, 0),
            4 => remembering!(4, 0),
            5 => remembering!(5, 0),
            6 => remembering!(6, 0),
            _ => self.drive::<Plain, L>(look, control, keeper),
        }
    }

    fn drive<E: Expand, L: Look>(
        &mut self,
        look: &mut L,
        control: &Control<'_>,
        mut keeper: Option<&mut Keeper<'_>>,
    ) -> Ended {
        if let Err(stop) = control.go_on() {
            return Ended::Stopped(stop);
        }
        look.fit(self.machine);
        // Menus are those of a machine.
        for known in &mut self.queue {
            *known = known.without_menus();
        }
        let workers = match self.order {
            Order::BreadthFirst => control.workers(),
            Order::DepthFirst => 1,
        };
        let mut crew: Crew<E> = Crew::new(self.machine, self.order, workers);
        // A search that was carried on has begun already; begun states are found again.
        if self.count.expanded == 0
            && let Err(end) = self.begin(look, control)
        {
            return end;
        }
        loop {
            match self.end_level(&mut crew.first, look, control) {
                Err(end) => return end,
                Ok(false) => {}
                Ok(true) => {
                    if let Some(keeper) = keeper.as_mut().filter(|k| k.is_due()) {
                        keeper.save(self);
                    }
                }
            }
            let Some((index, count)) = self.next() else {
                return Ended::Exhausted;
            };
            if self.impatient && self.count.expanded >= PATIENCE {
                self.impatient = false;
                if self.count.left_out * 8 < self.count.expanded as u64 {
                    return Ended::Idle;
                }
            }
            let due = self.due(self.count);
            if self.count.polls < due {
                self.remembered = crew.bytes();
                if let Err(end) = self.poll(due, control) {
                    return end;
                }
            }
            if self.is_large() && crew.are_several() {
                if let Err(end) = self.take_together(&mut crew, look, control) {
                    return end;
                }
                continue;
            }
            let numbers: [u32; BATCH] = std::array::from_fn(|i| index + i as u32);
            let numbers = &numbers[..count];
            let known = match self.order {
                Order::BreadthFirst => &self.queue[self.taken..self.taken + count],
                Order::DepthFirst => &[Known::NOTHING],
            };
            let states = self.store.states(index, count);
            let (notes, batch) = (&mut self.notes, &mut self.batch);
            let expand = &mut crew.first;
            let expanded = expand.expand(self.machine, states, numbers, known, notes, batch);
            let (done, cut) = match expanded {
                Ok(done) => (done, None),
                Err((done, found)) => (done, Some(found)),
            };
            self.take(done);
            if let Err(end) = self.flush(look, control) {
                return end;
            }
            if let Some(found) = cut {
                return ended(found, index + done as u32);
            }
        }
    }

    /// Whether what is left of the level is worth several workers.
    fn is_large(&self) -> bool {
        let left = self.count.level_end.saturating_sub(self.count.expanded);
        !self.impatient && left >= self.worth_it
    }

    /// Puts the first states into the store.
    fn begin<L: Look>(&mut self, look: &mut L, control: &Control<'_>) -> Result<(), Ended> {
        let mut current = vec![0; self.machine.words];
        let mut stored = current.clone();
        for i in 0..self.starts.len() {
            let start = &self.starts[i];
            let mut kept = Kept::new(self.machine, &mut self.batch, &mut stored);
            let begun = self
                .machine
                .begin(start, &mut current, &mut self.notes, &mut kept);
            if let Err(found) = begun {
                self.batch.clear();
                return Err(ended(found, ROOT));
            }
            self.flush(look, control)?;
        }
        self.count.level_end = self.store.len();
        Ok(())
    }

    /// At the end of a level: expands what is owed, with all events, and begins the next one, if there is one. Depth-first
    /// what is owed is expanded at once.
    fn end_level<E: Expand, L: Look>(
        &mut self,
        expand: &mut E,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<bool, Ended> {
        let breadth_first = self.order == Order::BreadthFirst;
        if breadth_first && self.count.expanded < self.count.level_end {
            return Ok(false);
        }
        self.settle(expand, look, control)?;
        let begins = breadth_first && self.count.level_end < self.store.len();
        if begins {
            self.count.level_end = self.store.len();
            self.count.depth += 1;
        }
        Ok(begins)
    }

    fn settle<E: Expand, L: Look>(
        &mut self,
        expand: &mut E,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<(), Ended> {
        let mut owed = std::mem::take(&mut self.owed);
        let mut done = 0;
        let mut end = Ok(());
        while done < owed.len() && end.is_ok() {
            let some = &owed[done..owed.len().min(done + BATCH)];
            let mut states = Vec::with_capacity(some.len() * self.machine.words);
            for number in some {
                states.extend_from_slice(self.store.state(*number));
            }
            let (notes, batch) = (&mut self.notes, &mut self.batch);
            let known = &[Known::NOTHING; BATCH][..some.len()];
            batch.whole = true;
            let expanded = expand.expand(self.machine, &states, some, known, notes, batch);
            self.batch.whole = false;
            let (n, cut) = match expanded {
                Ok(n) => (n, Ok(())),
                Err((n, found)) => (n, Err(ended(found, some[n]))),
            };
            done += n;
            self.count.left_out -= n as u64;
            end = self.flush(look, control).and(cut);
            end = end.and_then(|()| self.poll(self.due(self.count), control));
        }
        // Beginning again goes on where this ended.
        self.owed = owed.split_off(done);
        end
    }

    /// How many polls there are to be by now: it depends on what was done only, not on how. Wide states with many
    /// threads take long to expand: they are polled more often.
    pub(crate) fn due(&self, count: Count) -> u64 {
        let successors = (1 << 18) / self.machine.words.max(1) as u64 + 1;
        1 + (count.expanded / POLL).max((count.successors / successors) as usize) as u64
    }

    pub(crate) fn poll(&mut self, due: u64, control: &Control<'_>) -> Result<(), Ended> {
        if self.count.polls >= due {
            return Ok(());
        }
        let progress = self.progress();
        while self.count.polls < due {
            self.count.polls += 1;
            let polled = control.poll(self.name, progress);
            polled.map_err(Ended::Stopped)?;
        }
        let soon = progress.memory + self.store.growth(2 * POLL);
        let most = control.memory_limit();
        if most.is_some_and(|most| soon > most) || self.store.is_full() {
            return Err(Ended::Stopped(Stop::Memory));
        }
        Ok(())
    }

    /// The search ends with this state, the successor at that place in the order they were offered: it takes as many
    /// polls as it would, had all batches been short.
    pub(crate) fn end_with(
        &mut self,
        number: u32,
        successors: u64,
        flaw: Option<Flaw>,
        control: &Control<'_>,
    ) -> Ended {
        let expanded = match self.store.parent(number) {
            ROOT => 0,
            parent => parent as usize,
        };
        let due = self.due(Count {
            expanded,
            successors,
            ..self.count
        });
        if let Err(end) = self.poll(due, control) {
            return end;
        }
        self.last = Some(number);
        match flaw {
            None => Ended::Halted(number),
            Some(flaw) => Ended::NoValue(number, flaw),
        }
    }

    /// The next states to be expanded: the number of the first, and how many. Breadth-first the store
    /// itself is the queue.
    #[inline]
    fn next(&self) -> Option<(u32, usize)> {
        match self.order {
            Order::BreadthFirst => {
                let first = self.count.expanded as u32;
                let count = (self.count.level_end - self.count.expanded).min(BATCH);
                (count > 0).then(|| (first, count.min(self.store.together(first))))
            }
            Order::DepthFirst => Some((*self.stack.last()?, 1)),
        }
    }

    /// That many of the next states are expanded.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) {
        self.count.expanded += count;
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
        let before = self.stack.len();
        match self.order {
            Order::BreadthFirst => self.queue.extend(new.iter().map(|i| known[*i as usize])),
            Order::DepthFirst => self.stack.extend(first..self.store.len() as u32),
        }
        // The first successor is expanded first.
        self.stack[before..].reverse();
        self.count.left_out += chosen.len() as u64;
        let later_is_enough = self.order == Order::BreadthFirst;
        let owed = owed(self.machine, &self.store, &self.batch, later_is_enough);
        self.owed.extend(owed);
        let mut end = None;
        for (number, at) in (first..).zip(&self.batch.new) {
            let state = self.store.state(number);
            if self.machine.inside_atomic(state).is_some() {
                continue;
            }
            match look.look(self.machine, state) {
                Ok(false) => continue,
                Ok(true) => end = Some((number, *at, None)),
                Err(flaw) => end = Some((number, *at, Some(flaw))),
            }
            break;
        }
        let before = self.count.successors;
        self.count.successors += self.batch.keys.len() as u64;
        self.batch.clear();
        match end {
            None => Ok(()),
            Some((number, at, flaw)) => {
                Err(self.end_with(number, before + u64::from(at), flaw, control))
            }
        }
    }
}

/// The states of a batch that have to be expanded again, with all their events: no successor is expanded after
/// them.
pub(crate) fn owed(
    machine: &Machine<'_>,
    store: &Store,
    batch: &Batch,
    later_is_enough: bool,
) -> Vec<u32> {
    let is_owed = |(number, successors): &(u32, Range<usize>)| {
        let outside = |i: &usize| machine.inside_atomic(batch.state(*i)).is_none();
        let from = batch
            .new
            .partition_point(|i| (*i as usize) < successors.start);
        let fresh = batch.new[from..].iter().map(|i| *i as usize);
        let mut fresh = fresh.take_while(|i| *i < successors.end);
        if fresh.any(|i| outside(&i)) {
            return false;
        }
        let after = |i: usize| store.find(batch.state(i)) > Some(*number);
        !later_is_enough || !successors.clone().filter(outside).any(after)
    };
    let owed = batch.chosen.iter().filter(|c| is_owed(c));
    owed.map(|(number, _)| *number).collect()
}

pub(crate) fn ended(found: Found, state: u32) -> Ended {
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

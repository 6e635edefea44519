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

mod carried;
mod ways;

pub use carried::Frontier;

use crate::batch::Batch;
use crate::checkpoint::Keeper;
use crate::crew::{Crew, WORTH_IT};
use crate::expand::{Expand, Kept, Known, MOST_THREADS, Plain, Remembering};
use crate::row::Row;
use crate::store::{ROOT, Store};
use crate::tree::{Parents, Tree, halves};
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
pub enum Finished {
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
pub trait Observer: Send + Sized {
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
    /// The states, unless they are compressed.
    pub store: Store,
    /// The states, if they are compressed.
    pub(crate) tree: Option<Tree>,
    pub notes: Notes,
    pub starts: Vec<Start>,
    order: Order,
    pub(crate) batch: Batch,
    /// States to be expanded (depth-first), newest last.
    stack: Vec<u32>,
    /// What is known about the states to be expanded (breadth-first).
    pub(crate) queue: Row<Known>,
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

/// As many states as are expanded at a time, breadth-first.
const BATCH: usize = 64;
/// As many expansions show whether anything is left out.
const PATIENCE: usize = 1 << 10;
/// About as many nanoseconds of work are between two polls.
const POLL: u64 = 600_000;
/// Room is kept for as many states.
const ROOM: usize = 1 << 13;

/// What a state takes, about, in nanoseconds: to expand it, and each successor. By 30 searches of the scale suite, of one
/// word to four and four threads to fourteen: all took between 0.65 and 1.5 times as long.
fn costs(words: u64, chooses: bool) -> (u64, u64) {
    // To see which events are enough takes longer than to make them, however many threads there are.
    let choice = if chooses { 150 + 75 * words } else { 0 };
    (35 + 25 * words + choice, 55 + 10 * words)
}

/// Calls a method with the way of expanding that is best for the machine as its first type.
macro_rules! for_machine {
    ($self:ident, $method:ident < $($type:ty),* > $arguments:tt) => {
        for_machine!(@words [1, 2] [3, 4, 5, 6] $self, $method, [$($type),*], $arguments)
    };
    (@words [$($few:literal),*] [$($more:literal),*] $self:ident, $method:ident, $types:tt, $arguments:tt) => {
        match ($self.machine.words, $self.machine.thread_count()) {
            (_, threads) if !$self.shortcuts || !(1..=MOST_THREADS).contains(&threads) => {
                for_machine!(@call Plain, $self, $method, $types, $arguments)
            }
            $(($few, 2) => for_machine!(@call Remembering<$few, 2>, $self, $method, $types, $arguments),)*
            $(($few, 3) => for_machine!(@call Remembering<$few, 3>, $self, $method, $types, $arguments),)*
            $(($few, 4) => for_machine!(@call Remembering<$few, 4>, $self, $method, $types, $arguments),)*
            $(($few, _) => for_machine!(@call Remembering<$few, 0>, $self, $method, $types, $arguments),)*
            $(($more, _) => for_machine!(@call Remembering<$more, 0>, $self, $method, $types, $arguments),)*
            _ => for_machine!(@call Plain, $self, $method, $types, $arguments),
        }
    };
    (@call $way:ty, $self:ident, $method:ident, [$($type:ty),*], ($($argument:expr),*)) => {
        $self.$method::<$way $(, $type)*>($($argument),*)
    };
}
pub(crate) use for_machine;

/// Breadth-first one looks up only when so many states are expanded, or a level: the same moments for any number of
/// workers. No batch goes beyond one, so that the states of a batch lie together in the store and in rows.
const MARK: usize = 1 << 8;

pub(crate) fn is_mark(expanded: usize) -> bool {
    expanded.is_multiple_of(MARK)
}

/// States until the next one.
pub(crate) fn to_mark(expanded: usize) -> usize {
    MARK - expanded % MARK
}

impl<'m, 'i> Search<'m, 'i> {
    pub fn new(machine: &'m Machine<'i>, order: Order) -> Result<Self, reference::Refusal> {
        Ok(Search {
            machine,
            store: Store::new(machine.words),
            tree: None,
            notes: machine.notes(),
            starts: reference::starts(machine.instance)?,
            order,
            batch: Batch::new(machine.words),
            stack: Vec::new(),
            queue: Row::default(),
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

    /// States are compressed from now on. The search has not begun, and is breadth-first.
    pub fn compress(&mut self) {
        self.tree = Some(Tree::new(&halves(self.machine, &self.starts)));
    }

    /// How many states were found.
    pub fn len(&self) -> usize {
        self.tree.as_ref().map_or(self.store.len(), Tree::len)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state that a state was found from, or [`ROOT`].
    pub(crate) fn parent(&self, number: u32) -> u32 {
        match &self.tree {
            None => self.store.parent(number),
            Some(tree) => tree.births.of(number).parent,
        }
    }

    /// All states, in an order that means nothing, until there is a reason to end.
    pub fn all_until(&self, mut look: impl FnMut(&[u64]) -> bool) {
        match &self.tree {
            None => {
                let mut numbers = 0..self.store.len() as u32;
                numbers.any(|n| look(self.store.state(n)));
            }
            Some(tree) => tree.all_until(look),
        }
    }

    /// What was done. A search that found what it looked for counts the states up to that.
    pub fn progress(&self) -> Progress {
        let states = self.last.map_or(self.len() as u64, |n| u64::from(n) + 1);
        Progress {
            states,
            frontier: states.saturating_sub(self.count.expanded as u64),
            memory: self.tree.as_ref().map_or(self.store.bytes(), Tree::bytes)
                + self.remembered
                + 4 * self.stack.capacity() as u64
                + self.queue.bytes(),
            depth: self.complete_depth(),
        }
    }

    /// Every run of so many steps was seen, where that is known: not if some were cut off, nor if events are left out,
    /// which makes runs longer.
    fn complete_depth(&self) -> Option<u32> {
        let notes = &self.notes;
        let all = !notes.full.contains(&true) && notes.overflow.is_none();
        let ordered = self.order == Order::BreadthFirst && !self.machine.leaves_out();
        (all && ordered && !self.is_empty()).then_some(self.count.depth)
    }

    /// Searches on until there is a reason to end. After [`Ended::Narrow`] and [`Ended::Short`]
    /// the state where it happened counts as not yet expanded.
    pub fn run<L: Observer>(&mut self, look: &mut L, control: &Control<'_>) -> Finished {
        self.run_kept(look, control, None)
    }

    /// The same, written down by a keeper at the ends of levels.
    pub(crate) fn run_kept<L: Observer>(
        &mut self,
        look: &mut L,
        control: &Control<'_>,
        keeper: Option<&mut Keeper<'_>>,
    ) -> Finished {
        for_machine!(self, drive<L>(look, control, keeper))
    }

    fn drive<E: Expand, L: Observer>(
        &mut self,
        look: &mut L,
        control: &Control<'_>,
        mut keeper: Option<&mut Keeper<'_>>,
    ) -> Finished {
        if let Err(stop) = control.go_on() {
            return Finished::Stopped(stop);
        }
        look.fit(self.machine);
        // Menus are those of a machine.
        self.queue.change(Known::without_menus);
        let workers = match self.order {
            Order::BreadthFirst => control.workers(),
            Order::DepthFirst => 1,
        };
        let mut crew: Crew<E> = Crew::new(self.machine, self.order, workers);
        // A search that was carried on has begun already; begun states are found again.
        if self.count.expanded == 0
            && let Err(end) = self.begin(look)
        {
            return end;
        }
        let mut unfolded = Vec::new();
        loop {
            self.tidy();
            let begins = match self.end_level(&mut crew.first, look, control) {
                Err(end) => return end,
                Ok(begins) => begins,
            };
            if let Some(keeper) = keeper.as_mut().filter(|k| begins && k.is_due()) {
                keeper.save(self);
            }
            let Some((index, count)) = self.next() else {
                return Finished::Exhausted;
            };
            if self.impatient && self.count.expanded >= PATIENCE {
                self.impatient = false;
                if self.count.left_out * 8 < self.count.expanded as u64 {
                    return Finished::Idle;
                }
            }
            let due = self.due(self.count);
            let may = begins || self.order == Order::DepthFirst || is_mark(self.count.expanded);
            if may && self.count.polls < due {
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
                Order::BreadthFirst => self.queue.some(index, count),
                Order::DepthFirst => &[Known::NOTHING],
            };
            let states = match &self.tree {
                None => self.store.states(index, count),
                Some(tree) => {
                    tree.states(tree.row.some(index, count), &mut unfolded);
                    &unfolded
                }
            };
            let (notes, batch) = (&mut self.notes, &mut self.batch);
            let expand = &mut crew.first;
            let expanded = expand.expand(self.machine, states, numbers, known, notes, batch);
            if let Some(tree) = &self.tree {
                let parents = Parents {
                    first: index,
                    states: &unfolded,
                    pairs: tree.row.some(index, count),
                };
                tree.look_up(batch, Some(parents));
            }
            let (done, cut) = match expanded {
                Ok(done) => (done, None),
                Err((done, found)) => (done, Some(found)),
            };
            self.take(done);
            if let Err(end) = self.flush(look) {
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
    fn begin<L: Observer>(&mut self, look: &mut L) -> Result<(), Finished> {
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
            self.flush(look)?;
        }
        self.count.level_end = self.len();
        Ok(())
    }

    /// At the end of a level: expands what is owed, with all events, and begins the next one, if there is one. Depth-first
    /// what is owed is expanded at once.
    fn end_level<E: Expand, L: Observer>(
        &mut self,
        expand: &mut E,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<bool, Finished> {
        let breadth_first = self.order == Order::BreadthFirst;
        if breadth_first && self.count.expanded < self.count.level_end {
            return Ok(false);
        }
        self.settle(expand, look, control)?;
        let begins = breadth_first && self.count.level_end < self.len();
        if begins {
            self.count.level_end = self.len();
            self.count.depth += 1;
        }
        Ok(begins)
    }

    fn settle<E: Expand, L: Observer>(
        &mut self,
        expand: &mut E,
        look: &mut L,
        control: &Control<'_>,
    ) -> Result<(), Finished> {
        let mut owed = std::mem::take(&mut self.owed);
        let mut done = 0;
        let mut end = Ok(());
        while done < owed.len() && end.is_ok() {
            let some = &owed[done..owed.len().min(done + BATCH)];
            let mut states = Vec::with_capacity(some.len() * self.machine.words);
            match &self.tree {
                None => {
                    for number in some {
                        states.extend_from_slice(self.store.state(*number));
                    }
                }
                Some(tree) => tree.states(&tree.owed[done..done + some.len()], &mut states),
            }
            let (notes, batch) = (&mut self.notes, &mut self.batch);
            let known = &[Known::NOTHING; BATCH][..some.len()];
            batch.whole = true;
            let expanded = expand.expand(self.machine, &states, some, known, notes, batch);
            let (n, cut) = match expanded {
                Ok(n) => (n, Ok(())),
                Err((n, found)) => (n, Err(ended(found, some[n]))),
            };
            done += n;
            self.count.left_out -= n as u64;
            end = self.flush(look).and(cut);
            self.batch.whole = false;
            end = end.and_then(|()| self.poll(self.due(self.count), control));
        }
        // Beginning again goes on where this ended.
        self.owed = owed.split_off(done);
        if let Some(tree) = &mut self.tree {
            tree.owed.drain(..done);
        }
        end
    }

    /// How many polls there are to be by now: it depends on what was done only, not on how.
    pub(crate) fn due(&self, count: Count) -> u64 {
        let (state, successor) = costs(self.machine.words as u64, self.machine.leaves_out());
        1 + (count.expanded as u64 * state + count.successors * successor) / POLL
    }

    pub(crate) fn poll(&mut self, due: u64, control: &Control<'_>) -> Result<(), Finished> {
        match self.count.polls >= due {
            true => Ok(()),
            false => self.poll_with(due, self.progress(), control),
        }
    }

    fn poll_with(
        &mut self,
        due: u64,
        progress: Progress,
        control: &Control<'_>,
    ) -> Result<(), Finished> {
        while self.count.polls < due {
            self.count.polls += 1;
            let polled = control.poll(self.name, progress);
            polled.map_err(Finished::Stopped)?;
        }
        let (growth, full) = match &self.tree {
            None => (self.store.growth(ROOM), false),
            Some(tree) => (tree.growth(), tree.is_full()),
        };
        let most = control.memory_limit();
        let full = full || self.len() >= Store::MOST;
        if most.is_some_and(|most| progress.memory + growth > most) || full {
            return Err(Finished::Stopped(Stop::Memory));
        }
        Ok(())
    }

    /// The search ends with this state.
    pub(crate) fn end_with(&mut self, number: u32, flaw: Option<Flaw>) -> Finished {
        self.last = Some(number);
        match flaw {
            None => Finished::Halted(number),
            Some(flaw) => Finished::NoValue(number, flaw),
        }
    }

    /// The polls that are due when so much is done and so many states are known, though by now there may be more.
    pub(crate) fn poll_at(
        &mut self,
        count: Count,
        states: usize,
        control: &Control<'_>,
    ) -> Result<(), Finished> {
        let due = self.due(count);
        if self.count.polls >= due {
            return Ok(());
        }
        // What one worker would have said: a race goes by what was done.
        let progress = Progress {
            states: states as u64,
            frontier: states.saturating_sub(count.expanded) as u64,
            ..self.progress()
        };
        let polled = self.poll_with(due, progress, control);
        if polled.is_err() {
            self.last = Some(states as u32 - 1);
        }
        polled
    }

    /// The next states to be expanded: the number of the first, and how many. Breadth-first the store
    /// itself is the queue.
    #[inline]
    fn next(&self) -> Option<(u32, usize)> {
        match self.order {
            Order::BreadthFirst => {
                let first = self.count.expanded as u32;
                let left = self.count.level_end - self.count.expanded;
                let count = left.min(BATCH).min(to_mark(self.count.expanded));
                (count > 0).then_some((first, count))
            }
            Order::DepthFirst => Some((*self.stack.last()?, 1)),
        }
    }

    /// That many of the next states are expanded.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) {
        self.count.expanded += count;
        if self.order == Order::DepthFirst {
            self.stack.truncate(self.stack.len() - count);
        }
    }

    /// Forgets what was known about the states that are expanded.
    fn tidy(&mut self) {
        self.queue.forget(self.count.expanded);
        if let Some(tree) = &mut self.tree {
            tree.row.forget(self.count.expanded);
        }
    }

    /// These states have to be expanded again.
    pub(crate) fn owe(&mut self, owed: &[u32]) {
        self.owed.extend(owed);
        if let Some(tree) = &mut self.tree {
            let row = owed.iter().flat_map(|n| tree.row.some(*n, 1));
            tree.owed.extend(row);
        }
    }

    /// Who knows the numbers of states, if anybody does.
    pub(crate) fn later(&self) -> Option<&Store> {
        self.tree.is_none().then_some(&self.store)
    }

    /// Moves the batch into the store.
    fn flush<L: Observer>(&mut self, look: &mut L) -> Result<(), Finished> {
        let first = self.len() as u32;
        match &mut self.tree {
            None => self.store.take_in(&mut self.batch),
            Some(tree) => tree.insert_all(&mut self.batch),
        }
        let Batch {
            known, new, chosen, ..
        } = &self.batch;
        let before = self.stack.len();
        match self.order {
            Order::BreadthFirst => new.iter().for_each(|i| self.queue.push(known[*i as usize])),
            Order::DepthFirst => self.stack.extend(first..self.store.len() as u32),
        }
        // The first successor is expanded first.
        self.stack[before..].reverse();
        self.count.left_out += chosen.len() as u64;
        let later = match self.order {
            Order::BreadthFirst => self.later(),
            Order::DepthFirst => None,
        };
        let owed = owed(self.machine, later, &self.batch);
        self.owe(&owed);
        let mut end = None;
        for (number, at) in (first..).zip(&self.batch.new) {
            let state = self.batch.state(*at as usize);
            if self.machine.inside_atomic(state).is_some() {
                continue;
            }
            match look.look(self.machine, state) {
                Ok(false) => continue,
                Ok(true) => end = Some((number, None)),
                Err(flaw) => end = Some((number, Some(flaw))),
            }
            break;
        }
        self.count.successors += self.batch.keys.len() as u64;
        self.batch.clear();
        match end {
            None => Ok(()),
            Some((number, flaw)) => Err(self.end_with(number, flaw)),
        }
    }
}

/// The states of a batch that have to be expanded again, with all their events: no successor is new, and if there is a
/// store to tell, none has a larger number.
pub(crate) fn owed(machine: &Machine<'_>, later: Option<&Store>, batch: &Batch) -> Vec<u32> {
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
        let Some(store) = later else {
            return true;
        };
        let after = |i: usize| store.find(batch.state(i)) > Some(*number);
        !successors.clone().filter(outside).any(after)
    };
    let owed = batch.chosen.iter().filter(|c| is_owed(c));
    owed.map(|(number, _)| *number).collect()
}

pub(crate) fn ended(found: Found, state: u32) -> Finished {
    match found {
        Found::Narrow(slot, value) => Finished::Narrow(slot, value),
        Found::Short(thread) => Finished::Short(thread),
        Found::Fault { thread, step, flaw } => Finished::Fault {
            state,
            thread,
            step,
            flaw,
        },
    }
}

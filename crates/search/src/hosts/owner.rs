//! One owner's part of a search: the states whose hashes are its own.
//!
//! Level by level: an owner expands its states of the level and sends every successor to its owner, who puts it into its
//! store if it is not there. Nothing depends on the order in which successors arrive:
//!
//! - a state's level is its distance from the start, whoever finds it;
//! - of all the states it comes from the one with the least tag is its parent, of those with the same tag the least;
//! - a thread is asleep in it (see [`crate::expand`]) if it is by all arrivals of the level.
//!
//! *Every state is still found, and at its distance.* Of the shortest runs to a state let `w` be the least in the order of
//! threads; its beginnings are the least ones to where they lead. Suppose that after `w1⋯wk`, all found by induction, the
//! thread `a` of the next event sleeps. It sleeps by all arrivals, so by that of `w` too: it was put to sleep at some `wi` after
//! it in the order of threads, and is independent of `wi⋯wk`. Then `w1⋯w(i-1)·a·wi⋯wk` leads to the same state, is as long, and
//! less than `w1⋯wk·a`: a contradiction. So along `w` nobody sleeps, and the state is offered.

use super::exchange::Exchange;
use super::mesh::{Lost, Mesh, code_of, stop_of};
use crate::batch::Batch;
use crate::checkpoint::{Turn, Words, read_notes, write_notes};
use crate::crew::Share;
use crate::expand::{Expand, Kept, Known, MOST_THREADS, Plain, Remembering};
use crate::explore::{Observer, Order, for_machine};
use crate::index::tag;
use crate::path::{Recorder, expand_into};
use crate::store::{ROOT, Store, hash};
use std::sync::atomic::{AtomicU64, Ordering};
use wattle_evidence::{Control, Progress, Stop};
use wattle_memory::Start;
use wattle_memory::compiled::{Found, Machine, Notes};

/// What the owners of one process share.
pub struct Shared<'s> {
    pub mesh: &'s Mesh,
    pub control: &'s Control<'s>,
    pub name: &'static str,
    /// States and bytes of each worker of the process.
    pub held: Vec<(AtomicU64, AtomicU64)>,
}

impl Shared<'_> {
    /// States and bytes of the process.
    fn sums(&self) -> (u64, u64) {
        let sum = |of: fn(&(AtomicU64, AtomicU64)) -> &AtomicU64| {
            let all = self.held.iter();
            all.map(|h| of(h).load(Ordering::Relaxed)).sum()
        };
        (sum(|h| &h.0), sum(|h| &h.1))
    }

    fn progress(&self) -> Progress {
        let (states, memory) = self.sums();
        Progress {
            states: self.mesh.states(states),
            frontier: 0,
            memory,
            depth: None,
        }
    }

    /// Looks whether this process has to stop.
    fn look_around(&self) {
        if let Some(stop) = self.control.stop() {
            self.mesh.stop(stop);
        }
    }

    /// The same after some work.
    fn poll(&self) {
        if let Err(stop) = self.control.poll(self.name, self.progress()) {
            self.mesh.stop(stop);
        }
    }
}

/// What ends a search, in the order in which it is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Expanding the state is a fault; no state if it comes before the first.
    Fault,
    /// The state is looked for.
    Target,
    /// The one who looks cannot make sense of the state.
    NoValue,
}

/// How a search ended, the same for all owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Exhausted,
    Bad(Kind, Vec<u64>),
    /// Values or buffers need more room.
    Turns(Vec<Turn>),
    Stopped(Stop),
}

/// What is known after a level.
#[derive(Clone, Debug)]
struct Summary {
    stop: Option<Stop>,
    states: u64,
    new: u64,
    memory: u64,
    bad: Option<(Kind, Vec<u64>)>,
    turns: Vec<Turn>,
    notes: Notes,
}

/// All that is known in the end, the same for all owners.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub end: End,
    pub states: u64,
    pub memory: u64,
    /// Every state nearer than this was expanded.
    pub depth: u32,
    pub notes: Notes,
    /// The states on the way to the one that ended the search, from a first one on.
    pub way: Option<Vec<Vec<u64>>>,
}

impl Summary {
    fn to_words(&self) -> Vec<u64> {
        let mut words = vec![code_of(self.stop), self.states, self.new, self.memory];
        match &self.bad {
            None => words.push(0),
            Some((kind, state)) => {
                words.extend([1 + *kind as u64, state.len() as u64]);
                words.extend(state);
            }
        }
        write_notes(&self.notes, &mut words);
        words.push(self.turns.len() as u64);
        self.turns.iter().for_each(|t| t.write(&mut words));
        words
    }

    fn from_words(words: Vec<u64>) -> Option<Summary> {
        let from = &mut Words::of(words);
        let stop = stop_of(from.next()?);
        let (states, new, memory) = (from.next()?, from.next()?, from.next()?);
        let kind = match from.next()? {
            0 => None,
            1 => Some(Kind::Fault),
            2 => Some(Kind::Target),
            _ => Some(Kind::NoValue),
        };
        let bad = match kind {
            None => None,
            Some(kind) => {
                let length = from.number()?;
                let state = (0..length).map(|_| from.next());
                Some((kind, state.collect::<Option<Vec<u64>>>()?))
            }
        };
        let notes = read_notes(from)?;
        let turns = from.number()?;
        let turns = (0..turns).map(|_| Turn::read(from));
        Some(Summary {
            stop,
            states,
            new,
            memory,
            bad,
            turns: turns.collect::<Option<Vec<Turn>>>()?,
            notes,
        })
    }

    fn join(&mut self, other: Summary) {
        self.stop = self.stop.or(other.stop);
        self.states += other.states;
        self.new += other.new;
        self.memory += other.memory;
        self.bad = self.bad.take().into_iter().chain(other.bad).min();
        self.turns.extend(other.turns);
        self.notes.join(&other.notes);
    }
}

/// One of the owners.
pub struct Owner<'s, 'm, 'i, L> {
    pub machine: &'m Machine<'i>,
    pub shortcuts: bool,
    pub store: Store,
    pub exchange: Exchange<'s>,
    shared: &'s Shared<'s>,
    starts: &'s [Start],
    look: L,
    notes: Notes,
    /// Which worker of the process this is, and how many there are.
    share: Share,
    /// The first of this owner's states of each level.
    levels: Vec<usize>,
    /// Who sleeps in the states of the level, and of the next one.
    queue: Vec<Known>,
    next: Vec<Known>,
    bad: Option<(Kind, Vec<u64>)>,
    turns: Vec<Turn>,
    /// What goes to each owner.
    blocks: Vec<Vec<u64>>,
    polled: usize,
}

/// Words of a block that is sent.
const BLOCK: usize = 1 << 12;
/// States expanded at a time.
const BATCH: usize = 64;
/// Batches between two looks at what has arrived.
const STEP: usize = 8;
/// States between two polls.
const POLL: usize = 1 << 12;

impl<'s, 'm, 'i, L: Observer> Owner<'s, 'm, 'i, L> {
    pub fn new(
        machine: &'m Machine<'i>,
        exchange: Exchange<'s>,
        shared: &'s Shared<'s>,
        starts: &'s [Start],
        look: L,
        share: Share,
    ) -> Self {
        Owner {
            machine,
            shortcuts: true,
            store: Store::new(machine.words),
            blocks: vec![Vec::new(); exchange.owners()],
            exchange,
            shared,
            starts,
            look,
            notes: machine.notes(),
            share,
            levels: Vec::new(),
            queue: Vec::new(),
            next: Vec::new(),
            bad: None,
            turns: Vec::new(),
            polled: 0,
        }
    }

    /// Whose state it is. The tag's bits are not used: they say where in an owner's store.
    pub fn owner(&self, hash: u64) -> usize {
        ((u64::from(hash as u32) * self.exchange.owners() as u64) >> 32) as usize
    }

    pub fn search(&mut self) -> Result<Outcome, Lost> {
        for_machine!(self, levels<>())
    }

    fn levels<E: Expand>(&mut self) -> Result<Outcome, Lost> {
        let mut expand = E::new(self.machine, Order::BreadthFirst, self.share);
        self.look.fit(self.machine);
        self.begin();
        let mut depth = 0;
        loop {
            let from = self.levels.last().copied().unwrap_or(0);
            let (level, to) = (self.levels.len(), self.store.len());
            let all = self.agree((to - from) as u64)?;
            let end = if !all.turns.is_empty() {
                Some(End::Turns(all.turns))
            } else if let Some((kind, state)) = all.bad {
                Some(End::Bad(kind, state))
            } else if let Some(stop) = all.stop {
                Some(End::Stopped(stop))
            } else {
                (all.new == 0).then_some(End::Exhausted)
            };
            // Somebody may have stopped in the middle of the level before.
            if all.stop.is_none() {
                depth = (level - 1) as u32;
            }
            if let Some(end) = end {
                let way = match &end {
                    End::Bad(Kind::Fault, state) if state.is_empty() => None,
                    // Faults are seen when a state is expanded, the others when it is found.
                    End::Bad(Kind::Fault, state) => Some(self.way_to(level - 2, state.clone())?),
                    End::Bad(Kind::Target | Kind::NoValue, state) => {
                        Some(self.way_to(level - 1, state.clone())?)
                    }
                    End::Exhausted | End::Turns(_) | End::Stopped(_) => None,
                };
                return Ok(Outcome {
                    end,
                    states: all.states,
                    memory: all.memory,
                    depth,
                    notes: all.notes,
                    way: way.flatten(),
                });
            }
            self.queue = std::mem::take(&mut self.next);
            self.levels.push(to);
            self.expand_level(&mut expand, from, to)?;
        }
    }

    /// What all owners know together.
    fn agree(&mut self, new: u64) -> Result<Summary, Lost> {
        let mine = Summary {
            stop: self.shared.mesh.stopped(),
            states: self.store.len() as u64,
            new,
            memory: self.bytes(),
            bad: self.bad.clone(),
            turns: self.turns.clone(),
            notes: self.notes.clone(),
        };
        let all = self.exchange.gather(&mine.to_words())?;
        let mut all = all.into_iter().map(Summary::from_words);
        let unreadable = || Lost("a message cannot be read".into());
        let mut sum = all.next().flatten().ok_or_else(unreadable)?;
        for other in all {
            sum.join(other.ok_or_else(unreadable)?);
        }
        Ok(sum)
    }

    fn bytes(&self) -> u64 {
        let known = self.queue.capacity() + self.next.capacity();
        let blocks: usize = self.blocks.iter().map(Vec::capacity).sum();
        self.store.bytes() + (known * size_of::<Known>() + 8 * blocks) as u64
    }

    /// Puts the first states into the store, those that are this owner's.
    fn begin(&mut self) {
        self.levels.push(0);
        let mut current = vec![0; self.machine.words];
        let mut stored = current.clone();
        let mut batch = Batch::new(self.machine.words);
        for start in self.starts {
            let mut kept = Kept::new(self.machine, &mut batch, &mut stored);
            let begun = self
                .machine
                .begin(start, &mut current, &mut self.notes, &mut kept);
            if let Err(found) = begun {
                batch.clear();
                self.found(found, &[]);
            }
            for (i, key) in batch.keys.iter().enumerate() {
                if self.owner(key.hash) == self.exchange.me() {
                    self.receive(batch.state(i), Known::NOTHING, ROOT);
                }
            }
            batch.clear();
        }
    }

    /// Something ended the expansion of a state.
    fn found(&mut self, found: Found, state: &[u64]) {
        match found {
            Found::Narrow(slot, value) => self.turns.push(Turn::Narrow(slot, value)),
            Found::Short(thread) => self.turns.push(Turn::Short(thread)),
            Found::Fault { .. } => self.spoil(Kind::Fault, state),
        }
    }

    fn spoil(&mut self, kind: Kind, state: &[u64]) {
        let bad = Some((kind, state.to_vec()));
        self.bad = self.bad.take().into_iter().chain(bad).min();
    }

    /// Puts a state of the next level into the store, or sees that it is there.
    fn receive(&mut self, state: &[u64], known: Known, parent: u32) {
        let next = self.store.len() - self.next.len();
        let found = self.store.insert(state, hash(state), parent);
        if !found.new {
            if let Some(at) = (found.index as usize).checked_sub(next) {
                self.next[at].meet(known);
                self.store.lower_parent(found.index, parent);
            }
            return;
        }
        self.next.push(known);
        if self.machine.inside_atomic(state).is_some() {
            return;
        }
        match self.look.look(self.machine, state) {
            Ok(false) => {}
            Ok(true) => self.spoil(Kind::Target, state),
            Err(_) => self.spoil(Kind::NoValue, state),
        }
    }

    fn receive_all(&mut self, block: &[u64]) {
        let each = self.machine.words + 1;
        if self.store.is_far() {
            for row in block.chunks_exact(each) {
                self.store.prefetch_slot(hash(&row[..each - 1]));
            }
        }
        for row in block.chunks_exact(each) {
            let (state, about) = row.split_at(each - 1);
            let known = Known::from_word(about[0] & !u64::from(u32::MAX));
            self.receive(state, known, about[0] as u32);
        }
    }

    /// Expands this owner's states of the level, and receives its states of the next one.
    fn expand_level<E: Expand>(
        &mut self,
        expand: &mut E,
        from: usize,
        to: usize,
    ) -> Result<(), Lost> {
        let words = self.machine.words;
        let mut batch = Batch::new(words);
        let mut states = Vec::new();
        let (mut at, mut batches) = (from, 0);
        while at < to {
            if batches % STEP == 0 {
                self.work_done(at - from);
                for block in self.exchange.step()? {
                    self.receive_all(&block);
                }
                if self.shared.mesh.stopped().is_some() || !self.turns.is_empty() {
                    break;
                }
            }
            batches += 1;
            let first = at as u32;
            let count = (to - at).min(BATCH).min(self.store.together(first));
            let numbers: [u32; BATCH] = std::array::from_fn(|i| first + i as u32);
            // The store grows while successors of the owner's own are received.
            states.clear();
            states.extend_from_slice(self.store.states(first, count));
            let known = &self.queue[at - from..at - from + count];
            batch.clear();
            let expanded = expand.expand(
                self.machine,
                &states,
                &numbers[..count],
                known,
                &mut self.notes,
                &mut batch,
            );
            let mut tags = [0; BATCH];
            for (tag_of, state) in tags.iter_mut().zip(states.chunks_exact(words)) {
                *tag_of = tag(hash(state));
            }
            for (i, key) in batch.keys.iter().enumerate() {
                let owner = self.owner(key.hash);
                let parent = tags[(key.parent - first) as usize];
                if owner == self.exchange.me() {
                    self.receive(batch.state(i), batch.known[i].without_menus(), parent);
                    continue;
                }
                let block = &mut self.blocks[owner];
                block.extend_from_slice(batch.state(i));
                block.push(batch.known[i].to_word() & !u64::from(u32::MAX) | u64::from(parent));
                if block.len() >= BLOCK {
                    let block = std::mem::take(block);
                    self.exchange.send(owner, block);
                }
            }
            match expanded {
                Ok(done) => at += done,
                Err((done, found)) => {
                    self.found(found, &states[done * words..(done + 1) * words]);
                    // The others of the level are looked at too: the least that is bad is told.
                    at += done + 1;
                }
            }
        }
        for owner in 0..self.blocks.len() {
            let block = std::mem::take(&mut self.blocks[owner]);
            if !block.is_empty() {
                self.exchange.send(owner, block);
            }
        }
        self.work_done(at - from);
        self.end_round()
    }

    /// Ends a round, receiving states.
    fn end_round(&mut self) -> Result<(), Lost> {
        let mut late = Vec::new();
        let shared = self.shared;
        self.exchange
            .end_round(|| shared.look_around(), |block| late.push(block))?;
        for block in late {
            self.receive_all(&block);
        }
        Ok(())
    }

    /// Says how far this owner is.
    fn work_done(&mut self, of_level: usize) {
        let held = &self.shared.held[self.share.number];
        held.0.store(self.store.len() as u64, Ordering::Relaxed);
        held.1.store(self.bytes(), Ordering::Relaxed);
        if self.store.len() >= Store::MOST {
            self.shared.mesh.stop(Stop::Memory);
        }
        match self.share.number {
            0 if of_level / POLL > self.polled => {
                self.polled = of_level / POLL;
                self.shared.poll();
            }
            0 => {
                self.polled = self.polled.min(of_level / POLL);
                self.shared.look_around();
            }
            _ => {}
        }
    }

    pub fn mesh(&self) -> &'s Mesh {
        self.shared.mesh
    }

    /// How far from the start this owner's state is.
    pub fn level_of(&self, number: u32) -> usize {
        self.levels
            .partition_point(|first| *first <= number as usize)
            - 1
    }

    /// The states on the way to one so far from the start. Each is asked of all owners: who has a state of the level before
    /// with the parent's tag that leads there says so.
    pub fn way_to(
        &mut self,
        mut level: usize,
        state: Vec<u64>,
    ) -> Result<Option<Vec<Vec<u64>>>, Lost> {
        let mut way = vec![state];
        while level > 0 {
            level -= 1;
            let Some(child) = way.last().cloned() else {
                return Ok(None);
            };
            let mine = self.store.find(&child).map(|n| self.store.parent(n));
            let tags = self
                .exchange
                .gather(&mine.map_or(Vec::new(), |t| vec![u64::from(t)]))?;
            let Some(tag) = tags.into_iter().flatten().next() else {
                return Ok(None);
            };
            let mine = self
                .parent_of(&child, tag as u32, level)
                .unwrap_or_default();
            let found = self.exchange.gather(&mine)?;
            let found = found.into_iter().filter(|state| !state.is_empty());
            let Some(parent) = found.min() else {
                return Ok(None);
            };
            way.push(parent);
        }
        way.reverse();
        Ok(Some(way))
    }

    /// The least of this owner's states of a level that has the tag and leads to the state.
    fn parent_of(&self, child: &[u64], wanted: u32, level: usize) -> Option<Vec<u64>> {
        let numbers = self.levels[level]..self.levels[level + 1];
        let mut best: Option<Vec<u64>> = None;
        self.store.each_with_tag(wanted, |number| {
            if !numbers.contains(&(number as usize)) {
                return;
            }
            let state = self.store.state(number);
            let mut recorder = Recorder::new(self.machine, Some(child));
            let _ = expand_into(self.machine, state, &mut recorder);
            if recorder.found.is_some() && best.as_ref().is_none_or(|b| state < &b[..]) {
                best = Some(state.to_vec());
            }
        });
        best
    }
}

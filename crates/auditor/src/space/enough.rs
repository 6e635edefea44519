//! Which events of a state are enough, so that a space need not have all states.
//!
//! Every thread is two *processes*: its steps, and its drains. From the program's text and the thread's part
//! of a state it is known what a process touches *next* (enabled or not), and what a thread may touch *later*:
//! by any step that can be reached from its location, by the drains of stores among them, and by those
//! pending now. An atomic block touches at once all that is in it. The lock is a cell too, written by lock and
//! unlock and read by all that the lock may keep from memory.
//!
//! A set of processes is *closed* if (1) where one of a thread u may touch later what another thread's process
//! in the set touches next, one of them writing, it is in the set; (2) steps that wait for an empty
//! buffer are in it together with the drains, if something is pending. Of (1) stores of u that are not yet in memory are excused
//! if u's drains are in the set and no entry of theirs can leave before the one that drains next: all of them under TSO,
//! under PSO those of cells that are pending. Drains of an empty buffer are never in a set.
//!
//! *Lemma.* In a run in which no process of a closed set has an event, an event of the set that is enabled at the
//! start stays enabled, commutes with all of the run and does the same all along, and no other event of the
//! set becomes enabled. *Proof.* Nobody else writes what it touches next or touches what it writes, by (1). Its
//! own thread's other process: drains do not change what the thread's loads find, for nobody else writes that
//! cell meanwhile; stores go behind what is pending; and whoever waits for the buffer waits on, by (2). ∎
//!
//! So all terminal states are reached by taking only events of a closed set that has an enabled one. So is every
//! fault, and every state in which the question has another value, if besides (3) no event of a set that is
//! not everything changes what the question sees, and (4) no event is put off for ever. For (4) a state must have a
//! successor with a larger number, by the events taken, outside atomic blocks; else all its events are taken. (An
//! event that is not taken stays enabled along the events that are. Follow larger numbers: that ends in a state all of whose
//! events are taken.)

mod chosen;
mod given;
mod known;

pub use known::Made;

use super::accessed::accessed;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::task::Task;
use wattle_memory::content::Content;
use wattle_memory::{Layout, MemoryModel};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};
use wattle_model::{Fence, Instance, LocationId, RegisterId, StepId};

type Cells = u128;

const LOCK: Cells = 1 << (Cells::BITS - 1);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Touch {
    reads: Cells,
    writes: Cells,
}

impl Touch {
    fn add(&mut self, other: Touch) {
        self.reads |= other.reads;
        self.writes |= other.writes;
    }

    fn meets(self, other: Touch) -> bool {
        self.writes & (other.reads | other.writes) != 0 || self.reads & other.writes != 0
    }
}

/// A thread's part of a state, as far as it matters here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    next: Touch,
    later: Touch,
    /// Some step waits for an empty buffer.
    waits: bool,
    pends: bool,
    pending: Cells,
    /// What may drain now.
    drains: Cells,
}

/// Threads, as bits: of whom steps are in the set, and of whom drains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set {
    steps: u64,
    drains: u64,
}

impl Set {
    pub fn has(self, t: usize, drain: bool) -> bool {
        let which = if drain { self.drains } else { self.steps };
        which >> t & 1 == 1
    }

    pub fn put(&mut self, t: usize, drain: bool) {
        let which = if drain {
            &mut self.drains
        } else {
            &mut self.steps
        };
        *which |= 1 << t;
    }
}

#[derive(Debug)]
pub struct Enough {
    /// Of each cell; nothing if no two threads could mind each other there.
    cells: Vec<Cells>,
    lock: Cells,
    model: MemoryModel,
    /// Per thread and location.
    later: Vec<Vec<Touch>>,
    blocks: Vec<BTreeMap<LocationId, Touch>>,
    /// Per thread and number of a part.
    known: Vec<Vec<Option<Facts>>>,
    now: Vec<Facts>,
    tried: chosen::Tried,
}

impl Enough {
    /// Threads are numbered by bits.
    pub const MOST_THREADS: usize = 64;

    /// None where the rules above do not apply, or there is nothing to gain.
    pub fn new(task: &Task<'_>) -> Option<Self> {
        let instance = task.instance;
        let threads = &instance.threads;
        let begins = |t: &Thread| t.buffered_section().is_some();
        let few = (2..=Self::MOST_THREADS).contains(&threads.len());
        if task.deadlock || !few || threads.iter().any(begins) {
            return None;
        }
        let locks = |t: &Thread| t.steps.iter().any(|s| s.action == Action::Lock);
        let mut enough = Enough {
            cells: contested(instance)?,
            lock: if threads.iter().any(locks) { LOCK } else { 0 },
            model: task.model,
            later: Vec::new(),
            blocks: Vec::new(),
            known: vec![Vec::new(); threads.len()],
            now: Vec::new(),
            tried: chosen::Tried::default(),
        };
        for thread in threads {
            enough.later.push(enough.later(thread));
            enough.blocks.push(enough.blocks(thread));
        }
        Some(enough)
    }

    /// All that a step touches, by its drain perhaps.
    fn touch(&self, action: &Action<RegisterId, Address>) -> Touch {
        let of = |place: &Address| {
            let cells = self.cells[place.extent()].iter();
            cells.fold(0, |all, c| all | c)
        };
        let (reads, writes) = match action {
            Action::Load { place, .. } => (of(place) | self.lock, 0),
            Action::Store { place, .. } => (self.lock, of(place)),
            Action::AtomicBegin(_) => (self.lock, 0),
            Action::Lock | Action::Unlock => (0, self.lock),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicEnd => (0, 0),
        };
        Touch { reads, writes }
    }

    fn later(&self, thread: &Thread) -> Vec<Touch> {
        let mut later = vec![Touch::default(); thread.locations.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for step in thread.steps.iter().rev() {
                let mut here = later[step.source.index()];
                here.add(self.touch(&step.action));
                here.add(later[step.target.index()]);
                changed |= here != later[step.source.index()];
                later[step.source.index()] = here;
            }
        }
        later
    }

    /// What an atomic block that begins at a location touches.
    fn blocks(&self, thread: &Thread) -> BTreeMap<LocationId, Touch> {
        let mut blocks: BTreeMap<LocationId, Touch> = BTreeMap::new();
        for step in &thread.steps {
            if let Action::AtomicBegin(_) = step.action {
                let all = blocks.entry(step.source).or_default();
                for s in block(thread, step.target)
                    .iter()
                    .flat_map(|l| thread.outgoing(*l))
                {
                    all.add(self.touch(&thread.step(*s).action));
                }
            }
        }
        blocks
    }

    /// What a thread's steps touch next.
    fn next(&self, thread: &Thread, t: usize, at: LocationId, registers: &[i64]) -> (Touch, bool) {
        let (mut next, mut waits) = (Touch::default(), false);
        let buffers = self.model != MemoryModel::Sc;
        let cell = |s: &StepId| accessed(thread, *s, registers).map_or(0, |c| self.cells[c]);
        for s in thread.outgoing(at) {
            let (reads, writes) = match &thread.step(*s).action {
                Action::Load { .. } => (cell(s) | self.lock, 0),
                Action::Store { .. } if buffers && !thread.direct[at.index()] => (0, 0),
                Action::Store { .. } => (self.lock, cell(s)),
                Action::AtomicBegin(_) => {
                    waits |= buffers;
                    let inside = self.blocks[t].get(&at).copied().unwrap_or_default();
                    (inside.reads | self.lock, inside.writes)
                }
                Action::Lock | Action::Unlock => {
                    waits |= buffers;
                    (0, self.lock)
                }
                Action::Fence(Fence::Full) => {
                    waits |= buffers;
                    (0, 0)
                }
                // A store fence waits for nothing, and comes to the same before a drain and after it.
                Action::Fence(Fence::Store)
                | Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::AtomicEnd => (0, 0),
            };
            next.add(Touch { reads, writes });
        }
        (next, waits)
    }

    fn facts<L: Layout, C: Content<Value = i64>>(
        &self,
        thread: &Thread,
        t: usize,
        at: LocationId,
        registers: &[i64],
        buffer: &L::Buffer<C>,
    ) -> Facts {
        let (next, waits) = self.next(thread, t, at, registers);
        let pending = L::entries::<C>(buffer);
        let drains = L::drains::<C>(buffer);
        Facts {
            next,
            later: self.later[t][at.index()],
            waits,
            pends: !pending.is_empty(),
            pending: (pending.iter()).fold(0, |all, e| all | self.cells[e.0.index()]),
            drains: (drains.iter()).fold(0, |all, d| all | self.cells[d.entry.0.index()]),
        }
    }

    /// A process that must be in the set because the one given is; none if there is no more.
    fn missing(&self, set: Set, t: usize, drain: bool) -> Option<(usize, bool)> {
        let me = &self.now[t];
        if !drain && me.waits && me.pends && !set.has(t, true) {
            return Some((t, true));
        }
        let next = match drain {
            true => Touch {
                reads: self.lock,
                writes: me.drains,
            },
            false => me.next,
        };
        let mut others = self.now.iter().enumerate().filter(|(u, _)| *u != t);
        others.find_map(|(u, other)| self.minding(set, u, other, next))
    }

    /// Whether a set is closed in the state looked at.
    pub fn is_closed(&self, set: Set) -> bool {
        let all = (0..self.now.len()).flat_map(|t| [(t, false), (t, true)]);
        let mut members = all.filter(|(t, drain)| set.has(*t, *drain));
        members.all(|(t, drain)| {
            let empty = drain && !self.now[t].pends;
            !empty && self.missing(set, t, drain).is_none()
        })
    }

    /// A process of a thread, not in the set, that may touch what a member of the set touches next.
    fn minding(&self, set: Set, u: usize, other: &Facts, next: Touch) -> Option<(usize, bool)> {
        let pending = Touch {
            reads: self.lock,
            writes: other.pending,
        };
        if other.pends && !set.has(u, true) && next.meets(pending) {
            return Some((u, true));
        }
        // Entries behind those that the set keeps are kept as well.
        let kept = match (set.has(u, true), self.model) {
            (false, _) | (true, MemoryModel::Sc) => 0,
            (true, MemoryModel::Tso) => Cells::MAX,
            (true, MemoryModel::Pso) => other.pending,
        };
        let later = |reads, writes| next.meets(Touch { reads, writes });
        let loads = later(other.later.reads, 0);
        let stores = later(0, other.later.writes & !kept);
        match set.has(u, false) || !loads && !stores {
            true => None,
            false => Some((u, !loads && other.pends && self.model == MemoryModel::Tso)),
        }
    }
}

/// The locations of an atomic block.
pub fn block(thread: &Thread, first: LocationId) -> BTreeSet<LocationId> {
    let mut inside = BTreeSet::new();
    let mut work = vec![first];
    while let Some(l) = work.pop() {
        if thread.atomic[l.index()] && inside.insert(l) {
            work.extend(thread.outgoing(l).iter().map(|s| thread.step(*s).target));
        }
    }
    inside
}

/// A bit for each cell that one thread may write and another touch; none if there are too many.
fn contested(instance: &Instance) -> Option<Vec<Cells>> {
    let n = instance.cells.len();
    let (mut touched, mut written) = (vec![0u64; n], vec![false; n]);
    for (t, thread) in instance.threads.iter().enumerate() {
        for step in &thread.steps {
            for c in step.action.place().into_iter().flat_map(Address::extent) {
                touched[c] |= 1 << t;
                written[c] |= step.action.stored().is_some();
            }
        }
    }
    let mut next: Cells = 1;
    let mut all = Vec::with_capacity(n);
    for (touched, written) in touched.into_iter().zip(written) {
        if !written || touched.count_ones() < 2 {
            all.push(0);
            continue;
        }
        if next == LOCK {
            return None;
        }
        all.push(next);
        next <<= 1;
    }
    Some(all)
}

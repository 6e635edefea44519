//! Which events of a state are enough: persistent sets, from what each thread can still touch.
//!
//! A *process* is a thread (its steps) or a thread's buffer (its drains; never an empty one). In a state
//! `s` every process has cells it touches *next*, whether it can move or not: a load reads its cell, a
//! store that reaches memory at once and the entries that may drain now write theirs, an atomic block
//! touches all that its steps may. Every thread has cells it may touch *later*: those of all steps that
//! can still be reached from its location, stores among them counted as writes, and its pending stores.
//! The lock is one more cell: lock and unlock write it, loads, drains, stores that reach memory at once
//! and the begin of an atomic block read it.
//!
//! A set of processes is *closed* if for each of its members
//!
//! - no thread other than the member's can write, outside of the set, what the member touches next, nor
//!   touch, outside of the set, what it writes next;
//! - a thread that waits for its buffer to be empty, with something pending, comes with its buffer; so does
//!   one whose store has no room (buffers have so many slots, and a search with too few says so).
//!
//! What a thread can do *outside* of the set: its steps if the thread is no member, and drains if its
//! buffer is none. A buffer that is a member keeps its oldest entry until the set moves. Under TSO nothing of that
//! thread's can then reach memory, under PSO nothing of the cells pending, and the thread passes no fence,
//! no lock and no atomic block.
//!
//! *Lemma.* Let P be closed and `w` a run from `s` in which no member has an event. Then each move `a` of a
//! member that is enabled in `s` is enabled after `w`, does the same there and commutes with every event of `w`;
//! and no other move of a member becomes enabled in `w`.
//!
//! ```text
//!    s ──w1──► · ──w2──► · ──► …         the moves of P, all of them, are enough in s: what comes before
//!    │         │         │               the first of them in a run commutes with it. So no terminal state
//!    a         a         a               is lost.
//!    ▼         ▼         ▼
//!    · ──w1──► · ──w2──► · ──► …
//! ```
//!
//! *Proof.* The member's own part of the state changes in `w` only by the other process of the same thread. If the
//! member is the buffer, its thread may load, put stores behind the oldest entry and do register steps: a load finds the
//! same value before and after the drain, because nobody else writes the cell in `w`. If the member is the thread,
//! its buffer may drain: a load it was about to serve finds the same value in memory then, for the same
//! reason; a store into the buffer and a store fence commute with drains; and what waits for an empty buffer came with the
//! buffer. Cells that a member touches next are not written in `w`, and those that it writes are not touched. ∎
//!
//! Local steps chained to an event touch nothing that another thread could notice, so an event and its
//! chain are one event here. An atomic block whose inside is stored is left by full expansion.
//!
//! Where states on the way are looked at, no move of a proper subset may change what is seen (`C2`): the
//! moves are the same after `w`, so it is enough to compare before and after in `s`. And nobody may be put off for
//! ever (`C3`), which only a search can see: one of the successors must come to be expanded later than the
//! state itself (see `explore.rs` of the search).
//!
//! Cells that one thread alone touches, or that nobody writes, take no part. The others are bits; beyond
//! 127 of them some share a bit, which makes closed sets larger and nothing wrong.

use super::code::{Edge, Op, Target};
use super::{Machine, Reductions, Watched};
use crate::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::Thread;
use wattle_model::{Fence, Instance, Section};

/// A set of cells.
type Cells = u128;

/// Bits for cells; the last is the lock's.
const BITS: usize = Cells::BITS as usize - 1;
const LOCK: Cells = 1 << BITS;

/// Processes are numbered by bits.
const MOST_THREADS: usize = 64;

/// What a thread can do in a state: how many successors by steps and by drains, and whether one of
/// them changes what is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    pub steps: u32,
    pub drains: u32,
    pub seen_steps: bool,
    pub seen_drains: bool,
}

impl Offer {
    pub const NOTHING: Offer = Offer {
        steps: 0,
        drains: 0,
        seen_steps: false,
        seen_drains: false,
    };
}

/// Whose events are taken: threads as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub steps: u64,
    pub drains: u64,
}

impl Chosen {
    pub fn steps_of(self, t: usize) -> bool {
        self.steps >> t & 1 == 1
    }

    pub fn drains_of(self, t: usize) -> bool {
        self.drains >> t & 1 == 1
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Touched {
    reads: Cells,
    writes: Cells,
}

impl Touched {
    fn and(self, other: Touched) -> Touched {
        Touched {
            reads: self.reads | other.reads,
            writes: self.writes | other.writes,
        }
    }

    fn conflicts(self, other: Touched) -> bool {
        self.writes & (other.reads | other.writes) != 0 || self.reads & other.writes != 0
    }
}

/// What is known about a location.
#[derive(Clone, Debug, Default)]
struct Here {
    /// Touched next, whatever the registers hold.
    next: Touched,
    /// Accesses by a computed address: the edge, and whether it writes.
    computed: Vec<(usize, bool)>,
    /// A step waits for the buffer to be empty.
    waits: bool,
    /// A step is a store into the buffer, and waits where that has no room.
    puts: bool,
    /// All its steps are nobody else's business.
    choice: bool,
    later: Touched,
}

#[derive(Debug)]
pub struct Persistent {
    threads: Vec<Vec<Here>>,
    /// Per cell.
    bits: Vec<Cells>,
    /// The lock's bit, if anybody locks.
    lock: Cells,
    /// No two cells share a bit.
    distinct: bool,
    pso: bool,
    /// Only choices that are nobody else's business are taken first.
    only_choices: bool,
}

/// A thread in a state.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    next: Touched,
    waits: bool,
    later: Touched,
    /// Some store is pending.
    pends: bool,
    pending: Cells,
    /// Cells of the entries that may drain now.
    heads: Cells,
}

impl Persistent {
    /// None if nothing would ever be left out.
    pub(super) fn new(machine: &Machine<'_>, reductions: Reductions) -> Option<Self> {
        let instance = machine.instance;
        let n = instance.threads.len();
        let choices = machine.threads.iter().flat_map(|t| &t.nodes);
        let choices = choices.filter(|n| n.choice).count() > 0;
        let wanted = reductions.persistent || reductions.chaining && choices;
        // In a buffered section entries drain while nobody else may act.
        let buffered = instance.threads.iter().any(|t| {
            let begins = |s: &wattle_model::instance::Step| {
                s.action == Action::AtomicBegin(Section::Buffered)
            };
            t.steps.iter().any(begins)
        });
        if !wanted || buffered || !(2..=MOST_THREADS).contains(&n) {
            return None;
        }
        let (bits, distinct) = shared(instance);
        let locks = |t: &Thread| t.steps.iter().any(|s| s.action == Action::Lock);
        let mut me = Persistent {
            threads: Vec::new(),
            bits,
            lock: match instance.threads.iter().any(locks) {
                true => LOCK,
                false => 0,
            },
            distinct,
            pso: machine.model == MemoryModel::Pso,
            only_choices: !reductions.persistent,
        };
        for t in 0..n {
            let locations = me.locations(machine, t);
            me.threads.push(locations);
        }
        (choices || me.may_help()).then_some(me)
    }

    /// Whether the locations leave anything to be left out: some thread's next step and another thread
    /// that need not mind it, at some locations of theirs.
    fn may_help(&self) -> bool {
        let least = |here: &Vec<Here>| {
            here.iter().fold(
                Touched {
                    reads: Cells::MAX,
                    writes: Cells::MAX,
                },
                |l, h| Touched {
                    reads: l.reads & h.later.reads,
                    writes: l.writes & h.later.writes,
                },
            )
        };
        let least: Vec<Touched> = self.threads.iter().map(least).collect();
        self.threads.iter().enumerate().any(|(t, locations)| {
            let mut others = least.iter().enumerate().filter(|(u, _)| *u != t);
            others.any(|(_, later)| {
                let free = |h: &Here| !h.next.conflicts(*later);
                locations.iter().any(free)
            })
        })
    }

    fn locations(&self, machine: &Machine<'_>, t: usize) -> Vec<Here> {
        let thread = &machine.instance.threads[t];
        let sc = machine.model == MemoryModel::Sc;
        let mut all: Vec<Here> = Vec::new();
        for (l, node) in machine.threads[t].nodes.iter().enumerate() {
            let mut here = Here {
                choice: node.choice,
                ..Here::default()
            };
            for (e, edge) in node.edges.iter().enumerate() {
                let touched = self.by(edge);
                here.later = here.later.and(touched);
                here.waits |= !sc && waits(edge);
                match &edge.op {
                    // Nobody notices until it drains.
                    Op::Put(..) => here.puts = true,
                    Op::Load {
                        place: Target::Computed { .. },
                        ..
                    } => {
                        here.next.reads |= self.lock;
                        here.computed.push((e, false));
                    }
                    Op::Write {
                        place: Target::Computed { .. },
                        ..
                    } => {
                        here.next.reads |= self.lock;
                        here.computed.push((e, true));
                    }
                    Op::AtomicBegin { .. } => {
                        let inside = self.block(machine, t, edge.target as usize);
                        here.next = here.next.and(touched).and(inside);
                    }
                    Op::Nothing
                    | Op::Assign(..)
                    | Op::Havoc(..)
                    | Op::Assume(_)
                    | Op::Assert(_)
                    | Op::Load { .. }
                    | Op::Write { .. }
                    | Op::Fence
                    | Op::StoreFence
                    | Op::AtomicEnd
                    | Op::Lock
                    | Op::Unlock => here.next = here.next.and(touched),
                }
            }
            debug_assert_eq!(l, all.len());
            all.push(here);
        }
        // Until nothing changes; steps mostly lead on, so going backwards takes few rounds.
        let mut changed = true;
        while changed {
            changed = false;
            for step in thread.steps.iter().rev() {
                let (from, to) = (step.source.index(), step.target.index());
                let later = all[from].later.and(all[to].later);
                changed |= later != all[from].later;
                all[from].later = later;
            }
        }
        all
    }

    /// All that a step may touch, when it is taken or later by its drain.
    fn by(&self, edge: &Edge) -> Touched {
        let read = |reads| Touched {
            reads: reads | self.lock,
            writes: 0,
        };
        match &edge.op {
            Op::Nothing
            | Op::Assign(..)
            | Op::Havoc(..)
            | Op::Assume(_)
            | Op::Assert(_)
            | Op::Fence
            | Op::StoreFence
            | Op::AtomicEnd => Touched::default(),
            Op::AtomicBegin { .. } => read(0),
            Op::Load { place, .. } => read(self.cells(place)),
            Op::Put(place, _) | Op::Write { place, .. } => Touched {
                reads: self.lock,
                writes: self.cells(place),
            },
            Op::Lock | Op::Unlock => Touched {
                reads: 0,
                writes: self.lock,
            },
        }
    }

    /// All that the steps of an atomic block may touch.
    fn block(&self, machine: &Machine<'_>, t: usize, first: usize) -> Touched {
        let nodes = &machine.threads[t].nodes;
        let mut known = vec![false; nodes.len()];
        let mut work = vec![first];
        let mut all = Touched::default();
        while let Some(l) = work.pop() {
            if !nodes[l].atomic || std::mem::replace(&mut known[l], true) {
                continue;
            }
            for edge in &nodes[l].edges {
                all = all.and(self.by(edge));
                work.push(edge.target as usize);
            }
        }
        all
    }

    fn cells(&self, place: &Target) -> Cells {
        let all = |first: u32, length: u32| {
            let cells = first as usize..(first + length) as usize;
            self.bits[cells].iter().fold(0, |all, bit| all | bit)
        };
        match place {
            Target::Cell(c) => all(*c, 1),
            Target::Computed { base, length, .. } => all(*base, *length),
        }
    }

    fn unit(&self, machine: &Machine<'_>, t: usize, state: &[u64]) -> Unit {
        let thread = &machine.threads[t];
        let l = thread.location.index(state);
        let here = &self.threads[t][l];
        let mut unit = Unit {
            next: here.next,
            waits: here.waits,
            later: here.later,
            ..Unit::default()
        };
        for (e, writes) in &here.computed {
            let (Op::Load { place, .. } | Op::Write { place, .. }) = &thread.nodes[l].edges[*e].op
            else {
                continue;
            };
            // An address that is none is a fault, and touches nothing.
            if let Ok(c) = machine.address(state, place) {
                let bit = self.bits[c as usize];
                unit.next.reads |= bit;
                unit.next.writes |= if *writes { bit } else { 0 };
            }
        }
        let buffer = &thread.buffer;
        unit.waits |= here.puts && buffer.len(state) == buffer.which.len();
        for i in 0..buffer.len(state) {
            let bit = self.bits[buffer.cells[buffer.which[i].index(state)] as usize];
            unit.pends = true;
            unit.pending |= bit;
            if buffer.may_drain(state, i) {
                unit.heads |= bit;
            }
        }
        unit
    }

    /// The smallest closed set with the members given, and how many moves it has; none if one is seen or there are as many
    /// as that.
    fn close(
        &self,
        units: &[Unit],
        offers: &[Offer],
        start: Chosen,
        too_many: u32,
    ) -> Option<(u32, Chosen)> {
        let mut all = start;
        let mut work = start;
        let mut moves = 0;
        loop {
            let (t, next) = if work.steps != 0 {
                let t = work.steps.trailing_zeros() as usize;
                work.steps &= work.steps - 1;
                moves += offers[t].steps;
                if offers[t].seen_steps || moves >= too_many {
                    return None;
                }
                if units[t].waits && units[t].pends && !all.drains_of(t) {
                    all.drains |= 1 << t;
                    work.drains |= 1 << t;
                }
                (t, units[t].next)
            } else if work.drains != 0 {
                let t = work.drains.trailing_zeros() as usize;
                work.drains &= work.drains - 1;
                moves += offers[t].drains;
                if offers[t].seen_drains || moves >= too_many {
                    return None;
                }
                let next = Touched {
                    reads: self.lock,
                    writes: units[t].heads,
                };
                (t, next)
            } else {
                return Some((moves, all));
            };
            if next == Touched::default() {
                continue;
            }
            for (u, unit) in units.iter().enumerate() {
                if u == t {
                    continue;
                }
                let (mut step, mut drain) = (false, false);
                let kept = all.drains_of(u);
                let pending = Touched {
                    reads: self.lock,
                    writes: unit.pending,
                };
                drain |= !kept && unit.pends && pending.conflicts(next);
                if !all.steps_of(u) {
                    let writes = match (kept || drain, self.pso) {
                        (false, _) => unit.later.writes,
                        (true, false) => 0,
                        (true, true) if self.distinct => unit.later.writes & !unit.pending,
                        (true, true) => unit.later.writes,
                    };
                    let reads = unit.later.reads;
                    if next.conflicts(Touched { reads, writes: 0 }) {
                        step = true;
                    } else if next.conflicts(Touched { reads, writes }) {
                        // Its buffer as a member keeps later stores of the thread from memory.
                        match unit.pends && !self.pso {
                            true => drain = true,
                            false => step = true,
                        }
                    }
                }
                if step {
                    all.steps |= 1 << u;
                    work.steps |= 1 << u;
                }
                if drain && !kept {
                    all.drains |= 1 << u;
                    work.drains |= 1 << u;
                }
            }
        }
    }

    /// A closed set with few moves, one at least and none that is seen; none if that would be all.
    fn choose(&self, machine: &Machine<'_>, state: &[u64], offers: &[Offer]) -> Option<Chosen> {
        let mut units = [Unit::default(); MOST_THREADS];
        let units = &mut units[..offers.len()];
        for (t, unit) in units.iter_mut().enumerate() {
            *unit = self.unit(machine, t, state);
        }
        let everything: u32 = offers.iter().map(|o| o.steps + o.drains).sum();
        let mut best: Option<(u32, Chosen)> = None;
        for t in 0..offers.len() {
            let location = machine.threads[t].location.index(state);
            let choice = self.threads[t][location].choice;
            let step = Chosen {
                steps: 1 << t,
                drains: 0,
            };
            let drain = Chosen {
                steps: 0,
                drains: 1 << t,
            };
            let step = (offers[t].steps > 0 && (choice || !self.only_choices)).then_some(step);
            let drain = (offers[t].drains > 0 && !self.only_choices).then_some(drain);
            for seed in [step, drain].into_iter().flatten() {
                let too_many = best.map_or(everything, |(least, _)| least);
                let closed = self.close(units, offers, seed, too_many);
                if let Some((1, all)) = closed {
                    return Some(all);
                }
                best = closed.or(best);
            }
        }
        best.map(|(_, all)| all)
    }
}

impl Machine<'_> {
    /// Fewer events than all may be enough.
    pub fn leaves_out(&self) -> bool {
        self.persistent.is_some()
    }

    /// Which events are enough in a state where no thread is inside an atomic block, if not all are
    /// needed; `offers` are those of all threads. A search has to see that nobody is put off for ever.
    pub fn choose(&self, state: &[u64], offers: &[Offer]) -> Option<Chosen> {
        let persistent = self.persistent.as_ref()?;
        persistent.choose(self, state, offers)
    }

    /// Whether an event of the thread changed what is seen.
    pub fn is_seen(&self, t: usize, before: &[u64], after: &[u64]) -> bool {
        let seen = &self.seen;
        let changed = |(m, (b, a)): (&u64, (&u64, &u64))| (b ^ a) & m != 0;
        let mut words = seen.fields.iter().zip(before.iter().zip(after));
        if words.any(changed) {
            return true;
        }
        let classes = match seen.places.get(t) {
            Some(classes) if !classes.is_empty() => classes,
            _ => return false,
        };
        let location = self.threads[t].location;
        classes[location.index(before)] != classes[location.index(after)]
    }
}

/// What is looked at on the way.
#[derive(Debug, Default)]
pub struct Seen {
    /// Bits of cells and registers, per word.
    fields: Vec<u64>,
    /// Per thread and location, a number for all that look the same; empty if all do.
    places: Vec<Vec<u32>>,
}

impl Seen {
    pub(super) fn new(machine: &Machine<'_>, view: &Watched) -> Self {
        if view.only_final {
            return Seen::default();
        }
        let mut fields = vec![0; machine.words];
        let cells = machine.cells.iter().zip(&view.cells);
        let threads = machine.threads.iter().zip(&view.registers);
        let registers = threads.flat_map(|(t, seen)| t.registers.iter().zip(seen));
        for (field, _) in cells.chain(registers).filter(|(_, seen)| **seen) {
            let (word, bits) = field.bits();
            fields[word] |= bits;
        }
        let place = |(thread, sets): (&Thread, &Vec<Vec<wattle_model::LocationId>>)| {
            let mut looks: Vec<Vec<bool>> = Vec::new();
            let locations = (0..thread.locations.len()).map(wattle_model::LocationId::new);
            let class = |l: wattle_model::LocationId| {
                let look: Vec<bool> = sets.iter().map(|at| at.contains(&l)).collect();
                let known = looks.iter().position(|k| *k == look);
                known.unwrap_or_else(|| {
                    looks.push(look);
                    looks.len() - 1
                }) as u32
            };
            match sets.is_empty() {
                true => Vec::new(),
                false => locations.map(class).collect(),
            }
        };
        let threads = machine.instance.threads.iter();
        Seen {
            fields,
            places: threads.zip(&view.locations).map(place).collect(),
        }
    }
}

/// A bit for every cell that one thread writes and another touches, and whether all are different.
fn shared(instance: &Instance) -> (Vec<Cells>, bool) {
    let n = instance.cells.len();
    // Which thread touches it, and whether there are several, somebody writes.
    let mut who: Vec<(Option<usize>, bool, bool)> = vec![(None, false, false); n];
    for (t, thread) in instance.threads.iter().enumerate() {
        for step in &thread.steps {
            let (place, writes) = match &step.action {
                Action::Load { place, .. } => (place, false),
                Action::Store { place, .. } => (place, true),
                Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::Fence(Fence::Full | Fence::Store)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd
                | Action::Lock
                | Action::Unlock => continue,
            };
            let (first, length) = super::local::extent(place);
            for (one, several, written) in &mut who[first..first + length] {
                *several |= one.is_some_and(|u| u != t);
                *one = Some(t);
                *written |= writes;
            }
        }
    }
    let mut next = 0;
    let bits = who.iter().map(|(_, several, written)| {
        if !(*several && *written) {
            return 0;
        }
        next += 1;
        1 << ((next - 1) % BITS)
    });
    let bits = bits.collect();
    (bits, next <= BITS)
}

/// Enabled only when nothing is pending.
fn waits(edge: &Edge) -> bool {
    match &edge.op {
        Op::Fence | Op::Lock | Op::Unlock => true,
        Op::AtomicBegin { drained } => *drained,
        Op::Nothing
        | Op::Assign(..)
        | Op::Havoc(..)
        | Op::Assume(_)
        | Op::Assert(_)
        | Op::Load { .. }
        | Op::Put(..)
        | Op::Write { .. }
        | Op::StoreFence
        | Op::AtomicEnd => false,
    }
}

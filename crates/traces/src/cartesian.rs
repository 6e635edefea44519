//! Cartesian partial order reduction (Gueta, Flanagan, Yahav, Sagiv 2007; calin-2016 §4.3.2), under SC, TSO
//! and PSO: a search that stores states, and from each of them lets one process after the other do as much
//! as nobody else minds.
//!
//! A *cartesian vector* of a state s has, for each process that can move, moves it makes alone from s (its
//! *prefix*), such that of moves of two prefixes at most the last ones depend on each other. From s the
//! prefixes are made, each of them whole and alone, and what they lead to is all that is stored.
//!
//! ```text
//!   p0: a = 1; b = 2; r = x; y = 1       prefix of p0: a = 1, b = 2, r = x, y = 1     only the last two may
//!   p1: c = 1; d = 2; r = y; x = 1       prefix of p1: c = 1, d = 2, r = y            mind each other
//! ```
//!
//! What moves are and which depend on each other is said in [`crate::explore`]. A move is the last of its
//! prefix at the latest where
//!
//! - the thread chooses: each alternative is a prefix of its own;
//! - the question may see it;
//! - it may let somebody move who cannot in s: it writes a cell that somebody waits for; it puts a store
//!   where a buffer of the thread cannot drain; it drains, while the thread or another of its buffers waits.
//!
//! *Lemma.* Let w be a run from s to a state in which nobody can move, or to a fault, or to a state that the
//! question tells from s. Then there is a process p with w = prefix of p, then a run w' that is shorter, up to the
//! order of independent moves (or the fault is in a prefix). *Proof.* Go through w until the first prefix is
//! complete. Up to there everybody has made moves of its prefix only, and all but the one that is complete not
//! its last: who can move in s meets, by independence, what it met alone, and who cannot does not come to
//! it, for that takes a last move. Moves that are not last depend on no move of another prefix, so those of the
//! complete one can all be made first. If no prefix is ever complete then nothing that is seen has changed, and
//! whoever could move in s still can. ∎ By induction over the length of w every such end is met from the stored
//! states, so final states, faults and all that the question sees are found. Nobody is put off for ever: in every
//! state all who can move do.

use crate::explore::{Found, Watch};
use crate::footprint::{Footprints, Kind};
use crate::moves::{Halt, Mark, Moves, Outcome, Process};
use crate::program::Program;
use rustc_hash::FxHashSet;
use wattle_evidence::{Control, Progress};
use wattle_memory::Start;
use wattle_memory::compiled::Watched;
use wattle_model::{RegisterId, ThreadId};

/// Longer prefixes are not looked for: a thread may go round in circles.
const LONGEST: usize = 64;
/// More pending stores of a thread than this, and buffers do not seem to have a bound.
const MOST_PENDING: usize = 256;
/// Moves between two looks at the control.
const POLL: u64 = 1 << 13;

/// What a process does alone from a state.
struct Prefix {
    process: Process,
    /// The footprints of its moves.
    moves: Vec<u32>,
    /// In how many ways it can be made: more than one where it is a choice.
    ways: u32,
    /// How many moves of it are in the vector.
    length: usize,
}

/// Who cannot move in a state, and what may let them.
#[derive(Default)]
struct Waiting {
    /// By process.
    stands: Vec<bool>,
    cells: Vec<u32>,
}

/// A state on the path.
struct Node {
    mark: Mark,
    /// The moves to be made together from here, what is next last.
    ahead: Vec<(Process, u32, usize)>,
}

pub struct Search<'p, 'i> {
    pub moves: Moves<'p, 'i>,
    footprints: Footprints,
    stored: FxHashSet<Box<[u8]>>,
    /// Bytes of them.
    bytes: u64,
    path: Vec<Node>,
    /// Per thread, location and register: it may be read again.
    live: Vec<Vec<Vec<bool>>>,
    key: Vec<u8>,
    spent: u64,
}

impl<'p, 'i> Search<'p, 'i> {
    pub fn new(
        program: &'p Program<'i>,
        view: &Watched,
        start: &Start,
        minds_faults: bool,
    ) -> Self {
        let threads = program.instance.threads.iter().zip(&view.registers);
        let live = threads.map(|(thread, seen)| {
            let observed = thread.outgoing.iter().map(|out| {
                let looks = !view.only_final || out.is_empty();
                seen.iter().map(|r| *r && looks).collect()
            });
            thread.live(observed.collect())
        });
        Search {
            moves: Moves::new(program, start, minds_faults),
            footprints: Footprints::new(),
            stored: FxHashSet::default(),
            bytes: 0,
            path: Vec::new(),
            live: live.collect(),
            key: Vec::new(),
            spent: 0,
        }
    }

    pub fn effort(&self) -> Progress {
        Progress {
            states: self.stored.len() as u64,
            frontier: 0,
            memory: self.bytes,
            ..Progress::default()
        }
    }

    /// Searches all states, or until somebody has seen enough.
    pub fn run(
        &mut self,
        watch: &mut dyn Watch,
        control: &Control<'_>,
    ) -> Result<Option<Found>, Halt> {
        control.poll("cartesian", self.effort())?;
        if let Some(fault) = self.moves.begin(&mut self.footprints)? {
            return Ok(Some(Found::Fault(fault)));
        }
        let found = self.arrive(watch)?;
        if found.is_some() {
            return Ok(found);
        }
        while let Some(node) = self.path.last_mut() {
            if self.spent >= POLL {
                self.spent = 0;
                control.poll("cartesian", self.effort())?;
                continue;
            }
            self.moves.undo_to(node.mark);
            let Some((p, choice, length)) = node.ahead.pop() else {
                self.path.pop();
                continue;
            };
            for _ in 0..length {
                match self.go(p, choice)? {
                    Outcome::Made(_) => {}
                    Outcome::Fault(fault) => return Ok(Some(Found::Fault(fault))),
                    Outcome::Blocked(_) => {
                        return Err(Halt::Confused("a prefix cannot be repeated"));
                    }
                }
            }
            let found = self.arrive(watch)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn go(&mut self, p: Process, choice: u32) -> Result<Outcome, Halt> {
        self.spent += 1;
        self.moves.go(p, choice, &mut self.footprints)
    }

    /// Stores the state if it is new, looks at it, and finds out what is to be done from it.
    fn arrive(&mut self, watch: &mut dyn Watch) -> Result<Option<Found>, Halt> {
        if !self.store() {
            return Ok(None);
        }
        let threads = self.moves.program.instance.thread_ids();
        if threads
            .into_iter()
            .any(|t| self.moves.machine.pending(t).len() > MOST_PENDING)
        {
            return Err(Halt::Long);
        }
        if watch.look(&self.moves)? {
            return Ok(Some(Found::Seen));
        }
        let mark = self.moves.mark();
        let mut ahead = Vec::new();
        match self.vector()? {
            Err(found) => return Ok(Some(found)),
            Ok(vector) => {
                for prefix in vector.iter().rev() {
                    let ways = (0..prefix.ways).rev();
                    ahead.extend(ways.map(|way| (prefix.process, way, prefix.length)));
                }
            }
        }
        if ahead.is_empty() && watch.ended(&self.moves)? {
            return Ok(Some(Found::Seen));
        }
        self.path.push(Node { mark, ahead });
        Ok(None)
    }

    /// A cartesian vector of the state, or a fault on the way.
    fn vector(&mut self) -> Result<Result<Vec<Prefix>, Found>, Halt> {
        let here = self.moves.mark();
        let mut waiting = Waiting::default();
        let mut able = Vec::new();
        for p in 0..self.moves.processes() {
            let moved = self.go(p, 0)?;
            waiting.stands.push(matches!(moved, Outcome::Blocked(_)));
            match moved {
                Outcome::Made(_) => able.push(p),
                Outcome::Fault(fault) => return Ok(Err(Found::Fault(fault))),
                Outcome::Blocked(cell) => waiting.cells.extend(cell),
            }
            self.moves.undo_to(here);
        }
        // Who is at the end waits for nothing.
        for t in self.moves.program.instance.thread_ids() {
            if self.moves.has_ended(t) {
                waiting.stands[t.index()] = false;
            }
        }
        let mut vector = Vec::new();
        for p in able {
            match self.alone(p, &waiting)? {
                Err(found) => return Ok(Err(found)),
                Ok(prefix) => vector.push(prefix),
            }
            self.moves.undo_to(here);
        }
        let mut grows = true;
        while grows {
            grows = false;
            for p in 0..vector.len() {
                if self.may_grow(&vector, p) {
                    vector[p].length += 1;
                    grows = true;
                }
            }
        }
        Ok(Ok(vector))
    }

    /// What a process can do alone until a move that has to be the last.
    fn alone(&mut self, p: Process, waiting: &Waiting) -> Result<Result<Prefix, Found>, Halt> {
        let t = self.moves.thread_of(p);
        let ways = self.moves.ways(p);
        let mut prefix = Prefix {
            process: p,
            moves: Vec::new(),
            ways: ways.max(1),
            length: 1,
        };
        let own = self.moves.buffers_of(t).iter();
        let mut waits = own.filter(|b| waiting.stands[**b as usize]);
        let pends = |b: &Process| {
            let mut pending = self.moves.machine.pending(t).iter();
            pending.any(|e| self.moves.buffer(t, e.cell) == Some(*b))
        };
        let buffer_waits = waits.clone().next().is_some();
        let lets_own = self.moves.is_buffer(p) && (waiting.stands[t.index()] || waits.any(pends));
        while prefix.moves.len() < LONGEST {
            let stores = self.moves.machine.serial(t);
            let made = match self.go(p, 0)? {
                Outcome::Made(made) => made,
                Outcome::Blocked(_) => break,
                Outcome::Fault(fault) => return Ok(Err(Found::Fault(fault))),
            };
            prefix.moves.push(made.footprint);
            let puts = self.moves.machine.serial(t) != stores && buffer_waits;
            let accesses = self.footprints.accesses(made.footprint);
            let lets = accesses
                .iter()
                .any(|a| a.kind == Kind::Write && waiting.cells.contains(&a.cell));
            let chooses = ways > 1 || self.moves.ways(p) > 1;
            if made.visible || puts || lets || lets_own || chooses {
                break;
            }
        }
        Ok(Ok(prefix))
    }

    /// Whether the last move of a prefix can be followed by one more.
    fn may_grow(&self, vector: &[Prefix], p: usize) -> bool {
        let mine = &vector[p];
        let Some(next) = mine.moves.get(mine.length) else {
            return false;
        };
        let last = mine.moves[mine.length - 1];
        let mut others = vector.iter().enumerate().filter(|(q, _)| *q != p);
        others.all(|(_, other)| {
            let (theirs, ends) = other.moves[..other.length].split_at(other.length - 1);
            let minds = |m: u32, all: &[u32]| all.iter().any(|o| self.footprints.conflict(m, *o));
            !minds(last, theirs) && !minds(last, ends) && !minds(*next, theirs)
        })
    }

    /// Whether the state is new.
    fn store(&mut self) -> bool {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let live = |t: ThreadId, r: usize| {
            let at = self.moves.machine.locations[t.index()];
            self.live[t.index()][at.index()][r]
        };
        self.moves.write(&mut |n| number(&mut key, n), &live);
        let new = !self.stored.contains(key.as_slice());
        if new {
            self.bytes += key.len() as u64 + 40;
            self.stored.insert(key.as_slice().into());
        }
        self.key = key;
        new
    }
}

fn number(key: &mut Vec<u8>, n: i64) {
    let mut n = ((n << 1) ^ (n >> 63)) as u64;
    while n >= 0x80 {
        key.push(n as u8 | 0x80);
        n >>= 7;
    }
    key.push(n as u8);
}

impl Moves<'_, '_> {
    /// Whether the thread will never move again.
    fn has_ended(&self, t: ThreadId) -> bool {
        let at = self.machine.locations[t.index()];
        self.is_halted(t) || self.program.instance.thread(t).ended(at)
    }

    /// The state, as far as what happens next depends on it, as numbers.
    fn write(&self, put: &mut dyn FnMut(i64), live: &dyn Fn(ThreadId, usize) -> bool) {
        let machine = &self.machine;
        let instance = self.program.instance;
        put(machine.holder.map_or(0, |t| i64::from(t.0) + 1));
        machine.memory.iter().for_each(|v| put(*v));
        for t in instance.thread_ids() {
            put(i64::from(machine.locations[t.index()].0));
            self.write_stand(t, put);
            for r in 0..instance.thread(t).registers.len() {
                if live(t, r) {
                    put(machine.register(t, RegisterId::new(r)));
                }
            }
            let pending = machine.pending(t);
            put(pending.len() as i64);
            let mut epoch = pending.first().map_or(machine.epoch(t), |p| p.epoch);
            for entry in pending {
                put(i64::from(entry.cell.0) * 2 + i64::from(entry.epoch != epoch));
                put(entry.value);
                epoch = entry.epoch;
            }
            put(i64::from(machine.epoch(t) != epoch));
        }
    }
}

//! The search: source sets with wake-up trees (Abdulla, Aronis, Jonsson, Sagonas 2014; calin-2016
//! Algorithms 4.1, 4.2 and 4.4 are its ancestors), so that no two runs are the same trace and no run is
//! begun in vain.
//!
//! A run E is a sequence of [moves](crate::moves). Moves *depend* on each other if they are of one
//! process; if one is what the other waited for (a store and its drain; a drain and a fence, atomic block,
//! lock or unlock of its thread; under PSO drains on the two sides of a store fence); or if their
//! [footprints](crate::footprint) conflict. What happens before what is the order of dependent moves,
//! closed. Runs that differ in the order of independent moves only are one *trace*: they end in one state.
//!
//! ```text
//!      ○ sleep {…}, tree [f …]         e ⋖ f race: nothing lies between them, and f could go without e.
//!      │ e                             v = what E has after the node and not after e, then f.
//!      ○                               Unless a sleeping move or an earlier branch already leads to v,
//!      │ …                             v becomes the last branch of the node's tree.
//!      ○
//!      │ f
//! ```
//!
//! **Lemma (all traces, once).** When a node is left, every maximal trace from it, that does not begin
//! with a move asleep there, has been the trace of exactly one run. *Sketch.* The theorem of the paper for
//! programs in which a process that can move can still do so after any move of another. Buffers, fences
//! and choices keep to that: a drain can wait only for its own store and the stores before it, a fence for
//! its thread's drains, and a choice is independent of everything, so the set of its alternatives is a
//! source set by itself wherever it is possible; every run from there on contains it, so a sequence v
//! always says which alternative it means.
//!
//! **Guards.** A move that waits for a cell (the lock, an atomic block with an assumption) can be shut out
//! by a write e of that cell, and may then never be in a race with it: it comes later, after something that
//! opened it again, or not at all. So for such a move, made or still waiting at the end, *every* write e of
//! its guard before it is tried: if it can be made after E without e and all that is after e, that is a
//! sequence to be explored. *Sketch.* In the proof of the paper let w = x·f·… be a trace not explored, and
//! q the move explored instead that is independent of the longest such x. If q shuts f out, then q writes
//! f's guard; take an explored run with q·x. Whatever writes the guard depends on q, so all of it comes
//! after q in that run or is in x: E without q and what is after it leads to a state where f is as open as
//! after x. With a guard of two cells this is false, and such blocks are refused.
//!
//! **What is seen.** The last state of a run is the same for its whole trace, so final states, deadlocks
//! and faults (a fault is a move of its thread and depends on what it reads) are all met. States on the
//! way are not all met. A question that sees them sees them through its atoms: every move that may change
//! one writes the cell *view*, so any two such moves depend on each other. *Lemma.* Let s be a reachable
//! state after w. Some run E has a trace that begins with w. The visible moves of w are the first visible
//! moves of E, in the same order and with the same effect, so the atoms have in E, after the last of them,
//! the values they have in s. ∎ The question is asked after every visible move.
//!
//! What a move touches after a reversal may differ from what it touched before where it is an atomic block
//! (a compare-and-swap may fail now) or a load whose store has not drained now. A second machine, the
//! *probe*, is then taken to that point and asked.

use crate::footprint::{Access, Footprints, Kind, NO_STORE};
use crate::moves::{Halt, Made, Mark, Move, Moves, Outcome, Process};
use crate::order::{self, Rows};
use crate::program::Program;
use crate::wakeup::{Forest, NONE};
use wattle_evidence::{Control, Progress};
use wattle_memory::{Fault, Start};

/// Who looks at runs. `true` ends the search.
pub trait Watch {
    /// After a move that the question may see.
    fn look(&mut self, moves: &Moves<'_, '_>) -> Result<bool, Halt>;
    /// At the end of a run.
    fn ended(&mut self, moves: &Moves<'_, '_>) -> Result<bool, Halt>;
}

/// What a search has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Complete runs.
    pub runs: u64,
    /// Runs begun in vain; there are none.
    pub redundant: u64,
    pub moves: u64,
}

pub enum Found {
    /// Somebody who looked has seen enough.
    Seen,
    Fault(Fault),
}

/// More moves in one run than this, and its end is not waited for.
pub const MOST_MOVES: usize = 1 << 12;
/// Moves made and races looked at between two looks at the control.
const POLL: u64 = 1 << 13;

/// A move of the run.
#[derive(Clone, Copy)]
struct Taken {
    of: Move,
    made: Made,
    mark: Mark,
    /// The move of the same process before it.
    previous: u32,
    /// Where its races begin in the list of all.
    races: u32,
    /// Where its accesses begin.
    accesses: u32,
    /// Stores its thread had made before it.
    serial: u32,
    /// A drain: which store, and of which epoch.
    drained: Option<(u32, u32)>,
}

/// A state on the stack.
#[derive(Clone, Copy)]
struct Node {
    /// Where its sleeping moves begin.
    sleep: u32,
    tree: u32,
}

/// One access of a move of the run, and the one before it on the same cell.
#[derive(Clone, Copy)]
struct Accessed {
    cell: u32,
    kind: Kind,
    store: u64,
    by: u32,
    before: u32,
}

pub struct Search<'p, 'i> {
    pub moves: Moves<'p, 'i>,
    probe: Moves<'p, 'i>,
    footprints: Footprints,
    pub work: Work,
    taken: Vec<Taken>,
    /// As [`Taken::of`], and one more while a sequence with a move that was not made is looked at.
    labels: Vec<Move>,
    nodes: Vec<Node>,
    sleeping: Vec<Move>,
    races: Vec<u32>,
    forest: Forest,
    accessed: Vec<Accessed>,
    /// Per cell its last access, and its number in the tables of bits.
    heads: Vec<u32>,
    words: usize,
    /// Per move: what happened before it.
    before: Rows,
    /// Per process its moves; per cell who reads, writes, reads from the own buffer.
    by_process: Rows,
    readers: Rows,
    writers: Rows,
    forwarded: Rows,
    last: Vec<u32>,
    /// Per thread and serial, the move that made the store.
    put_by: Vec<Vec<u32>>,
    rows: Scratch,
    /// The runs, if they are to be kept.
    pub record: Option<Record>,
    marks: (Mark, Mark),
    begun: bool,
    /// Work since the control was last looked at.
    spent: u64,
}

/// Rows in use.
struct Scratch {
    now: Vec<u64>,
    strict: Vec<u64>,
    sequence: Vec<u64>,
    dense: Vec<u32>,
    cells: u32,
    rest: Vec<u64>,
    alive: Vec<Move>,
    candidates: Vec<u32>,
    firm: Vec<u32>,
}

/// Runs as bytes: for each how many moves it has in common with the one before, how many it has more, and
/// these. A move is the number of its process, doubled, one more if a choice other than the first follows.
#[derive(Default)]
pub struct Record {
    pub bytes: Vec<u8>,
    pub runs: u64,
    common: usize,
}

impl Record {
    fn number(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    fn run(&mut self, taken: &[Taken]) {
        self.number(self.common as u64);
        self.number((taken.len() - self.common) as u64);
        for t in &taken[self.common..] {
            let (p, choice) = (u64::from(t.of.process), u64::from(t.of.choice));
            self.number(p * 2 + u64::from(choice > 0));
            if choice > 0 {
                self.number(choice);
            }
        }
        self.runs += 1;
        self.common = taken.len();
    }
}

impl<'p, 'i> Search<'p, 'i> {
    pub fn new(program: &'p Program<'i>, start: &Start, minds_faults: bool) -> Self {
        let moves = Moves::new(program, start, minds_faults);
        let probe = Moves::new(program, start, false);
        let processes = moves.processes() as usize;
        let cells = program.instance.cells.len() + 2;
        let mut by_process = Rows::new(1);
        by_process.need(processes);
        let marks = (moves.mark(), probe.mark());
        Search {
            moves,
            probe,
            footprints: Footprints::new(),
            work: Work::default(),
            taken: Vec::new(),
            labels: Vec::new(),
            nodes: vec![Node {
                sleep: 0,
                tree: NONE,
            }],
            sleeping: Vec::new(),
            races: Vec::new(),
            forest: Forest::new(),
            accessed: Vec::new(),
            heads: vec![NONE; cells],
            words: 1,
            before: Rows::new(1),
            by_process,
            readers: Rows::new(1),
            writers: Rows::new(1),
            forwarded: Rows::new(1),
            last: vec![NONE; processes],
            put_by: vec![Vec::new(); program.instance.threads.len()],
            rows: Scratch {
                now: vec![0],
                strict: vec![0],
                sequence: vec![0],
                dense: vec![NONE; cells],
                cells: 0,
                rest: Vec::new(),
                alive: Vec::new(),
                candidates: Vec::new(),
                firm: Vec::new(),
            },
            record: None,
            marks,
            begun: false,
            spent: 0,
        }
    }

    fn progress(&self) -> Progress {
        let rows = [
            &self.before,
            &self.by_process,
            &self.readers,
            &self.writers,
            &self.forwarded,
        ];
        let rows: u64 = rows.iter().map(|r| r.bytes()).sum();
        let record = self
            .record
            .as_ref()
            .map_or(0, |r| r.bytes.capacity() as u64);
        Progress {
            states: self.work.runs,
            // Whoever keeps engines in step wants to see something grow.
            frontier: 0,
            memory: self.forest.bytes() + rows + record,
            ..Progress::default()
        }
    }

    pub fn effort(&self) -> Progress {
        self.progress()
    }

    /// Explores all traces, or until somebody has seen enough. If it was stopped it may be asked again,
    /// and goes on where it was.
    pub fn run(
        &mut self,
        watch: &mut dyn Watch,
        control: &Control<'_>,
    ) -> Result<Option<Found>, Halt> {
        control.poll("traces", self.progress())?;
        if !std::mem::replace(&mut self.begun, true)
            && let Some(found) = self.begin(watch)?
        {
            return Ok(Some(found));
        }
        loop {
            if self.spent >= POLL {
                self.spent = 0;
                control.poll("traces", self.progress())?;
            }
            match self.advance()? {
                Step::Fault(fault) => return Ok(Some(Found::Fault(fault))),
                Step::Made(visible) => {
                    if visible && watch.look(&self.moves)? {
                        return Ok(Some(Found::Seen));
                    }
                    continue;
                }
                Step::Ended => {
                    self.work.runs += 1;
                    if let Some(record) = &mut self.record {
                        record.run(&self.taken);
                    }
                    if watch.ended(&self.moves)? {
                        return Ok(Some(Found::Seen));
                    }
                }
                Step::Asleep => self.work.redundant += 1,
            }
            self.reverse_races()?;
            if !self.backtrack() {
                return Ok(None);
            }
        }
    }

    fn begin(&mut self, watch: &mut dyn Watch) -> Result<Option<Found>, Halt> {
        if let Some(fault) = self.moves.begin(&mut self.footprints)? {
            return Ok(Some(Found::Fault(fault)));
        }
        self.probe.begin(&mut self.footprints)?;
        self.marks = (self.moves.mark(), self.probe.mark());
        for t in self.moves.program.instance.thread_ids() {
            let stores = self.moves.machine.serial(t) as usize;
            self.put_by[t.index()].resize(stores, NONE);
        }
        Ok(watch.look(&self.moves)?.then_some(Found::Seen))
    }

    /// One move further: a planned one, or any.
    fn advance(&mut self) -> Result<Step, Halt> {
        let at = self.nodes.len() - 1;
        let tree = self.nodes[at].tree;
        if tree != NONE {
            let (of, after, rest) = self.forest.take(tree);
            self.nodes[at].tree = rest;
            return match self.try_move(of.process, of.choice, after, Some(of))? {
                Step::Ended => Err(Halt::Confused("a planned move is not possible")),
                step @ (Step::Made(_) | Step::Fault(_) | Step::Asleep) => Ok(step),
            };
        }
        let threads = self.moves.threads();
        // A choice is independent of everything: all its ways, and nothing else here.
        for t in 0..threads {
            let ways = self.moves.ways(t);
            if ways > 1 && !self.is_asleep(t) {
                let mut row = NONE;
                for choice in (1..ways).rev() {
                    let of = Move {
                        process: t,
                        choice,
                        footprint: 0,
                    };
                    let branch = self.forest.make(of);
                    self.forest.set_next(branch, row);
                    row = branch;
                }
                self.nodes[at].tree = row;
                return self.try_move(t, 0, NONE, None);
            }
        }
        // A thread after the other, and its stores as soon as they can: what races is then near to each
        // other, and the next run has most in common with this one.
        let mut asleep = false;
        for t in self.moves.program.instance.thread_ids() {
            for i in 0..self.moves.machine.pending(t).len() {
                if !self.moves.machine.is_oldest(t, i) {
                    continue;
                }
                let cell = self.moves.machine.pending(t)[i].cell;
                let Some(p) = self.moves.buffer(t, cell) else {
                    return Err(Halt::Confused("a buffer that was not expected"));
                };
                if self.is_asleep(p) {
                    asleep = true;
                    continue;
                }
                match self.try_move(p, 0, NONE, None)? {
                    Step::Ended => {}
                    step @ (Step::Made(_) | Step::Fault(_) | Step::Asleep) => return Ok(step),
                }
            }
            if self.is_asleep(t.0) {
                asleep = true;
                continue;
            }
            match self.try_move(t.0, 0, NONE, None)? {
                Step::Ended => {}
                step @ (Step::Made(_) | Step::Fault(_) | Step::Asleep) => return Ok(step),
            }
        }
        Ok(if asleep { Step::Asleep } else { Step::Ended })
    }

    fn is_asleep(&self, p: Process) -> bool {
        let node = self.nodes[self.nodes.len() - 1];
        let mut sleeping = self.sleeping[node.sleep as usize..].iter();
        sleeping.any(|z| z.process == p)
    }

    /// Makes the next move of a process, or says that there is none ([`Step::Ended`]).
    fn try_move(
        &mut self,
        p: Process,
        choice: u32,
        tree: u32,
        planned: Option<Move>,
    ) -> Result<Step, Halt> {
        let mark = self.moves.mark();
        let thread = self.moves.thread_of(p);
        let serial = self.moves.machine.serial(thread);
        let drained = match self.moves.is_buffer(p) {
            false => None,
            true => {
                let mut pending = self.moves.machine.pending(thread).iter();
                let its = pending.find(|e| self.moves.buffer(thread, e.cell) == Some(p));
                its.map(|e| (e.serial, e.epoch))
            }
        };
        let made = match self.moves.go(p, choice, &mut self.footprints)? {
            Outcome::Blocked(_) => return Ok(Step::Ended),
            Outcome::Fault(fault) => return Ok(Step::Fault(fault)),
            Outcome::Made(made) => made,
        };
        if planned.is_some_and(|of| of.footprint != made.footprint) {
            return Err(Halt::Confused("a planned move touches something else"));
        }
        if self.taken.len() >= MOST_MOVES {
            return Err(Halt::Long);
        }
        self.work.moves += 1;
        self.spent += 1;
        let of = Move {
            process: p,
            choice,
            footprint: made.footprint,
        };
        // What is still asleep after it.
        let from = self.nodes[self.nodes.len() - 1].sleep as usize;
        let to = self.sleeping.len();
        for i in from..to {
            let z = self.sleeping[i];
            if z.process != p && !self.footprints.conflict(z.footprint, of.footprint) {
                self.sleeping.push(z);
            }
        }
        self.nodes.push(Node {
            sleep: to as u32,
            tree,
        });
        let taken = Taken {
            of,
            made,
            mark,
            previous: self.last[p as usize],
            races: self.races.len() as u32,
            accesses: self.accessed.len() as u32,
            serial,
            drained,
        };
        self.push(taken);
        Ok(Step::Made(made.visible))
    }

    /// Where a cell's bits are.
    fn dense(&mut self, cell: u32) -> usize {
        let dense = &mut self.rows.dense[cell as usize];
        if *dense == NONE {
            *dense = self.rows.cells;
            self.rows.cells += 1;
            let row = *dense as usize;
            self.readers.need(row);
            self.writers.need(row);
            self.forwarded.need(row);
        }
        *dense as usize
    }

    fn widen(&mut self) {
        self.words *= 2;
        for rows in [
            &mut self.before,
            &mut self.by_process,
            &mut self.readers,
            &mut self.writers,
            &mut self.forwarded,
        ] {
            rows.widen(self.words);
        }
        self.rows.now.resize(self.words, 0);
        self.rows.strict.resize(self.words, 0);
        self.rows.sequence.resize(self.words, 0);
    }

    /// A move that was made: what happened before it, and its races.
    fn push(&mut self, taken: Taken) {
        let i = self.taken.len();
        // One place more, for a move that is only thought of.
        if i + 2 > self.words * 64 {
            self.widen();
        }
        let p = taken.of.process;
        let thread = self.moves.thread_of(p);
        let is_buffer = self.moves.is_buffer(p);
        let mut firm = std::mem::take(&mut self.rows.firm);
        let mut candidates = std::mem::take(&mut self.rows.candidates);
        firm.clear();
        candidates.clear();
        firm.extend((taken.previous != NONE).then_some(taken.previous));
        if taken.made.waited {
            let buffers = self.moves.buffers_of(thread).iter();
            let drains = buffers.map(|b| self.last[*b as usize]);
            firm.extend(drains.filter(|d| *d != NONE));
        }
        if let Some((serial, epoch)) = taken.drained {
            let put = self.put_by[thread.index()][serial as usize];
            firm.extend((put != NONE).then_some(put));
            if epoch > 0 {
                self.earlier_epochs(thread.0, epoch, &mut firm);
            }
        }
        let footprint = taken.of.footprint;
        let accesses = self.footprints.accesses(footprint).len();
        for a in 0..accesses {
            let access = self.footprints.accesses(footprint)[a];
            self.conflicting(access, &mut candidates);
        }
        for a in 0..accesses {
            let access = self.footprints.accesses(footprint)[a];
            let dense = self.dense(access.cell);
            match access.kind {
                Kind::Read => self.readers.set(dense, i),
                Kind::Write => self.writers.set(dense, i),
                Kind::Forward => self.forwarded.set(dense, i),
            }
            let last = self.accessed.len() as u32;
            let before = std::mem::replace(&mut self.heads[access.cell as usize], last);
            self.accessed.push(Accessed {
                cell: access.cell,
                kind: access.kind,
                store: access.store,
                by: i as u32,
                before,
            });
        }
        self.before.need(i + 1);
        let (now, strict) = (&mut self.rows.now, &mut self.rows.strict);
        now.fill(0);
        strict.fill(0);
        for k in firm.iter().chain(&candidates) {
            order::join(strict, self.before.row(*k as usize));
            order::put(now, *k as usize);
        }
        order::join(now, strict);
        let row = self.before.row_mut(i);
        row.copy_from_slice(now);
        candidates.sort_unstable();
        candidates.dedup();
        let other = |k: &u32| self.taken[*k as usize].of.process != p && !firm.contains(k);
        let immediate = |k: &u32| !order::has(&self.rows.strict, *k as usize);
        let races = candidates.iter().filter(|k| immediate(k) && other(k));
        self.races.extend(races);
        if let Some(guard) = taken.made.guard {
            // Whatever may have shut it out, however long ago.
            for e in self.shut_by(guard, i, p, taken.previous) {
                if !firm.contains(&e) && !self.races[taken.races as usize..].contains(&e) {
                    self.races.push(e);
                }
            }
        }
        self.rows.firm = firm;
        self.rows.candidates = candidates;
        self.by_process.set(p as usize, i);
        self.last[p as usize] = i as u32;
        if !is_buffer {
            let stores = self.moves.machine.serial(thread) as usize;
            self.put_by[thread.index()].resize(stores, i as u32);
        }
        self.labels.push(taken.of);
        self.taken.push(taken);
    }

    /// The moves on a cell that the access depends on, as far as others do not stand between.
    fn conflicting(&self, access: Access, into: &mut Vec<u32>) {
        let mut at = self.heads[access.cell as usize];
        let mut shadowed = false;
        while at != NONE {
            let a = self.accessed[at as usize];
            match (access.kind, a.kind) {
                (Kind::Read, Kind::Read | Kind::Forward)
                | (Kind::Forward, Kind::Read | Kind::Forward) => {}
                (Kind::Read | Kind::Write, Kind::Write) if !shadowed => {
                    into.push(a.by);
                    shadowed = true;
                    if access.kind == Kind::Read {
                        return;
                    }
                }
                (Kind::Read | Kind::Write, Kind::Write) => {}
                (Kind::Write, Kind::Read) if !shadowed => into.push(a.by),
                (Kind::Write, Kind::Read) => {}
                (Kind::Write, Kind::Forward) | (Kind::Forward, Kind::Write) => {
                    if a.store == access.store {
                        into.push(a.by);
                    }
                }
            }
            // Beyond the last write only loads from this very store matter.
            if shadowed && access.store == NO_STORE {
                return;
            }
            at = a.before;
        }
    }

    /// Drains of the thread's stores before earlier store fences.
    fn earlier_epochs(&self, thread: u32, epoch: u32, into: &mut Vec<u32>) {
        for (k, taken) in self.taken.iter().enumerate() {
            let earlier = taken.drained.is_some_and(|(_, e)| e < epoch);
            if earlier && self.moves.thread_of(taken.of.process).0 == thread {
                into.push(k as u32);
            }
        }
    }

    fn pop(&mut self) -> Option<Taken> {
        let taken = self.taken.pop()?;
        self.labels.pop();
        let i = self.taken.len();
        for a in (taken.accesses as usize..self.accessed.len()).rev() {
            let accessed = self.accessed[a];
            self.heads[accessed.cell as usize] = accessed.before;
            let dense = self.rows.dense[accessed.cell as usize] as usize;
            match accessed.kind {
                Kind::Read => self.readers.clear(dense, i),
                Kind::Write => self.writers.clear(dense, i),
                Kind::Forward => self.forwarded.clear(dense, i),
            }
        }
        self.accessed.truncate(taken.accesses as usize);
        self.races.truncate(taken.races as usize);
        let p = taken.of.process;
        self.by_process.clear(p as usize, i);
        self.last[p as usize] = taken.previous;
        if !self.moves.is_buffer(p) {
            self.put_by[p as usize].truncate(taken.serial as usize);
        }
        self.moves.undo_to(taken.mark);
        Some(taken)
    }

    /// Back to the last state that has a branch left.
    fn backtrack(&mut self) -> bool {
        while let Some(taken) = self.pop() {
            if let Some(left) = self.nodes.pop() {
                self.sleeping.truncate(left.sleep as usize);
            }
            let at = self.nodes.len() - 1;
            if self.nodes[at].tree != NONE {
                self.sleeping.push(taken.of);
                let depth = self.taken.len();
                if let Some(record) = &mut self.record {
                    record.common = record.common.min(depth);
                }
                return true;
            }
        }
        false
    }

    /// The sequences that the races of a complete run ask for.
    fn reverse_races(&mut self) -> Result<(), Halt> {
        let n = self.taken.len();
        for f in 0..n {
            let from = self.taken[f].races as usize;
            let to = self
                .taken
                .get(f + 1)
                .map_or(self.races.len(), |t| t.races as usize);
            for r in from..to {
                let e = self.races[r] as usize;
                let (first, second) = (self.taken[e], self.taken[f]);
                let p = second.of.process;
                let thread = self.moves.thread_of(p);
                let own = self.moves.is_buffer(first.of.process)
                    && !self.moves.is_buffer(p)
                    && self.moves.thread_of(first.of.process) == thread;
                // A race costs about as much as a move, more in long runs.
                self.spent += 1 + n as u64 / 64;
                self.not_after(e);
                if own || second.made.block || second.made.guard.is_some() {
                    self.ask(e, p)?;
                } else {
                    order::put(&mut self.rows.sequence, f);
                    self.insert(e, f);
                }
            }
        }
        for p in 0..self.moves.processes() {
            self.reverse_blocked(p)?;
        }
        Ok(())
    }

    /// A process that waits at the end of a run may have been shut out.
    fn reverse_blocked(&mut self, p: Process) -> Result<(), Halt> {
        if !self.moves.program.may_wait() {
            return Ok(());
        }
        let mark = self.moves.mark();
        let guard = match self.moves.go(p, 0, &mut self.footprints)? {
            Outcome::Blocked(Some(guard)) => guard,
            Outcome::Blocked(None) => return Ok(()),
            Outcome::Made(_) | Outcome::Fault(_) => {
                // Asleep, not blocked.
                self.moves.undo_to(mark);
                return Ok(());
            }
        };
        for e in self.shut_by(guard, self.taken.len(), p, self.last[p as usize]) {
            self.not_after(e as usize);
            self.ask(e as usize, p)?;
        }
        Ok(())
    }

    /// The moves before number `i` that write the guard of process `p`, and do not happen before its
    /// previous move.
    fn shut_by(&self, guard: u32, i: usize, p: Process, previous: u32) -> Vec<u32> {
        let mut writers = Vec::new();
        let mut at = self.heads[guard as usize];
        while at != NONE {
            let a = self.accessed[at as usize];
            let earlier = previous != NONE
                && (a.by == previous
                    || order::has(self.before.row(previous as usize), a.by as usize));
            if a.kind == Kind::Write
                && (a.by as usize) < i
                && !earlier
                && self.taken[a.by as usize].of.process != p
                && !writers.contains(&a.by)
            {
                writers.push(a.by);
            }
            at = a.before;
        }
        writers
    }

    /// The moves after `e` in the run that do not happen after it.
    fn not_after(&mut self, e: usize) {
        let sequence = &mut self.rows.sequence;
        sequence.fill(0);
        for k in e + 1..self.taken.len() {
            if !order::has(self.before.row(k), e) {
                order::put(sequence, k);
            }
        }
    }

    /// What the process does after the sequence at `e`, by trying; if it can move, the sequence with it.
    fn ask(&mut self, e: usize, p: Process) -> Result<(), Halt> {
        self.probe.undo_to(self.marks.1);
        let n = self.taken.len();
        self.spent += n as u64;
        for k in 0..n {
            if k < e || order::has(&self.rows.sequence, k) {
                let of = self.labels[k];
                match self.probe.go(of.process, of.choice, &mut self.footprints)? {
                    Outcome::Made(made) if made.footprint == of.footprint => {}
                    Outcome::Made(_) | Outcome::Blocked(_) | Outcome::Fault(_) => {
                        return Err(Halt::Confused("a run cannot be repeated"));
                    }
                }
            }
        }
        let thread = self.moves.thread_of(p);
        let drained = match self.moves.is_buffer(p) {
            false => None,
            true => {
                let mut pending = self.probe.machine.pending(thread).iter();
                let its = pending.find(|e| self.moves.buffer(thread, e.cell) == Some(p));
                its.map(|e| (e.serial, e.epoch))
            }
        };
        let made = match self.probe.go(p, 0, &mut self.footprints)? {
            Outcome::Made(made) => made,
            Outcome::Blocked(_) | Outcome::Fault(_) => return Ok(()),
        };
        let of = Move {
            process: p,
            choice: 0,
            footprint: made.footprint,
        };
        // What it depends on in the sequence.
        let mut now = std::mem::take(&mut self.rows.now);
        now.fill(0);
        for k in e + 1..n {
            if !order::has(&self.rows.sequence, k) {
                continue;
            }
            let other = &self.taken[k];
            let q = other.of.process;
            let same_thread = self.moves.thread_of(q) == thread;
            let waits = made.waited && same_thread && self.moves.is_buffer(q);
            let stored = drained.is_some_and(|(serial, epoch)| {
                let put = self.put_by[thread.index()].get(serial as usize);
                let earlier = other.drained.is_some_and(|(_, e)| e < epoch);
                put == Some(&(k as u32)) || same_thread && earlier
            });
            if q == p
                || waits
                || stored
                || self.footprints.conflict(other.of.footprint, of.footprint)
            {
                order::join(&mut now, self.before.row(k));
                order::put(&mut now, k);
            }
        }
        self.before.need(n + 1);
        self.before.row_mut(n).copy_from_slice(&now);
        self.rows.now = now;
        self.labels.push(of);
        order::put(&mut self.rows.sequence, n);
        self.by_process.set(p as usize, n);
        self.mark_cells(of.footprint, n, true);
        self.insert(e, n);
        self.mark_cells(of.footprint, n, false);
        self.by_process.clear(p as usize, n);
        self.labels.pop();
        Ok(())
    }

    fn mark_cells(&mut self, footprint: u32, bit: usize, on: bool) {
        for a in 0..self.footprints.accesses(footprint).len() {
            let access = self.footprints.accesses(footprint)[a];
            let dense = self.dense(access.cell);
            let rows = match access.kind {
                Kind::Read => &mut self.readers,
                Kind::Write => &mut self.writers,
                Kind::Forward => &mut self.forwarded,
            };
            match on {
                true => rows.set(dense, bit),
                false => rows.clear(dense, bit),
            }
        }
    }

    /// Whether some run that begins, as a trace, with the sequence may begin with the move: it is the
    /// first of it there (which is then told), or independent of all of it.
    fn may_begin(&self, z: Move) -> Option<Option<usize>> {
        let sequence = &self.rows.sequence;
        if let Some(k) = order::first(self.by_process.row(z.process as usize), sequence) {
            let first =
                self.labels[k].choice == z.choice && !order::meet(self.before.row(k), sequence);
            return first.then_some(Some(k));
        }
        for access in self.footprints.accesses(z.footprint) {
            let dense = self.rows.dense[access.cell as usize];
            if dense == NONE {
                continue;
            }
            let dense = dense as usize;
            let write = self.writers.row(dense);
            let conflict = match access.kind {
                Kind::Read => order::meet(write, sequence),
                Kind::Write => {
                    order::meet(write, sequence)
                        || order::meet(self.readers.row(dense), sequence)
                        || order::meet(self.forwarded.row(dense), sequence)
                            && self.conflict_in_sequence(z)
                }
                Kind::Forward => order::meet(write, sequence) && self.conflict_in_sequence(z),
            };
            if conflict {
                return None;
            }
        }
        Some(None)
    }

    fn conflict_in_sequence(&self, z: Move) -> bool {
        let mut all = order::bits(&self.rows.sequence);
        all.any(|k| {
            self.footprints
                .conflict(z.footprint, self.labels[k].footprint)
        })
    }

    /// Puts the sequence into the tree of the state before `e`, unless runs that begin with it have been
    /// explored or will be. `f` is its last move.
    ///
    /// Of the sequence only as much is planned as wakes whatever is asleep: what depends on each sleeping
    /// move, with all that happens before. Nothing is asleep at the end of the branch, so all that begins
    /// with it can be explored freely, and nothing else begins with it.
    fn insert(&mut self, e: usize, f: usize) {
        let (from, to) = (
            self.nodes[e].sleep as usize,
            self.nodes[e + 1].sleep as usize,
        );
        for z in from..to {
            if self.may_begin(self.sleeping[z]).is_some() {
                return;
            }
        }
        let mut alive = std::mem::take(&mut self.rows.alive);
        alive.clear();
        alive.extend_from_slice(&self.sleeping[from..to]);
        alive.push(self.labels[e]);
        let mut above = NONE;
        let mut row = self.nodes[e].tree;
        loop {
            let (mut branch, mut last) = (row, NONE);
            let mut begins = None;
            while branch != NONE {
                let of = self.forest.of(branch);
                begins = self.may_begin(of);
                if begins.is_some() {
                    break;
                }
                alive.push(of);
                last = branch;
                branch = self.forest.next(branch);
            }
            let Some(first) = begins else {
                self.shorten(&alive);
                let new = self.chain(f);
                match (last, above) {
                    (NONE, NONE) => self.nodes[e].tree = new,
                    (NONE, above) => self.forest.set_first(above, new),
                    (last, _) => self.forest.set_next(last, new),
                }
                break;
            };
            if let Some(k) = first {
                order::drop(&mut self.rows.sequence, k);
            }
            let of = self.forest.of(branch);
            alive.retain(|z| {
                z.process != of.process && !self.footprints.conflict(z.footprint, of.footprint)
            });
            above = branch;
            row = self.forest.first(branch);
            if row == NONE {
                break;
            }
        }
        self.rows.alive = alive;
    }

    /// Leaves of the sequence only what wakes these moves.
    fn shorten(&mut self, alive: &[Move]) {
        let mut rest = std::mem::take(&mut self.rows.rest);
        rest.clear();
        rest.extend_from_slice(&self.rows.sequence);
        self.rows.sequence.fill(0);
        for z in alive {
            if self.may_begin(*z).is_none() {
                continue;
            }
            let own = order::first(self.by_process.row(z.process as usize), &rest);
            let waking = own.or_else(|| {
                let label = |k: usize| self.labels[k].footprint;
                order::bits(&rest).find(|k| self.footprints.conflict(z.footprint, label(*k)))
            });
            let Some(k) = waking else {
                continue;
            };
            let sequence = &mut self.rows.sequence;
            for (w, word) in sequence.iter_mut().enumerate() {
                *word |= self.before.row(k)[w] & rest[w];
            }
            order::put(sequence, k);
        }
        self.rows.rest = rest;
    }

    /// The sequence as a branch without forks, `f` last.
    fn chain(&mut self, f: usize) -> u32 {
        let (mut first, mut last) = (NONE, NONE);
        let more = order::has(&self.rows.sequence, f).then_some(f);
        order::drop(&mut self.rows.sequence, f);
        for k in order::bits(&self.rows.sequence).chain(more) {
            let branch = self.forest.make(self.labels[k]);
            match last {
                NONE => first = branch,
                last => self.forest.set_first(last, branch),
            }
            last = branch;
        }
        first
    }
}

enum Step {
    Made(bool),
    Fault(Fault),
    Ended,
    /// Whatever could move is asleep.
    Asleep,
}

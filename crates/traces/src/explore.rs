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
//! after x. With a guard of two cells this is false, and such blocks are refused. A move served by a pending
//! store of its own thread is shut out by nobody else's write, and does not depend on it: if f is such a move
//! after E without e, and e can as well come first, there is nothing to reverse. (Were it planned all the same,
//! e would be asleep at the end of the branch, which would pass for all that begins with f.)
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

mod insert;
mod past;
mod races;
mod record;

pub use record::Record;

use crate::footprint::{Footprints, Kind};
use crate::moves::{Halt, Made, Mark, Move, Moves, Outcome, Process};
use crate::order::Rows;
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
                Step::Finished => {
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
                Step::Finished => Err(Halt::Confused("a planned move is not possible")),
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
                    Step::Finished => {}
                    step @ (Step::Made(_) | Step::Fault(_) | Step::Asleep) => return Ok(step),
                }
            }
            if self.is_asleep(t.0) {
                asleep = true;
                continue;
            }
            match self.try_move(t.0, 0, NONE, None)? {
                Step::Finished => {}
                step @ (Step::Made(_) | Step::Fault(_) | Step::Asleep) => return Ok(step),
            }
        }
        Ok(if asleep { Step::Asleep } else { Step::Finished })
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
            Outcome::Blocked(_) => return Ok(Step::Finished),
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
}

enum Step {
    Made(bool),
    Fault(Fault),
    Finished,
    /// Whatever could move is asleep.
    Asleep,
}

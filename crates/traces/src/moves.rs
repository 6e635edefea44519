//! One move of a process.
//!
//! A process is a thread or a buffer (one for each thread under TSO, for each thread and cell under
//! PSO). A buffer's move is a drain. A thread's move is one step that others may notice, or a whole
//! atomic block, and the local steps after it. Where a thread has several ways to go on (steps whose
//! conditions overlap, values to choose) it first *chooses*: a move that touches nothing and is
//! followed by local steps like any other. So every other move has one outcome.
//!
//! An atomic block is gone through at once or not at all. A drain of the thread's own stores inside a
//! buffered block can as well come before the block, if the store did, or after it: inside, the thread
//! reads its newest store whether it has drained or not, and nobody else moves.
//!
//! A load of a loop that waits ([`Program::again`]) is a move only where it leads out of the loop.
//!
//! A move that is a fault has happened, with what it has touched, and its thread does not move again.

use crate::footprint::{Access, Footprints, Kind, NO_STORE, store};
use crate::program::{Manner, Program};
use rustc_hash::FxHashMap;
use wattle_evidence::{Refusal, Stop};
use wattle_memory::reference::InPlace;
use wattle_memory::reference::in_place::Touched;
use wattle_memory::{Event, Fault, FaultKind, MemoryModel, Start};
use wattle_model::graph::{Action, Section};
use wattle_model::{CellId, Fence, StepId, ThreadId};

/// Threads by their number, then buffers.
pub type Process = u32;

/// A move as far as others are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub process: Process,
    /// Which way, where there are several.
    pub choice: u32,
    pub footprint: u32,
}

/// What is known of a move once it is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Made {
    pub footprint: u32,
    /// It had to wait for the thread's stores.
    pub waited: bool,
    /// It was an atomic block: what it touches may depend on what it reads.
    pub block: bool,
    /// The cell that decided whether it could be made.
    pub guard: Option<u32>,
    /// The question may see it.
    pub visible: bool,
}

/// Why the search cannot go on.
#[derive(Clone, Debug)]
pub enum Halt {
    Stop(Stop),
    Refused(Refusal),
    /// A run does not end, as far as it was followed.
    Long,
    /// The machine's numbers were too small, in this step.
    Overflow(ThreadId, StepId),
    /// The question has no value in a state.
    NoValue(FaultKind),
    /// A run that had been planned is not possible, or there was nothing left to do though there should
    /// be: a mistake of ours.
    Confused(&'static str),
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        Halt::Stop(stop)
    }
}

pub enum Outcome {
    Made(Made),
    /// Not now; what it waits for, if others can change that.
    Blocked(Option<u32>),
    /// The fault was minded.
    Fault(Fault),
}

/// What of a thread's state the machine does not know.
#[derive(Clone, Copy, Debug, Default)]
struct Stand {
    committed: Option<(StepId, Option<i64>)>,
    /// How many stores it had made when its buffer was last known to be empty.
    settled: u32,
    halted: bool,
    /// In how many ways it can go on, if it is to choose.
    ways: u32,
}

/// A moment to come back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    machine: usize,
    trail: usize,
    stands: usize,
}

/// Local steps in a row, and steps of one atomic block, before a loop is suspected.
const MOST_STEPS: u32 = 1 << 14;

pub struct Moves<'p, 'i> {
    pub program: &'p Program<'i>,
    pub machine: InPlace<'i>,
    /// The events of the run.
    pub trail: Vec<Event>,
    stands: Vec<Stand>,
    journal: Vec<(u32, Stand)>,
    /// The owner of each buffer, and the cell under PSO.
    buffers: Vec<(ThreadId, CellId)>,
    numbers: FxHashMap<(ThreadId, CellId), Process>,
    of_thread: Vec<Vec<Process>>,
    accesses: Vec<Access>,
    /// Faults end the search.
    minds_faults: bool,
}

impl<'p, 'i> Moves<'p, 'i> {
    pub fn new(program: &'p Program<'i>, start: &Start, minds_faults: bool) -> Self {
        let threads = program.instance.threads.len();
        let mut new = Moves {
            program,
            machine: InPlace::new(program.instance, program.model, start),
            trail: Vec::new(),
            stands: vec![Stand::default(); threads],
            journal: Vec::new(),
            buffers: Vec::new(),
            numbers: FxHashMap::default(),
            of_thread: vec![Vec::new(); threads],
            accesses: Vec::new(),
            minds_faults,
        };
        for (t, cell) in program.buffers() {
            let p = (threads + new.buffers.len()) as Process;
            new.buffers.push((t, cell));
            new.numbers.insert((t, cell), p);
            new.of_thread[t.index()].push(p);
        }
        new
    }

    /// The process that drains a thread's stores to a cell.
    pub fn buffer(&self, t: ThreadId, cell: CellId) -> Option<Process> {
        let cell = match self.program.model {
            MemoryModel::Sc | MemoryModel::Tso => CellId(0),
            MemoryModel::Pso => cell,
        };
        self.numbers.get(&(t, cell)).copied()
    }

    /// Whether the process is a buffer.
    #[inline]
    pub fn is_buffer(&self, p: Process) -> bool {
        p as usize >= self.stands.len()
    }

    pub fn processes(&self) -> u32 {
        (self.stands.len() + self.buffers.len()) as u32
    }

    pub fn threads(&self) -> u32 {
        self.stands.len() as u32
    }

    /// The thread whose process it is.
    pub fn thread_of(&self, p: Process) -> ThreadId {
        match (p as usize).checked_sub(self.stands.len()) {
            None => ThreadId(p),
            Some(b) => self.buffers[b].0,
        }
    }

    pub fn buffers_of(&self, t: ThreadId) -> &[Process] {
        &self.of_thread[t.index()]
    }

    pub fn mark(&self) -> Mark {
        Mark {
            machine: self.machine.mark(),
            trail: self.trail.len(),
            stands: self.journal.len(),
        }
    }

    pub fn undo_to(&mut self, mark: Mark) {
        self.machine.undo_to(mark.machine);
        self.trail.truncate(mark.trail);
        while self.journal.len() > mark.stands {
            if let Some((t, stand)) = self.journal.pop() {
                self.stands[t as usize] = stand;
            }
        }
    }

    /// Whether some thread has had a fault.
    pub fn has_faulted(&self) -> bool {
        self.stands.iter().any(|s| s.halted)
    }

    /// Whether the thread has had a fault.
    pub fn is_halted(&self, t: ThreadId) -> bool {
        self.stands[t.index()].halted
    }

    /// What the machine does not know of a thread, as numbers.
    pub fn write_stand(&self, t: ThreadId, put: &mut dyn FnMut(i64)) {
        let stand = &self.stands[t.index()];
        let settled = stand.settled == self.machine.serial(t);
        put(i64::from(stand.halted) * 2 + i64::from(settled));
        match stand.committed {
            None => put(0),
            Some((step, value)) => {
                put(i64::from(step.0) * 2 + 1 + i64::from(value.is_some()));
                value.iter().for_each(|v| put(*v));
            }
        }
    }

    /// In how many ways the thread can go on, if its next move is to choose.
    #[inline]
    pub fn ways(&self, t: Process) -> u32 {
        self.stands.get(t as usize).map_or(0, |s| s.ways)
    }

    /// The local steps before the first move of each thread.
    pub fn begin(&mut self, footprints: &mut Footprints) -> Result<Option<Fault>, Halt> {
        for t in self.program.instance.thread_ids() {
            let mut stand = self.stands[t.index()];
            let fault = self.chain(t, &mut stand)?;
            self.journal.push((t.0, self.stands[t.index()]));
            self.stands[t.index()] = stand;
            if let Some(fault) = fault
                && self.minds_faults
            {
                return Ok(Some(fault));
            }
        }
        let _ = footprints;
        Ok(None)
    }

    /// Makes the next move of a process.
    pub fn go(
        &mut self,
        p: Process,
        choice: u32,
        footprints: &mut Footprints,
    ) -> Result<Outcome, Halt> {
        match (p as usize).checked_sub(self.stands.len()) {
            None => self.step(ThreadId(p), choice, footprints),
            Some(b) => Ok(self.drain(b, footprints)),
        }
    }

    fn drain(&mut self, b: usize, footprints: &mut Footprints) -> Outcome {
        let (t, cell) = self.buffers[b];
        let pending = self.machine.pending(t);
        let at = match self.program.model {
            MemoryModel::Sc | MemoryModel::Tso => 0,
            MemoryModel::Pso => match pending.iter().position(|p| p.cell == cell) {
                Some(at) => at,
                None => return Outcome::Blocked(None),
            },
        };
        if at >= pending.len() || !self.machine.is_oldest(t, at) {
            return Outcome::Blocked(None);
        }
        let locks = self.program.locks;
        let holder = self.program.holder();
        if locks && !self.machine.may_access(t) {
            return Outcome::Blocked(Some(holder));
        }
        let drained = self.machine.drain(t, at);
        let (cell, value, keep) = (drained.cell, drained.value, false);
        self.trail.push(Event::Drain {
            thread: t,
            cell,
            value,
            keep,
        });
        self.accesses.clear();
        self.accesses.push(Access {
            cell: cell.0,
            kind: Kind::Write,
            store: store(t.0, drained.serial),
        });
        let visible = self.program.seen[cell.index()];
        self.finish(locks, visible);
        Outcome::Made(Made {
            footprint: footprints.number(&mut self.accesses),
            guard: locks.then_some(holder),
            visible,
            ..Made::default()
        })
    }

    /// The cells that are not memory.
    fn finish(&mut self, guarded: bool, visible: bool) {
        let mut also = |cell: u32, kind: Kind| {
            let store = NO_STORE;
            self.accesses.push(Access { cell, kind, store });
        };
        if guarded {
            also(self.program.holder(), Kind::Read);
        }
        if visible {
            also(self.program.view(), Kind::Write);
        }
    }

    fn step(
        &mut self,
        t: ThreadId,
        choice: u32,
        footprints: &mut Footprints,
    ) -> Result<Outcome, Halt> {
        let before = self.stands[t.index()];
        let mut stand = before;
        if stand.halted {
            return Ok(Outcome::Blocked(None));
        }
        let (s, value) = match stand.committed.take() {
            Some(way) => way,
            None if stand.ways > 1 => {
                stand.ways = 0;
                stand.committed = self.way(t, choice);
                self.journal.push((t.0, before));
                let fault = self.chain(t, &mut stand)?;
                self.stands[t.index()] = stand;
                return Ok(match fault {
                    Some(fault) if self.minds_faults => Outcome::Fault(fault),
                    _ => Outcome::Made(Made::default()),
                });
            }
            None => match self.way(t, 0) {
                Some(way) => way,
                None => return Ok(Outcome::Blocked(None)),
            },
        };
        let program = self.program;
        let step = program.instance.thread(t).step(s);
        let holder = program.holder();
        let mark = self.mark();
        let waits = self.waits(&step.action) && stand.settled != self.machine.serial(t);
        let guarded = program.locks && self.is_guarded(&step.action);
        if !self.machine.enabled(t, s) {
            let free = !waits || self.machine.pending(t).is_empty();
            return Ok(Outcome::Blocked((guarded && free).then_some(holder)));
        }
        self.machine.touched.clear();
        let mut visible = program.visible[t.index()][s.index()];
        let mut made = Made {
            waited: waits,
            guard: guarded.then_some(holder),
            ..Made::default()
        };
        let mut fault = self.take(t, s, value)?;
        if let Some(again) = program.again[t.index()][s.index()]
            && fault.is_none()
        {
            made.guard = Some(again.cell);
            if self.machine.enabled(t, again.back) && !self.machine.enabled(t, again.on) {
                self.undo_to(mark);
                return Ok(Outcome::Blocked(made.guard));
            }
        }
        if let Action::AtomicBegin(_) = step.action {
            made.block = true;
            let inside = self.block(t, &mut visible)?;
            let guard = program.guard[t.index()][s.index()];
            made.guard = made.guard.or(guard);
            match inside {
                Inside::Through => {}
                Inside::Fault(f) => fault = Some(f),
                Inside::Stuck => {
                    self.undo_to(mark);
                    return Ok(Outcome::Blocked(guard));
                }
            }
        }
        if self.waits(&step.action) {
            stand.settled = self.machine.serial(t);
        }
        stand.halted = fault.is_some();
        self.journal.push((t.0, before));
        self.collect(t);
        if program.locks && matches!(step.action, Action::Lock | Action::Unlock) {
            self.accesses.push(Access {
                cell: holder,
                kind: Kind::Write,
                store: NO_STORE,
            });
        }
        let seen =
            |a: &Access| a.kind == Kind::Write && program.seen.get(a.cell as usize) == Some(&true);
        made.visible = visible || self.accesses.iter().any(seen);
        self.finish(guarded, made.visible);
        if fault.is_none() {
            fault = self.chain(t, &mut stand)?;
        }
        self.stands[t.index()] = stand;
        if let Some(fault) = fault
            && self.minds_faults
        {
            return Ok(Outcome::Fault(fault));
        }
        made.footprint = footprints.number(&mut self.accesses);
        Ok(Outcome::Made(made))
    }

    /// What the thread's step has touched and others may notice.
    fn collect(&mut self, t: ThreadId) {
        self.accesses.clear();
        for touched in &self.machine.touched {
            let (cell, kind, store) = match *touched {
                Touched::Read(c) => (c, Kind::Read, NO_STORE),
                Touched::Forwarded(c, serial) => (c, Kind::Forward, store(t.0, serial)),
                Touched::Wrote(c) => (c, Kind::Write, NO_STORE),
                Touched::Put(..) => continue,
            };
            if kind != Kind::Write && self.program.is_own(t.index(), cell.index()) {
                continue;
            }
            let cell = cell.0;
            self.accesses.push(Access { cell, kind, store });
        }
    }

    /// Whether the step needs the thread's buffer to be empty.
    fn waits(
        &self,
        action: &Action<wattle_model::RegisterId, wattle_model::instance::Address>,
    ) -> bool {
        match action {
            Action::Fence(Fence::Full)
            | Action::AtomicBegin(Section::Drained)
            | Action::Lock
            | Action::Unlock => self.program.model != MemoryModel::Sc,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(Fence::Store)
            | Action::AtomicBegin(Section::Buffered)
            | Action::AtomicEnd => false,
        }
    }

    /// Whether the step needs nobody else to hold the lock.
    fn is_guarded(
        &self,
        action: &Action<wattle_model::RegisterId, wattle_model::instance::Address>,
    ) -> bool {
        match action {
            Action::Load { .. } | Action::AtomicBegin(_) | Action::Lock => true,
            Action::Store { .. } => self.program.model == MemoryModel::Sc,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicEnd
            | Action::Unlock => false,
        }
    }

    fn take(
        &mut self,
        t: ThreadId,
        step: StepId,
        value: Option<i64>,
    ) -> Result<Option<Fault>, Halt> {
        self.trail.push(Event::Step {
            thread: t,
            step,
            value,
        });
        match self.machine.take(t, step, value) {
            Ok(()) => Ok(None),
            Err(FaultKind::MachineOverflow) => Err(Halt::Overflow(t, step)),
            Err(kind) => Ok(Some(Fault {
                thread: t,
                step,
                kind,
            })),
        }
    }

    /// The rest of an atomic block.
    fn block(&mut self, t: ThreadId, visible: &mut bool) -> Result<Inside, Halt> {
        let instance = self.program.instance;
        let thread = instance.thread(t);
        for _ in 0..MOST_STEPS {
            let at = self.machine.locations[t.index()];
            let mut open = thread
                .outgoing(at)
                .iter()
                .filter(|s| self.machine.enabled(t, **s));
            let Some(s) = open.next().copied() else {
                return Ok(Inside::Stuck);
            };
            let step = thread.step(s);
            let value = match self.values(t, s) {
                None => None,
                Some((lo, hi)) if lo == hi => Some(lo),
                Some(_) => return Err(choice_inside(step.span)),
            };
            if open.next().is_some() {
                return Err(choice_inside(step.span));
            }
            *visible |= self.program.visible[t.index()][s.index()];
            if let Some(fault) = self.take(t, s, value)? {
                return Ok(Inside::Fault(fault));
            }
            if step.action == Action::AtomicEnd {
                return Ok(Inside::Through);
            }
        }
        Err(Halt::Long)
    }

    /// The values a step may choose from.
    fn values(&self, t: ThreadId, s: StepId) -> Option<(i64, i64)> {
        let thread = self.program.instance.thread(t);
        match &thread.step(s).action {
            Action::Havoc { register, range } => {
                let ty = thread.registers[register.index()].ty;
                // The machine refuses what has no bounds, before any run.
                Some(range.or(ty.bounds()).unwrap_or((0, 0)))
            }
            Action::Skip
            | Action::Assign { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => None,
        }
    }

    /// Whether the step is one the thread can set out on, whatever others do.
    fn is_way(&self, t: ThreadId, s: StepId) -> bool {
        match self.program.instance.thread(t).step(s).action {
            Action::Assume(_) => self.machine.enabled(t, s),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => true,
        }
    }

    /// One of the ways on.
    fn way(&self, t: ThreadId, mut choice: u32) -> Option<(StepId, Option<i64>)> {
        let thread = self.program.instance.thread(t);
        for s in thread.outgoing(self.machine.locations[t.index()]) {
            if !self.is_way(t, *s) {
                continue;
            }
            match self.values(t, *s) {
                None if choice == 0 => return Some((*s, None)),
                None => choice -= 1,
                Some((lo, hi)) => {
                    let n = hi.abs_diff(lo).saturating_add(1);
                    if u64::from(choice) < n {
                        return Some((*s, Some(lo.wrapping_add(i64::from(choice)))));
                    }
                    choice -= n as u32;
                }
            }
        }
        None
    }

    /// How many there are.
    fn count_ways(&self, t: ThreadId) -> u32 {
        let thread = self.program.instance.thread(t);
        let out = thread.outgoing(self.machine.locations[t.index()]);
        let ways = out.iter().filter(|s| self.is_way(t, **s));
        let ways = ways.map(|s| match self.values(t, *s) {
            None => 1,
            Some((lo, hi)) => hi.abs_diff(lo).saturating_add(1),
        });
        u32::try_from(ways.sum::<u64>()).unwrap_or(u32::MAX)
    }

    /// Local steps, as long as there are and there is only one way.
    fn chain(&mut self, t: ThreadId, stand: &mut Stand) -> Result<Option<Fault>, Halt> {
        let program = self.program;
        let fault = self.chain_on(t, stand, program)?;
        stand.halted |= fault.is_some();
        Ok(fault)
    }

    fn chain_on(
        &mut self,
        t: ThreadId,
        stand: &mut Stand,
        program: &Program<'i>,
    ) -> Result<Option<Fault>, Halt> {
        for _ in 0..MOST_STEPS {
            let way = match stand.committed {
                Some(way) => way,
                None => {
                    let ways = self.count_ways(t);
                    stand.ways = if ways > 1 { ways } else { 0 };
                    match self.way(t, 0) {
                        Some(way) if ways == 1 => way,
                        _ => return Ok(None),
                    }
                }
            };
            let (s, value) = way;
            let local = match program.manner[t.index()][s.index()] {
                Manner::Local => true,
                Manner::Fence => stand.settled == self.machine.serial(t),
                Manner::Alone => false,
            };
            if !local {
                return Ok(None);
            }
            stand.committed = None;
            let fault = self.take(t, s, value)?;
            if fault.is_some() {
                return Ok(fault);
            }
        }
        Err(Halt::Long)
    }
}

enum Inside {
    Through,
    Stuck,
    Fault(Fault),
}

fn choice_inside(span: wattle_model::Span) -> Halt {
    let why = "a choice inside an atomic block";
    Halt::Refused(Refusal::new(why).at(span, "`--engine explicit` takes it"))
}

//! What each thread can do, asked of the reference machine once.
//!
//! A thread's *part* of a state is its location, registers and buffer. The machine's rules look at
//! nothing else but who holds the lock (nobody, the thread, another), at one cell (the one loaded, or
//! written at once), and at whether another thread is inside an atomic block; they change nothing
//! else but that cell, or the one drained, and the lock. So a thread's events are those of the machine
//! that runs this thread alone, asked with its part, the lock and the cell's value: an answer is kept
//! and used in every state with these. That no other cell is written is checked with every answer.
//!
//! Parts and values are numbered as they are met.

use super::accessed::accessed;
use super::local::{Local, Reduction};
use crate::AuditError;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use wattle_evidence::deadlock;
use wattle_memory::content::Content;
use wattle_memory::reference::{Machine, Outcome, State};
use wattle_memory::{Bounds, Event, FaultKind, Layout};
use wattle_model::instance::{Cell, Thread};
use wattle_model::{Instance, LocationId, StepId, ThreadId};

/// Threads times cells that can be laid out for each thread alone.
const MOST: usize = 1 << 22;

/// The instance of each thread alone.
pub fn alone(instance: &Instance) -> Result<Vec<Instance>, AuditError> {
    if instance.threads.len().saturating_mul(instance.cells.len()) > MOST {
        return Err(AuditError::TooMany);
    }
    let cells: Vec<Cell> = instance
        .cells
        .iter()
        .map(|c| Cell {
            name: String::new(),
            ..c.clone()
        })
        .collect();
    let one = |t: &Thread| Instance {
        cells: cells.clone(),
        threads: vec![t.clone()],
        questions: Vec::new(),
        demands: Vec::new(),
        predicates: Vec::new(),
    };
    Ok(instance.threads.iter().map(one).collect())
}

/// The bounds of buffers that forget nothing.
pub fn exact_bounds(instance: &Instance) -> Vec<Bounds<()>> {
    vec![Bounds::uniform((), instance.cells.len()); instance.threads.len()]
}

/// Who holds the lock, as a thread sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    Free = 0,
    Mine = 1,
    Others = 2,
}

impl Lock {
    const ALL: usize = 3;

    /// As thread t sees the holder, one more than its number, or 0 if there is none.
    pub fn of(holder: u32, t: usize) -> Self {
        match holder as usize {
            0 => Lock::Free,
            h if h == t + 1 => Lock::Mine,
            _ => Lock::Others,
        }
    }

    fn holder(self) -> Option<ThreadId> {
        match self {
            Lock::Free => None,
            Lock::Mine => Some(ThreadId::new(0)),
            // Whoever it is, it is not the only thread of the machine.
            Lock::Others => Some(ThreadId::new(1)),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Part<B> {
    pub at: LocationId,
    pub registers: Vec<i64>,
    pub buffer: B,
}

/// What is known of a part at once.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    pub inside_atomic: bool,
    /// Ended, nothing pending.
    pub is_final: bool,
    /// Before nothing but false assumptions.
    pub is_discarded: bool,
}

/// An event of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    pub effect: Effect,
    /// None for a drain.
    pub step: Option<StepId>,
    /// In the sense of [`deadlock::is_progress`].
    pub progress: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// The thread has another part, and the lock perhaps another holder.
    Own { part: u32, lock: Lock },
    /// By the value of the cell: see [`Moves::through`].
    Through { cell: u32, table: u32 },
    /// The cell has the value, and the thread the part.
    Drain { cell: u32, value: u32, part: u32 },
    /// A fault, by its number.
    Fault(u32),
}

/// What a step does through a cell with some value.
#[derive(Clone, Copy, Debug)]
pub enum Through {
    Unknown,
    Disabled,
    /// The cell then has the value.
    Next {
        part: u32,
        value: u32,
    },
    Fault(u32),
}

/// The events of a thread with some part and some lock: of `Moves::list`, from `first` on. The first
/// `chained` of them are to be taken at once, as soon as one is enabled.
#[derive(Clone, Copy, Debug)]
pub struct Menu {
    pub first: u32,
    pub chained: u32,
    pub count: u32,
}

/// A step through a cell, to be asked about.
struct Asked {
    t: usize,
    part: u32,
    lock: Lock,
    step: StepId,
    cell: usize,
    by_value: Vec<Through>,
}

/// Numbers in the order they were met.
#[derive(Debug, Default)]
pub struct Values {
    numbers: FxHashMap<i64, u32>,
    pub all: Vec<i64>,
}

impl Values {
    pub fn number(&mut self, value: i64) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(value).or_insert(next);
        if number == next {
            self.all.push(value);
        }
        number
    }
}

type Buffer<L, C> = <L as Layout>::Buffer<C>;

struct Alone<'i, L: Layout, C: Content<Value = i64>> {
    machine: Machine<'i, L, C>,
    numbers: FxHashMap<Rc<Part<Buffer<L, C>>>, u32>,
    parts: Vec<Rc<Part<Buffer<L, C>>>>,
    marks: Vec<Marks>,
    menus: Vec<[Option<Menu>; Lock::ALL]>,
}

pub struct Moves<'i, L: Layout, C: Content<Value = i64>> {
    threads: Vec<Alone<'i, L, C>>,
    pub values: Vec<Values>,
    pub list: Vec<Move>,
    pub faults: Vec<(ThreadId, StepId, FaultKind)>,
    asked: Vec<Asked>,
    pub reduction: Reduction,
    /// Some values for cells that do not matter.
    memory: Vec<i64>,
    held: u64,
    /// Some part is inside an atomic block.
    pub any_atomic: bool,
}

impl<'i, L: Layout, C: Content<Value = i64>> Moves<'i, L, C> {
    /// For the instances that [`alone`] gives.
    pub fn new(
        alone: &'i [Instance],
        bounds: &[Bounds<C::Bound>],
        reduction: Reduction,
    ) -> Result<Self, AuditError> {
        let thread = |(instance, bounds): (&'i Instance, &Bounds<C::Bound>)| {
            let machine = Machine::with_bounds(instance, vec![bounds.clone()]);
            let machine = machine.map_err(|r| AuditError::Refused(r.to_string()))?;
            Ok(Alone {
                machine,
                numbers: FxHashMap::default(),
                parts: Vec::new(),
                marks: Vec::new(),
                menus: Vec::new(),
            })
        };
        let threads: Result<Vec<_>, AuditError> = alone.iter().zip(bounds).map(thread).collect();
        let cells = alone.first().map_or(0, |i| i.cells.len());
        Ok(Moves {
            threads: threads?,
            values: (0..cells).map(|_| Values::default()).collect(),
            list: Vec::new(),
            faults: Vec::new(),
            asked: Vec::new(),
            reduction,
            memory: vec![0; cells],
            held: 0,
            any_atomic: false,
        })
    }

    /// About how many bytes are held.
    pub fn bytes(&self) -> u64 {
        self.held + (self.list.len() * size_of::<Move>() + self.asked.len() * 64) as u64
    }

    pub fn part(&self, t: usize, number: u32) -> &Part<Buffer<L, C>> {
        &self.threads[t].parts[number as usize]
    }

    #[inline]
    pub fn marks(&self, t: usize, number: u32) -> Marks {
        self.threads[t].marks[number as usize]
    }

    /// The number of a part, with zero for what its registers hold in vain.
    pub fn number(
        &mut self,
        t: usize,
        at: LocationId,
        mut registers: Vec<i64>,
        buffer: Buffer<L, C>,
    ) -> u32 {
        let live = &self.reduction.live[t][at.index()];
        for (value, live) in registers.iter_mut().zip(live) {
            *value *= i64::from(*live);
        }
        let part = Part {
            at,
            registers,
            buffer,
        };
        let me = &mut self.threads[t];
        if let Some(number) = me.numbers.get(&part) {
            return *number;
        }
        let pending = L::entries::<C>(&part.buffer).len() as u64;
        self.held += 240 + 8 * part.registers.len() as u64 + 64 * pending;
        let part = Rc::new(part);
        let number = me.parts.len() as u32;
        me.numbers.insert(Rc::clone(&part), number);
        me.parts.push(part);
        me.menus.push([None; Lock::ALL]);
        let state = self.state(t, number, Lock::Free);
        let me = &mut self.threads[t];
        let inside_atomic = me.machine.inside_atomic(&state).is_some();
        self.any_atomic |= inside_atomic;
        me.marks.push(Marks {
            inside_atomic,
            is_final: me.machine.is_final(&state),
            is_discarded: deadlock::is_discarded(me.machine.instance, &state),
        });
        number
    }

    /// A state of the machine that runs the thread alone.
    fn state(&self, t: usize, part: u32, lock: Lock) -> State<Buffer<L, C>> {
        let part = self.part(t, part);
        State {
            locations: vec![part.at],
            registers: vec![part.registers.clone()],
            memory: self.memory.clone(),
            buffers: vec![part.buffer.clone()],
            holder: lock.holder(),
        }
    }

    /// What the thread can do.
    #[inline]
    pub fn menu(&mut self, t: usize, part: u32, lock: Lock) -> Result<Menu, AuditError> {
        match self.threads[t].menus[part as usize][lock as usize] {
            Some(menu) => Ok(menu),
            None => self.make(t, part, lock),
        }
    }

    #[cold]
    fn make(&mut self, t: usize, part: u32, lock: Lock) -> Result<Menu, AuditError> {
        let state = self.state(t, part, lock);
        let instance = self.threads[t].machine.instance;
        let thread = instance.thread(ThreadId::new(0));
        let at = state.locations[0];
        let events = self.threads[t].machine.events(&state);
        let (mut settling, mut steps, mut drains) = (Vec::new(), Vec::new(), Vec::new());
        // Steps through a cell depend on its value; they are asked about when it is known.
        let through = |s: StepId| accessed(thread, s, &state.registers[0]);
        for &s in thread.outgoing(at) {
            if let Some(cell) = through(s) {
                let step = Event::Step {
                    thread: ThreadId::new(0),
                    step: s,
                    value: None,
                };
                self.asked.push(Asked {
                    t,
                    part,
                    lock,
                    step: s,
                    cell,
                    by_value: Vec::new(),
                });
                steps.push(Move {
                    effect: Effect::Through {
                        cell: cell as u32,
                        table: self.asked.len() as u32 - 1,
                    },
                    step: Some(s),
                    progress: deadlock::is_progress(instance, L::MODEL, &step),
                });
            }
        }
        for event in events {
            let progress = deadlock::is_progress(instance, L::MODEL, &event);
            match event {
                Event::Step { step, .. } => {
                    if through(step).is_none() {
                        let effect = match self.apply(t, &state, &event, None)? {
                            Ok((part, _, lock)) => Effect::Own { part, lock },
                            Err(kind) => Effect::Fault(self.fault(t, step, kind)),
                        };
                        let step = Some(step);
                        steps.push(Move {
                            effect,
                            step,
                            progress,
                        });
                    }
                }
                Event::Drain { cell, value, .. } => {
                    let after = self.apply(t, &state, &event, Some(cell.index()))?;
                    let Ok((part, _, lock_after)) = after else {
                        return Err(AuditError::Other("a drain is a fault".into()));
                    };
                    if lock_after != lock {
                        return Err(AuditError::Other("a drain moves the lock".into()));
                    }
                    let effect = Effect::Drain {
                        cell: cell.0,
                        value: self.values[cell.index()].number(value),
                        part,
                    };
                    let private = self.reduction.private[t].contains(&cell);
                    let drains = match private && settling.is_empty() {
                        true => &mut settling,
                        false => &mut drains,
                    };
                    drains.push(Move {
                        effect,
                        step: None,
                        progress,
                    });
                }
            }
        }
        let chained = match (settling.len(), self.reduction.local[t][at.index()]) {
            (0, Local::Step) => steps.len(),
            (0, Local::Choice) if steps.len() == 1 => 1,
            (0, Local::Perhaps) if steps.iter().all(|s| self.is_free(t, s)) => steps.len(),
            (settling, _) => settling,
        };
        let first = self.list.len() as u32;
        self.list.extend(settling);
        self.list.extend(steps);
        self.list.extend(drains);
        let menu = Menu {
            first,
            chained: chained as u32,
            count: self.list.len() as u32 - first,
        };
        self.threads[t].menus[part as usize][lock as usize] = Some(menu);
        Ok(menu)
    }

    /// A step through a cell that only the thread writes.
    fn is_free(&self, t: usize, step: &Move) -> bool {
        match step.effect {
            Effect::Through { cell, .. } => self.reduction.free[t][cell as usize],
            Effect::Own { .. } | Effect::Drain { .. } | Effect::Fault(_) => false,
        }
    }

    fn fault(&mut self, t: usize, step: StepId, kind: FaultKind) -> u32 {
        self.faults.push((ThreadId::new(t), step, kind));
        self.faults.len() as u32 - 1
    }

    /// What the step does if its cell has the value with this number.
    #[inline]
    pub fn through(&mut self, table: u32, value: u32) -> Result<Through, AuditError> {
        let known = self.asked[table as usize].by_value.get(value as usize);
        match known {
            Some(known) if !matches!(known, Through::Unknown) => Ok(*known),
            _ => self.ask(table, value),
        }
    }

    #[cold]
    fn ask(&mut self, table: u32, value: u32) -> Result<Through, AuditError> {
        let asked = &self.asked[table as usize];
        let (t, cell, step) = (asked.t, asked.cell, asked.step);
        let lock = asked.lock;
        let mut state = self.state(t, asked.part, lock);
        state.memory[cell] = self.values[cell].all[value as usize];
        let events = self.threads[t].machine.events(&state).into_iter();
        let mut events = events.filter(|e| matches!(e, Event::Step { step: s, .. } if *s == step));
        let through = match (events.next(), events.next()) {
            (None, _) => Through::Disabled,
            (Some(_), Some(_)) => {
                return Err(AuditError::Other("an access with two outcomes".into()));
            }
            (Some(event), None) => match self.apply(t, &state, &event, Some(cell))? {
                Ok((_, _, after)) if after != lock => {
                    return Err(AuditError::Other("an access moves the lock".into()));
                }
                Ok((part, value, _)) => {
                    let value = self.values[cell].number(value);
                    Through::Next { part, value }
                }
                Err(kind) => Through::Fault(self.fault(t, step, kind)),
            },
        };
        let by_value = &mut self.asked[table as usize].by_value;
        if by_value.len() <= value as usize {
            self.held += 12 * (value as u64 + 1 - by_value.len() as u64);
            by_value.resize(value as usize + 1, Through::Unknown);
        }
        by_value[value as usize] = through;
        Ok(through)
    }

    /// Takes an event: the part afterwards, what the cell holds then, and the lock; or a fault. No
    /// other cell may change.
    fn apply(
        &mut self,
        t: usize,
        state: &State<Buffer<L, C>>,
        event: &Event,
        cell: Option<usize>,
    ) -> Result<Result<(u32, i64, Lock), FaultKind>, AuditError> {
        let mut after = match self.threads[t].machine.apply(state, event) {
            Outcome::Next(after) => after,
            Outcome::Fault(fault) => return Ok(Err(fault.kind)),
            Outcome::Full(_) => return Err(AuditError::Other("a buffer was full".into())),
        };
        let mut cells = after.memory.iter().zip(&state.memory).enumerate();
        if cells.any(|(c, (a, b))| a != b && Some(c) != cell) {
            return Err(AuditError::Other("an event writes two cells".into()));
        }
        let lock = match after.holder {
            None => Lock::Free,
            Some(t) if t.index() == 0 => Lock::Mine,
            Some(_) => Lock::Others,
        };
        let value = cell.map_or(0, |c| after.memory[c]);
        let (Some(registers), Some(buffer)) = (after.registers.pop(), after.buffers.pop()) else {
            return Err(AuditError::Other("a state without threads".into()));
        };
        let part = self.number(t, after.locations[0], registers, buffer);
        Ok(Ok((part, value, lock)))
    }
}

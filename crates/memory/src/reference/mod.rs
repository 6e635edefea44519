//! The reference machine: a direct transcription of the rules, written to be read.
//!
//! A state is where every thread is, its registers, memory, every thread's buffer and who holds the
//! lock. Rules, for a thread t at location l:
//!
//! - **assign, havoc, assume, assert, skip** touch only t's registers; an assumption is enabled only
//!   where it is true; a false assertion is a fault.
//! - **load** reads t's newest pending store of the cell if there is one, else memory; either way it
//!   needs the lock to be free or t's.
//! - **store** puts an entry into t's buffer. Under SC, and inside an atomic block, it writes memory
//!   at once, which needs the lock to be free or t's.
//! - **fence** is enabled when t's buffer is empty. A **store fence** is always enabled; later
//!   entries then drain after earlier ones (PSO; nothing to do elsewhere).
//! - **atomic begin** needs an empty buffer and the lock free or t's. From there to **atomic end**
//!   no other thread has an event, and nobody looks: properties see only states in which no thread
//!   is inside an atomic block.
//! - **lock** needs an empty buffer and a free lock, and takes it; **unlock** needs an empty buffer
//!   and t to hold it, and frees it. While t holds the lock no other thread loads and no other
//!   thread's store reaches memory; steps on registers and stores into buffers go on.
//! - **drain**: an entry of t's buffer reaches memory, if the lock is free or t's.
//!
//! An index outside its array, a value outside its range, a division by zero: the step is a fault
//! and its run ends there.

mod facts;
mod replay;

pub use facts::evaluate;
pub use replay::{ReplayError, Snapshot, replay};

use crate::content::{Content, Full};
use crate::event::{Event, Start};
use crate::fault::{Fault, FaultKind};
use crate::layout::{Bounds, Layout};
use std::marker::PhantomData;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Initial, Thread};
use wattle_model::{CellId, Expr, Fence, Instance, LocationId, RegisterId, StepId, ThreadId, Type};

/// A state of the reference machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State<B> {
    pub locations: Vec<LocationId>,
    pub registers: Vec<Vec<i64>>,
    pub memory: Vec<i64>,
    pub buffers: Vec<B>,
    /// Who holds the lock.
    pub holder: Option<ThreadId>,
}

/// Nondeterministic choices wider than this are refused: one event per value would not end.
pub const MAX_CHOICE: u64 = 1 << 16;

/// Why the machine cannot run an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A register or cell that starts with, or is assigned, any of too many values.
    TooManyChoices { what: String },
    /// More initial states than anyone wants to list.
    TooManyStarts,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::TooManyChoices { what } => write!(
                f,
                "`{what}` may take any of more than {MAX_CHOICE} values; give it a smaller range"
            ),
            Refusal::TooManyStarts => write!(
                f,
                "there are more than {MAX_CHOICE} initial states; give `any` smaller ranges"
            ),
        }
    }
}

/// What one event leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<B> {
    Next(State<B>),
    Fault(Fault),
    /// A bounded content is full: the run cannot be followed further at this bound.
    Full(ThreadId),
}

pub struct Machine<'i, L: Layout, C: Content> {
    pub instance: &'i Instance,
    bounds: Vec<Bounds<C::Bound>>,
    layout: PhantomData<L>,
}

type Buffer<L, C> = <L as Layout>::Buffer<C>;

impl<'i, L: Layout, C: Content> Machine<'i, L, C> {
    /// A machine with the same bound for every buffer.
    pub fn new(instance: &'i Instance, bound: C::Bound) -> Result<Self, Refusal> {
        let bounds = Bounds::uniform(bound, instance.cells.len());
        Self::with_bounds(instance, vec![bounds; instance.threads.len()])
    }

    /// A machine with bounds for each thread.
    pub fn with_bounds(
        instance: &'i Instance,
        bounds: Vec<Bounds<C::Bound>>,
    ) -> Result<Self, Refusal> {
        for thread in &instance.threads {
            for step in &thread.steps {
                if let Action::Havoc { register, range } = &step.action {
                    let register = &thread.registers[register.index()];
                    let (lo, hi) = choice(*range, register.ty, &register.name)?;
                    debug_assert!(lo <= hi);
                }
            }
        }
        Ok(Machine {
            instance,
            bounds,
            layout: PhantomData,
        })
    }

    /// Every initial state, in order of the values chosen.
    pub fn starts(&self) -> Result<Vec<Start>, Refusal> {
        starts(self.instance)
    }

    pub fn initial(&self, start: &Start) -> State<Buffer<L, C>> {
        let threads = &self.instance.threads;
        State {
            locations: threads.iter().map(|t| t.entry).collect(),
            registers: start.registers.clone(),
            memory: start.memory.clone(),
            buffers: self.bounds.iter().map(L::empty::<C>).collect(),
            holder: None,
        }
    }

    /// The thread inside an atomic block, if there is one.
    pub fn inside_atomic(&self, state: &State<Buffer<L, C>>) -> Option<ThreadId> {
        let mut threads = self.instance.thread_ids();
        threads.find(|t| self.instance.thread(*t).atomic[state.locations[t.index()].index()])
    }

    /// All threads have ended and all buffers are empty.
    pub fn is_final(&self, state: &State<Buffer<L, C>>) -> bool {
        let mut threads = self.instance.thread_ids();
        threads.all(|t| {
            self.instance.thread(t).ended(state.locations[t.index()])
                && L::is_empty::<C>(&state.buffers[t.index()])
        })
    }

    /// Every event enabled in the state, in a fixed order. An event whose step will turn out to be
    /// a fault is enabled too.
    pub fn events(&self, state: &State<Buffer<L, C>>) -> Vec<Event> {
        let mut events = Vec::new();
        let alone = self.inside_atomic(state);
        for t in self.instance.thread_ids() {
            if alone.is_some_and(|a| a != t) {
                continue;
            }
            let thread = self.instance.thread(t);
            for &s in thread.outgoing(state.locations[t.index()]) {
                self.step_events(state, t, thread, s, &mut events);
            }
            if alone.is_none() && self.may_access(state, t) {
                for d in L::drains::<C>(&state.buffers[t.index()]) {
                    events.push(Event::Drain {
                        thread: t,
                        cell: d.entry.0,
                        value: d.entry.1,
                        keep: d.keep,
                    });
                }
            }
        }
        events
    }

    fn step_events(
        &self,
        state: &State<Buffer<L, C>>,
        t: ThreadId,
        thread: &Thread,
        s: StepId,
        events: &mut Vec<Event>,
    ) {
        let empty = L::is_empty::<C>(&state.buffers[t.index()]);
        let direct = L::MODEL == crate::MemoryModel::Sc;
        let enabled = match &thread.step(s).action {
            // An assumption without a value is a fault, not a blocked step.
            Action::Assume(e) => self.eval(state, t, e) != Ok(0),
            Action::Load { .. } => self.may_access(state, t),
            Action::Store { .. } if direct => self.may_access(state, t),
            Action::Fence(Fence::Full) => empty,
            Action::AtomicBegin => empty && self.may_access(state, t),
            Action::Lock => empty && state.holder.is_none(),
            Action::Unlock => empty && state.holder == Some(t),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assert { .. }
            | Action::Store { .. }
            | Action::Fence(Fence::Store)
            | Action::AtomicEnd => true,
        };
        if !enabled {
            return;
        }
        let event = |value| Event::Step {
            thread: t,
            step: s,
            value,
        };
        match &thread.step(s).action {
            Action::Havoc { register, range } => {
                let register = &thread.registers[register.index()];
                if let Ok((lo, hi)) = choice(*range, register.ty, &register.name) {
                    events.extend((lo..=hi).map(|v| event(Some(v))));
                }
            }
            _ => events.push(event(None)),
        }
    }

    /// Whether `t` may load and its stores may reach memory: nobody else holds the lock.
    fn may_access(&self, state: &State<Buffer<L, C>>, t: ThreadId) -> bool {
        state.holder.is_none_or(|h| h == t)
    }

    /// Takes an enabled event.
    pub fn apply(&self, state: &State<Buffer<L, C>>, event: &Event) -> Outcome<Buffer<L, C>> {
        match *event {
            Event::Drain {
                thread,
                cell,
                value,
                keep,
            } => {
                let mut next = state.clone();
                let drains = L::drains::<C>(&state.buffers[thread.index()]);
                let wanted = |d: &&crate::content::Drained<Buffer<L, C>>| {
                    d.entry == (cell, value) && d.keep == keep
                };
                if let Some(d) = drains.iter().find(wanted) {
                    next.memory[cell.index()] = value;
                    next.buffers[thread.index()] = d.rest.clone();
                }
                Outcome::Next(next)
            }
            Event::Step {
                thread,
                step,
                value,
            } => match self.take(state, thread, step, value) {
                Ok(next) => Outcome::Next(next),
                Err(Stuck::Full(Full)) => Outcome::Full(thread),
                Err(Stuck::Fault(kind)) => Outcome::Fault(Fault { thread, step, kind }),
            },
        }
    }

    fn take(
        &self,
        state: &State<Buffer<L, C>>,
        t: ThreadId,
        s: StepId,
        value: Option<i64>,
    ) -> Result<State<Buffer<L, C>>, Stuck> {
        let thread = self.instance.thread(t);
        let step = thread.step(s);
        let me = t.index();
        let mut next = state.clone();
        next.locations[me] = step.target;
        let set = |next: &mut State<_>, r: RegisterId, v: i64| {
            let admitted = admit(thread.registers[r.index()].ty, v)?;
            next.registers[me][r.index()] = admitted;
            Ok::<(), Stuck>(())
        };
        match &step.action {
            Action::Skip | Action::AtomicBegin | Action::AtomicEnd | Action::Fence(Fence::Full) => {
            }
            Action::Fence(Fence::Store) => {
                L::store_fence::<C>(&mut next.buffers[me], &self.bounds[me]);
            }
            Action::Assign { register, value } => {
                let v = self.eval(state, t, value)?;
                set(&mut next, *register, v)?;
            }
            Action::Havoc { register, .. } => set(&mut next, *register, value.unwrap_or(0))?,
            Action::Assume(e) => {
                self.eval(state, t, e)?;
            }
            Action::Assert { condition, message } => {
                if self.eval(state, t, condition)? == 0 {
                    let message = message.clone();
                    return Err(FaultKind::Assertion { message }.into());
                }
            }
            Action::Load { register, place } => {
                let cell = self.address(state, t, place)?;
                let pending = L::newest::<C>(&state.buffers[me], cell);
                let v = pending.unwrap_or(state.memory[cell.index()]);
                set(&mut next, *register, v)?;
            }
            Action::Store { place, value } => {
                let cell = self.address(state, t, place)?;
                let v = self.eval(state, t, value)?;
                let v = admit(self.instance.cell(cell).ty, v)?;
                if thread.atomic[step.source.index()] {
                    next.memory[cell.index()] = v;
                } else if let Some((cell, v)) =
                    L::put::<C>(&mut next.buffers[me], &self.bounds[me], (cell, v))?
                {
                    next.memory[cell.index()] = v;
                }
            }
            Action::Lock => next.holder = Some(t),
            Action::Unlock => next.holder = None,
        }
        Ok(next)
    }

    fn eval(
        &self,
        state: &State<Buffer<L, C>>,
        t: ThreadId,
        e: &Expr<RegisterId>,
    ) -> Result<i64, FaultKind> {
        let registers = &state.registers[t.index()];
        Ok(e.eval(&|r: &RegisterId| registers[r.index()])?)
    }

    fn address(
        &self,
        state: &State<Buffer<L, C>>,
        t: ThreadId,
        place: &Address,
    ) -> Result<CellId, FaultKind> {
        match place {
            Address::Cell(c) => Ok(*c),
            Address::Computed {
                base,
                length,
                index,
            } => {
                let index = self.eval(state, t, index)?;
                let inside = u32::try_from(index).ok().filter(|i| i < length);
                let length = *length;
                inside
                    .map(|i| CellId(base.0 + i))
                    .ok_or(FaultKind::IndexOutOfRange { index, length })
            }
        }
    }
}

/// Why a step has no next state.
enum Stuck {
    Fault(FaultKind),
    Full(Full),
}

impl From<FaultKind> for Stuck {
    fn from(kind: FaultKind) -> Self {
        Stuck::Fault(kind)
    }
}

impl From<Full> for Stuck {
    fn from(full: Full) -> Self {
        Stuck::Full(full)
    }
}

fn admit(ty: Type, value: i64) -> Result<i64, FaultKind> {
    let (lo, hi) = ty.bounds().unwrap_or((i64::MIN, i64::MAX));
    ty.admit(value)
        .ok_or(FaultKind::ValueOutOfRange { value, lo, hi })
}

/// The values a nondeterministic assignment may choose.
fn choice(range: Option<(i64, i64)>, ty: Type, name: &str) -> Result<(i64, i64), Refusal> {
    let too_many = || Refusal::TooManyChoices {
        what: name.to_string(),
    };
    let (lo, hi) = range.or(ty.bounds()).ok_or_else(too_many)?;
    if hi.abs_diff(lo) >= MAX_CHOICE {
        return Err(too_many());
    }
    Ok((lo, hi))
}

/// Every initial state of the instance.
pub fn starts(instance: &Instance) -> Result<Vec<Start>, Refusal> {
    let registers = instance
        .threads
        .iter()
        .enumerate()
        .flat_map(|(t, thread)| thread.registers.iter().map(move |r| (Some(t), r)));
    let registers = registers.map(|(t, r)| (t, r.init, r.ty, &r.name));
    let cells = instance.cells.iter().map(|c| (None, c.init, c.ty, &c.name));
    let empty = Start {
        memory: Vec::new(),
        registers: vec![Vec::new(); instance.threads.len()],
    };
    let mut starts = vec![empty];
    for (thread, init, ty, name) in cells.chain(registers) {
        let (lo, hi) = match init {
            Initial::Value(v) => (v, v),
            Initial::Any => choice(None, ty, name)?,
        };
        if starts.len() as u64 * (hi.abs_diff(lo) + 1) > MAX_CHOICE {
            return Err(Refusal::TooManyStarts);
        }
        let put = |start: &mut Start, v: i64| match thread {
            None => start.memory.push(v),
            Some(t) => start.registers[t].push(v),
        };
        if lo == hi {
            // Nothing to choose: no copies, there may be very many cells.
            starts.iter_mut().for_each(|start| put(start, lo));
            continue;
        }
        let mut more = Vec::new();
        for start in starts {
            for v in lo..=hi {
                let mut start = start.clone();
                put(&mut start, v);
                more.push(start);
            }
        }
        starts = more;
    }
    Ok(starts)
}

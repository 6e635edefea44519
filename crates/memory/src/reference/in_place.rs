//! The reference machine on one state that is changed in place, with a journal to take steps back.
//!
//! Who follows runs one after the other, and not states, has no use for copies: the next run differs
//! from this one in its last few events. The rules are those of [`crate::rules`]; what is said here is
//! only where a value lives. Buffers keep everything, as lists in the order of the stores, for every
//! memory model: under PSO the oldest store of a cell drains, if no store before an earlier store fence
//! is pending.
//!
//! What a step has touched is told ([`InPlace::touched`]), because it decides what may be exchanged
//! with what.

use crate::MemoryModel;
use crate::event::Start;
use crate::fault::FaultKind;
use crate::rules::{self, Sight, Stuck, StuckIn, World};
use std::ops::{Deref, DerefMut};
use wattle_model::instance::{Address, Fact};
use wattle_model::{
    CellId, Expr, Instance, LocationId, NoValue, Numbers, RegisterId, StepId, ThreadId, Type,
    Valued,
};

/// A store on its way to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    pub cell: CellId,
    pub value: i64,
    /// How many stores the thread had buffered before.
    pub serial: u32,
    /// How many store fences it had passed.
    pub epoch: u32,
}

/// What a step or a drain did with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// Read from memory.
    Read(CellId),
    /// Read from the thread's own pending store with this serial.
    Forwarded(CellId, u32),
    /// Written to memory by a step.
    Wrote(CellId),
    /// Put into the buffer, with this serial.
    Put(CellId, u32),
}

enum Undo {
    Register(usize, i64),
    Memory(CellId, i64),
    Location(ThreadId, LocationId),
    Put(ThreadId),
    Drain(ThreadId, usize, Pending),
    Epoch(ThreadId),
    Holder(Option<ThreadId>),
}

/// A state of an instance under a memory model.
pub struct InPlace<'i> {
    pub instance: &'i Instance,
    pub model: MemoryModel,
    pub locations: Vec<LocationId>,
    pub memory: Vec<i64>,
    pub holder: Option<ThreadId>,
    /// What the steps since the caller last cleared it have touched.
    pub touched: Vec<Touched>,
    registers: Vec<i64>,
    first_register: Vec<usize>,
    buffers: Vec<Vec<Pending>>,
    serials: Vec<u32>,
    epochs: Vec<u32>,
    journal: Vec<Undo>,
}

impl<'i> InPlace<'i> {
    pub fn new(instance: &'i Instance, model: MemoryModel, start: &Start) -> Self {
        let mut first = 0;
        let mut first_register = Vec::with_capacity(instance.threads.len());
        for registers in &start.registers {
            first_register.push(first);
            first += registers.len();
        }
        let threads = instance.threads.len();
        InPlace {
            instance,
            model,
            locations: instance.threads.iter().map(|t| t.entry).collect(),
            memory: start.memory.clone(),
            holder: None,
            touched: Vec::new(),
            registers: start.registers.concat(),
            first_register,
            buffers: vec![Vec::new(); threads],
            serials: vec![0; threads],
            epochs: vec![0; threads],
            journal: Vec::new(),
        }
    }

    /// A moment to come back to.
    pub fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Takes back all that was done since the mark.
    pub fn undo_to(&mut self, mark: usize) {
        while self.journal.len() > mark {
            match self.journal.pop() {
                None => return,
                Some(Undo::Register(r, v)) => self.registers[r] = v,
                Some(Undo::Memory(c, v)) => self.memory[c.index()] = v,
                Some(Undo::Location(t, l)) => self.locations[t.index()] = l,
                Some(Undo::Put(t)) => {
                    self.buffers[t.index()].pop();
                    self.serials[t.index()] -= 1;
                }
                Some(Undo::Drain(t, at, pending)) => self.buffers[t.index()].insert(at, pending),
                Some(Undo::Epoch(t)) => self.epochs[t.index()] -= 1,
                Some(Undo::Holder(h)) => self.holder = h,
            }
        }
    }

    pub fn register(&self, t: ThreadId, r: RegisterId) -> i64 {
        self.registers[self.first_register[t.index()] + r.index()]
    }

    /// The pending stores of a thread, oldest first.
    pub fn pending(&self, t: ThreadId) -> &[Pending] {
        &self.buffers[t.index()]
    }

    /// How many stores the thread has put into its buffer.
    pub fn serial(&self, t: ThreadId) -> u32 {
        self.serials[t.index()]
    }

    /// The epoch its next store will be of: how many store fences it has passed.
    pub fn epoch(&self, t: ThreadId) -> u32 {
        self.epochs[t.index()]
    }

    /// All threads have ended and all buffers are empty.
    pub fn is_final(&self) -> bool {
        self.instance.thread_ids().all(|t| {
            self.instance.thread(t).ended(self.locations[t.index()])
                && self.buffers[t.index()].is_empty()
        })
    }

    /// Whether the thread, which is at the step's source, can take it (nobody else being inside an
    /// atomic block).
    pub fn enabled(&self, t: ThreadId, s: StepId) -> bool {
        let acting = Acting { state: self, t, s };
        rules::enabled(
            &mut Numbers,
            &acting,
            &self.instance.thread(t).step(s).action,
        )
    }

    /// Takes an enabled step. One that is a fault changes nothing.
    pub fn take(&mut self, t: ThreadId, s: StepId, chosen: Option<i64>) -> Result<(), FaultKind> {
        let instance = self.instance;
        let step = instance.thread(t).step(s);
        let mut acting = Acting {
            state: &mut *self,
            t,
            s,
        };
        match rules::perform(&mut Numbers, &mut acting, &step.action, chosen) {
            Ok(()) => {}
            Err(Stuck::Fault(kind)) => return Err(kind),
            // Buffers here have no bound.
            Err(Stuck::Full) => {}
            Err(Stuck::Refused(never)) => match never {},
        }
        let at = std::mem::replace(&mut self.locations[t.index()], step.target);
        self.journal.push(Undo::Location(t, at));
        Ok(())
    }

    /// Whether the pending store at this position may reach memory now, as far as the thread itself is
    /// concerned.
    pub fn is_oldest(&self, t: ThreadId, at: usize) -> bool {
        let buffer = &self.buffers[t.index()];
        match self.model {
            MemoryModel::Sc | MemoryModel::Tso => at == 0,
            MemoryModel::Pso => {
                let same = |p: &Pending| p.cell == buffer[at].cell;
                buffer[at].epoch == buffer[0].epoch && !buffer[..at].iter().any(same)
            }
        }
    }

    /// Whether the thread may load and its stores may reach memory.
    pub fn may_access(&self, t: ThreadId) -> bool {
        self.holder.is_none_or(|h| h == t)
    }

    /// The pending store at this position reaches memory.
    pub fn drain(&mut self, t: ThreadId, at: usize) -> Pending {
        let pending = self.buffers[t.index()].remove(at);
        self.journal.push(Undo::Drain(t, at, pending));
        self.put_into_memory(pending.cell, pending.value);
        pending
    }

    fn put_into_memory(&mut self, cell: CellId, value: i64) {
        let old = std::mem::replace(&mut self.memory[cell.index()], value);
        self.journal.push(Undo::Memory(cell, old));
    }

    /// The value of a condition.
    pub fn evaluate(&self, e: &Expr<Fact>) -> Result<i64, FaultKind> {
        e.evaluate(&mut Numbers, &mut |_: &mut Numbers, fact| match fact {
            Fact::Cell(c) => Ok(self.memory[c.index()]),
            Fact::CellAt {
                base,
                length,
                index,
            } => {
                let (index, length) = (self.evaluate(index)?, *length);
                match u32::try_from(index) {
                    Ok(i) if i < length => Ok(self.memory[(base.0 + i) as usize]),
                    _ => Err(FaultKind::IndexOutOfRange { index, length }),
                }
            }
            Fact::Seen(t, c) => {
                let newest = self.buffers[t.index()].iter().rev().find(|p| p.cell == *c);
                Ok(newest.map_or(self.memory[c.index()], |p| p.value))
            }
            Fact::Register(t, r) => Ok(self.register(*t, *r)),
            Fact::At(t, at) => Ok(i64::from(at.contains(&self.locations[t.index()]))),
        })
    }
}

/// A thread about to take a step.
struct Acting<S> {
    state: S,
    t: ThreadId,
    s: StepId,
}

impl<'i, S: Deref<Target = InPlace<'i>>> Sight<Numbers> for Acting<S> {
    type Leaf = RegisterId;

    fn leaf(&self, _: &mut Numbers, register: &RegisterId) -> Valued<Numbers> {
        Ok(self.state.register(self.t, *register))
    }

    fn is_empty(&self) -> bool {
        self.state.buffers[self.t.index()].is_empty()
    }

    fn direct(&self) -> bool {
        self.state.model == MemoryModel::Sc
    }

    fn lock_is_free(&self) -> bool {
        self.state.holder.is_none()
    }

    fn holds_lock(&self) -> bool {
        self.state.holder == Some(self.t)
    }
}

impl<'i, S: DerefMut<Target = InPlace<'i>>> World<Numbers> for Acting<S> {
    type Place = Address;
    type Cell = CellId;

    fn cell(&mut self, d: &mut Numbers, place: &Address) -> Result<CellId, StuckIn<Numbers>> {
        match place {
            Address::Cell(c) => Ok(*c),
            Address::Computed {
                base,
                length,
                index,
            } => {
                let length = *length;
                let index: Result<i64, NoValue<_>> =
                    index.evaluate(d, &mut |d: &mut Numbers, r| self.leaf(d, r));
                let index = index?;
                match u32::try_from(index) {
                    Ok(i) if i < length => Ok(CellId(base.0 + i)),
                    _ => Err(Stuck::Fault(FaultKind::IndexOutOfRange { index, length })),
                }
            }
        }
    }

    fn cell_type(&self, cell: &CellId) -> Type {
        self.state.instance.cell(*cell).ty
    }

    fn register_type(&self, register: RegisterId) -> Type {
        self.state.instance.thread(self.t).registers[register.index()].ty
    }

    fn read(&mut self, _: &mut Numbers, cell: CellId) -> Valued<Numbers> {
        let state = &mut *self.state;
        let buffer = &state.buffers[self.t.index()];
        Ok(match buffer.iter().rev().find(|p| p.cell == cell) {
            Some(newest) => {
                let touched = Touched::Forwarded(cell, newest.serial);
                state.touched.push(touched);
                newest.value
            }
            None => {
                state.touched.push(Touched::Read(cell));
                state.memory[cell.index()]
            }
        })
    }

    fn write(&mut self, _: &mut Numbers, cell: CellId, value: i64) -> Result<(), StuckIn<Numbers>> {
        let t = self.t.index();
        let state = &mut *self.state;
        let thread = &state.instance.threads[t];
        let drained = thread.direct[thread.step(self.s).source.index()];
        if drained || state.model == MemoryModel::Sc {
            state.touched.push(Touched::Wrote(cell));
            state.put_into_memory(cell, value);
            return Ok(());
        }
        let serial = state.serials[t];
        let epoch = state.epochs[t];
        state.buffers[t].push(Pending {
            cell,
            value,
            serial,
            epoch,
        });
        state.serials[t] += 1;
        state.journal.push(Undo::Put(self.t));
        state.touched.push(Touched::Put(cell, serial));
        Ok(())
    }

    fn set(&mut self, register: RegisterId, value: i64) {
        let at = self.state.first_register[self.t.index()] + register.index();
        let old = std::mem::replace(&mut self.state.registers[at], value);
        self.state.journal.push(Undo::Register(at, old));
    }

    fn store_fence(&mut self) {
        self.state.epochs[self.t.index()] += 1;
        self.state.journal.push(Undo::Epoch(self.t));
    }

    fn lock(&mut self) {
        let old = self.state.holder.replace(self.t);
        self.state.journal.push(Undo::Holder(old));
    }

    fn unlock(&mut self) {
        let old = self.state.holder.take();
        self.state.journal.push(Undo::Holder(old));
    }
}

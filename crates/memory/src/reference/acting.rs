//! A thread of a state about to take a step: the world its rules act on.

use super::{Machine, StateOf};
use crate::MemoryModel;
use crate::content::Content;
use crate::fault::FaultKind;
use crate::layout::{Layout, Newest};
use crate::rules::{Sight, Stuck, StuckIn, World};
use std::ops::{Deref, DerefMut};
use wattle_model::instance::{Address, Thread};
use wattle_model::{CellId, Domain, RegisterId, StepId, ThreadId, Type, Valued};

/// The thread, and the state (or a way to change it).
pub struct Acting<'a, 'i, L: Layout, C: Content, S> {
    machine: &'a Machine<'i, L, C>,
    id: ThreadId,
    thread: &'a Thread,
    /// The step is inside a drained atomic block.
    drained: bool,
    state: S,
}

impl<'a, 'i, L: Layout, C: Content, S> Acting<'a, 'i, L, C, S> {
    pub fn new(machine: &'a Machine<'i, L, C>, id: ThreadId, step: StepId, state: S) -> Self {
        let thread = machine.instance.thread(id);
        Acting {
            machine,
            id,
            thread,
            drained: thread.direct[thread.step(step).source.index()],
            state,
        }
    }
}

impl<L, C, S, D> Sight<D> for Acting<'_, '_, L, C, S>
where
    L: Layout,
    C: Content,
    S: Deref<Target = StateOf<L, C>>,
    D: Domain<Value = C::Value>,
{
    type Leaf = RegisterId;

    fn leaf(&self, _: &mut D, register: &RegisterId) -> Valued<D> {
        Ok(self.state.registers[self.id.index()][register.index()].clone())
    }

    fn is_empty(&self) -> bool {
        L::is_empty::<C>(&self.state.buffers[self.id.index()])
    }

    fn direct(&self) -> bool {
        L::MODEL == MemoryModel::Sc
    }

    fn lock_is_free(&self) -> bool {
        self.state.holder.is_none()
    }

    fn holds_lock(&self) -> bool {
        self.state.holder == Some(self.id)
    }
}

impl<L, C, S, D> World<D> for Acting<'_, '_, L, C, S>
where
    L: Layout,
    C: Content,
    S: DerefMut<Target = StateOf<L, C>>,
    D: Domain<Value = C::Value>,
{
    type Place = Address;
    type Cell = CellId;

    fn cell(&mut self, d: &mut D, place: &Address) -> Result<CellId, StuckIn<D>> {
        match place {
            Address::Cell(c) => Ok(*c),
            Address::Computed {
                base,
                length,
                index,
            } => {
                let length = *length;
                let index = index.evaluate(d, &mut |d: &mut D, r| self.leaf(d, r))?;
                match d.position(&index, length) {
                    Some(i) => Ok(CellId(base.0 + i)),
                    None => Err(Stuck::Fault(FaultKind::IndexOutOfRange { index, length })),
                }
            }
        }
    }

    fn cell_type(&self, cell: &CellId) -> Type {
        self.machine.instance.cell(*cell).ty
    }

    fn register_type(&self, register: RegisterId) -> Type {
        self.thread.registers[register.index()].ty
    }

    fn read(&mut self, _: &mut D, cell: CellId) -> Valued<D> {
        let pending = self.state.buffers[self.id.index()].newest_of(cell);
        Ok(pending.unwrap_or_else(|| self.state.memory[cell.index()].clone()))
    }

    fn write(&mut self, d: &mut D, cell: CellId, value: C::Value) -> Result<(), StuckIn<D>> {
        let at_once = if self.drained {
            Some((cell, value))
        } else {
            let me = self.id.index();
            let bounds = &self.machine.bounds[me];
            L::put::<C, D>(d, &mut self.state.buffers[me], bounds, (cell, value))?
        };
        if let Some((cell, value)) = at_once {
            self.state.memory[cell.index()] = value;
        }
        Ok(())
    }

    fn set(&mut self, register: RegisterId, value: C::Value) {
        self.state.registers[self.id.index()][register.index()] = value;
    }

    fn store_fence(&mut self) {
        let me = self.id.index();
        let bounds = &self.machine.bounds[me];
        L::store_fence::<C>(&mut self.state.buffers[me], bounds);
    }

    fn lock(&mut self) {
        self.state.holder = Some(self.id);
    }

    fn unlock(&mut self) {
        self.state.holder = None;
    }
}

//! The rules of a step, written once: for every machine, domain of values and naming of things.
//!
//! A step acts on a *world*: what one thread can see and change. The reference machine's world is a
//! state of an instance; a thread of a family of any number has a world of its own, with symbols for
//! what others may have done. For the acting thread t:
//!
//! - **assign, havoc, assume, assert, skip** touch only t's registers; an assumption is enabled only
//!   where it is true; a false assertion is a fault.
//! - **load** reads t's newest pending store of the cell if there is one, else memory; either way it
//!   needs the lock to be free or t's.
//! - **store** puts an entry into t's buffer. Under SC, and inside a drained atomic block, it writes
//!   memory at once, which needs the lock to be free or t's.
//! - **fence** is enabled when t's buffer is empty. A **store fence** is always enabled; later
//!   entries then drain after earlier ones (PSO; nothing to do elsewhere).
//! - **atomic begin** needs the lock free or t's and, unless the block is *buffered*, an empty buffer.
//!   From there to **atomic end** no other thread has an event, and nobody looks: properties see only
//!   states in which no thread is inside an atomic block. Entries of t may drain there.
//! - **lock** needs an empty buffer and a free lock, and takes it; **unlock** needs an empty buffer
//!   and t to hold it, and frees it. While t holds the lock no other thread loads and no other
//!   thread's store reaches memory; steps on registers and stores into buffers go on.
//!
//! An index outside its array, a value outside its range, a division by zero: the step is a fault
//! and its run ends there.

use crate::content::Full;
use crate::fault::FaultKind;
use wattle_model::graph::Action;
use wattle_model::{Domain, Expr, Fence, NoValue, RegisterId, Section, Type, Valued};

/// What the acting thread can see.
pub trait Sight<D: Domain> {
    /// What register expressions speak of.
    type Leaf;

    fn leaf(&self, d: &mut D, leaf: &Self::Leaf) -> Valued<D>;

    /// No store of the thread is pending.
    fn is_empty(&self) -> bool;

    /// Stores reach memory at once whatever the thread does (SC).
    fn direct(&self) -> bool;

    fn lock_is_free(&self) -> bool;

    fn holds_lock(&self) -> bool;

    /// Whether the thread may load and its stores may reach memory: nobody else holds the lock.
    fn may_access(&self) -> bool {
        self.lock_is_free() || self.holds_lock()
    }
}

/// What the acting thread can change.
pub trait World<D: Domain>: Sight<D> {
    /// What names memory in the program.
    type Place;
    /// One cell of it.
    type Cell;

    /// The cell that a place names now; naming none is a fault.
    fn cell(&mut self, d: &mut D, place: &Self::Place) -> Result<Self::Cell, StuckIn<D>>;

    fn cell_type(&self, cell: &Self::Cell) -> Type;

    fn register_type(&self, register: RegisterId) -> Type;

    /// The newest pending store of the thread to the cell if there is one, else memory.
    fn read(&mut self, d: &mut D, cell: Self::Cell) -> Valued<D>;

    /// Into memory at once, or into the buffer.
    fn write(&mut self, d: &mut D, cell: Self::Cell, value: D::Value) -> Result<(), StuckIn<D>>;

    fn set(&mut self, register: RegisterId, value: D::Value);

    fn store_fence(&mut self);

    fn lock(&mut self);

    fn unlock(&mut self);

    /// A value as the type stores it.
    fn admit(&mut self, d: &mut D, ty: Type, value: D::Value) -> Result<D::Value, StuckIn<D>> {
        let (lo, hi) = ty.bounds().unwrap_or((i64::MIN, i64::MAX));
        let admitted = ty.admit_in(d, value.clone())?;
        admitted.ok_or(Stuck::Fault(FaultKind::ValueOutOfRange { value, lo, hi }))
    }
}

/// Why a step has no next state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck<V, R> {
    Fault(FaultKind<V>),
    /// A bounded content is full.
    Full,
    /// The domain of values cannot say what the rules want.
    Refused(R),
}

pub type StuckIn<D> = Stuck<<D as Domain>::Value, <D as Domain>::Refusal>;

impl<V, R> From<NoValue<R>> for Stuck<V, R> {
    fn from(e: NoValue<R>) -> Self {
        match e {
            NoValue::Error(e) => Stuck::Fault(e.into()),
            NoValue::Refused(r) => Stuck::Refused(r),
        }
    }
}

impl<V, R> From<FaultKind<V>> for Stuck<V, R> {
    fn from(kind: FaultKind<V>) -> Self {
        Stuck::Fault(kind)
    }
}

impl<V, R> From<Full> for Stuck<V, R> {
    fn from(Full: Full) -> Self {
        Stuck::Full
    }
}

fn value<D: Domain, W: Sight<D>>(d: &mut D, world: &W, e: &Expr<W::Leaf>) -> Valued<D> {
    e.evaluate(d, &mut |d: &mut D, leaf| world.leaf(d, leaf))
}

/// Whether the thread can take a step with this action; also where it will turn out to be a fault.
pub fn enabled<D: Domain, W: Sight<D>, P>(
    d: &mut D,
    world: &W,
    action: &Action<W::Leaf, P>,
) -> bool {
    match action {
        // An assumption without a value is a fault, not a blocked step.
        Action::Assume(e) => match value(d, world, e) {
            Ok(v) => d.truth(&v),
            Err(_) => true,
        },
        Action::Load { .. } => world.may_access(),
        Action::Store { .. } if world.direct() => world.may_access(),
        Action::Fence(Fence::Full) => world.is_empty(),
        Action::AtomicBegin(Section::Drained) => world.is_empty() && world.may_access(),
        Action::AtomicBegin(Section::Buffered) => world.may_access(),
        Action::Lock => world.is_empty() && world.lock_is_free(),
        Action::Unlock => world.is_empty() && world.holds_lock(),
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assert { .. }
        | Action::Store { .. }
        | Action::Fence(Fence::Store)
        | Action::AtomicEnd => true,
    }
}

/// What an enabled action does. `chosen` is the value of a nondeterministic assignment.
pub fn perform<D: Domain, W: World<D>>(
    d: &mut D,
    world: &mut W,
    action: &Action<W::Leaf, W::Place>,
    chosen: Option<D::Value>,
) -> Result<(), StuckIn<D>> {
    match action {
        Action::Skip | Action::AtomicBegin(_) | Action::AtomicEnd | Action::Fence(Fence::Full) => {}
        Action::Fence(Fence::Store) => world.store_fence(),
        Action::Assign { register, value: e } => {
            let v = value(d, world, e)?;
            set(d, world, *register, v)?;
        }
        Action::Havoc { register, .. } => {
            let v = chosen.unwrap_or_else(|| d.constant(0));
            set(d, world, *register, v)?;
        }
        Action::Assume(e) => {
            value(d, world, e)?;
        }
        Action::Assert { condition, message } => {
            let holds = value(d, world, condition)?;
            if !d.truth(&holds) {
                let message = message.clone();
                return Err(Stuck::Fault(FaultKind::Assertion { message }));
            }
        }
        Action::Load { register, place } => {
            let cell = world.cell(d, place)?;
            let v = world.read(d, cell)?;
            set(d, world, *register, v)?;
        }
        Action::Store { place, value: e } => {
            let cell = world.cell(d, place)?;
            let v = value(d, world, e)?;
            let ty = world.cell_type(&cell);
            let v = world.admit(d, ty, v)?;
            world.write(d, cell, v)?;
        }
        Action::Lock => world.lock(),
        Action::Unlock => world.unlock(),
    }
    Ok(())
}

fn set<D: Domain, W: World<D>>(
    d: &mut D,
    world: &mut W,
    register: RegisterId,
    v: D::Value,
) -> Result<(), StuckIn<D>> {
    let ty = world.register_type(register);
    let v = world.admit(d, ty, v)?;
    world.set(register, v);
    Ok(())
}

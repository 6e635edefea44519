//! What the reduced system is made of: shapes, variables, moves.

use wattle_logic::{Formula, Term, Var};
use wattle_model::{CellId, LocationId, RegisterId, StepId, ThreadId};

/// The finite part of a state: where the threads are, what is pending, who holds the lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    pub locations: Vec<LocationId>,
    pub pending: Vec<Pending>,
    pub holder: Option<ThreadId>,
}

/// One thread's buffer without its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pending {
    pub slots: Vec<Slot>,
    /// A store fence came after the newest entry (PSO).
    pub fenced: bool,
}

/// Which cell an entry belongs to, and the epoch of its store (0 under TSO in exact buffers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    pub epoch: u32,
    pub cell: CellId,
    /// Classes of older stores to the cell that may be pending before this one ([`blur`]).
    pub before: u32,
}

/// What a variable of the system stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    Register(ThreadId, RegisterId),
    Cell(CellId),
    /// The value a nondeterministic assignment chooses, within one move.
    Choice,
    /// The value of a buffer's entry, by its position.
    Entry(ThreadId, usize),
}

/// A guarded assignment of all `updates` at once.
#[derive(Clone, Debug)]
pub struct Move {
    pub thread: ThreadId,
    pub cause: Cause,
    pub guard: Formula,
    pub updates: Vec<(Var, Term)>,
    pub next: Next,
    /// Which case of its step this is; ways to make a buffer small are not told apart.
    pub case: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A step; whether it chooses a value.
    Step(StepId, bool),
    /// The entry at this position reaches its cell.
    Drain(usize, CellId),
}

#[derive(Clone, Debug)]
pub enum Next {
    To(Shape),
    /// The step is a fault.
    Fault,
    /// The bound of the buffer is too small to follow this.
    Overflow,
}

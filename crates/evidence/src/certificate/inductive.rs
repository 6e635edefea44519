//! The certificate of `cegar`: for every control state a formula over registers, cells and the
//! values of pending stores that no event leads out of.
//!
//! A control state says where the threads are, which cells each buffer holds entries of (oldest
//! first; under PSO sorted by epoch and cell) and who holds the lock. Its formula is a disjunction of
//! cubes, each a conjunction of predicates or their negations, and beside it clauses. Control states that are not listed
//! cannot be reached. Ranges hold of a cell's and a register's values everywhere, pending stores
//! included.

use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;
use wattle_model::{CellId, LocationId, RegisterId, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inductive {
    pub model: MemoryModel,
    /// Of registers and cells: the least and the greatest value.
    #[serde(default)]
    pub ranges: Vec<(Quantity, Option<i64>, Option<i64>)>,
    /// How buffers were kept small, if they were.
    #[serde(default)]
    pub blur: Option<Blur>,
    /// Threads of whose buffers only views are known: their pending stores are not listed.
    #[serde(default)]
    pub views: Vec<ThreadId>,
    pub predicates: Vec<Predicate>,
    /// Formulas about all threads; or there are parts.
    #[serde(default)]
    pub invariants: Vec<Invariant>,
    #[serde(default)]
    pub parts: Vec<Part>,
}

impl Inductive {
    /// How many control states have a formula, in all parts.
    pub fn control_states(&self) -> usize {
        let parts = self.parts.iter().map(|p| p.invariants.len());
        self.invariants.len() + parts.sum::<usize>()
    }
}

/// Formulas about some threads, whatever the others do: in control states the others are where they
/// begin, and no predicate speaks of them or of a cell that they may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub about: Vec<ThreadId>,
    pub invariants: Vec<Invariant>,
}

/// Threads whose buffers have no bound keep `keep + 1` epochs apart, and `keep + 1` stores of a cell in
/// one epoch (one under TSO, where every store begins an epoch). Of others to the same cell only the
/// classes of their values are known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blur {
    /// The newest stores are the exact ones, else the oldest.
    pub newest: bool,
    /// Per thread; nothing if its buffer is exact.
    pub keep: Vec<Option<u32>>,
    /// Per cell: where a new class of values begins, ascending.
    pub cuts: Vec<Vec<i64>>,
}

/// `sum + constant` compared with zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicate {
    pub sum: Vec<(i64, Quantity)>,
    pub constant: i64,
    pub is: Comparison,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    Register(ThreadId, RegisterId),
    Cell(CellId),
    /// The value of the thread's pending store at this position.
    Entry(ThreadId, u32),
    /// The cell as it would be after some of the thread's pending stores.
    View(ThreadId, View, CellId),
}

/// After which of a thread's pending stores (TSO), or of those to the cell (PSO). What a formula says holds
/// of any number of the oldest as `Lower`, and as `Upper` of any that is no smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    Lower,
    Upper,
    /// All of them: what the thread itself reads.
    Newest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    AtMostZero,
    Zero,
    MultipleOf(i64),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invariant {
    pub control: ControlState,
    /// Literals: predicate n is `n + 1`, its negation `-(n + 1)`.
    pub cubes: Vec<Vec<i32>>,
    /// Besides, of each of these one literal holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<Vec<i32>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ControlState {
    pub locations: Vec<LocationId>,
    pub buffers: Vec<PendingStores>,
    pub holder: Option<ThreadId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PendingStores {
    /// Epoch (always 0 under TSO in exact buffers) and cell of each entry.
    pub entries: Vec<(u32, CellId)>,
    /// For each entry the classes, as bits, of stores to its cell that may be pending right before
    /// it; nothing where all are exact.
    #[serde(default)]
    pub before: Vec<u32>,
    /// A store fence came after the newest entry (PSO).
    pub fenced: bool,
}

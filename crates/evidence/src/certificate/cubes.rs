//! Any number of threads, backward: what must not be reached.
//!
//! **Which states it stands for.** Those that no cube describes. A cube describes a state if there are
//! different threads for its names such that every condition holds; where it speaks of open reads, the
//! state is described if the reads, done from now on in some order that the cube allows, would see the
//! values wanted: with empty buffers that is memory as it is; with stores pending, what an older store
//! of the reader supplies or what memory has when the read is done. A cube with a pending store
//! describes a run up to where the store is still to be made.

use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;

/// Conditions under a few different threads. What they describe contains the bad states, no initial
/// state, and with every state its predecessors; so the negation of them all is an inductive
/// invariant. Under TSO and PSO a condition may speak of *open reads*: reads of the future whose value
/// some older store, or initial memory, will supply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cubes {
    pub model: MemoryModel,
    /// The names of the array-based system's cells; below they are meant by their numbers.
    pub cells: Vec<String>,
    pub cubes: Vec<Cube>,
}

/// Some different threads, named 0, 1, …, of which all of this is true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cube {
    /// For each thread the constant it is (1 for `#1`), or 0 if it is none of the system's constants.
    pub threads: Vec<u16>,
    /// The first thread comes before the second.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ordered: Vec<(u8, u8)>,
    /// The value is one of these: numbers of constructors (false is 0), or threads of the cube
    /// ([`OTHER`] for all others and nobody).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub among: Vec<(Value, Vec<u8>)>,
    /// The values are equal, or different.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub same: Vec<(Value, Value, bool)>,
    /// Linear constraints on numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<OpenReads>,
    /// Open reads that every older read of a thread comes before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_reads_of: Vec<Vec<u8>>,
    /// Open reads that every older store of a thread reaches memory before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_stores_of: Vec<Vec<u8>>,
    /// Open reads that every older store of a cell reaches memory before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_stores_to: Vec<(CellOf, Vec<u8>)>,
    /// The same for an array's elements of threads that are not in the cube.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_stores_elsewhere: Vec<(u16, Vec<u8>)>,
    /// Open reads that every older read of any thread comes before: those of the bad state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<u8>,
    /// Stores that have reached memory already (going backward) and whose steps are yet to be met;
    /// those of one thread and cell newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingStore>,
}

/// No thread of the cube.
pub const OTHER: u8 = 127;

/// A scalar, or an array's element named by threads of the cube.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellOf {
    pub cell: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<u8>,
}

/// Something that has a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    Cell(CellOf),
    /// A part of open reads: the number of the reads, the number of the part.
    Read(u8, u8),
    /// A pending store, by its number.
    Pending(u8),
}

/// Σ coefficient · value + constant, compared with 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number {
    pub terms: Vec<(i64, Value)>,
    pub constant: i64,
    pub relation: Relation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "<>")]
    Different,
}

/// Reads of one moment that wait for their values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenReads {
    pub parts: Vec<ReadPart>,
    /// The open reads that are not earlier than these.
    pub before: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadPart {
    /// None: memory itself is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<u8>,
    pub place: CellOf,
    /// The value comes from a store of the reader, not from another thread or initial memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStore {
    pub thread: u8,
    pub place: CellOf,
    /// The next step of the thread (going backward) that stores to the place is the one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub newest: bool,
}

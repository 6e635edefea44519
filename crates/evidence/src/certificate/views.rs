//! Any number of threads, forward: what two threads may look like.
//!
//! **Which states it stands for.** Take a state of an instance with n ≥ 2 threads, and two of them, x
//! and y. Keep their cells, their buffers, the scalars and the elements for both; forget all else. Of
//! the other threads only those remain that something kept names, and only as positions: which are
//! equal, and where the system compares threads by order, which come first. Of numbers too only their
//! order remains, among each other and with the anchors. What the rules of `forget` say becomes *any
//! value*, and a row of equal entries of a buffer one that is repeated. The state is one of the set if
//! for every x and y what is left is one of the views. So
//!
//! - every two threads of every initial state look like a view;
//! - whatever one of the two does, or a third thread z, alone or looking at others, the two look like a
//!   view afterwards, if each two of x, y and z did before;
//! - no state of the set is bad: of k threads that satisfy a bad condition two are the x and y of some
//!   view, and the others may be threads that the view names, or any others, before, between or behind
//!   those in the order, with anything in their cells and stores pending.
//!
//! An instance with one thread has no two; its states are gone through one by one.

use super::as_base64;
use super::closed_states::Corrupt;
use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;

/// Views of two threads. Every state with two threads or more looks, from any two of its threads, like
/// one of them; other threads appear only where cells of the two name them. Of threads and numbers a
/// view keeps positions: only their order means something (of threads only which are equal, where the
/// system does not compare threads by order).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Views {
    pub model: MemoryModel,
    /// The names of the array-based system's cells; below they are meant by their numbers.
    pub cells: Vec<String>,
    /// Constants that have a position in every view, in order.
    pub anchors: Vec<i64>,
    pub forget: Vec<Forget>,
    /// Cells for each thread of which a view has the elements of all threads that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<u16>,
    /// If there, two more scalars come last in every view: the first and the last thread, in the order of
    /// threads, whose element of the cell has one of the values in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
    /// A thread that a step of another one looks at is always one of those a step is checked with; else
    /// what is read of it may be anything.
    pub precise: bool,
    pub count: u64,
    /// For each view its length in two bytes, least first, and its bytes. These are: the positions of
    /// the two threads and of the anchors; the scalars; the elements of the first thread, those of the
    /// second; of each cell of two threads the elements 11, 12, 21, 22; and under TSO and PSO for each
    /// thread the number of entries of its buffer and for each, oldest first, twice the number of
    /// stores (plus 1: one or more such entries in a row) and the stores: cell, two threads, value.
    /// Where cells are kept, last the number of elements of threads that are only named, and for each
    /// the cell, the thread and the value.
    /// 255 is any value, 254 no thread; an entry without stores is a store fence.
    #[serde(with = "as_base64")]
    pub views: Vec<u8>,
}

/// A cell for each thread and some of its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    pub cell: u16,
    pub values: Vec<u8>,
}

/// Where a cell has one of the values, or was forgotten by a rule before, another one of the same thread
/// is forgotten: it is 255, any value. Nothing else is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forget {
    pub when: u16,
    pub values: Vec<u8>,
    pub cell: u16,
}

impl Views {
    pub fn push(&mut self, view: &[u8]) {
        self.count += 1;
        self.views.extend((view.len() as u16).to_le_bytes());
        self.views.extend(view);
    }

    pub fn each(&self) -> Result<Vec<&[u8]>, Corrupt> {
        let mut out = Vec::new();
        let mut rest = &self.views[..];
        while let [low, high, tail @ ..] = rest {
            let length = usize::from(u16::from_le_bytes([*low, *high]));
            let Some(view) = tail.get(..length) else {
                return Err(Corrupt("a view is cut off"));
            };
            out.push(view);
            rest = &tail[length..];
        }
        match rest.is_empty() && out.len() as u64 == self.count {
            true => Ok(out),
            false => Err(Corrupt("the views are not as many as it says")),
        }
    }
}

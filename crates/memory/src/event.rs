//! Runs as lists of events: what traces are made of.

use serde::{Deserialize, Serialize};
use wattle_model::{CellId, StepId, ThreadId};

/// A step taken, or a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Step {
        thread: ThreadId,
        step: StepId,
        /// The value a nondeterministic assignment chose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<i64>,
    },
    /// An entry of the thread's buffer reaches memory.
    Drain {
        thread: ThreadId,
        cell: CellId,
        value: i64,
        /// Abstract contents only: the entry stays, because it stands for several stores.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep: bool,
    },
}

impl Event {
    pub fn thread(&self) -> ThreadId {
        match *self {
            Event::Step { thread, .. } | Event::Drain { thread, .. } => thread,
        }
    }
}

/// Where a run begins: one value for every cell and every register, fixing what the program leaves
/// open (`= any`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Start<V = i64> {
    pub memory: Vec<V>,
    pub registers: Vec<Vec<V>>,
}

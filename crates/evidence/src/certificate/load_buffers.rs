//! The basis of the `exact` engine: configurations with load buffers from which, and only from what
//! they cover, a bad state can be reached under TSO.
//!
//! A configuration lists some threads and leaves the others open. It covers every configuration with
//! the same memory (where given) that has, for each thread listed, another thread of the same role in
//! the same local state whose load buffer has the same own messages in the same order (values where
//! given) and, between them, at least these sent messages in this order. Own messages that a newer
//! own message of the same cell hides do not count.
//! The auditor checks that no initial configuration is covered, that every bad one is, and that
//! every predecessor of what is covered is covered.
//!
//! A role is a thread of the program, or a family of any number of threads that nothing tells apart.
//! Under SC all buffers are empty.

use serde::{Deserialize, Serialize};
use wattle_memory::Fault;
use wattle_model::{CellId, LocationId, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBuffers {
    pub basis: Vec<LoadBufferConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBufferConfig {
    pub threads: Vec<LoadBufferThread>,
    pub memory: Vec<Option<i64>>,
    /// Nobody who is not listed holds the lock.
    pub others_unlocked: bool,
    /// Memory is that of the bad state; stores from here on are still pending there.
    pub after_snapshot: bool,
}

/// One thread listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBufferThread {
    /// The first thread that plays its role.
    pub role: ThreadId,
    /// Always a known one.
    pub local: LocalState,
    /// Oldest message first.
    pub buffer: Vec<LoadBufferMessage>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalState {
    At {
        location: LocationId,
        /// Registers that no later step and no property reads are 0.
        registers: Vec<i64>,
        holds: bool,
        fault: Option<Fault>,
    },
    WithoutLock,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBufferMessage {
    Sent { cell: CellId, value: i64 },
    Own { cell: CellId, value: Option<i64> },
}

//! The basis of the `exact` engine: configurations with load buffers from which, and only from what
//! they cover, a bad state can be reached under TSO.
//!
//! A configuration covers every configuration with the same local states (where given), the same
//! memory (where given), and for each thread a load buffer that has the same own messages in the
//! same order (values where given) and, between them, at least these sent messages in this order.
//! Own messages that a newer own message of the same cell hides do not count.
//! The auditor checks that no initial configuration is covered, that every bad one is, and that
//! every predecessor of what is covered is covered.

use serde::{Deserialize, Serialize};
use wattle_memory::Fault;
use wattle_model::{CellId, LocationId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBuffers {
    pub basis: Vec<LoadBufferConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBufferConfig {
    pub locals: Vec<LocalState>,
    pub memory: Vec<Option<i64>>,
    /// Oldest message first.
    pub buffers: Vec<Vec<LoadBufferMessage>>,
    /// Memory is that of the bad state; stores from here on are still pending there.
    pub after_snapshot: bool,
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

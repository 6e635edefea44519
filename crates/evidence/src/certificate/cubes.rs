//! Any number of threads.

use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;

/// Conditions under a few different threads. What they describe contains the bad states, no initial
/// state, and with every state its predecessors; open reads stand for values that some older store,
/// or initial memory, will supply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cubes {
    pub model: MemoryModel,
    /// One line each, as a person reads them.
    pub cubes: Vec<String>,
}

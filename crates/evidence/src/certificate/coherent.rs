//! The `coherent` engine's certificate: with buffers that remember this much, the abstract machine
//! reaches nothing bad. The auditor explores that machine (the reference machine with these contents)
//! from scratch; the set of states need not be written down.

use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coherent {
    pub model: MemoryModel,
    /// The newest k stores are kept in order, else the oldest k.
    pub newest: bool,
    /// Per thread: k of its buffer (TSO), and of each cell's buffer (PSO).
    pub bounds: Vec<(usize, Vec<usize>)>,
}

//! The certificate of searches with buffers that forget: with buffers that remember this much, the
//! abstract machine reaches nothing bad. The auditor explores that machine (the reference machine with
//! these contents) from scratch; the set of states need not be written down.

use serde::{Deserialize, Serialize};
use wattle_memory::{Contents, Keeps, MemoryModel};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coherent {
    pub model: MemoryModel,
    /// Which stores are kept in order.
    pub keeps: Keeps,
    /// Per thread: k of its buffer (TSO), and of each cell's buffer (PSO).
    pub bounds: Vec<(usize, Vec<usize>)>,
}

impl Coherent {
    pub fn new(model: MemoryModel, contents: Contents) -> Self {
        let bounds = contents.bounds.into_iter();
        Coherent {
            model,
            keeps: contents.keeps,
            bounds: bounds.map(|b| (b.thread, b.cells)).collect(),
        }
    }
}

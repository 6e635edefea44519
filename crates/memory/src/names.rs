//! What memory models are called, and what engines ask of sizes.

use crate::{Bounds, MemoryModel};
use std::fmt;

impl MemoryModel {
    pub const ALL: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

    /// `sc`, `tso` or `pso`, as on the command line.
    pub fn keyword(self) -> &'static str {
        match self {
            MemoryModel::Sc => "sc",
            MemoryModel::Tso => "tso",
            MemoryModel::Pso => "pso",
        }
    }
}

impl fmt::Display for MemoryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryModel::Sc => "SC",
            MemoryModel::Tso => "TSO",
            MemoryModel::Pso => "PSO",
        })
    }
}

impl Bounds<usize> {
    /// The smallest and the largest bound of a buffer.
    pub fn extremes(&self, model: MemoryModel) -> (usize, usize) {
        let buffers = match model {
            MemoryModel::Pso if !self.cells.is_empty() => &self.cells[..],
            MemoryModel::Sc | MemoryModel::Tso | MemoryModel::Pso => {
                std::slice::from_ref(&self.thread)
            }
        };
        let least = buffers.iter().min().copied();
        let most = buffers.iter().max().copied();
        (least.unwrap_or(0), most.unwrap_or(0))
    }
}

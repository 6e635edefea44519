//! A set of runs that is closed under reversing races, and so stands for every run of the program.
//!
//! A run is a list of moves. A *process* is a thread or a buffer: threads by their number, then, for each
//! thread in order that stores outside drained atomic blocks, its buffer under TSO, and under PSO its
//! buffer of each cell it may store to. A move of a buffer is a drain. A move of a thread is one step that
//! others may notice, or a whole atomic block, with the local steps after it: steps on registers, stores
//! into the buffer, store fences, fences where nothing was stored since the last, loads of a cell no other
//! thread writes (and, without buffers, stores to a cell no other thread touches), as long as there is one
//! way to go on and nobody looks at what they change. Where there are several ways on, the thread's next
//! move is to choose one, counted in the order of steps and values; local steps follow as well. Before the
//! first move every thread has taken its local steps.
//!
//! Lock regions in which nothing waits, and of which the question sees nothing, are atomic blocks
//! (`Instance::with_regions_as_blocks`), unless deadlocks are asked for.
//!
//! For each initial state, in the order in which the reference machine lists them, the runs are given as
//! bytes, in the order of a walk through their tree: how many moves a run has in common with the one
//! before, how many more it has, and these; numbers of seven bits a byte, the least first, the high bit for
//! *more follows*. A move is its process doubled; one more says that the number of its choice follows (the
//! first otherwise).
//!
//! What it means, and why it is enough, is said in the auditor.

use super::as_base64;
use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traces {
    pub model: MemoryModel,
    /// One for each initial state.
    pub starts: Vec<Runs>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    pub count: u64,
    #[serde(with = "as_base64")]
    pub bytes: Vec<u8>,
}

impl Traces {
    /// How many runs there are.
    pub fn len(&self) -> u64 {
        self.starts.iter().map(|r| r.count).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

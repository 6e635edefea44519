//! A search that saw every reachable state but did not write them down, because they were too many.
//! It names nothing a checker could look at: the auditor explores everything anew with the
//! reference machine, which takes long, and so it is only done when asked for.

use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub model: MemoryModel,
    /// States the search stored (its reductions leave some out).
    pub states: u64,
    /// Why they are not listed.
    pub why: String,
}

//! A search that saw every reachable state and found nothing bad. It names nothing but that: the
//! auditor explores the states anew by the rules of the reference machine.

use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;
use wattle_model::{LocationId, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explored {
    pub model: MemoryModel,
    /// States the search stored (its reductions leave some out).
    pub states: u64,
    /// The search tried to leave out events and it was not worth it: the auditor need not try. No part of the proof.
    #[serde(default)]
    pub takes_all: bool,
    /// For a warning, no part of the proof.
    #[serde(skip)]
    pub unreached: Option<Unreached>,
}

impl Explored {
    pub fn new(model: MemoryModel, states: u64) -> Self {
        Explored {
            model,
            states,
            takes_all: false,
            unreached: None,
        }
    }
}

/// Of the places the question asks about, those where the search saw nobody.
pub type Unreached = Vec<(ThreadId, Vec<LocationId>)>;

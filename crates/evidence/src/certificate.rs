//! Why a target cannot be reached, in a form the auditor can check. Each kind of certificate has a
//! file of its own here and a checker of its own in the auditor.

use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Certificate {
    /// A set of states that contains the initial ones and is closed under every event.
    ClosedStates(ClosedStates),
}

/// States are those of the exact machine of `model`, one line of small numbers each, in a fixed
/// order; the format is described at the function that reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedStates {
    pub model: MemoryModel,
    pub states: Vec<Vec<i64>>,
}

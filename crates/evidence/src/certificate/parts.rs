//! Independent parts: what threads do that share nothing written is looked at apart.

use super::Certificate;
use serde::{Deserialize, Serialize};
use wattle_model::ThreadId;

/// Threads that have nothing to do with each other, and why each part alone stays clear of what would be
/// bad.
///
/// The target is true in certain ways, each a list of conditions (`Expr::ways`). For every way one part is
/// named that cannot make true, alone, those of its conditions that only look at this part. Every part's
/// proof is about the program in which the other threads do nothing, and about all ways that the part
/// excludes; without any, about faults and deadlocks only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parts {
    pub parts: Vec<IndependentPart>,
    /// For each way the number of the part that excludes it.
    pub excluded_by: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndependentPart {
    pub threads: Vec<ThreadId>,
    /// Nothing where nothing is to be proved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub proof: Option<Box<Certificate>>,
}

//! The basis of the `multiset` engine: configurations with multiset buffers from which, and only
//! from what they cover, a bad state can be reached when buffers forget the order of stores.
//!
//! A configuration covers every configuration with the same local states (where given), the same
//! memory (where given), stores pending of exactly the same cells with the same last-added values
//! (where given), and besides those at least so many of each value.

use super::LocalState;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Multisets {
    pub basis: Vec<MultisetConfig>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultisetConfig {
    pub locals: Vec<LocalState>,
    pub memory: Vec<Option<i64>>,
    /// Per thread and cell; `None` where nothing is pending.
    pub bags: Vec<Vec<Option<BagOf>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BagOf {
    pub last: Option<i64>,
    /// Values pending besides the last-added one, and how often.
    pub others: Vec<(i64, u32)>,
}

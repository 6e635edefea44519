//! The certificate of `counting`: where threads may be, and how many of them, for any number of threads
//! that nothing tells apart.
//!
//! The program is read as [`wattle_model::Crowd`] makes it: one thread of the instance stands for all of
//! its role. A *place* is a location, which stores are pending there and what is known of registers and
//! pending values; a thread is at the first place that fits it. The certificate stands for the states, for
//! every number of threads, in which every thread is at a place and every fact holds of memory and of the
//! numbers of threads at the places. States in which a thread is inside an atomic block are those that its
//! steps reach from there.

use super::{Comparison, PendingStores, Predicate};
use serde::{Deserialize, Serialize};
use wattle_memory::MemoryModel;
use wattle_model::{CellId, LocationId, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    pub model: MemoryModel,
    pub places: Vec<Place>,
    /// All of them hold.
    pub facts: Vec<Fact>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The thread of the instance that stands for those who may be here.
    pub role: ThreadId,
    pub location: LocationId,
    pub pending: PendingStores,
    /// Conditions on the thread's registers and on the values of its pending stores.
    pub when: Vec<Predicate>,
}

/// One of these holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact(pub Vec<Sum>);

/// `sum + constant` compared with zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub sum: Vec<(i64, Counted)>,
    pub constant: i64,
    pub is: Comparison,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// The value in memory.
    Cell(CellId),
    /// How many threads are at the place.
    Place(u32),
}

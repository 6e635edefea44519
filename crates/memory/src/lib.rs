//! What a step is.
//!
//! Every semantics is one point in a grid: a [`Layout`] says who owns a buffer (nobody, a thread, a
//! thread and a cell), a [`Content`] says what a buffer remembers. The [`rules`] of a step are written
//! once and generic in the domain of values; the [`reference`] machine runs them, for every point of
//! the grid: these two are the specification. The [`compiled`] machine has the same grid on packed
//! states of numbers.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

pub mod automaton;
pub mod compiled;
pub mod content;
pub mod event;
pub mod fault;
pub mod layout;
mod names;
pub mod reference;
pub mod rules;

pub use content::{
    AtMostK, Content, ContentKind, Contents, Exact, Keeps, Multiset, NewestK, OldestK, Set,
};
pub use event::{Event, Start};
pub use fault::{Fault, FaultKind};
pub use layout::{Bounds, Layout, Newest, Pso, Sc, Tso};

use serde::{Deserialize, Serialize};

/// The memory models Wattle knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryModel {
    /// Sequential consistency: stores reach memory at once.
    Sc,
    /// Total store order: one FIFO buffer per thread.
    Tso,
    /// Partial store order: one FIFO buffer per thread and cell.
    Pso,
}

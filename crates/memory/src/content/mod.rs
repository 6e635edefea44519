//! What a buffer remembers: one axis of the grid.
//!
//! A content is asked for four things: take an entry, tell the newest value of a cell, list the
//! drains that are possible, and tell whether it is empty. Exact contents answer exactly; an
//! abstract content may offer more drains than any exact buffer it stands for, never fewer.

mod exact;
mod keeps;
mod kind;
mod multiset;
mod ordered;
mod set;

pub use exact::Exact;
pub use keeps::Keeps;
pub use kind::{ContentKind, Contents, EXACT};
pub use multiset::Multiset;
pub use ordered::{AtMostK, NewestK, OldestK};
pub use set::Set;

use std::fmt::Debug;
use std::hash::Hash;
use wattle_model::{CellId, Domain};

/// A pending store.
pub type Entry<V = i64> = (CellId, V);

/// One way an entry can leave the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained<B, V = i64> {
    pub entry: Entry<V>,
    /// The entry stays as well, because it stands for several stores (abstract contents only).
    pub keep: bool,
    pub rest: B,
}

/// The content cannot take another entry; the machine reports it instead of dropping a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

pub trait Content: Clone + Debug + Eq + Ord + Hash {
    /// What an empty buffer of this kind is made from (a bound k, or nothing).
    type Bound: Copy + Debug;
    /// What is stored.
    type Value: Clone + Debug + Eq + Ord + Hash;

    fn empty(bound: Self::Bound) -> Self;

    fn put<D: Domain<Value = Self::Value>>(
        &mut self,
        d: &mut D,
        bound: Self::Bound,
        entry: Entry<Self::Value>,
    ) -> Result<(), Full>;

    /// The value the owner reads for `cell`: its newest pending store, if there is one.
    fn newest(&self, cell: CellId) -> Option<Self::Value>;

    /// Every way an entry can leave, in a fixed order.
    fn drains(&self) -> Vec<Drained<Self, Self::Value>>;

    fn is_empty(&self) -> bool;

    /// A store fence, for contents that keep the cells of one buffer apart.
    fn store_fence(&mut self) {}

    /// How many epochs of stores a PSO buffer of this kind keeps apart. Contents that must stay
    /// finite forget the order beyond this: the newest epochs are merged, which only adds drains.
    fn epochs(bound: Self::Bound) -> usize {
        let _ = bound;
        usize::MAX
    }

    /// How many entries of a cell a PSO buffer of this kind takes, all epochs together.
    fn room(bound: Self::Bound) -> usize {
        let _ = bound;
        usize::MAX
    }

    /// The entries known to be pending, oldest first where order is known; for display.
    fn entries(&self) -> Vec<Entry<Self::Value>>;
}

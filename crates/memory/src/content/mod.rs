//! What a buffer remembers: one axis of the grid.
//!
//! A content is asked for four things: take an entry, tell the newest value of a cell, list the
//! drains that are possible, and tell whether it is empty. Exact contents answer exactly; an
//! abstract content may offer more drains than any exact buffer it stands for, never fewer.

mod kind;
mod multiset;
mod ordered;
mod set;

pub use kind::{ContentKind, Contents, EXACT, Keeps};
pub use multiset::Multiset;
pub use ordered::{AtMostK, NewestK, OldestK};
pub use set::Set;

use std::fmt::Debug;
use std::hash::Hash;
use wattle_model::CellId;

/// A pending store.
pub type Entry = (CellId, i64);

/// One way an entry can leave the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained<B> {
    pub entry: Entry,
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

    fn empty(bound: Self::Bound) -> Self;

    fn put(&mut self, bound: Self::Bound, entry: Entry) -> Result<(), Full>;

    /// The value the owner reads for `cell`: its newest pending store, if there is one.
    fn newest(&self, cell: CellId) -> Option<i64>;

    /// Every way an entry can leave, in a fixed order.
    fn drains(&self) -> Vec<Drained<Self>>;

    fn is_empty(&self) -> bool;

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
    fn entries(&self) -> Vec<Entry>;
}

/// Everything, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exact(pub Vec<Entry>);

impl Content for Exact {
    type Bound = ();

    fn empty((): ()) -> Self {
        Exact(Vec::new())
    }

    fn put(&mut self, (): (), entry: Entry) -> Result<(), Full> {
        self.0.push(entry);
        Ok(())
    }

    fn newest(&self, cell: CellId) -> Option<i64> {
        let newest = self.0.iter().rev().find(|(c, _)| *c == cell);
        newest.map(|(_, value)| *value)
    }

    fn drains(&self) -> Vec<Drained<Self>> {
        let oldest = self.0.first().map(|entry| Drained {
            entry: *entry,
            keep: false,
            rest: Exact(self.0[1..].to_vec()),
        });
        oldest.into_iter().collect()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn entries(&self) -> Vec<Entry> {
        self.0.clone()
    }
}

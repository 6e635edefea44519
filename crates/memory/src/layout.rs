//! Who owns a buffer: the other axis of the grid.

mod models;

pub use models::{Epochs, Pso, Sc, Tso};

use crate::MemoryModel;
use crate::content::{Content, Drained, Entry, Full};
use std::fmt::Debug;
use std::hash::Hash;
use wattle_model::{CellId, Domain};

/// The bounds of one thread's buffers: one for a buffer of the whole thread, one for each cell's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds<B> {
    pub thread: B,
    pub cells: Vec<B>,
}

impl<B: Copy> Bounds<B> {
    /// The same bound everywhere.
    pub fn uniform(bound: B, cells: usize) -> Self {
        Bounds {
            thread: bound,
            cells: vec![bound; cells],
        }
    }
}

/// What loads find of a thread's pending stores.
pub trait Newest<V> {
    /// The newest pending store of the cell.
    fn newest_of(&self, cell: CellId) -> Option<V>;
}

/// Nothing is pending.
impl<V> Newest<V> for () {
    fn newest_of(&self, _: CellId) -> Option<V> {
        None
    }
}

impl<C: Content> Newest<C::Value> for C {
    fn newest_of(&self, cell: CellId) -> Option<C::Value> {
        self.newest(cell)
    }
}

/// Entries in an order in which those of one cell are, oldest first.
impl<V: Clone> Newest<V> for Vec<Entry<V>> {
    fn newest_of(&self, cell: CellId) -> Option<V> {
        let newest = self.iter().rev().find(|(c, _)| *c == cell);
        newest.map(|(_, value)| value.clone())
    }
}

/// All pending stores of one thread.
pub trait Layout: 'static {
    const MODEL: MemoryModel;

    type Buffer<C: Content>: Clone + Debug + Eq + Ord + Hash + Newest<C::Value>;

    fn empty<C: Content>(bounds: &Bounds<C::Bound>) -> Self::Buffer<C>;

    /// Takes the entry, or hands it back if stores of this model reach memory at once.
    fn put<C: Content, D: Domain<Value = C::Value>>(
        d: &mut D,
        buffer: &mut Self::Buffer<C>,
        bounds: &Bounds<C::Bound>,
        entry: Entry<C::Value>,
    ) -> Result<Option<Entry<C::Value>>, Full>;

    /// Later stores must reach memory after those pending now.
    fn store_fence<C: Content>(buffer: &mut Self::Buffer<C>, bounds: &Bounds<C::Bound>);

    fn drains<C: Content>(buffer: &Self::Buffer<C>) -> Vec<Drained<Self::Buffer<C>, C::Value>>;

    fn is_empty<C: Content>(buffer: &Self::Buffer<C>) -> bool;

    fn entries<C: Content>(buffer: &Self::Buffer<C>) -> Vec<Entry<C::Value>>;
}

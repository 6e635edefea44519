//! Who owns a buffer: the other axis of the grid.

use crate::MemoryModel;
use crate::content::{Content, Drained, Entry, Full};
use std::collections::BTreeMap;
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

/// No buffers.
#[derive(Clone, Copy, Debug)]
pub struct Sc;

impl Layout for Sc {
    const MODEL: MemoryModel = MemoryModel::Sc;

    type Buffer<C: Content> = ();

    fn empty<C: Content>(_: &Bounds<C::Bound>) {}

    fn put<C: Content, D: Domain<Value = C::Value>>(
        _: &mut D,
        (): &mut (),
        _: &Bounds<C::Bound>,
        entry: Entry<C::Value>,
    ) -> Result<Option<Entry<C::Value>>, Full> {
        Ok(Some(entry))
    }

    fn store_fence<C: Content>((): &mut (), _: &Bounds<C::Bound>) {}

    fn drains<C: Content>((): &()) -> Vec<Drained<(), C::Value>> {
        Vec::new()
    }

    fn is_empty<C: Content>((): &()) -> bool {
        true
    }

    fn entries<C: Content>((): &()) -> Vec<Entry<C::Value>> {
        Vec::new()
    }
}

/// One buffer per thread.
#[derive(Clone, Copy, Debug)]
pub struct Tso;

impl Layout for Tso {
    const MODEL: MemoryModel = MemoryModel::Tso;

    type Buffer<C: Content> = C;

    fn empty<C: Content>(bounds: &Bounds<C::Bound>) -> C {
        C::empty(bounds.thread)
    }

    fn put<C: Content, D: Domain<Value = C::Value>>(
        d: &mut D,
        buffer: &mut C,
        bounds: &Bounds<C::Bound>,
        entry: Entry<C::Value>,
    ) -> Result<Option<Entry<C::Value>>, Full> {
        buffer.put(d, bounds.thread, entry).map(|()| None)
    }

    /// A FIFO already keeps stores in order.
    fn store_fence<C: Content>(_: &mut C, _: &Bounds<C::Bound>) {}

    fn drains<C: Content>(buffer: &C) -> Vec<Drained<C, C::Value>> {
        buffer.drains()
    }

    fn is_empty<C: Content>(buffer: &C) -> bool {
        buffer.is_empty()
    }

    fn entries<C: Content>(buffer: &C) -> Vec<Entry<C::Value>> {
        buffer.entries()
    }
}

/// One buffer per thread and cell. A store fence closes the current *epoch*: entries of a later
/// epoch stay until all earlier epochs have drained. No epoch but the newest is ever empty, and the
/// newest is dropped when it drains, so equal states have equal buffers.
#[derive(Clone, Copy, Debug)]
pub struct Pso;

/// The epochs of one thread under [`Pso`], oldest first; only non-empty per-cell buffers are kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epochs<C> {
    pub epochs: Vec<BTreeMap<CellId, C>>,
    /// A store fence came after the newest entry: the next store opens a new epoch.
    pub fenced: bool,
}

impl<C: Content> Newest<C::Value> for Epochs<C> {
    fn newest_of(&self, cell: CellId) -> Option<C::Value> {
        let mut epochs = self.epochs.iter().rev();
        epochs.find_map(|epoch| epoch.get(&cell)?.newest(cell))
    }
}

impl Layout for Pso {
    const MODEL: MemoryModel = MemoryModel::Pso;

    type Buffer<C: Content> = Epochs<C>;

    fn empty<C: Content>(_: &Bounds<C::Bound>) -> Epochs<C> {
        Epochs {
            epochs: Vec::new(),
            fenced: false,
        }
    }

    fn put<C: Content, D: Domain<Value = C::Value>>(
        d: &mut D,
        buffer: &mut Epochs<C>,
        bounds: &Bounds<C::Bound>,
        entry: Entry<C::Value>,
    ) -> Result<Option<Entry<C::Value>>, Full> {
        let bound = bounds.cells[entry.0.index()];
        if C::room(bound) != usize::MAX {
            let contents = buffer.epochs.iter().filter_map(|e| e.get(&entry.0));
            let pending: usize = contents.map(|c| c.entries().len()).sum();
            if pending >= C::room(bound) {
                return Err(Full);
            }
        }
        let room = buffer.epochs.len() < C::epochs(bounds.thread);
        if buffer.epochs.is_empty() || (buffer.fenced && room) {
            buffer.epochs.push(BTreeMap::new());
        }
        buffer.fenced = false;
        if let Some(newest) = buffer.epochs.last_mut() {
            let cell = newest.entry(entry.0).or_insert_with(|| C::empty(bound));
            cell.put(d, bound, entry)?;
        }
        Ok(None)
    }

    /// Where all is one epoch there is nothing to close.
    fn store_fence<C: Content>(buffer: &mut Epochs<C>, bounds: &Bounds<C::Bound>) {
        buffer.fenced = !buffer.epochs.is_empty() && C::epochs(bounds.thread) > 1;
    }

    fn drains<C: Content>(buffer: &Epochs<C>) -> Vec<Drained<Epochs<C>, C::Value>> {
        let mut all = Vec::new();
        for (cell, content) in buffer.epochs.first().into_iter().flatten() {
            for drained in content.drains() {
                let mut rest = buffer.clone();
                if drained.rest.is_empty() {
                    rest.epochs[0].remove(cell);
                } else {
                    rest.epochs[0].insert(*cell, drained.rest);
                }
                if rest.epochs[0].is_empty() {
                    rest.epochs.remove(0);
                }
                rest.fenced &= !rest.epochs.is_empty();
                all.push(Drained {
                    entry: drained.entry,
                    keep: drained.keep,
                    rest,
                });
            }
        }
        all
    }

    fn is_empty<C: Content>(buffer: &Epochs<C>) -> bool {
        buffer.epochs.is_empty()
    }

    fn entries<C: Content>(buffer: &Epochs<C>) -> Vec<Entry<C::Value>> {
        let contents = buffer.epochs.iter().flat_map(BTreeMap::values);
        contents.flat_map(Content::entries).collect()
    }
}

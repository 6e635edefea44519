//! Pending stores of a thread on terms, in one buffer.

use super::super::symbols::Value;
use std::collections::BTreeMap;
use wattle_evidence::certificate::PendingStores;
use wattle_memory::content::{Content, Drained, Entry, Full};
use wattle_memory::{Bounds, Layout, MemoryModel};
use wattle_model::{CellId, Domain};

/// One buffer per thread, whatever the memory model; under SC nothing is ever put into it.
pub struct PerThread<const MODEL: usize>;

impl<const MODEL: usize> Layout for PerThread<MODEL> {
    const MODEL: MemoryModel = MemoryModel::ALL[MODEL];

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
        match Self::MODEL {
            MemoryModel::Sc => Ok(Some(entry)),
            MemoryModel::Tso | MemoryModel::Pso => {
                buffer.put(d, bounds.thread, entry).map(|()| None)
            }
        }
    }

    fn store_fence<C: Content>(buffer: &mut C, _: &Bounds<C::Bound>) {
        if Self::MODEL == MemoryModel::Pso {
            buffer.store_fence();
        }
    }

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

/// The classes of the stores to a cell right before one, and that one's value.
type Store = (u32, Value);

/// Epochs of entries per cell; under TSO every store begins one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stores {
    pub epochs: Vec<BTreeMap<CellId, Vec<Store>>>,
    pub fenced: bool,
    /// Certificates list them without epochs, for every store has its own.
    pub plain: bool,
}

impl Stores {
    /// `apart`: in an epoch of its own.
    pub fn put(&mut self, apart: bool, (cell, value): Entry<Value>) {
        if self.epochs.is_empty() || apart || self.fenced {
            self.epochs.push(BTreeMap::new());
        }
        self.fenced = false;
        if let Some(newest) = self.epochs.last_mut() {
            newest.entry(cell).or_default().push((0, value));
        }
    }

    pub fn store_fence(&mut self) {
        self.fenced = !self.epochs.is_empty();
    }

    pub fn newest(&self, cell: CellId) -> Option<Value> {
        let mut epochs = self.epochs.iter().rev();
        let newest = epochs.find_map(|e| e.get(&cell)?.last());
        newest.map(|(_, v)| v.clone())
    }

    /// The oldest store of each cell in the first epoch.
    pub fn oldest(&self) -> impl Iterator<Item = (CellId, &Store)> {
        let first = self.epochs.first().into_iter().flatten();
        first.map(|(cell, entries)| (*cell, &entries[0]))
    }

    /// Without the oldest store of the cell.
    pub fn without(&self, cell: CellId) -> Self {
        let mut rest = self.clone();
        if let Some(entries) = rest.epochs[0].get_mut(&cell) {
            entries.remove(0);
            if entries.is_empty() {
                rest.epochs[0].remove(&cell);
            }
        }
        if rest.epochs[0].is_empty() {
            rest.epochs.remove(0);
        }
        rest.fenced &= !rest.epochs.is_empty();
        rest
    }

    /// What a certificate lists, with these values; `None` if it is not the one and only listing.
    pub fn read(listed: &PendingStores, plain: bool, values: Vec<Value>) -> Option<Self> {
        let mut stores = Stores {
            fenced: listed.fenced,
            plain,
            ..Stores::default()
        };
        for (i, ((epoch, cell), value)) in listed.entries.iter().zip(values).enumerate() {
            let epoch = if plain { i } else { *epoch as usize };
            match epoch.checked_sub(stores.epochs.len()) {
                Some(0) => stores.epochs.push(BTreeMap::new()),
                None => {}
                Some(_) => return None,
            }
            let before = listed.before.get(i).copied().unwrap_or(0);
            let of_cell = stores.epochs[epoch].entry(*cell).or_default();
            of_cell.push((before, value));
        }
        let loose = stores.fenced && stores.epochs.is_empty();
        (stores.written() == *listed && !loose).then_some(stores)
    }

    pub fn written(&self) -> PendingStores {
        let all = self.epochs.iter().flat_map(BTreeMap::values).flatten();
        let mut before: Vec<u32> = all.map(|(before, _)| *before).collect();
        if before.iter().all(|b| *b == 0) {
            before.clear();
        }
        let entries = self.listed().into_iter();
        PendingStores {
            entries: entries.map(|(e, c, _)| (e, c)).collect(),
            before,
            fenced: self.fenced,
        }
    }

    pub fn listed(&self) -> Vec<(u32, CellId, &Value)> {
        let mut all = Vec::new();
        for (n, epoch) in self.epochs.iter().enumerate() {
            let n = if self.plain { 0 } else { n as u32 };
            for (cell, entries) in epoch {
                all.extend(entries.iter().map(|(_, v)| (n, *cell, v)));
            }
        }
        all
    }

    pub fn for_each(&mut self, change: &mut dyn FnMut(&mut Value)) {
        let epochs = self.epochs.iter_mut().flat_map(BTreeMap::values_mut);
        epochs.flatten().for_each(|(_, v)| change(v));
    }
}

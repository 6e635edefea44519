//! Pending stores of a thread on terms: exact, or kept small as the certificate says.
//!
//! Keeping small only adds behaviour, whatever the numbers in the certificate are: order between
//! cells is forgotten when two epochs become one, and a store that is given up is remembered by the
//! class of its value, from which any value, any number of times, can reach memory before the store
//! that follows it in its cell. Classes leave nothing out: below the first cut, between two, above
//! the last.

use super::super::AuditError;
use super::super::symbols::Value;
use super::machine::Pending;
use super::views::{Moment, Views};
use std::collections::BTreeMap;
use wattle_evidence::certificate::{Blur, Corrupt, PendingStores, View};
use wattle_memory::content::{Content, Drained, Entry, Full};
use wattle_memory::{Bounds, Layout, MemoryModel};
use wattle_model::{CellId, Domain, Op2};

/// How one thread's buffer is kept small.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keep {
    newest: bool,
    stores: usize,
    cuts: Vec<Vec<i64>>,
}

impl Keep {
    /// Per thread; refuses what does not fit the program.
    pub fn all(blur: &Blur, threads: usize, cells: usize) -> Result<Vec<Option<Keep>>, AuditError> {
        let ascending = |cuts: &Vec<i64>| cuts.len() < 32 && cuts.windows(2).all(|w| w[0] < w[1]);
        if blur.keep.len() != threads
            || blur.cuts.len() != cells
            || !blur.cuts.iter().all(ascending)
        {
            let why = Corrupt("the way buffers are kept small does not fit the program");
            return Err(AuditError::Corrupt(why));
        }
        let one = |keep: &Option<u32>| {
            keep.map(|stores| Keep {
                newest: blur.newest,
                stores: stores as usize,
                cuts: blur.cuts.clone(),
            })
        };
        Ok(blur.keep.iter().map(one).collect())
    }

    /// Stores of one cell in one epoch.
    fn most(&self, model: MemoryModel) -> usize {
        match model {
            MemoryModel::Tso => 1,
            MemoryModel::Sc | MemoryModel::Pso => self.stores.saturating_add(1),
        }
    }

    /// The bit of the value's class; all bits if the domain cannot tell.
    fn class<D: Domain<Value = Value>>(&self, d: &mut D, cell: CellId, value: &Value) -> u32 {
        let cuts = &self.cuts[cell.index()];
        for (n, cut) in cuts.iter().enumerate() {
            let cut = d.constant(*cut);
            match d.binary(Op2::Lt, value.clone(), cut) {
                Ok(below) if d.truth(&below) => return 1 << n,
                Ok(_) => {}
                Err(_) => return u32::MAX >> (31 - cuts.len()),
            }
        }
        1 << cuts.len()
    }

    /// Least and greatest value of each class of the cell.
    fn classes(&self, cell: CellId) -> Vec<(Option<i64>, Option<i64>)> {
        let cuts = &self.cuts[cell.index()];
        let class = |n: usize| {
            let lo = n.checked_sub(1).map(|i| cuts[i]);
            let hi = cuts.get(n).map(|c| c.saturating_sub(1));
            (lo, hi)
        };
        (0..=cuts.len()).map(class).collect()
    }
}

/// How a thread's stores are kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeping<'k> {
    pub model: MemoryModel,
    /// Exactly, unless this says how they are kept small.
    pub keep: Option<&'k Keep>,
    /// Only views of them are known.
    pub viewed: bool,
}

/// The classes of the stores to a cell right before one, and that one's value.
type Store = (u32, Value);

/// Epochs of entries per cell under PSO and in buffers that are kept small; exact ones under TSO are
/// one list in the order of the stores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer<'k> {
    fifo: Vec<Entry<Value>>,
    epochs: Vec<BTreeMap<CellId, Vec<Store>>>,
    fenced: bool,
    keep: Option<&'k Keep>,
    /// All there is to say of a buffer known by views.
    pub views: Option<Views>,
}

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

impl<'k> Content for Buffer<'k> {
    type Bound = Keeping<'k>;
    type Value = Value;

    fn empty(keeping: Keeping<'k>) -> Self {
        Buffer {
            fifo: Vec::new(),
            epochs: Vec::new(),
            fenced: false,
            keep: keeping.keep,
            views: keeping.viewed.then(Views::default),
        }
    }

    fn put<D: Domain<Value = Value>>(
        &mut self,
        d: &mut D,
        keeping: Keeping<'k>,
        (cell, value): Entry<Value>,
    ) -> Result<(), Full> {
        if let Some(views) = &mut self.views {
            views.put(cell, value);
            return Ok(());
        }
        let tso = keeping.model == MemoryModel::Tso;
        if tso && self.keep.is_none() {
            self.fifo.push((cell, value));
            return Ok(());
        }
        if self.epochs.is_empty() || tso || self.fenced {
            self.epochs.push(BTreeMap::new());
        }
        self.fenced = false;
        if let Some(newest) = self.epochs.last_mut() {
            newest.entry(cell).or_default().push((0, value));
        }
        if let Some(keep) = self.keep {
            self.shrink(d, keep, keep.most(keeping.model));
        }
        Ok(())
    }

    /// With views it says nothing: what it orders may then happen in any order.
    fn store_fence(&mut self) {
        self.fenced = !self.epochs.is_empty();
    }

    fn newest(&self, cell: CellId) -> Option<Value> {
        if let Some(views) = &self.views {
            return views.newest.get(&cell).cloned();
        }
        let fifo = self.fifo.iter().rev().find(|(c, _)| *c == cell);
        let epochs = self.epochs.iter().rev();
        let mut pending = epochs.filter_map(|e| e.get(&cell)?.last());
        let pending = pending.next().map(|(_, v)| v);
        fifo.map(|(_, v)| v).or(pending).cloned()
    }

    /// The oldest store of a cell, or before it any value of a class that was given up.
    fn drains(&self) -> Vec<Drained<Self, Value>> {
        let mut ways = Vec::new();
        if let Some(entry) = self.fifo.first() {
            let mut rest = self.clone();
            rest.fifo.remove(0);
            ways.push(Drained {
                entry: entry.clone(),
                keep: false,
                rest,
            });
        }
        for (cell, entries) in self.epochs.first().into_iter().flatten() {
            let (before, value) = &entries[0];
            ways.push(Drained {
                entry: (*cell, value.clone()),
                keep: false,
                rest: self.without(*cell),
            });
            let classes = self.keep.map_or(Vec::new(), |k| k.classes(*cell));
            for (class, (lo, hi)) in classes.into_iter().enumerate() {
                if before & 1 << class != 0 {
                    ways.push(Drained {
                        entry: (*cell, Value::OneOf(lo, hi)),
                        keep: true,
                        rest: self.clone(),
                    });
                }
            }
        }
        ways
    }

    fn is_empty(&self) -> bool {
        if let Some(views) = &self.views {
            return views.moment == Moment::Empty;
        }
        self.fifo.is_empty() && self.epochs.is_empty()
    }

    fn entries(&self) -> Vec<Entry<Value>> {
        let listed = self.listed().into_iter();
        listed.map(|(_, c, v)| (c, v.clone())).collect()
    }
}

impl<'k> Pending for Buffer<'k> {
    type Bound = Keeping<'k>;

    fn read(listed: &PendingStores, keeping: Keeping<'k>, values: Vec<Value>) -> Option<Self> {
        let Keeping { model, keep, .. } = keeping;
        if model == MemoryModel::Sc && (keeping.viewed || !listed.entries.is_empty()) {
            return None;
        }
        if keeping.viewed {
            return (*listed == PendingStores::default()).then(|| Buffer::empty(keeping));
        }
        let mut buffer = Buffer {
            fenced: listed.fenced,
            ..Buffer::empty(keeping)
        };
        if !listed.before.is_empty() && listed.before.len() != listed.entries.len() {
            return None;
        }
        for (i, ((epoch, cell), value)) in listed.entries.iter().zip(values).enumerate() {
            if model != MemoryModel::Pso && keep.is_none() {
                buffer.fifo.push((*cell, value));
                continue;
            }
            let before = listed.before.get(i).copied().unwrap_or(0);
            let classes = keep.map_or(0, |k| k.cuts[cell.index()].len() + 1);
            if u64::from(before) >> classes != 0 {
                return None;
            }
            match (*epoch as usize).checked_sub(buffer.epochs.len()) {
                Some(0) => buffer.epochs.push(BTreeMap::new()),
                None => {}
                Some(_) => return None,
            }
            let epoch = &mut buffer.epochs[*epoch as usize];
            epoch.entry(*cell).or_default().push((before, value));
        }
        let loose = buffer.fenced && buffer.epochs.is_empty();
        let large = keep.is_some_and(|keep| {
            let most = keep.most(model);
            let mut cells = buffer.epochs.iter().flat_map(BTreeMap::values);
            buffer.epochs.len() > keep.stores.saturating_add(1)
                || cells.any(|entries| entries.len() > most)
        });
        (buffer.written() == *listed && !loose && !large).then_some(buffer)
    }

    fn written(&self) -> PendingStores {
        let mut before = Vec::new();
        for epoch in &self.epochs {
            before.extend(epoch.values().flatten().map(|(b, _)| *b));
        }
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

    fn for_each(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.fifo.iter_mut().for_each(|(_, v)| change(v));
        let epochs = self.epochs.iter_mut().flat_map(BTreeMap::values_mut);
        epochs.flatten().for_each(|(_, v)| change(v));
        let views = self.views.iter_mut().flat_map(Views::maps_mut);
        views.flat_map(BTreeMap::values_mut).for_each(change);
    }

    fn values(&self) -> Vec<(CellId, &Value)> {
        let mut all: Vec<_> = self.listed().into_iter().map(|(_, c, v)| (c, v)).collect();
        let views = self.views.iter().flat_map(Views::maps);
        all.extend(views.flatten().map(|(c, v)| (*c, v)));
        all
    }

    fn listed(&self) -> Vec<(u32, CellId, &Value)> {
        let mut all: Vec<_> = self.fifo.iter().map(|(c, v)| (0, *c, v)).collect();
        for (n, epoch) in self.epochs.iter().enumerate() {
            for (cell, entries) in epoch {
                all.extend(entries.iter().map(|(_, v)| (n as u32, *cell, v)));
            }
        }
        all
    }

    fn view(&self, which: View, cell: CellId) -> Option<&Value> {
        self.views.as_ref()?.get(which, cell)
    }
}

impl Buffer<'_> {
    /// Too many epochs: two become one. Too many stores of a cell in one: one becomes a class.
    fn shrink<D: Domain<Value = Value>>(&mut self, d: &mut D, keep: &Keep, most: usize) {
        while self.epochs.len() > keep.stores.saturating_add(1) {
            let second = if keep.newest {
                1
            } else {
                self.epochs.len() - 1
            };
            let joined = self.epochs.remove(second);
            for (cell, entries) in joined {
                self.epochs[second - 1]
                    .entry(cell)
                    .or_default()
                    .extend(entries);
            }
        }
        for epoch in &mut self.epochs {
            for (cell, entries) in epoch.iter_mut() {
                while entries.len() > most {
                    let given_up = if keep.newest { 0 } else { entries.len() - 2 };
                    let (before, value) = entries.remove(given_up);
                    let class = keep.class(d, *cell, &value);
                    entries[given_up].0 |= before | class;
                }
            }
        }
    }

    /// Without the oldest store of the cell.
    fn without(&self, cell: CellId) -> Self {
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
}

//! Buffers that are kept small, as the certificate says.
//!
//! Keeping small only adds behaviour, whatever the numbers in the certificate are: order between
//! cells is forgotten when two epochs become one, and a store that is given up is remembered by the
//! class of its value, from which any value, any number of times, can reach memory before the store
//! that follows it in its cell. Classes leave nothing out: below the first cut, between two, above
//! the last.

use super::super::AuditError;
use super::super::symbols::Value;
use super::machine::{Machine, Pending};
use super::stores::{PerThread, Stores};
use super::{About, Queries, run};
use wattle_evidence::certificate::{Blur, Corrupt, Inductive, PendingStores};
use wattle_evidence::task::Task;
use wattle_memory::MemoryModel;
use wattle_memory::content::{Content, Drained, Entry, Full};
use wattle_model::{CellId, Domain, Op2};

/// An audit with such buffers.
pub fn audit<const MODEL: usize>(
    queries: Queries<'_>,
    task: &Task<'_>,
    (certificate, blur): (&Inductive, &Blur),
    about: About<'_>,
) -> Result<u64, AuditError> {
    let (instance, model) = (task.instance, MemoryModel::ALL[MODEL]);
    let keeps = Keep::all(blur, instance.threads.len(), instance.cells.len())?;
    let keeping = |keep| Keeping { model, keep };
    let bounds = keeps.iter().map(|k| keeping(k.as_ref())).collect();
    let machine =
        Machine::<PerThread<MODEL>, Buffer<'_>>::new(instance, bounds, &certificate.ranges)?;
    run(queries, task, certificate, machine, about)
}

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
    model: MemoryModel,
    /// Exactly, unless this says how they are kept small.
    keep: Option<&'k Keep>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Buffer<'k> {
    stores: Stores,
    keep: Option<&'k Keep>,
}

impl<'k> Content for Buffer<'k> {
    type Bound = Keeping<'k>;
    type Value = Value;

    fn empty(keeping: Keeping<'k>) -> Self {
        Buffer {
            stores: Stores {
                plain: keeping.keep.is_none() && keeping.model == MemoryModel::Tso,
                ..Stores::default()
            },
            keep: keeping.keep,
        }
    }

    fn put<D: Domain<Value = Value>>(
        &mut self,
        d: &mut D,
        keeping: Keeping<'k>,
        entry: Entry<Value>,
    ) -> Result<(), Full> {
        self.stores.put(keeping.model == MemoryModel::Tso, entry);
        if let Some(keep) = self.keep {
            self.shrink(d, keep, keep.most(keeping.model));
        }
        Ok(())
    }

    fn store_fence(&mut self) {
        self.stores.store_fence();
    }

    fn newest(&self, cell: CellId) -> Option<Value> {
        self.stores.newest(cell)
    }

    /// The oldest store of a cell, or before it any value of a class that was given up.
    fn drains(&self) -> Vec<Drained<Self, Value>> {
        let mut ways = Vec::new();
        for (cell, (before, value)) in self.stores.oldest() {
            let rest = Buffer {
                stores: self.stores.without(cell),
                keep: self.keep,
            };
            ways.push(Drained {
                entry: (cell, value.clone()),
                keep: false,
                rest,
            });
            let classes = self.keep.map_or(Vec::new(), |k| k.classes(cell));
            for (class, (lo, hi)) in classes.into_iter().enumerate() {
                if before & 1 << class != 0 {
                    ways.push(Drained {
                        entry: (cell, Value::OneOf(lo, hi)),
                        keep: true,
                        rest: self.clone(),
                    });
                }
            }
        }
        ways
    }

    fn is_empty(&self) -> bool {
        self.stores.epochs.is_empty()
    }

    fn entries(&self) -> Vec<Entry<Value>> {
        let listed = self.stores.listed().into_iter();
        listed.map(|(_, c, v)| (c, v.clone())).collect()
    }
}

impl<'k> Pending for Buffer<'k> {
    type Bound = Keeping<'k>;

    fn read(listed: &PendingStores, keeping: Keeping<'k>, values: Vec<Value>) -> Option<Self> {
        let empty = Buffer::empty(keeping);
        let stores = Stores::read(listed, empty.stores.plain, values)?;
        if keeping.model == MemoryModel::Sc && !stores.epochs.is_empty() {
            return None;
        }
        let most = keeping.keep.map(|k| (k.stores, k.most(keeping.model)));
        let (epochs, most) = most.unwrap_or((usize::MAX, usize::MAX));
        let classes = |cell: CellId| keeping.keep.map_or(0, |k| k.cuts[cell.index()].len() + 1);
        let mut cells = stores.epochs.iter().flatten();
        let fits = cells.all(|(cell, entries)| {
            let known = |before: u32| u64::from(before) >> classes(*cell) == 0;
            entries.len() <= most && entries.iter().all(|(before, _)| known(*before))
        });
        let fits = fits && stores.epochs.len() <= epochs.saturating_add(1);
        fits.then_some(Buffer { stores, ..empty })
    }

    fn written(&self) -> PendingStores {
        self.stores.written()
    }

    fn for_each(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.stores.for_each(change);
    }

    fn listed(&self) -> Vec<(u32, CellId, &Value)> {
        self.stores.listed()
    }
}

impl Buffer<'_> {
    /// Too many epochs: two become one. Too many stores of a cell in one: one becomes a class.
    fn shrink<D: Domain<Value = Value>>(&mut self, d: &mut D, keep: &Keep, most: usize) {
        while self.stores.epochs.len() > keep.stores.saturating_add(1) {
            let second = if keep.newest {
                1
            } else {
                self.stores.epochs.len() - 1
            };
            let joined = self.stores.epochs.remove(second);
            for (cell, entries) in joined {
                self.stores.epochs[second - 1]
                    .entry(cell)
                    .or_default()
                    .extend(entries);
            }
        }
        for epoch in &mut self.stores.epochs {
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
}

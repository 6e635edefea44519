//! Pending stores of a thread on terms: exact, or kept small as the certificate says.
//!
//! Keeping small only adds behaviour, whatever the numbers in the certificate are: order between
//! cells is forgotten when two epochs become one, and a store that is given up is remembered by the
//! class of its value, from which any value, any number of times, can reach memory before the store
//! that follows it in its cell. Classes leave nothing out: below the first cut, between two, above
//! the last.

use super::super::AuditError;
use crate::certificate::{Blur, Corrupt, PendingStores};
use std::collections::BTreeMap;
use wattle_logic::{Formula, Term, ge, lt};
use wattle_memory::MemoryModel;
use wattle_model::CellId;

/// How one thread's buffer is kept small.
#[derive(Clone, Debug)]
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
            _ => self.stores.saturating_add(1),
        }
    }

    /// When the value is of each class of the cell.
    fn classes(&self, cell: CellId, value: &Term) -> Vec<Vec<Formula>> {
        let cuts = &self.cuts[cell.index()];
        let class = |n: usize| {
            let lo = n.checked_sub(1).map(|i| ge(value.clone(), cuts[i]));
            let hi = cuts.get(n).map(|c| lt(value.clone(), *c));
            lo.into_iter().chain(hi).collect()
        };
        (0..=cuts.len()).map(class).collect()
    }
}

/// A store and the classes of those to its cell right before it.
type Entry = (u32, Term);

/// Epochs of entries per cell under PSO and in buffers that are kept small; exact ones under TSO are
/// one list in the order of the stores.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    fifo: Vec<(CellId, Term)>,
    epochs: Vec<BTreeMap<CellId, Vec<Entry>>>,
    fenced: bool,
}

/// One way a value reaches memory.
pub struct Drain {
    pub when: Vec<Formula>,
    pub cell: CellId,
    pub value: Term,
    pub rest: Buffer,
}

impl Buffer {
    /// The buffer that the certificate lists, with these values; `None` if the listing is not the
    /// one and only listing of a buffer.
    pub fn read(
        model: MemoryModel,
        listed: &PendingStores,
        keep: Option<&Keep>,
        values: Vec<Term>,
    ) -> Option<Self> {
        let mut buffer = Buffer {
            fenced: listed.fenced,
            ..Buffer::default()
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

    /// As certificates list it.
    pub fn written(&self) -> PendingStores {
        let mut before = Vec::new();
        for epoch in &self.epochs {
            before.extend(epoch.values().flatten().map(|(b, _)| *b));
        }
        if before.iter().all(|b| *b == 0) {
            before.clear();
        }
        let entries = self.entries().into_iter();
        PendingStores {
            entries: entries.map(|(e, c, _)| (e, c)).collect(),
            before,
            fenced: self.fenced,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty() && self.epochs.is_empty()
    }

    pub fn store_fence(&mut self, model: MemoryModel) {
        self.fenced = model == MemoryModel::Pso && !self.epochs.is_empty();
    }

    pub fn newest(&self, cell: CellId) -> Option<Term> {
        let fifo = self.fifo.iter().rev().find(|(c, _)| *c == cell);
        let epochs = self.epochs.iter().rev();
        let mut pending = epochs.filter_map(|e| e.get(&cell)?.last());
        let pending = pending.next().map(|(_, v)| v);
        fifo.map(|(_, v)| v).or(pending).cloned()
    }

    /// The buffer with one more store: every way it can be, and when.
    pub fn put(
        &self,
        model: MemoryModel,
        keep: Option<&Keep>,
        (cell, value): (CellId, Term),
    ) -> Vec<(Vec<Formula>, Buffer)> {
        let mut full = self.clone();
        let tso = model == MemoryModel::Tso;
        if tso && keep.is_none() {
            full.fifo.push((cell, value));
            return vec![(Vec::new(), full)];
        }
        if full.epochs.is_empty() || tso || full.fenced {
            full.epochs.push(BTreeMap::new());
        }
        full.fenced = false;
        if let Some(newest) = full.epochs.last_mut() {
            newest.entry(cell).or_default().push((0, value));
        }
        match keep {
            Some(keep) => full.small(keep, keep.most(model)),
            None => vec![(Vec::new(), full)],
        }
    }

    /// Too many epochs: two become one. Too many stores of a cell in one: one becomes a class.
    fn small(mut self, keep: &Keep, most: usize) -> Vec<(Vec<Formula>, Buffer)> {
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
        let crowd = self.epochs.iter().enumerate().find_map(|(e, epoch)| {
            let mut cells = epoch.iter();
            let (cell, entries) = cells.find(|(_, entries)| entries.len() > most)?;
            let given_up = if keep.newest { 0 } else { entries.len() - 2 };
            Some((e, *cell, given_up))
        });
        let Some((e, cell, n)) = crowd else {
            return vec![(Vec::new(), self)];
        };
        let mut ways = Vec::new();
        let (before, value) = self.epochs[e][&cell][n].clone();
        for (class, when) in keep.classes(cell, &value).into_iter().enumerate() {
            let mut rest = self.clone();
            if let Some(entries) = rest.epochs[e].get_mut(&cell) {
                entries.remove(n);
                entries[n].0 |= before | 1 << class;
            }
            for (more, buffer) in rest.small(keep, most) {
                ways.push(([when.clone(), more].concat(), buffer));
            }
        }
        ways
    }

    /// Every way a value can reach memory; `any` is a variable of which nothing is known.
    pub fn drains(&self, keep: Option<&Keep>, any: &Term) -> Vec<Drain> {
        let mut ways = Vec::new();
        if let Some((cell, value)) = self.fifo.first() {
            let mut rest = self.clone();
            rest.fifo.remove(0);
            ways.push(Drain {
                when: Vec::new(),
                cell: *cell,
                value: value.clone(),
                rest,
            });
        }
        for (cell, entries) in self.epochs.first().into_iter().flatten() {
            let (before, value) = &entries[0];
            ways.push(Drain {
                when: Vec::new(),
                cell: *cell,
                value: value.clone(),
                rest: self.without(*cell),
            });
            let classes = keep.map_or(Vec::new(), |k| k.classes(*cell, any));
            for (class, when) in classes.into_iter().enumerate() {
                if before & 1 << class != 0 {
                    ways.push(Drain {
                        when,
                        cell: *cell,
                        value: any.clone(),
                        rest: self.clone(),
                    });
                }
            }
        }
        ways
    }

    /// Without the oldest store of the cell.
    fn without(&self, cell: CellId) -> Buffer {
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

    /// The entries in the order certificates list them.
    pub fn entries(&self) -> Vec<(u32, CellId, &Term)> {
        let mut all: Vec<_> = self.fifo.iter().map(|(c, v)| (0, *c, v)).collect();
        for (n, epoch) in self.epochs.iter().enumerate() {
            for (cell, entries) in epoch {
                all.extend(entries.iter().map(|(_, v)| (n as u32, *cell, v)));
            }
        }
        all
    }
}

//! A set of pending stores with the last-added value of each cell (calin-2016 Figs. 3.5, 3.6).
//!
//! A drain may remove its entry (WM-D) or leave it, since it may stand for several stores (WM-ND).
//! The last-added value of a cell leaves only when no other value of that cell is pending.

use super::{Content, Drained, Entry, Full};
use std::collections::{BTreeMap, BTreeSet};
use wattle_model::{CellId, Domain};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Set {
    /// Per cell with pending stores: the last-added value, and all pending values (it among them).
    cells: BTreeMap<CellId, (i64, BTreeSet<i64>)>,
}

impl Content for Set {
    type Bound = ();
    type Value = i64;

    fn empty((): ()) -> Self {
        Set::default()
    }

    fn put<D: Domain<Value = i64>>(
        &mut self,
        _: &mut D,
        (): (),
        (cell, value): Entry,
    ) -> Result<(), Full> {
        let pending = self.cells.entry(cell).or_default();
        pending.0 = value;
        pending.1.insert(value);
        Ok(())
    }

    fn newest(&self, cell: CellId) -> Option<i64> {
        self.cells.get(&cell).map(|(last, _)| *last)
    }

    fn drains(&self) -> Vec<Drained<Self>> {
        let mut all = Vec::new();
        for (cell, (last, values)) in &self.cells {
            for value in values {
                let entry = (*cell, *value);
                let keep = |keep, rest| Drained { entry, keep, rest };
                if value != last || values.len() == 1 {
                    let mut rest = self.clone();
                    rest.remove(entry);
                    all.push(keep(false, rest));
                }
                all.push(keep(true, self.clone()));
            }
        }
        all
    }

    fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    fn epochs((): ()) -> usize {
        1
    }

    /// By cell; the last-added value of a cell comes last.
    fn entries(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        for (cell, (last, values)) in &self.cells {
            let others = values.iter().filter(|v| *v != last);
            all.extend(others.chain([last]).map(|v| (*cell, *v)));
        }
        all
    }
}

impl Set {
    fn remove(&mut self, (cell, value): Entry) {
        if let Some((_, values)) = self.cells.get_mut(&cell) {
            values.remove(&value);
            if values.is_empty() {
                self.cells.remove(&cell);
            }
        }
    }
}

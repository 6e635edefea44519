//! A multiset of pending stores with the last-added value of each cell (calin-2016 Fig. 3.8).
//!
//! Counts are exact, order between entries is forgotten, except that the last-added value of a cell
//! leaves only if another copy of it stays or nothing else of that cell is pending.

use super::{Content, Drained, Entry, Full};
use std::collections::BTreeMap;
use wattle_model::{CellId, Domain};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Multiset {
    /// Per cell with pending stores: the last-added value, and how often each value is pending.
    cells: BTreeMap<CellId, (i64, BTreeMap<i64, u32>)>,
}

impl Content for Multiset {
    type Bound = ();
    type Value = i64;

    fn empty((): ()) -> Self {
        Multiset::default()
    }

    fn put<D: Domain<Value = i64>>(
        &mut self,
        _: &mut D,
        (): (),
        (cell, value): Entry,
    ) -> Result<(), Full> {
        let pending = self.cells.entry(cell).or_default();
        pending.0 = value;
        *pending.1.entry(value).or_insert(0) += 1;
        Ok(())
    }

    fn newest(&self, cell: CellId) -> Option<i64> {
        self.cells.get(&cell).map(|(last, _)| *last)
    }

    fn drains(&self) -> Vec<Drained<Self>> {
        let mut all = Vec::new();
        for (cell, (last, values)) in &self.cells {
            for (value, count) in values {
                if value != last || *count > 1 || values.len() == 1 {
                    let mut rest = self.clone();
                    rest.remove((*cell, *value));
                    all.push(Drained {
                        entry: (*cell, *value),
                        keep: false,
                        rest,
                    });
                }
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

    /// By cell; one copy of the last-added value of a cell comes last.
    fn entries(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        for (cell, (last, values)) in &self.cells {
            for (value, count) in values {
                let before = if value == last { count - 1 } else { *count };
                all.extend((0..before).map(|_| (*cell, *value)));
            }
            all.push((*cell, *last));
        }
        all
    }
}

impl Multiset {
    fn remove(&mut self, (cell, value): Entry) {
        let Some((_, values)) = self.cells.get_mut(&cell) else {
            return;
        };
        if let Some(count) = values.get_mut(&value) {
            *count -= 1;
            if *count == 0 {
                values.remove(&value);
            }
        }
        if values.is_empty() {
            self.cells.remove(&cell);
        }
    }
}

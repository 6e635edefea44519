//! A buffer that forgets nothing.

use super::{Content, Drained, Entry, Full};
use std::fmt::Debug;
use std::hash::Hash;
use wattle_model::{CellId, Domain};

/// Everything, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exact<V = i64>(pub Vec<Entry<V>>);

impl<V: Clone + Debug + Eq + Ord + Hash> Content for Exact<V> {
    type Bound = ();
    type Value = V;

    fn empty((): ()) -> Self {
        Exact(Vec::new())
    }

    fn put<D: Domain<Value = V>>(
        &mut self,
        _: &mut D,
        (): (),
        entry: Entry<V>,
    ) -> Result<(), Full> {
        self.0.push(entry);
        Ok(())
    }

    fn newest(&self, cell: CellId) -> Option<V> {
        let newest = self.0.iter().rev().find(|(c, _)| *c == cell);
        newest.map(|(_, value)| value.clone())
    }

    fn drains(&self) -> Vec<Drained<Self, V>> {
        let oldest = self.0.first().map(|entry| Drained {
            entry: entry.clone(),
            keep: false,
            rest: Exact(self.0[1..].to_vec()),
        });
        oldest.into_iter().collect()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn entries(&self) -> Vec<Entry<V>> {
        self.0.clone()
    }
}

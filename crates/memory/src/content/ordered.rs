//! Contents that keep k stores in order and the rest as a set: partial coherence.
//!
//! - [`OldestK`]: the oldest k in order, a set behind them (calin-2016 Fig. 3.10, abdulla-2012 §4).
//!   The queue is used again only when both parts are empty of what came between: a store enters
//!   the queue only while the set is empty and the queue has room; otherwise it enters the set
//!   (the paper's LS-S premise `R = ∅ ∨ |Q| = k` should read `R ≠ ∅ ∨ |Q| = k`). The set drains
//!   only when the queue is empty, with or without removal.
//! - [`NewestK`]: the newest k in order, a set of all older ones; the set drains first.
//! - [`AtMostK`]: at most k in order; one more is reported as [`Full`], never dropped.

use super::set::Set;
use super::{Content, Drained, Entry, Exact, Full};
use wattle_model::{CellId, Domain};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OldestK {
    queue: Exact,
    rest: Set,
}

impl Content for OldestK {
    type Bound = usize;
    type Value = i64;

    fn empty(_: usize) -> Self {
        OldestK {
            queue: Exact::empty(()),
            rest: Set::empty(()),
        }
    }

    fn put<D: Domain<Value = i64>>(
        &mut self,
        d: &mut D,
        k: usize,
        entry: Entry,
    ) -> Result<(), Full> {
        if self.rest.is_empty() && self.queue.0.len() < k {
            self.queue.put(d, (), entry)
        } else {
            self.rest.put(d, (), entry)
        }
    }

    fn newest(&self, cell: CellId) -> Option<i64> {
        self.rest.newest(cell).or_else(|| self.queue.newest(cell))
    }

    fn drains(&self) -> Vec<Drained<Self>> {
        if !self.queue.is_empty() {
            return lift(self.queue.drains(), |queue| OldestK {
                queue,
                rest: self.rest.clone(),
            });
        }
        lift(self.rest.drains(), |rest| OldestK {
            queue: Exact::empty(()),
            rest,
        })
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.rest.is_empty()
    }

    fn epochs(k: usize) -> usize {
        k + 1
    }

    fn entries(&self) -> Vec<Entry> {
        let mut all = self.queue.entries();
        all.extend(self.rest.entries());
        all
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NewestK {
    rest: Set,
    queue: Exact,
}

impl Content for NewestK {
    type Bound = usize;
    type Value = i64;

    fn empty(_: usize) -> Self {
        NewestK {
            rest: Set::empty(()),
            queue: Exact::empty(()),
        }
    }

    fn put<D: Domain<Value = i64>>(
        &mut self,
        d: &mut D,
        k: usize,
        entry: Entry,
    ) -> Result<(), Full> {
        self.queue.put(d, (), entry)?;
        while self.queue.0.len() > k {
            let oldest = self.queue.0.remove(0);
            self.rest.put(d, (), oldest)?;
        }
        Ok(())
    }

    fn newest(&self, cell: CellId) -> Option<i64> {
        self.queue.newest(cell).or_else(|| self.rest.newest(cell))
    }

    fn drains(&self) -> Vec<Drained<Self>> {
        if !self.rest.is_empty() {
            return lift(self.rest.drains(), |rest| NewestK {
                rest,
                queue: self.queue.clone(),
            });
        }
        lift(self.queue.drains(), |queue| NewestK {
            rest: Set::empty(()),
            queue,
        })
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.rest.is_empty()
    }

    fn epochs(k: usize) -> usize {
        k + 1
    }

    fn entries(&self) -> Vec<Entry> {
        let mut all = self.rest.entries();
        all.extend(self.queue.entries());
        all
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AtMostK(Exact);

impl Content for AtMostK {
    type Bound = usize;
    type Value = i64;

    fn empty(_: usize) -> Self {
        AtMostK(Exact::empty(()))
    }

    fn put<D: Domain<Value = i64>>(
        &mut self,
        d: &mut D,
        k: usize,
        entry: Entry,
    ) -> Result<(), Full> {
        if self.0.0.len() >= k {
            return Err(Full);
        }
        self.0.put(d, (), entry)
    }

    fn newest(&self, cell: CellId) -> Option<i64> {
        self.0.newest(cell)
    }

    fn drains(&self) -> Vec<Drained<Self>> {
        lift(self.0.drains(), AtMostK)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn room(k: usize) -> usize {
        k
    }

    fn entries(&self) -> Vec<Entry> {
        self.0.entries()
    }
}

fn lift<A, B>(drains: Vec<Drained<A>>, wrap: impl Fn(A) -> B) -> Vec<Drained<B>> {
    let wrapped = drains.into_iter().map(|d| Drained {
        entry: d.entry,
        keep: d.keep,
        rest: wrap(d.rest),
    });
    wrapped.collect()
}

//! A search that goes on with another machine.

use super::{Count, Order, Search};
use crate::batch::Batch;
use crate::expand::Known;
use crate::row::Row;
use crate::store::{Store, hash};
use wattle_memory::Start;
use wattle_memory::compiled::{Machine, Notes};

/// A search without its machine.
pub struct Frontier {
    store: Store,
    notes: Notes,
    starts: Vec<Start>,
    stack: Vec<u32>,
    queue: Row<Known>,
    count: Count,
    owed: Vec<u32>,
    name: &'static str,
    shortcuts: bool,
    worth_it: usize,
}

impl<'m, 'i> Search<'m, 'i> {
    pub fn carry(self) -> Frontier {
        Frontier {
            store: self.store,
            notes: self.notes,
            starts: self.starts,
            stack: self.stack,
            queue: self.queue,
            count: self.count,
            owed: self.owed,
            name: self.name,
            shortcuts: self.shortcuts,
            worth_it: self.worth_it,
        }
    }

    /// Goes on with a search of `old` on a machine with wider fields or longer buffers.
    pub fn resume(
        carried: Frontier,
        old: &Machine<'_>,
        machine: &'m Machine<'i>,
        order: Order,
    ) -> Self {
        let mut store = Store::new(machine.words);
        let mut state = vec![0; machine.words];
        for index in 0..carried.store.len() as u32 {
            machine.translate(old, carried.store.state(index), &mut state);
            store.insert(&state, hash(&state), carried.store.parent(index));
        }
        debug_assert_eq!(store.len(), carried.store.len());
        Search {
            machine,
            store,
            tree: None,
            notes: carried.notes,
            starts: carried.starts,
            order,
            batch: Batch::new(machine.words),
            stack: carried.stack,
            queue: carried.queue,
            count: carried.count,
            owed: carried.owed,
            last: None,
            impatient: false,
            name: carried.name,
            shortcuts: carried.shortcuts,
            worth_it: carried.worth_it,
            remembered: 0,
        }
    }
}

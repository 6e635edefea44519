//! Buffers of any length by views: memory as it would be after some of a thread's pending stores.
//!
//! A formula says of a thread's views: for all numbers i ≤ j ≤ n, where n stores are pending, it holds
//! of memory after the oldest i (`Lower`), the oldest j (`Upper`) and all of them (`Newest`). Under TSO the
//! stores are the thread's; under PSO each cell has its own, and its own i and j. Only the thread itself
//! stores to the cells of its views, and no formula speaks of such cells in memory otherwise. So:
//!
//! - memory is the view of i = 0, and every formula holds with it as `Lower`;
//! - a drain takes the view of i = 0 away and changes no other: what holds for all numbers still does;
//! - a store makes n one larger: i and j are as before, or j is the new n (it was n before, or is
//!   new: then everything held of the old n in its place), or both are;
//! - with an empty buffer all views are memory.
//!
//! Each of these is a [`Moment`] in which a step is run.

use super::super::AuditError;
use super::super::symbols::Value;
use std::collections::BTreeMap;
use wattle_evidence::certificate::{Corrupt, View};
use wattle_model::instance::{Address, Instance};
use wattle_model::{CellId, ThreadId};

/// Which numbers i and j a step is looked at for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Any, and they stay.
    #[default]
    Any,
    /// `Upper`, for stores to these cells, is the newest and becomes the new one.
    UpperIsNewest(Vec<CellId>),
    /// So are both.
    BothAreNewest(Vec<CellId>),
    /// The buffer is empty.
    Empty,
}

impl Moment {
    /// The cells whose upper view is the newest one, and those whose lower is.
    fn newest(&self) -> (&[CellId], &[CellId]) {
        match self {
            Moment::UpperIsNewest(cells) => (cells, &[]),
            Moment::BothAreNewest(cells) => (cells, cells),
            Moment::Any | Moment::Empty => (&[], &[]),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Views {
    pub lower: BTreeMap<CellId, Value>,
    pub upper: BTreeMap<CellId, Value>,
    pub newest: BTreeMap<CellId, Value>,
    pub moment: Moment,
}

impl Views {
    pub fn maps(&self) -> [&BTreeMap<CellId, Value>; 3] {
        [&self.lower, &self.upper, &self.newest]
    }

    pub fn maps_mut(&mut self) -> [&mut BTreeMap<CellId, Value>; 3] {
        [&mut self.lower, &mut self.upper, &mut self.newest]
    }

    pub fn get(&self, which: View, cell: CellId) -> Option<&Value> {
        let map = match which {
            View::Lower => &self.lower,
            View::Upper => &self.upper,
            View::Newest => &self.newest,
        };
        map.get(&cell)
    }

    /// A store: the newest view has its value, and so have those that are the newest.
    pub fn put(&mut self, cell: CellId, value: Value) {
        let (upper, lower) = self.moment.newest();
        for (cells, view) in [(upper, &mut self.upper), (lower, &mut self.lower)] {
            if cells.contains(&cell) {
                view.insert(cell, value.clone());
            }
        }
        self.newest.insert(cell, value);
    }

    /// The views as they are in the moment; with an empty buffer they are what memory is.
    pub fn at(&self, moment: Moment, memory: &[Value]) -> Views {
        let mut views = self.clone();
        let (upper, lower) = moment.newest();
        for (cells, view) in [(upper, &mut views.upper), (lower, &mut views.lower)] {
            view.extend(cells.iter().map(|c| (*c, self.newest[c].clone())));
        }
        if moment == Moment::Empty {
            views.are_memory(memory);
        }
        views.moment = moment;
        views
    }

    /// Every view is memory.
    pub fn are_memory(&mut self, memory: &[Value]) {
        for map in self.maps_mut() {
            for (c, value) in map.iter_mut() {
                value.clone_from(&memory[c.index()]);
            }
        }
    }

    /// With memory as `Lower` for these cells, and as `Upper` what was `Lower` or stays.
    pub fn of_memory(&self, cells: &[CellId], upper_is_lower: bool, memory: &[Value]) -> Views {
        let mut views = self.clone();
        for c in cells {
            views.lower.insert(*c, memory[c.index()].clone());
            if upper_is_lower {
                views.upper.insert(*c, self.lower[c].clone());
            }
        }
        views
    }
}

/// The cells that the thread may store to; `buffered` leaves out what it only writes directly.
pub fn stored(instance: &Instance, t: ThreadId, buffered: bool) -> Vec<CellId> {
    let thread = instance.thread(t);
    let steps = thread.steps.iter();
    let steps = steps.filter(|s| !(buffered && thread.direct[s.source.index()]));
    let stored = steps.filter_map(|s| s.action.stored());
    let stored = stored.flat_map(Address::extent).map(CellId::new);
    let mut cells: Vec<CellId> = stored.collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// The cells of each viewed thread's views. Refused where somebody else stores to one of them, unless
/// it is among those of which nothing is said.
pub fn cells(
    instance: &Instance,
    viewed: &[ThreadId],
    unsaid: &[CellId],
) -> Result<BTreeMap<ThreadId, Vec<CellId>>, AuditError> {
    let mut all = BTreeMap::new();
    for &t in viewed {
        if t.index() >= instance.threads.len() {
            return Err(AuditError::Corrupt(Corrupt("views of no thread")));
        }
        let own = stored(instance, t, true);
        for u in instance.thread_ids().filter(|u| *u != t) {
            let theirs = stored(instance, u, false);
            let shared = |c: &CellId| theirs.contains(c) && !unsaid.contains(c);
            if own.iter().any(shared) {
                let why = "two threads store to a cell that is known by views";
                return Err(AuditError::Refused(why.into()));
            }
        }
        all.insert(t, own);
    }
    Ok(all)
}

//! How many entries a buffer can hold at most: printz's static analysis, for the models under their
//! right names (TSO counts a thread's stores, PSO those to each cell).
//!
//! Along every path the stores since the last point with an empty buffer are counted; a loop that
//! stores without such a point has no bound.

use wattle_memory::MemoryModel;
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Thread};
use wattle_model::{CellId, Fence};

/// Counts past this are treated as unbounded: the reduced system would be too large anyway.
pub const MOST: usize = 12;

/// Per thread, the greatest number of pending stores (of one cell, under PSO); `None` if unbounded.
pub fn bound(thread: &Thread, model: MemoryModel, cells: usize) -> Option<usize> {
    match model {
        MemoryModel::Sc => Some(0),
        MemoryModel::Tso => longest(thread, &|_| true),
        MemoryModel::Pso => {
            let mut most = 0;
            for c in 0..cells {
                most = most.max(bound_of(thread, CellId::new(c))?);
            }
            Some(most)
        }
    }
}

/// The greatest number of pending stores of the thread to one cell; `None` if unbounded.
pub fn bound_of(thread: &Thread, cell: CellId) -> Option<usize> {
    longest(thread, &|place| may_be(place, cell))
}

/// Whether the address may mean the cell.
pub fn may_be(place: &Address, cell: CellId) -> bool {
    match place {
        Address::Cell(c) => *c == cell,
        Address::Computed { base, length, .. } => (base.0..base.0 + length).contains(&cell.0),
    }
}

/// The most stores that `counts` on a path without a point where the buffer is empty.
fn longest(thread: &Thread, counts: &dyn Fn(&Address) -> bool) -> Option<usize> {
    let mut pending: Vec<Option<usize>> = vec![None; thread.locations.len()];
    pending[thread.entry.index()] = Some(0);
    let mut work = vec![thread.entry];
    let mut most = 0;
    while let Some(at) = work.pop() {
        let Some(now) = pending[at.index()] else {
            continue;
        };
        for &s in thread.outgoing(at) {
            let step = thread.step(s);
            let after = match &step.action {
                Action::Fence(Fence::Full)
                | Action::AtomicBegin(Section::Drained)
                | Action::Lock
                | Action::Unlock => 0,
                Action::Store { place, .. }
                    if !thread.direct[step.source.index()] && counts(place) =>
                {
                    now + 1
                }
                Action::Skip
                | Action::Assign { .. }
                | Action::Havoc { .. }
                | Action::Assume(_)
                | Action::Assert { .. }
                | Action::Load { .. }
                | Action::Store { .. }
                | Action::Fence(_)
                | Action::AtomicBegin(_)
                | Action::AtomicEnd => now,
            };
            if after > MOST {
                return None;
            }
            most = most.max(after);
            let known = &mut pending[step.target.index()];
            if known.is_none_or(|k| k < after) {
                *known = Some(after);
                work.push(step.target);
            }
        }
    }
    Some(most)
}

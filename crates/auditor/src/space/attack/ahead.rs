//! What lies ahead of a thread, read off its graph.

#[cfg(test)]
mod tests;
use std::collections::BTreeSet;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};
use wattle_model::{Fence, RegisterId};

/// What lies ahead of a thread, per location.
pub struct Ahead {
    pub touched: Vec<BTreeSet<usize>>,
    pub written: Vec<BTreeSet<usize>>,
    /// A load of what others may write, with nothing before it that waits for an empty buffer.
    pub overtakes: Vec<bool>,
    /// A store, outside of atomic blocks, of a cell that others touch, which such a load may overtake.
    pub begins: Vec<bool>,
}

/// Whether it needs an empty buffer.
pub fn waits(action: &Action<RegisterId, Address>) -> bool {
    match action {
        Action::Fence(Fence::Full) | Action::AtomicBegin(_) | Action::Lock | Action::Unlock => true,
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Load { .. }
        | Action::Store { .. }
        | Action::Fence(Fence::Store)
        | Action::AtomicEnd => false,
    }
}

impl Ahead {
    /// Of every thread.
    pub fn of_all(threads: &[Thread]) -> Vec<Self> {
        let others = |t: usize| threads.iter().enumerate().filter(move |(u, _)| *u != t);
        let all = threads.iter().enumerate().map(|(t, thread)| {
            let steps = || others(t).flat_map(|(_, thread)| &thread.steps);
            let touched = steps().filter_map(|step| step.action.place());
            let written = steps().filter_map(|step| step.action.stored());
            let touched = touched.flat_map(Address::extent).collect();
            let written = written.flat_map(Address::extent).collect();
            Self::of(thread, &touched, &written)
        });
        all.collect()
    }

    /// Of one, and the cells that others touch and write.
    fn of(thread: &Thread, touched: &BTreeSet<usize>, written: &BTreeSet<usize>) -> Self {
        let n = thread.locations.len();
        let mut ahead = Ahead {
            touched: vec![BTreeSet::new(); n],
            written: vec![BTreeSet::new(); n],
            overtakes: vec![false; n],
            begins: vec![false; n],
        };
        let mut changed = true;
        while changed {
            changed = false;
            for step in thread.steps.iter().rev() {
                let (from, to) = (step.source.index(), step.target.index());
                let cells = |place: Option<&Address>| place.map_or(0..0, Address::extent);
                let load = cells(step.action.loaded()).any(|c| written.contains(&c));
                let overtakes = load || !waits(&step.action) && ahead.overtakes[to];
                changed |= overtakes && !ahead.overtakes[from];
                ahead.overtakes[from] |= overtakes;
                let missed = cells(step.action.stored()).any(|c| touched.contains(&c));
                let store = missed && !thread.atomic[from];
                let begins = store && ahead.overtakes[to] || ahead.begins[to];
                changed |= begins && !ahead.begins[from];
                ahead.begins[from] |= begins;
                changed |= join(&mut ahead.touched, from, to, cells(step.action.place()));
                changed |= join(&mut ahead.written, from, to, cells(step.action.stored()));
            }
        }
        ahead
    }
}

/// Adds what is ahead of `to`, and some cells, to what is ahead of `from`.
pub fn join(
    sets: &mut [BTreeSet<usize>],
    from: usize,
    to: usize,
    cells: std::ops::Range<usize>,
) -> bool {
    let new: Vec<usize> = sets[to]
        .iter()
        .copied()
        .chain(cells)
        .filter(|c| !sets[from].contains(c))
        .collect();
    sets[from].extend(&new);
    !new.is_empty()
}

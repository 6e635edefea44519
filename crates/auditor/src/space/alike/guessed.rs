//! Which cells may go with two threads that change places: a guess. Whether it is right is looked at by whoever asks.

use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};

/// Cells that one names where the other names another.
pub fn differences(a: &Thread, b: &Thread) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (a, b) in a.steps.iter().zip(&b.steps) {
        let cells = match (&a.action, &b.action) {
            (Action::Load { place: a, .. }, Action::Load { place: b, .. })
            | (Action::Store { place: a, .. }, Action::Store { place: b, .. }) => (a, b),
            (_, _) => continue,
        };
        if let (Address::Cell(c), Address::Cell(d)) = cells
            && c != d
            && !pairs.contains(&(c.index(), d.index()))
            && !pairs.contains(&(d.index(), c.index()))
        {
            pairs.push((c.index(), d.index()));
        }
    }
    pairs
}

//! Which registers matter where: those that may be read before they are written.

use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};
use wattle_model::{Expr, RegisterId};

/// Per location, which registers are live; `seen` are those the question reads, live everywhere.
pub fn live(thread: &Thread, seen: &[bool]) -> Vec<Vec<bool>> {
    let mut live = vec![seen.to_vec(); thread.locations.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for step in thread.steps.iter().rev() {
            let mut before = live[step.target.index()].clone();
            let (reads, writes) = uses(&step.action);
            if let Some(w) = writes {
                before[w.index()] = seen[w.index()];
            }
            for e in reads {
                e.for_each_atom(&mut |r| before[r.index()] = true);
            }
            for (known, now) in live[step.source.index()].iter_mut().zip(before) {
                changed |= now && !*known;
                *known |= now;
            }
        }
    }
    live
}

type Used<'a> = (Vec<&'a Expr<RegisterId>>, Option<RegisterId>);

fn uses(action: &Action<RegisterId, Address>) -> Used<'_> {
    fn index(place: &Address) -> Option<&Expr<RegisterId>> {
        match place {
            Address::Cell(_) => None,
            Address::Computed { index, .. } => Some(index),
        }
    }
    match action {
        Action::Assign { register, value } => (vec![value], Some(*register)),
        Action::Havoc { register, .. } => (Vec::new(), Some(*register)),
        Action::Assume(e) | Action::Assert { condition: e, .. } => (vec![e], None),
        Action::Load { register, place } => (index(place).into_iter().collect(), Some(*register)),
        Action::Store { place, value } => {
            let mut reads = vec![value];
            reads.extend(index(place));
            (reads, None)
        }
        Action::Skip
        | Action::Fence(_)
        | Action::AtomicBegin
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => (Vec::new(), None),
    }
}

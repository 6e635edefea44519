//! Which lock regions behave like atomic blocks.
//!
//! `lock … unlock` keeps other threads' stores out of memory but lets their loads go on. If on every
//! path through the region nothing but silent steps follows the first store, every load of another
//! thread inside the region can be moved before the lock or after the unlock: the region is a unit,
//! and the search may run it as one. Other regions keep the lock.

use wattle_model::graph::Action;
use wattle_model::instance::Thread;
use wattle_model::{LocationId, StepId};

/// Where a location lies with respect to units: atomic blocks and simple lock regions.
pub(super) struct Units {
    /// Inside a unit: no other thread has an event.
    pub inside: Vec<bool>,
    /// The thread's `lock` and `unlock` steps delimit units.
    pub locks_are_units: bool,
}

pub(super) fn units(thread: &Thread, wanted: bool) -> Units {
    let has_lock = thread
        .steps
        .iter()
        .any(|s| matches!(s.action, Action::Lock | Action::Unlock));
    if wanted
        && has_lock
        && let Some(inside) = simple(thread)
    {
        return Units {
            inside,
            locks_are_units: true,
        };
    }
    Units {
        inside: thread.atomic.clone(),
        locks_are_units: false,
    }
}

/// The locations inside regions, if all regions of the thread are simple.
fn simple(thread: &Thread) -> Option<Vec<bool>> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum At {
        Outside,
        Before,
        AfterStore,
    }
    let mut at: Vec<Option<At>> = vec![None; thread.locations.len()];
    let mut work: Vec<(LocationId, At)> = vec![(thread.entry, At::Outside)];
    while let Some((l, here)) = work.pop() {
        match at[l.index()] {
            Some(known) if known == here => continue,
            Some(_) => return None,
            None => at[l.index()] = Some(here),
        }
        if here == At::AfterStore && thread.ended(l) {
            return None;
        }
        for s in thread.outgoing(l) {
            let step = thread.step(*s);
            let atomic = thread.atomic[l.index()];
            let next = match (&step.action, here) {
                (Action::Lock, At::Outside) => At::Before,
                // A thread that locks twice, or unlocks without holding, waits for ever; before the
                // first store nobody can tell.
                (Action::Lock, At::Before) | (Action::Unlock, At::Outside) => continue,
                (Action::Unlock, _) => At::Outside,
                (Action::AtomicBegin, At::Before) => return None,
                (Action::Store { .. }, At::Before) => At::AfterStore,
                (_, At::AfterStore) if !silent(&step.action) => return None,
                (Action::Store { .. }, At::Outside) if atomic => At::Outside,
                (_, here) => here,
            };
            work.push((step.target, next));
        }
    }
    if silent_loop(thread, &|l| at[l] == Some(At::AfterStore)) {
        return None;
    }
    let inside = at.iter().enumerate();
    let inside =
        inside.map(|(l, a)| thread.atomic[l] || matches!(a, Some(At::Before | At::AfterStore)));
    Some(inside.collect())
}

/// Steps that touch only registers and cannot block.
fn silent(action: &Action<wattle_model::RegisterId, wattle_model::instance::Address>) -> bool {
    matches!(
        action,
        Action::Skip | Action::Assign { .. } | Action::Havoc { .. } | Action::Fence(_)
    )
}

/// Whether the locations chosen form a loop: a thread could stay there for ever.
fn silent_loop(thread: &Thread, chosen: &dyn Fn(usize) -> bool) -> bool {
    let edges = |l: usize| -> Vec<usize> {
        let out = thread.outgoing(LocationId::new(l)).iter();
        let out = out.map(|s: &StepId| thread.step(*s).target.index());
        out.filter(|t| chosen(*t)).collect()
    };
    let roots = (0..thread.locations.len()).filter(|l| chosen(*l));
    super::local::components(thread.locations.len(), roots, &edges)
        .iter()
        .enumerate()
        .any(|(l, c)| chosen(l) && c.cyclic)
}

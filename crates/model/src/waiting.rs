//! Where a thread must not stay for ever: the meaning of `progress`.
//!
//! Every run must, for every thread and every *trap* of it, be outside the trap again and again. The
//! traps of a thread are
//!
//! - every single location from which a step leads elsewhere (a thread that has not ended goes on);
//! - every *waiting loop*: the locations of a loop that is left by a test of what was read in it.
//!
//! Loops are found from back edges of a depth-first walk: the locations from which the edge's source
//! is reached without passing its target. All loops with the same target make one loop together; in
//! addition every single one of them counts that stores nothing but inside drained atomic blocks. So
//! `loop { while x == 1 { } critical: skip; }`, where both loops begin at the same place, has the
//! waiting loop one thinks of, and in `loop { choose { … } or { … } }` no branch is one.

use crate::graph::Action;
use crate::ids::{LocationId, RegisterId};
use crate::instance::Thread;
use std::collections::{BTreeMap, BTreeSet};

/// The sets of locations (sorted) in which the thread must not stay for ever.
pub fn traps(thread: &Thread) -> Vec<Vec<LocationId>> {
    let mut traps: Vec<Vec<LocationId>> = Vec::new();
    for (l, out) in thread.outgoing.iter().enumerate() {
        let stays = |s: &crate::StepId| thread.step(*s).target.index() == l;
        if !out.is_empty() && !out.iter().any(stays) && !thread.atomic[l] {
            traps.push(vec![LocationId::new(l)]);
        }
    }
    for waiting in loops(thread) {
        if !traps.contains(&waiting) {
            traps.push(waiting);
        }
    }
    traps
}

/// The waiting loops, each as its sorted locations.
pub fn loops(thread: &Thread) -> Vec<Vec<LocationId>> {
    let mut by_header: BTreeMap<usize, Vec<BTreeSet<usize>>> = BTreeMap::new();
    for (source, header) in back_edges(thread) {
        let natural = natural_loop(thread, source, header);
        by_header.entry(header).or_default().push(natural);
    }
    let mut found: BTreeSet<Vec<LocationId>> = BTreeSet::new();
    let mut add = |set: &BTreeSet<usize>| {
        if is_left_by_test(thread, set) {
            found.insert(set.iter().map(|l| LocationId::new(*l)).collect());
        }
    };
    for same in by_header.values() {
        let merged: BTreeSet<usize> = same.iter().flatten().copied().collect();
        add(&merged);
        same.iter()
            .filter(|one| **one != merged && only_looks(thread, one))
            .for_each(&mut add);
    }
    found.into_iter().collect()
}

/// Edges to a location that a depth-first walk has entered and not left, as source and target.
fn back_edges(thread: &Thread) -> Vec<(usize, usize)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut mark = vec![Mark::New; thread.locations.len()];
    let mut found = Vec::new();
    let mut path = vec![(thread.entry.index(), 0)];
    mark[thread.entry.index()] = Mark::Open;
    while let Some((l, next)) = path.last_mut() {
        let Some(step) = thread.outgoing[*l].get(*next) else {
            mark[*l] = Mark::Done;
            path.pop();
            continue;
        };
        *next += 1;
        let (source, target) = (*l, thread.step(*step).target.index());
        match mark[target] {
            Mark::New => {
                mark[target] = Mark::Open;
                path.push((target, 0));
            }
            Mark::Open => found.push((source, target)),
            Mark::Done => {}
        }
    }
    found
}

/// The header, and what reaches the source without passing it.
fn natural_loop(thread: &Thread, source: usize, header: usize) -> BTreeSet<usize> {
    let mut inside = BTreeSet::from([header, source]);
    let mut work = vec![source];
    while let Some(l) = work.pop() {
        if l == header {
            continue;
        }
        for step in thread.steps.iter().filter(|s| s.target.index() == l) {
            if inside.insert(step.source.index()) {
                work.push(step.source.index());
            }
        }
    }
    inside
}

/// Something is loaded in the set, and some step out of it is a test of a register that is loaded or
/// computed in it (an exchange that failed is told by a constant).
fn is_left_by_test(thread: &Thread, set: &BTreeSet<usize>) -> bool {
    let inside = || {
        let steps = thread.steps.iter();
        steps.filter(|s| set.contains(&s.source.index()))
    };
    let mut loads = false;
    let mut written: BTreeSet<RegisterId> = BTreeSet::new();
    for action in inside().map(|s| &s.action) {
        loads |= action.loaded().is_some();
        written.extend(action.written().filter(|_| action.chosen().is_none()));
    }
    let tests = |step: &crate::instance::Step| {
        let mut looks = false;
        if let Action::Assume(e) = &step.action {
            e.for_each_atom(&mut |r| looks |= written.contains(r));
        }
        looks
    };
    loads && inside().any(|s| !set.contains(&s.target.index()) && tests(s))
}

/// Nothing is stored but by exchanges: what others can see does not change while the loop waits, or
/// only in one step with the look.
fn only_looks(thread: &Thread, set: &BTreeSet<usize>) -> bool {
    let mut steps = thread.steps.iter();
    !steps.any(|s| {
        let inside = set.contains(&s.source.index()) && set.contains(&s.target.index());
        inside && matches!(s.action, Action::Store { .. }) && !thread.direct[s.source.index()]
    })
}

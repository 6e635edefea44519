//! Which registers matter at which location: the classic backward analysis. A register no path reads
//! before writing it is dead, and states that differ only in dead registers are one state.

use super::view::View;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};
use wattle_model::{Expr, RegisterId};

/// Per location, per register: live.
pub fn live(thread: &Thread, t: usize, view: &View) -> Vec<Vec<bool>> {
    let n = thread.registers.len();
    let mut live = vec![vec![false; n]; thread.locations.len()];
    // What the question reads is live wherever it can look: everywhere, or at the ends.
    for (l, live) in live.iter_mut().enumerate() {
        if !view.only_final || thread.outgoing[l].is_empty() {
            live.clone_from(&view.registers[t]);
        }
    }
    let mut incoming = vec![Vec::new(); thread.locations.len()];
    for (s, step) in thread.steps.iter().enumerate() {
        incoming[step.target.index()].push(s);
    }
    let mut waiting = vec![true; thread.locations.len()];
    let mut work: Vec<usize> = (0..thread.locations.len()).collect();
    // Every step contributes what it reads even if what follows it never changes.
    while let Some(l) = work.pop() {
        waiting[l] = false;
        let after = live[l].clone();
        for &s in &incoming[l] {
            let step = &thread.steps[s];
            let mut before = after.clone();
            transfer(&step.action, &mut before);
            let source = step.source.index();
            let mut changed = false;
            for (known, new) in live[source].iter_mut().zip(&before) {
                changed |= *new && !*known;
                *known |= *new;
            }
            if changed && !waiting[source] {
                waiting[source] = true;
                work.push(source);
            }
        }
    }
    live
}

fn transfer(action: &Action<RegisterId, Address>, live: &mut [bool]) {
    fn reads(e: &Expr<RegisterId>, live: &mut [bool]) {
        e.for_each_atom(&mut |r| live[r.index()] = true);
    }
    fn reads_place(place: &Address, live: &mut [bool]) {
        if let Address::Computed { index, .. } = place {
            reads(index, live);
        }
    }
    match action {
        Action::Assign { register, value } => {
            live[register.index()] = false;
            reads(value, live);
        }
        Action::Havoc { register, .. } => live[register.index()] = false,
        Action::Assume(e) | Action::Assert { condition: e, .. } => reads(e, live),
        Action::Load { register, place } => {
            live[register.index()] = false;
            reads_place(place, live);
        }
        Action::Store { place, value } => {
            reads(value, live);
            reads_place(place, live);
        }
        Action::Skip
        | Action::Fence(_)
        | Action::AtomicBegin
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => {}
    }
}

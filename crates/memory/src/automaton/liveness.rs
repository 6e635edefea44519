//! Which registers matter at each location: those some later step may read before writing them.

use wattle_model::graph::Action;
use wattle_model::instance::{Address, Thread};
use wattle_model::{Expr, RegisterId};

/// Per location, per register: whether its value may still be read.
pub type Live = Vec<Vec<bool>>;

/// Registers in `always` are live everywhere (a property reads them).
pub fn live_registers(thread: &Thread, always: &[RegisterId]) -> Live {
    let mut at_all = vec![false; thread.registers.len()];
    for r in always {
        at_all[r.index()] = true;
    }
    let mut live = vec![at_all.clone(); thread.locations.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for step in thread.steps.iter().rev() {
            let mut before = live[step.target.index()].clone();
            if let Some(r) = written(&step.action) {
                before[r.index()] = at_all[r.index()];
            }
            read(&step.action, &mut |r| before[r.index()] = true);
            let here = &mut live[step.source.index()];
            for (h, b) in here.iter_mut().zip(before) {
                if b && !*h {
                    *h = true;
                    changed = true;
                }
            }
        }
    }
    live
}

fn written<P>(action: &Action<RegisterId, P>) -> Option<RegisterId> {
    match action {
        Action::Assign { register, .. }
        | Action::Havoc { register, .. }
        | Action::Load { register, .. } => Some(*register),
        _ => None,
    }
}

fn read(action: &Action<RegisterId, Address>, visit: &mut dyn FnMut(RegisterId)) {
    let mut expr = |e: &Expr<RegisterId>| e.for_each_atom(&mut |r| visit(*r));
    match action {
        Action::Assign { value, .. } => expr(value),
        Action::Assume(e) => expr(e),
        Action::Assert { condition, .. } => expr(condition),
        Action::Load { place, .. } => address(place, &mut expr),
        Action::Store { place, value } => {
            address(place, &mut expr);
            expr(value);
        }
        Action::Skip
        | Action::Havoc { .. }
        | Action::Fence(_)
        | Action::AtomicBegin
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => {}
    }
}

fn address(place: &Address, expr: &mut dyn FnMut(&Expr<RegisterId>)) {
    if let Address::Computed { index, .. } = place {
        expr(index);
    }
}

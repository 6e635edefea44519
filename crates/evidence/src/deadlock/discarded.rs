//! Runs that are none of the program's.

use wattle_memory::reference::State;
use wattle_model::graph::Action;
use wattle_model::instance::Thread;
use wattle_model::{Expr, Instance, LocationId, RegisterId};

/// Whether some thread stands before nothing but false assumptions, outside atomic blocks: its
/// registers will never change, so the run is to be discarded.
pub fn is_discarded<B>(instance: &Instance, state: &State<B>) -> bool {
    let inside = |(t, at): (&Thread, &LocationId)| t.atomic[at.index()];
    if instance.threads.iter().zip(&state.locations).any(inside) {
        return false;
    }
    let mut threads = instance.thread_ids();
    threads.any(|t| {
        let (thread, registers) = (instance.thread(t), &state.registers[t.index()]);
        let out = thread.outgoing(state.locations[t.index()]);
        !out.is_empty()
            && out.iter().all(|s| {
                let at = |r: &RegisterId| registers[r.index()];
                matches!(&thread.step(*s).action, Action::Assume(e) if e.eval(&at) == Ok(0))
            })
    })
}

/// Whether a thread may ever be [discarded](is_discarded) at the location: all its steps are assumptions, and
/// no two of them are each other's negation.
pub fn may_be_discarded(thread: &Thread, at: LocationId) -> bool {
    let mut guards = Vec::new();
    for s in thread.outgoing(at) {
        let Action::Assume(e) = &thread.step(*s).action else {
            return false;
        };
        guards.push(e);
    }
    let negated = |e: &Expr<RegisterId>| guards.contains(&&e.clone().negate());
    !guards.is_empty() && !guards.iter().any(|e| negated(e)) && !thread.atomic[at.index()]
}

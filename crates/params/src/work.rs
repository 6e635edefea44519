//! What was done, by a count that is the same on every machine.
//!
//! From one look at the outside world to the next a search does sometimes little and sometimes very much. Whoever
//! does one of the things that are done most says so; the engine polls by the sum of what they take. Each is the
//! least-squares mean over the families and systems of the suites, for most of which the sum is between half and one
//! and a half times what was measured.

use std::cell::Cell;

/// About how many nanoseconds something takes, with what comes with it.
pub type Takes = u64;

/// A parameter of a step is bound, or a literal looked at, in a view.
pub const BIND: Takes = 120;
pub const TEST: Takes = 40;
/// What a view does not say is chosen; three views are put together.
pub const COMPLETE: Takes = 1300;
pub const MERGE: Takes = 750;
/// A literal is taken into a cube; a step is taken backwards; two cubes are compared.
pub const LITERAL: Takes = 25;
pub const STEP_BACK: Takes = 650;
pub const COVERS: Takes = 300;
/// One row of linear constraints is gone through.
pub const ROW: Takes = 100;
/// A step of an instance is tried; one with remembered writes is taken; a state is renamed.
pub const STEP: Takes = 35;
pub const REMEMBERED: Takes = 3200;
pub const RENAMED: Takes = 80;

thread_local! {
    static DONE: Cell<u64> = const { Cell::new(0) };
}

/// This was done.
pub fn done(takes: Takes) {
    many(takes, 1);
}

/// This was done so often.
pub fn many(takes: Takes, times: usize) {
    DONE.with(|d| d.set(d.get().wrapping_add(takes * times as u64)));
}

/// What this thread has done until now.
pub fn so_far() -> u64 {
    DONE.with(Cell::get)
}

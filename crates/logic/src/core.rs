//! Smaller unsatisfiable cores on request.

use crate::formula::Formula;
use crate::solver::{Answer, Solver};

/// A core of `assertions` no member of which can be left out (as far as the
/// solver can tell: a member whose removal it cannot decide stays). `core` is
/// one to start from, as [`crate::Refutation::core`] gives it.
pub fn minimal_core<S: Solver + ?Sized>(
    solver: &mut S,
    assertions: &[Formula],
    core: &[usize],
) -> Vec<usize> {
    let mut kept = core.to_vec();
    let mut at = 0;
    while at < kept.len() {
        let mut rest = kept.clone();
        rest.remove(at);
        let query: Vec<Formula> = rest.iter().map(|&i| assertions[i].clone()).collect();
        match solver.check(&query) {
            // Members before `at` are known to be needed, so they are in the new core too.
            Answer::Unsat(r) => kept = r.core.iter().map(|&i| rest[i]).collect(),
            Answer::Sat(_) | Answer::Unknown(_) => at += 1,
        }
    }
    kept
}

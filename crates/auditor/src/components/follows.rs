//! Whether an automaton reads every run that breaks a demand.
//!
//! For every way to satisfy a state's parts there must be an edge that asks for no more now, leads to a state with no more
//! parts, and is in every acceptance set whose until is not put off. Expansion is monotone, so by induction the automaton
//! follows whatever the textbook's does, and accepts what that accepts.

use crate::AuditError;
use crate::live::automaton::{expand, is_negation, is_whole};
use crate::live::other;
use std::collections::BTreeSet;
use wattle_evidence::certificate::components::Automaton;
use wattle_evidence::live::LiveTask;

pub fn follows(task: &LiveTask<'_>, a: &Automaton) -> Result<(), AuditError> {
    is_whole(a)?;
    let begins = match task.formula() {
        None => BTreeSet::new(),
        Some(formula) => {
            if !is_negation(a, &task.atoms(), formula, true, a.root) {
                return Err(other("its automaton is about another formula"));
            }
            BTreeSet::from([a.root])
        }
    };
    let of = |s: u32| -> BTreeSet<u32> { a.states[s as usize].parts.iter().copied().collect() };
    if !of(a.initial).is_subset(&begins) {
        return Err(other("its automaton begins with more than the formula"));
    }
    for (i, state) in a.states.iter().enumerate() {
        for way in expand(a, of(i as u32)) {
            let followed = state.edges.iter().any(|e| {
                let fulfilled = a.untils.iter().enumerate().all(|(k, until)| {
                    way.put_off.contains(until) || e.accepting.contains(&(k as u32))
                });
                e.now.iter().all(|l| way.now.contains(l))
                    && of(e.target).is_subset(&way.later)
                    && fulfilled
            });
            if !followed {
                return Err(other(
                    "its automaton leaves out runs that break the formula",
                ));
            }
        }
    }
    Ok(())
}

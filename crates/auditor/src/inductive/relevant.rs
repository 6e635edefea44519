//! Which facts are worth telling the solver.

use std::collections::BTreeSet;
use wattle_logic::{Formula, Var};

/// Those that share variables with the goal, directly or through others, by their places.
pub fn relevant(facts: &[Formula], goal: &[Formula]) -> Vec<usize> {
    let mut vars = BTreeSet::new();
    goal.iter().for_each(|f| f.collect_vars(&mut vars));
    let mut left: Vec<(usize, BTreeSet<Var>)> =
        facts.iter().map(Formula::vars).enumerate().collect();
    let mut kept = Vec::new();
    loop {
        let before = left.len();
        left.retain(|(i, theirs)| {
            let apart = theirs.is_disjoint(&vars);
            if !apart {
                vars.extend(theirs);
                kept.push(*i);
            }
            apart
        });
        if left.len() == before {
            return kept;
        }
    }
}

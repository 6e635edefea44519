//! Whether an automaton accepts only runs that satisfy a formula, or its negation: every edge of a state asks for what some way of its
//! parts asks for, leads to a state with all that remains, and is in no acceptance set whose until is put off. Then the textbook's automaton
//! can follow it (by monotony, with no more parts), and accepts what it accepts.

use crate::AuditError;
use crate::live::automaton::{Way, expand, is_negation, is_whole};
use crate::live::other;
use std::collections::BTreeSet;
use wattle_evidence::certificate::components::{Automaton, Part};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula};

pub fn accepts_only(
    a: &Automaton,
    atoms: &[&Expr<Fact>],
    formula: &Formula<Expr<Fact>>,
    negated: bool,
) -> Result<(), AuditError> {
    is_whole(a)?;
    if !is_negation(a, atoms, formula, negated, a.root) {
        return Err(other("its automaton is about another formula"));
    }
    let of = |s: u32| -> BTreeSet<u32> { a.states[s as usize].parts.iter().copied().collect() };
    if !of(a.initial).contains(&a.root) {
        return Err(other("its automaton begins with less than the formula"));
    }
    let until = |(i, p): (usize, &Part)| match p {
        Part::Until(..) => a.untils.contains(&(i as u32)),
        Part::True
        | Part::False
        | Part::Literal(..)
        | Part::And(..)
        | Part::Or(..)
        | Part::Release(..) => true,
    };
    if !a.parts.iter().enumerate().all(until) || a.untils.len() > u64::BITS as usize {
        return Err(other("its automaton may put something off for ever"));
    }
    for (i, state) in a.states.iter().enumerate() {
        let ways = expand(a, of(i as u32));
        for e in &state.edges {
            let put_off = |way: &Way| {
                let mut sets = e.accepting.iter();
                sets.any(|k| way.put_off.contains(&a.untils[*k as usize]))
            };
            let later = of(e.target);
            let enough = ways.iter().any(|way| {
                way.now.iter().all(|l| e.now.contains(l))
                    && way.later.is_subset(&later)
                    && !put_off(way)
            });
            if !enough {
                return Err(other("its automaton accepts what it should not"));
            }
        }
    }
    Ok(())
}

//! What the states of an automaton stand for.
//!
//! A set of parts of a formula is *expanded* by the textbook rules into ways to satisfy it: what must be true now, what remains
//! for later, and which untils are put off. Expansion is monotone: of a smaller set, every way of a larger one has a way that
//! asks for less.

#[cfg(test)]
mod tests;
use crate::AuditError;
use std::collections::BTreeSet;
use wattle_evidence::certificate::Corrupt;
use wattle_evidence::certificate::components::{Automaton, Part};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Formula};

/// Whether all that is named is there.
pub fn is_whole(a: &Automaton) -> Result<(), AuditError> {
    let parts = a.parts.len() as u32;
    let known = |i: &u32| *i < parts;
    // Parts come before what they are part of: there are no circles.
    let ordered = a.parts.iter().enumerate().all(|(i, p)| match p {
        Part::True | Part::False | Part::Literal(..) => true,
        Part::And(f, g) | Part::Or(f, g) | Part::Until(f, g) | Part::Release(f, g) => {
            (*f as usize) < i && (*g as usize) < i
        }
    });
    let states = a.states.len() as u32;
    let inside = a.states.iter().all(|s| {
        let mut edges = s.edges.iter();
        s.parts.iter().all(known) && edges.all(|e| e.target < states)
    });
    let sets = a.untils.len() as u32;
    let mut edges = a.states.iter().flat_map(|s| &s.edges);
    let accepting = edges.all(|e| e.accepting.iter().all(|k| *k < sets));
    let named = known(&a.root) && a.initial < states && a.untils.iter().all(known);
    if !(ordered && inside && accepting && named) {
        return Err(Corrupt("its automaton names something it does not have").into());
    }
    Ok(())
}

/// Whether the part says the formula, or its negation.
pub fn is_negation(
    a: &Automaton,
    atoms: &[&Expr<Fact>],
    f: &Formula<Expr<Fact>>,
    negated: bool,
    part: u32,
) -> bool {
    let is = |f: &Formula<Expr<Fact>>, negated: bool, part: &u32| {
        is_negation(a, atoms, f, negated, *part)
    };
    let constant = |part: &u32, value: Part| a.parts[*part as usize] == value;
    match (f, &a.parts[part as usize], negated) {
        (Formula::Now(e), Part::Literal(i, positive), _) => {
            atoms.get(*i as usize) == Some(&e) && *positive != negated
        }
        (Formula::Not(f), _, _) => is(f, !negated, &part),
        (Formula::And(f, g), Part::And(i, j), false)
        | (Formula::And(f, g), Part::Or(i, j), true)
        | (Formula::Or(f, g), Part::Or(i, j), false)
        | (Formula::Or(f, g), Part::And(i, j), true)
        | (Formula::Until(f, g), Part::Until(i, j), false)
        | (Formula::Until(f, g), Part::Release(i, j), true)
        | (Formula::Release(f, g), Part::Release(i, j), false)
        | (Formula::Release(f, g), Part::Until(i, j), true) => {
            is(f, negated, i) && is(g, negated, j)
        }
        (Formula::Implies(f, g), Part::Or(i, j), false)
        | (Formula::Implies(f, g), Part::And(i, j), true) => {
            is(f, !negated, i) && is(g, negated, j)
        }
        (Formula::Globally(f), Part::Release(i, j), false)
        | (Formula::Finally(f), Part::Release(i, j), true) => {
            constant(i, Part::False) && is(f, negated, j)
        }
        (Formula::Finally(f), Part::Until(i, j), false)
        | (Formula::Globally(f), Part::Until(i, j), true) => {
            constant(i, Part::True) && is(f, negated, j)
        }
        // f W g is g R (f || g).
        (Formula::WeakUntil(f, g), Part::Release(i, j), false) => {
            let either = &a.parts[*j as usize];
            is(g, false, i)
                && matches!(either, Part::Or(k, l) if is(f, false, k) && is(g, false, l))
        }
        (Formula::WeakUntil(f, g), Part::Until(i, j), true) => {
            let both = &a.parts[*j as usize];
            is(g, true, i) && matches!(both, Part::And(k, l) if is(f, true, k) && is(g, true, l))
        }
        _ => false,
    }
}

/// One way to satisfy a set of parts.
#[derive(Clone, Default)]
pub struct Way {
    pub now: BTreeSet<(u32, bool)>,
    pub later: BTreeSet<u32>,
    pub put_off: BTreeSet<u32>,
}

/// The ways to satisfy a set of parts, by the textbook's rules.
pub fn expand(a: &Automaton, parts: BTreeSet<u32>) -> Vec<Way> {
    let mut work: Vec<(Vec<u32>, BTreeSet<u32>, Way)> =
        vec![(parts.into_iter().collect(), BTreeSet::new(), Way::default())];
    let mut ways = Vec::new();
    while let Some((mut todo, mut done, mut way)) = work.pop() {
        let Some(part) = todo.pop() else {
            ways.push(way);
            continue;
        };
        if !done.insert(part) {
            work.push((todo, done, way));
            continue;
        }
        let with = |more: &[u32]| {
            let mut todo = todo.clone();
            todo.extend(more);
            todo
        };
        match a.parts[part as usize] {
            Part::True => work.push((todo, done, way)),
            Part::False => {}
            Part::Literal(i, positive) => {
                if !way.now.contains(&(i, !positive)) {
                    way.now.insert((i, positive));
                    work.push((todo, done, way));
                }
            }
            Part::And(f, g) => work.push((with(&[f, g]), done, way)),
            Part::Or(f, g) => {
                work.push((with(&[f]), done.clone(), way.clone()));
                work.push((with(&[g]), done, way));
            }
            Part::Until(f, g) => {
                work.push((with(&[g]), done.clone(), way.clone()));
                way.later.insert(part);
                way.put_off.insert(part);
                work.push((with(&[f]), done, way));
            }
            Part::Release(f, g) => {
                work.push((with(&[f, g]), done.clone(), way.clone()));
                way.later.insert(part);
                work.push((with(&[g]), done, way));
            }
        }
    }
    ways
}

//! Equivalent but shorter formulas, by looking only: no solver is asked.
//!
//! Within a conjunction the tightest of parallel inequalities stays, and
//! `t <= 0 && -t <= 0` is `t == 0`; dually within a disjunction. A part that
//! another part already decides is absorbed.

use crate::atom::{Atom, Rel};
use crate::formula::{Formula, and, or};
use crate::int::Int;
use crate::term::Term;
use std::collections::BTreeMap;

impl Formula {
    /// An equivalent formula, often shorter and never larger in kind: built from
    /// the same directions.
    pub fn simplified(&self) -> Formula {
        match self {
            Formula::And(parts) => {
                let parts = and(parts.iter().map(Formula::simplified));
                match parts {
                    Formula::And(parts) => absorb(merge(&parts, true), true),
                    other
                    @ (Formula::True | Formula::False | Formula::Atom(_) | Formula::Or(_)) => other,
                }
            }
            Formula::Or(parts) => {
                let parts = or(parts.iter().map(Formula::simplified));
                match parts {
                    Formula::Or(parts) => absorb(merge(&parts, false), false),
                    other @ (Formula::True
                    | Formula::False
                    | Formula::Atom(_)
                    | Formula::And(_)) => other,
                }
            }
            other @ (Formula::True | Formula::False | Formula::Atom(_)) => other.clone(),
        }
    }
}

/// What is known of one direction `d = Σ a·x` (first coefficient positive):
/// `lower <= d`, `d <= upper` (all must hold, or one of them).
#[derive(Default)]
struct Range {
    lower: Option<Int>,
    upper: Option<Int>,
}

fn merge(parts: &[Formula], conjunction: bool) -> Vec<Formula> {
    let mut ranges: BTreeMap<Term, Range> = BTreeMap::new();
    let mut rest = Vec::new();
    for part in parts {
        let Some(atom) = part.as_atom() else {
            rest.push(part.clone());
            continue;
        };
        let flip = atom
            .term()
            .coeffs()
            .first()
            .is_some_and(|(_, a)| a.is_negative());
        let term = if flip {
            -atom.term()
        } else {
            atom.term().clone()
        };
        let c = term.constant_part().clone();
        let direction = term.with_constant(Int::ZERO);
        let range = match atom.rel() {
            Rel::Le => ranges.entry(direction).or_default(),
            Rel::Eq if conjunction => {
                let range = ranges.entry(direction).or_default();
                tighten(&mut range.lower, -&c, |new, old| new > old);
                tighten(&mut range.upper, -&c, |new, old| new < old);
                continue;
            }
            Rel::Eq | Rel::Ne | Rel::Divides(_) | Rel::NotDivides(_) => {
                rest.push(part.clone());
                continue;
            }
        };
        // flipped: -d + c' <= 0 where c' = -c; else d + c <= 0
        if flip {
            tighten(&mut range.lower, -&c, |new, old| (new > old) == conjunction);
        } else {
            tighten(&mut range.upper, -&c, |new, old| (new < old) == conjunction);
        }
    }
    for (direction, range) in ranges {
        let le = |bound: &Int| Atom::normal(direction.clone() - bound.clone(), Rel::Le);
        let ge = |bound: &Int| Atom::normal(-&direction + bound.clone(), Rel::Le);
        match (range.lower, range.upper) {
            (Some(l), Some(u)) if conjunction && l > u => return vec![Formula::False],
            (Some(l), Some(u)) if conjunction && l == u => {
                rest.push(Atom::normal(direction.clone() - u, Rel::Eq));
            }
            (Some(l), Some(u)) if !conjunction && l <= &u + &Int::ONE => {
                return vec![Formula::True];
            }
            (Some(l), Some(u)) if !conjunction && l == &u + &Int::new(2) => {
                rest.push(Atom::normal(direction.clone() - (&u + &Int::ONE), Rel::Ne));
            }
            (lower, upper) => {
                rest.extend(lower.as_ref().map(ge));
                rest.extend(upper.as_ref().map(le));
            }
        }
    }
    rest
}

fn tighten(slot: &mut Option<Int>, value: Int, better: impl Fn(&Int, &Int) -> bool) {
    if slot.as_ref().is_none_or(|old| better(&value, old)) {
        *slot = Some(value);
    }
}

/// `a && (a || b)` is `a`; `a || (a && b)` is `a`; and an inner part that the
/// outer context decides is dropped.
fn absorb(parts: Vec<Formula>, conjunction: bool) -> Formula {
    let joined = |parts: Vec<Formula>| if conjunction { and(parts) } else { or(parts) };
    let mut kept = Vec::with_capacity(parts.len());
    for part in &parts {
        let (inner, dual) = match part {
            Formula::Or(inner) => (inner, conjunction),
            Formula::And(inner) => (inner, !conjunction),
            other @ (Formula::True | Formula::False | Formula::Atom(_)) => {
                kept.push(other.clone());
                continue;
            }
        };
        if !dual {
            kept.push(part.clone());
            continue;
        }
        if inner.iter().any(|f| parts.contains(f)) {
            continue;
        }
        let left: Vec<Formula> = inner
            .iter()
            .filter(|f| !parts.contains(&f.negated()))
            .cloned()
            .collect();
        if left.len() == inner.len() {
            kept.push(part.clone());
        } else {
            kept.push(if conjunction { or(left) } else { and(left) });
        }
    }
    joined(kept)
}

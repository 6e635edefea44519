//! What all cases of a disjunction have in common.
//!
//! `x == 0 || x == 1 || x == 2` bounds `x`, and `y == x + 1 || y == x + 2` bounds
//! `y - x`: for a direction that every disjunct bounds, the weakest of these
//! bounds holds anyway. It costs nothing to find, often refutes a query without
//! splitting, and is a lemma of one disjunction alone.

use super::facts::{Intro, Ledger};
use crate::atom::Rel;
use crate::formula::{Formula, ge, le};
use crate::int::Int;
use crate::proof::{End, FactId, Proof, Step};
use crate::term::Term;

/// A bound that one disjunct states: by its conjunct number `at`, with that sign.
struct Stated {
    direction: Term,
    upper: bool,
    value: Int,
    at: usize,
    sign: Int,
}

/// A bound that the whole disjunction implies.
pub(super) struct Bound {
    pub(super) literal: Formula,
    /// The name of the literal.
    pub(super) fact: FactId,
    /// The lemma, and the step from it to the literal.
    pub(super) steps: [Intro; 2],
}

/// The bounds implied by the fact `of`, which is the disjunction of `parts`.
pub(super) fn bounds(of: FactId, parts: &[Formula], ledger: &mut Ledger<'_>) -> Vec<Bound> {
    let Some((first, rest)) = parts.split_first() else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let candidates = stated(first);
    if candidates.is_empty() {
        return out;
    }
    let others: Vec<Vec<Stated>> = rest.iter().map(stated).collect();
    for candidate in candidates {
        let same = |s: &&Stated| s.upper == candidate.upper && s.direction == candidate.direction;
        let mut chosen = vec![&candidate];
        chosen.extend(others.iter().filter_map(|part| part.iter().find(same)));
        if chosen.len() < parts.len() {
            continue;
        }
        let values = chosen.iter().map(|s| &s.value);
        let Some(weakest) = (if candidate.upper {
            values.max()
        } else {
            values.min()
        }) else {
            continue;
        };
        let literal = if candidate.upper {
            le(&candidate.direction, weakest.clone())
        } else {
            ge(&candidate.direction, weakest.clone())
        };
        out.push(lemma(of, parts, literal, &chosen, ledger));
    }
    out
}

/// The bounds a conjunction of atoms states, the tightest per direction and side.
fn stated(part: &Formula) -> Vec<Stated> {
    let mut out: Vec<Stated> = Vec::new();
    for (at, atom) in part
        .conjuncts()
        .iter()
        .enumerate()
        .filter_map(|(i, f)| Some((i, f.as_atom()?)))
    {
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
        let value = -term.constant_part();
        let direction = term.with_constant(Int::ZERO);
        let sides: &[bool] = match atom.rel() {
            Rel::Le => &[!flip],
            Rel::Eq => &[true, false],
            Rel::Ne | Rel::Divides(_) | Rel::NotDivides(_) => continue,
        };
        for &upper in sides {
            let sign = if *atom.rel() == Rel::Eq && !upper {
                Int::MINUS_ONE
            } else {
                Int::ONE
            };
            let new = Stated {
                direction: direction.clone(),
                upper,
                value: value.clone(),
                at,
                sign,
            };
            match out
                .iter_mut()
                .find(|s| s.upper == upper && s.direction == direction)
            {
                Some(old) if (new.value < old.value) == upper => *old = new,
                Some(_) => {}
                None => out.push(new),
            }
        }
    }
    out
}

fn lemma(
    of: FactId,
    parts: &[Formula],
    literal: Formula,
    chosen: &[&Stated],
    ledger: &mut Ledger<'_>,
) -> Bound {
    let (assumed, case) = (ledger.fresh(1), ledger.fresh(1));
    let mut branches = Vec::with_capacity(parts.len());
    for (part, stated) in parts.iter().zip(chosen) {
        let (steps, bound) = match part {
            Formula::And(conjuncts) => {
                let first = ledger.fresh(conjuncts.len() as u32);
                (
                    vec![Step::Conjuncts { of: case, first }],
                    FactId(first.0 + stated.at as u32),
                )
            }
            Formula::True | Formula::False | Formula::Atom(_) | Formula::Or(_) => {
                (Vec::new(), case)
            }
        };
        let end = End::Farkas(vec![(bound, stated.sign.clone()), (assumed, Int::ONE)]);
        branches.push(Proof { steps, end });
    }
    let proof = Proof::from(End::Cases {
        of,
        fact: case,
        branches,
    });
    let (clause, fact) = (ledger.fresh(1), ledger.fresh(1));
    let literals = vec![literal.clone()];
    let lemma = Step::Lemma {
        literals,
        assume: vec![assumed],
        proof,
        fact: clause,
    };
    let unit = Step::Unit {
        of: clause,
        keep: 0,
        against: Vec::new(),
        fact,
    };
    let steps = [
        Intro {
            step: lemma,
            first: clause,
            count: 1,
            uses: vec![of],
        },
        Intro {
            step: unit,
            first: fact,
            count: 1,
            uses: vec![clause],
        },
    ];
    Bound {
        literal,
        fact,
        steps,
    }
}

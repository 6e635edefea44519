//! Queries up to the names of variables: lifted to a buffer's entry, a question about a cell is the
//! same question.
//!
//! Variables are told apart by where they occur: their colour is refined with the colours of those
//! they occur with, until nothing changes; where several are left alike, one is singled out and
//! refinement goes on. The order of colours gives new names. Two queries that get the same formulas
//! are the same up to names, whatever the colours were: a poor colouring only misses some.

use crate::atom::{Atom, Rel};
use crate::formula::Formula;
use crate::int::Int;
use crate::model::Model;
use crate::solver::Answer;
use crate::term::{Term, Var};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// A query with new names: in the same order, and what each new name stands for.
pub(crate) struct Canonical {
    pub(crate) assertions: Vec<Formula>,
    names: Vec<Var>,
}

type Colours = FxHashMap<Var, u64>;

impl Canonical {
    pub(crate) fn new(assertions: &[Formula]) -> Canonical {
        let mut atoms: Vec<(u64, &Atom)> = Vec::new();
        for f in assertions {
            match f {
                Formula::Atom(a) => atoms.push((0, a)),
                other @ (Formula::True | Formula::False | Formula::And(_) | Formula::Or(_)) => {
                    collect(other, 1, &mut atoms)
                }
            }
        }
        let vars = atoms.iter().flat_map(|(_, a)| a.term().coeffs());
        let mut colours: Colours = vars.map(|(v, _)| (*v, 0)).collect();
        refine(&atoms, &mut colours);
        let mut order = sorted(&colours);
        for _ in 0..order.len() {
            let Some(pair) = order.windows(2).find(|w| w[0].0 == w[1].0) else {
                break;
            };
            let alone = pair[0].1;
            colours.insert(alone, hashed(&(pair[0].0, "alone")));
            refine(&atoms, &mut colours);
            order = sorted(&colours);
        }
        let names: Vec<Var> = order.into_iter().map(|(_, v)| v).collect();
        let numbers: FxHashMap<Var, u32> = (0..).zip(&names).map(|(n, v)| (*v, n)).collect();
        let rename = |v: Var| numbers.get(&v).map(|n| Term::from(Var(*n)));
        Canonical {
            assertions: assertions.iter().map(|f| f.subst(&rename)).collect(),
            names,
        }
    }

    /// The answer to the query with its new names.
    pub(crate) fn renamed(&self, answer: &Answer) -> Answer {
        match answer {
            Answer::Sat(model) => {
                let names = (0..).zip(&self.names);
                Answer::Sat(
                    names
                        .map(|(n, v)| (Var(n), model.value(*v).clone()))
                        .collect(),
                )
            }
            other @ (Answer::Unsat(_) | Answer::Unknown(_)) => other.clone(),
        }
    }

    /// The answer in the names of the query.
    pub(crate) fn original(&self, answer: Answer) -> Answer {
        match answer {
            Answer::Sat(model) => {
                let values = (0..).zip(&self.names);
                let values = values.map(|(n, v)| (*v, model.value(Var(n)).clone()));
                Answer::Sat(values.collect::<Model>())
            }
            other @ (Answer::Unsat(_) | Answer::Unknown(_)) => other,
        }
    }
}

/// The atoms with what tells their places apart.
fn collect<'f>(f: &'f Formula, place: u64, into: &mut Vec<(u64, &'f Atom)>) {
    match f {
        Formula::True | Formula::False => {}
        Formula::Atom(a) => into.push((place, a)),
        Formula::And(fs) | Formula::Or(fs) => {
            let and = matches!(f, Formula::And(_));
            let place = hashed(&(place, and, fs.len()));
            fs.iter().for_each(|f| collect(f, place, into));
        }
    }
}

fn hashed(what: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

fn sorted(colours: &Colours) -> Vec<(u64, Var)> {
    let mut order: Vec<(u64, Var)> = colours.iter().map(|(v, c)| (*c, *v)).collect();
    order.sort_unstable();
    order
}

fn classes(colours: &Colours) -> usize {
    let mut all: Vec<u64> = colours.values().copied().collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

/// Refines until there are no more classes than before.
fn refine(atoms: &[(u64, &Atom)], colours: &mut Colours) {
    let mut before = classes(colours);
    loop {
        let mut next = colours.clone();
        for (place, atom) in atoms {
            // Equalities are normalised by the order of variables: both signs are one.
            let both = matches!(atom.rel(), Rel::Eq | Rel::Ne);
            for negated in [false, true].into_iter().take(1 + usize::from(both)) {
                let sign = |i: &Int| if negated { -i } else { i.clone() };
                let coeffs = atom.term().coeffs();
                let parts = coeffs.iter().map(|(v, a)| hashed(&(sign(a), colours[v])));
                let sum = parts.fold(0u64, u64::wrapping_add);
                let constant = sign(atom.term().constant_part());
                let whole = hashed(&(place, atom.rel(), sum, constant));
                for (v, a) in coeffs {
                    let here = hashed(&(whole, sign(a)));
                    let colour = next.get_mut(v);
                    colour.into_iter().for_each(|c| *c = c.wrapping_add(here));
                }
            }
        }
        // Sums of sums drift apart the same way for variables that are alike.
        let after = classes(&next);
        *colours = next;
        if after <= before {
            return;
        }
        before = after;
    }
}

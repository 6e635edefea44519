//! The predicates of an abstraction, numbered.

use crate::cube::{Bits, Cube, MOST_PREDICATES};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use wattle_logic::{Formula, Rel, Var, not};
use wattle_model::{CellId, ThreadId};

/// An entry of a thread's buffer, by position, and the cell it must belong to.
pub type Place = (ThreadId, usize, CellId);

#[derive(Clone, Debug)]
pub struct Predicate {
    pub formula: Formula,
    pub negation: Formula,
    pub vars: BTreeSet<Var>,
    /// A lifted predicate speaks of entries of certain cells; it matters only while the buffers are
    /// as in one of these. Empty for predicates that may always matter.
    pub origins: Vec<Vec<Place>>,
}

#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    pub all: Vec<Predicate>,
    /// Both a predicate and its negation.
    index: FxHashMap<Formula, (usize, bool)>,
}

impl Vocabulary {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The predicates.
    pub fn atoms(&self) -> Vec<Formula> {
        self.all.iter().map(|p| p.formula.clone()).collect()
    }

    /// Takes the atoms of the formula; says whether one is new. Past the most there can be, new ones
    /// are dropped: fewer predicates are less precise, never wrong.
    pub fn add(&mut self, formula: &Formula) -> bool {
        let mut new = false;
        for atom in formula.atoms() {
            new |= self.add_atom(&Formula::Atom(atom), None);
        }
        new
    }

    /// Takes the atoms of all the formulas.
    pub fn extend<'f>(&mut self, formulas: impl IntoIterator<Item = &'f Formula>) {
        for f in formulas {
            self.add(f);
        }
    }

    /// Takes one atom that speaks of these entries (or of none).
    pub fn add_atom(&mut self, atom: &Formula, origin: Option<Vec<Place>>) -> bool {
        if let Some((n, _)) = self.index.get(atom) {
            let origins = &mut self.all[*n].origins;
            match origin {
                Some(o) if !o.is_empty() && !origins.is_empty() && !origins.contains(&o) => {
                    origins.push(o);
                }
                Some(o) if !o.is_empty() => {}
                _ => origins.clear(),
            }
            return false;
        }
        if atom.as_atom().is_none() || self.all.len() == MOST_PREDICATES {
            return false;
        }
        let negation = not(atom);
        let positive = match (atom, &negation) {
            (Formula::Atom(a), n) if matches!(a.rel(), Rel::Ne | Rel::NotDivides(_)) => n.clone(),
            (a, n) if matches!(n.as_atom().map(|n| n.rel()), Some(Rel::Le)) => {
                a.clone().min(n.clone())
            }
            (a, _) => a.clone(),
        };
        let n = self.all.len();
        let negation = not(&positive);
        self.index.insert(negation.clone(), (n, false));
        self.index.insert(positive.clone(), (n, true));
        self.all.push(Predicate {
            vars: positive.vars(),
            formula: positive,
            negation,
            origins: origin.into_iter().filter(|o| !o.is_empty()).collect(),
        });
        true
    }

    /// The predicate the formula is, or is the negation of.
    pub fn find(&self, formula: &Formula) -> Option<(usize, bool)> {
        self.index.get(formula).copied()
    }

    pub fn literal(&self, p: usize, value: bool) -> &Formula {
        match value {
            true => &self.all[p].formula,
            false => &self.all[p].negation,
        }
    }

    pub fn formulas(&self, cube: &Cube) -> Vec<Formula> {
        let literals = cube.literals();
        literals.map(|(p, v)| self.literal(p, v).clone()).collect()
    }

    /// Predicates that share variables with the formula, directly or through others.
    pub fn connected(&self, formula: &Formula, among: Bits) -> Bits {
        let mut vars = formula.vars();
        let mut found = Bits::default();
        loop {
            let before = found.len();
            for p in among.without(found).iter() {
                let theirs = &self.all[p].vars;
                if !theirs.is_disjoint(&vars) {
                    vars.extend(theirs);
                    found.set(p, true);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }
}

//! What a search that ended proves, written down.

use super::search::Search;
use super::world::World;
use super::zones::Zones;
use crate::cegar::certify::{control, quantity, ranges, written_with};
use crate::reduce::System;
use wattle_evidence::certificate::{Inductive, Invariant, Part, Predicate, Quantity};
use wattle_logic::{Formula, Rel, Var};

/// A certificate in the making.
pub struct Writer {
    predicates: Vec<Predicate>,
    parts: Vec<Part>,
}

impl Writer {
    pub fn new() -> Self {
        Writer {
            predicates: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Takes what was found about some threads; `None` if its numbers are too large to write down.
    pub fn add(&mut self, world: &World<'_>, search: &Search<'_, '_>) -> Option<()> {
        let mut invariants = Vec::new();
        for spot in search.spots.iter().filter(|s| !s.element.is_nothing()) {
            let (mut cube, mut clauses) = (Vec::new(), Vec::new());
            for fact in &spot.facts {
                let literals = fact.disjuncts().iter().map(|f| self.literal(world, f));
                let literals: Option<Vec<i32>> = literals.collect();
                match literals?.as_slice() {
                    [one] => cube.push(*one),
                    several => clauses.push(several.to_vec()),
                }
            }
            invariants.push(Invariant {
                control: control(&spot.shape),
                cubes: vec![cube],
                clauses,
            });
        }
        invariants.sort_by(|a, b| a.control.cmp(&b.control));
        let about = world.focus.clone();
        self.parts.push(Part { about, invariants });
        Some(())
    }

    /// The same of zones, any of which may be.
    pub fn add_zones(&mut self, world: &World<'_>, zones: &Zones<'_, '_>) -> Option<()> {
        let mut invariants = Vec::new();
        for spot in zones.spots.iter().filter(|s| s.is_reached()) {
            let mut cubes = Vec::new();
            for facts in spot.facts() {
                let literals = facts.iter().map(|f| self.literal(world, f));
                cubes.push(literals.collect::<Option<Vec<i32>>>()?);
            }
            invariants.push(Invariant {
                control: control(&spot.shape),
                cubes,
                clauses: Vec::new(),
            });
        }
        invariants.sort_by(|a, b| a.control.cmp(&b.control));
        let about = world.focus.clone();
        self.parts.push(Part { about, invariants });
        Some(())
    }

    fn literal(&mut self, world: &World<'_>, fact: &Formula) -> Option<i32> {
        let atom = fact.as_atom()?;
        let positive = match atom.rel() {
            Rel::Ne | Rel::NotDivides(_) => false,
            Rel::Le | Rel::Eq | Rel::Divides(_) => true,
        };
        let predicate = match positive {
            true => fact.clone(),
            false => fact.negated(),
        };
        let quantity = |v: Var| match world.symbol(v) {
            Some((t, which, c)) => Some(Quantity::View(t, which, c)),
            None => quantity(&world.system, v),
        };
        let predicate = written_with(&predicate, &quantity)?;
        let known = self.predicates.iter().position(|p| *p == predicate);
        let n = known.unwrap_or_else(|| {
            self.predicates.push(predicate);
            self.predicates.len() - 1
        });
        let n = i32::try_from(n).ok()? + 1;
        Some(if positive { n } else { -n })
    }

    /// The certificate; formulas about all threads are no part.
    pub fn finish(mut self, system: &System<'_>) -> Inductive {
        let threads = system.instance.threads.len();
        let whole = self.parts.iter().position(|p| p.about.len() == threads);
        let invariants = match whole {
            Some(n) => self.parts.swap_remove(n).invariants,
            None => Vec::new(),
        };
        let bounds = system.instance.thread_ids();
        Inductive {
            model: system.model,
            ranges: ranges(system),
            blur: None,
            views: bounds.filter(|t| !system.bounds[t.index()].1).collect(),
            predicates: self.predicates,
            invariants,
            parts: self.parts,
        }
    }
}

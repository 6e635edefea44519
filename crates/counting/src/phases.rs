//! What holds at some times only: equations of part of the points.
//!
//! A barrier that is used again counts one way while its sense is 0 and the other way while it is 1, and while the
//! last thread sets it up again all others wait. No equation holds of all three. So the points are parted: where a cell
//! with two values has one of them and nobody is at a place for one thread alone, and where somebody is at such a
//! place. Each part has a hull of its own, and its equations are facts *or else it is another part's time*.

use crate::guess::Point;
use crate::hull::{Equation, Hull, Span};
use std::collections::BTreeSet;
use wattle_evidence::certificate::Comparison;
use wattle_evidence::certificate::counting::{Counted, Fact, Sum};
use wattle_model::CellId;

/// Parts that are looked at.
const MOST: usize = 40;

/// All the parts.
#[derive(Default)]
pub struct Phases {
    /// At most one thread is at one of these places.
    alone: Vec<usize>,
    parts: Vec<Phase>,
}

/// A part of the points: where a cell has a value and nobody is at one of those places, or somebody is at this one.
struct Phase {
    when: When,
    hull: Hull,
}

#[derive(Clone, Copy)]
enum When {
    Cell(usize, i64),
    At(usize),
}

impl Phases {
    /// Of points with the number of threads, nothing taken in yet.
    pub fn new(points: &[(u32, Point)], places: usize) -> Phases {
        let columns = points.first().map_or(places, |(_, p)| p.len());
        let values = |c: usize| points.iter().map(|(_, p)| p[c]).collect::<BTreeSet<i64>>();
        let mut alone: Vec<usize> = Vec::new();
        for place in (0..places).filter(|p| values(*p).len() == 2) {
            let one = |p: &Point| p[place] + alone.iter().map(|a| p[*a]).sum::<i64>() <= 1;
            if points.iter().all(|(_, p)| one(p)) {
                alone.push(place);
            }
        }
        let cells = (places..columns).filter(|c| values(*c).len() == 2);
        let cells = cells.flat_map(|c| values(c).into_iter().map(move |v| (c - places, v)));
        let mut parts: Vec<When> = cells.map(|(c, v)| When::Cell(c, v)).collect();
        // With no such cell there is nothing to tell the times apart by.
        if !parts.is_empty() {
            parts.extend(alone.iter().map(|p| When::At(*p)));
        }
        parts.truncate(MOST);
        let phase = |when| Phase {
            when,
            hull: Hull::default(),
        };
        let parts = parts.into_iter().map(phase).collect();
        Phases { alone, parts }
    }

    /// Takes the point into its parts; whether it was outside of one.
    pub fn add(&mut self, point: &Point, places: usize) -> bool {
        let alone: i64 = self.alone.iter().map(|p| point[*p]).sum();
        if alone > 1 {
            // All of it rests on this.
            let before = self.parts.len();
            self.parts.clear();
            return before > 0;
        }
        let mut outside = false;
        for phase in &mut self.parts {
            let now = match phase.when {
                When::Cell(c, v) => alone == 0 && point[places + c] == v,
                When::At(p) => point[p] == 1,
            };
            outside |= now && phase.hull.add(point);
        }
        outside
    }

    /// More places, where nobody has been seen.
    pub fn insert(&mut self, at: usize, more: usize) {
        for phase in &mut self.parts {
            phase.hull.insert(at, more);
        }
    }

    /// What holds of a part and does not follow from what holds of all points.
    pub fn facts(&self, whole: &Hull, places: usize, told: impl Fn(Equation) -> Sum) -> Vec<Fact> {
        let at_most_zero = |sum, constant| Sum {
            sum,
            constant,
            is: Comparison::AtMostZero,
        };
        let at = |a: i64, p: &usize| (a, Counted::Place(*p as u32));
        let all = |a: i64| self.alone.iter().map(|p| at(a, p)).collect::<Vec<_>>();
        let mut facts = Vec::new();
        if self.alone.len() > 1 && !self.parts.is_empty() {
            facts.push(Fact(vec![at_most_zero(all(1), -1)]));
        }
        for Phase { when, hull } in &self.parts {
            // It is another time, or the equation holds.
            let mut other = Vec::new();
            let column = match *when {
                When::Cell(c, v) => {
                    let cell = Counted::Cell(CellId::new(c));
                    other.push(at_most_zero(vec![(1, cell)], 1i64.saturating_sub(v)));
                    other.push(at_most_zero(vec![(-1, cell)], v.saturating_add(1)));
                    if !self.alone.is_empty() {
                        other.push(at_most_zero(all(-1), 1));
                    }
                    (places + c, v)
                }
                When::At(p) => {
                    other.push(at_most_zero(vec![at(1, &p)], 0));
                    (p, 1)
                }
            };
            let own = hull.equations();
            let Some(columns) = own.first().map(|e| e.coefficients.len()) else {
                continue;
            };
            let mut follows = Span::default();
            for e in whole.equations() {
                follows.add(&e);
            }
            let nobody = self.alone.iter().map(|p| (*p, 0));
            for (c, v) in [column]
                .into_iter()
                .chain(nobody.filter(|(p, _)| *p != column.0))
            {
                let mut coefficients = vec![0; columns];
                coefficients[c] = 1;
                follows.add(&Equation {
                    coefficients,
                    constant: v.saturating_neg(),
                });
            }
            for e in own {
                if follows.add(&e) {
                    facts.push(Fact(other.iter().cloned().chain([told(e)]).collect()));
                }
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two places and a sense: whoever waits is at one place while it is 0, at the other while it is 1.
    #[test]
    fn an_equation_of_each_part_is_a_fact_or_else_it_is_another_time() {
        let points: Vec<(u32, Point)> = [
            [0, 0, 0, 2],
            [1, 0, 0, 1],
            [0, 0, 1, 2],
            [0, 1, 1, 1],
            [0, 2, 1, 0],
        ]
        .map(|p| (2, p.to_vec()))
        .to_vec();
        let mut phases = Phases::new(&points, 2);
        let mut whole = Hull::default();
        for (_, p) in &points {
            phases.add(p, 2);
            whole.add(p);
        }
        let told = |e: Equation| Sum {
            sum: (e.coefficients.iter().enumerate())
                .filter(|(_, a)| **a != 0)
                .map(|(c, a)| match c.checked_sub(2) {
                    Some(cell) => (*a, Counted::Cell(CellId::new(cell))),
                    None => (*a, Counted::Place(c as u32)),
                })
                .collect(),
            constant: e.constant,
            is: Comparison::Zero,
        };
        let facts = phases.facts(&whole, 2, told);
        let all = |p: &[i64]| facts.iter().all(|f| f.holds(&p[2..], &p[..2]));
        assert!(points.iter().all(|(_, p)| all(p)));
        // At the wrong place for its time.
        assert!(!all(&[0, 1, 0, 1]) && !all(&[1, 0, 1, 1]));
    }
}

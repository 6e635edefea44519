//! Cells that only numbers of threads hold up: each took one away, and nobody gives it back one by one.
//!
//! A lock whose word is counted down by whoever tries, and set to one again by whoever leaves, is never below
//! one less those that have tried. Who has is not seen in the points: a place is taken in when a state that
//! breaks the fact has a thread there. Places are only ever added, which makes the fact weaker, so this ends.

use crate::guess::Point;
use wattle_evidence::certificate::Comparison;
use wattle_evidence::certificate::counting::{Counted, Fact, Sum};
use wattle_model::CellId;

/// `sign · cell + Σ n ≥ least`, over some places: each thread there took one away.
pub struct Held {
    cell: usize,
    sign: i64,
    least: i64,
    counted: Vec<bool>,
}

impl Held {
    /// With the fewest places, if that is a bound that more threads do not move.
    pub fn new(
        points: &[(u32, Point)],
        places: usize,
        most: u32,
        cell: usize,
        sign: i64,
    ) -> Option<Held> {
        let mut held = Held {
            cell,
            sign,
            least: i64::MIN,
            counted: vec![true; places],
        };
        let mut sums: Vec<i64> = points.iter().map(|(_, p)| held.sum(p)).collect();
        held.least = *sums.iter().min()?;
        let with_few = sums.iter().zip(points);
        let with_few = with_few.filter(|(_, (n, _))| *n < most.max(2));
        if with_few.map(|(s, _)| *s).min() != Some(held.least) {
            return None;
        }
        for place in 0..places {
            let mut both = sums.iter().zip(points);
            if both.all(|(s, (_, p))| s.saturating_sub(p[place]) >= held.least) {
                held.counted[place] = false;
                for (s, (_, p)) in sums.iter_mut().zip(points) {
                    *s = s.saturating_sub(p[place]);
                }
            }
        }
        held.counted.contains(&true).then_some(held)
    }

    /// Whether it holds there.
    pub fn holds(&self, point: &Point) -> bool {
        self.sum(point) >= self.least
    }

    /// With more places, where nobody counts.
    pub fn widen(&mut self, places: usize) {
        self.counted.resize(places, false);
    }

    fn sum(&self, point: &Point) -> i64 {
        let counted = self.counted.iter().zip(point).filter(|(c, _)| **c);
        let sum = counted.fold(0i64, |sum, (_, n)| sum.saturating_add(*n));
        let cell = point[self.counted.len() + self.cell];
        sum.saturating_add(cell.saturating_mul(self.sign))
    }

    /// Takes one more place in if that lets the point be: the latest, since threads that took nothing away
    /// yet are at the first ones. Whether the point is let be.
    pub fn admits(&mut self, point: &Point) -> bool {
        let sum = self.sum(point);
        if sum >= self.least {
            return true;
        }
        let mut open = (0..self.counted.len()).rev().filter(|p| !self.counted[*p]);
        let more = open.find(|p| sum.saturating_add(point[*p]) >= self.least);
        if let Some(place) = more {
            self.counted[place] = true;
        }
        more.is_some()
    }

    pub fn fact(&self) -> Fact {
        let counted = self.counted.iter().enumerate().filter(|(_, c)| **c);
        let places = counted.map(|(p, _)| (-1, Counted::Place(p as u32)));
        let cell = (-self.sign, Counted::Cell(CellId::new(self.cell)));
        Fact(vec![Sum {
            sum: places.chain([cell]).collect(),
            constant: self.least,
            is: Comparison::AtMostZero,
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everybody at place 1 took one away from 1; nobody at place 0 did.
    #[test]
    fn the_fewest_places_and_one_more_where_a_state_needs_it() {
        let points = [
            (1, vec![1, 0, 0, 1]),
            (1, vec![0, 1, 0, 0]),
            (2, vec![2, 0, 0, 1]),
            (2, vec![1, 1, 0, 0]),
            (2, vec![0, 2, 0, -1]),
        ];
        let mut held = Held::new(&points, 3, 2, 0, 1).unwrap();
        assert_eq!(held.counted, [false, true, false]);
        assert!(points.iter().all(|(_, p)| held.holds(p)));
        assert!(held.fact().holds(&[-1], &[0, 2, 0]) && !held.fact().holds(&[-1], &[1, 1, 0]));
        // Of places 0 and 2 the later one is taken in.
        assert!(held.admits(&vec![1, 0, 1, 0]));
        assert_eq!(held.counted, [false, true, true]);
        assert!(!held.admits(&vec![0, 1, 0, -1]));
    }
}

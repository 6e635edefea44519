//! Words that have flags beside a number: the hull is taken once more with a flag's bit as a column of its own.
//! `l = 4·readers + writers + 2·flag` becomes the fact that one of two equations holds.

use crate::guess::Point;
use crate::hull::{Equation, Hull};
use std::collections::BTreeSet;

/// Hulls with flags that are tried.
const MOST: usize = 6;

/// The hull of the points with some bits of cells as further columns.
pub struct Flagged {
    /// Which cell, and which of its bits.
    bits: Vec<(usize, u32)>,
    /// How many cells there are: the last columns before the bits.
    cells: usize,
    pub hull: Hull,
}

impl Flagged {
    pub fn add(&mut self, cells: &[i64], point: &Point) -> bool {
        let bits = self.bits.iter().map(|(c, k)| (cells[*c] >> k) & 1);
        let point: Point = point.iter().copied().chain(bits).collect();
        self.hull.add(&point)
    }

    /// Those that say something of a bit and of something else, without the bits: for each of their values
    /// what remains.
    pub fn equations(&self) -> Vec<Vec<Equation>> {
        let mut all = Vec::new();
        for mut e in self.hull.equations() {
            let bits = e
                .coefficients
                .split_off(e.coefficients.len() - self.bits.len());
            if bits.iter().all(|b| *b == 0) || e.coefficients.iter().all(|a| *a == 0) {
                continue;
            }
            let mut one_of = vec![e];
            for b in bits.iter().filter(|b| **b != 0) {
                let set = one_of.iter().map(|e| Equation {
                    coefficients: e.coefficients.clone(),
                    constant: e.constant.saturating_add(*b),
                });
                one_of = one_of.iter().cloned().chain(set).collect();
            }
            all.push(one_of);
        }
        all
    }
}

impl Flagged {
    /// Those that say what the lowest bit of a cell is, and nothing of other bits, as remainders by two: a sequence
    /// number is odd as long as somebody writes.
    pub fn parities(&self) -> Vec<Equation> {
        let columns = |e: &Equation| e.coefficients.len() - self.bits.len();
        let mut all = Vec::new();
        for mut e in self.hull.equations() {
            let bits = e.coefficients.split_off(columns(&e));
            let mut said = bits.iter().zip(&self.bits).filter(|(b, _)| **b != 0);
            let (Some((1 | -1, (cell, 0))), None) = (said.next(), said.next()) else {
                continue;
            };
            let others = e.coefficients.iter().any(|a| *a != 0);
            if others {
                let first = e.coefficients.len() - self.cells;
                let a = &mut e.coefficients[first + cell];
                *a = a.saturating_add(1);
                all.push(e);
            }
        }
        all
    }
}

/// Which bits of cells are looked at as flags: single ones, and pairs in one cell.
pub fn flagged(points: &[(u32, Point)], places: usize, flags: &BTreeSet<u32>) -> Vec<Flagged> {
    let columns = points.first().map_or(places, |(_, p)| p.len());
    let varies = |c: usize, k: u32| {
        let mut all = points.iter().map(|(_, p)| (p[places + c] >> k) & 1);
        let first = all.next();
        all.any(|b| Some(b) != first)
    };
    let mut sets: Vec<Vec<(usize, u32)>> = Vec::new();
    for c in 0..columns - places {
        let here: Vec<u32> = flags.iter().copied().filter(|k| varies(c, *k)).collect();
        sets.extend(here.iter().map(|k| vec![(c, *k)]));
        for (n, a) in here.iter().enumerate() {
            sets.extend(here[n + 1..].iter().map(|b| vec![(c, *a), (c, *b)]));
        }
    }
    sets.sort_by_key(Vec::len);
    let hull = |bits| Flagged {
        bits,
        cells: columns - places,
        hull: Hull::default(),
    };
    sets.into_iter().take(MOST).map(hull).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Odd as long as somebody is there.
    #[test]
    fn the_lowest_bit_is_a_remainder() {
        let points: Vec<(u32, Point)> = [(0, 0), (1, 1), (0, 2), (1, 3), (0, 4)]
            .map(|(n, s)| (2, vec![n, s]))
            .to_vec();
        let mut all = flagged(&points, 1, &BTreeSet::from([0]));
        for (_, p) in &points {
            all[0].add(&p[1..], p);
        }
        let [odd] = &all[0].parities()[..] else {
            panic!("one equation says what the bit is");
        };
        let holds = |n: i64, s: i64| {
            (odd.coefficients[0] * n + odd.coefficients[1] * s + odd.constant) % 2 == 0
        };
        assert!(points.iter().all(|(_, p)| holds(p[0], p[1])));
        assert!(!holds(1, 2) && !holds(0, 1));
    }

    /// `l = 4·n + flag`, where nothing but the word knows of the flag.
    #[test]
    fn a_flag_leaves_one_of_two_equations() {
        let points: Vec<(u32, Point)> = [(0, 0), (0, 1), (1, 4), (1, 5), (2, 9)]
            .map(|(n, l)| (2, vec![n, l]))
            .to_vec();
        let mut all = flagged(&points, 1, &BTreeSet::from([0, 5]));
        assert_eq!(all.len(), 1, "bit 5 never changes");
        for (_, p) in &points {
            all[0].add(&p[1..], p);
        }
        let [one_of] = &all[0].equations()[..] else {
            panic!("one equation has the flag");
        };
        let holds = |n: i64, l: i64| {
            let is_zero =
                |e: &Equation| e.coefficients[0] * n + e.coefficients[1] * l + e.constant == 0;
            one_of.iter().any(is_zero)
        };
        assert!(points.iter().all(|(_, p)| holds(p[0], p[1])));
        assert!(holds(7, 28) && holds(7, 29) && !holds(7, 30) && !holds(7, 27));
    }
}

//! Facts that hold of all states seen, and how they give way when one turns out to be broken.
//!
//! Equations are those of the affine hull of the points; a point that breaks one is taken into the hull.
//! Other facts are dropped when a point breaks them. Facts only ever become weaker, every state seen
//! satisfies them, and what is left when nothing gives way is the strongest of this form that the events
//! keep: a point that follows what satisfies all facts satisfies every weaker set that is kept.

use crate::hull::Hull;
use std::collections::BTreeMap;
use wattle_evidence::certificate::Comparison;
use wattle_evidence::certificate::counting::{Counted, Fact, Sum};
use wattle_model::CellId;

/// Numbers of threads at the places, then memory.
pub type Point = Vec<i64>;

/// How many facts of the larger kinds are tried.
const MOST_FACTS: usize = 1_200;

pub struct Guess {
    pub places: usize,
    hull: Hull,
    others: Vec<Fact>,
}

/// How bold a guess is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Boldness {
    /// Equations, and bounds of single quantities.
    Equations,
    /// Also which places exclude each other, and what memory is where somebody is.
    Exclusions,
}

impl Guess {
    /// `points` come with the number of threads; `groups` are places that are one location.
    pub fn new(
        points: &[(u32, Point)],
        places: usize,
        groups: &[Vec<usize>],
        boldness: Boldness,
    ) -> Guess {
        let columns = points.first().map_or(places, |(_, p)| p.len());
        let mut guess = Guess {
            places,
            hull: Hull::default(),
            others: Vec::new(),
        };
        for (_, p) in points {
            guess.hull.add(p);
        }
        let most = points.iter().map(|(n, _)| *n).max().unwrap_or(0);
        let mut seen = Bounds::new(most);
        for (n, p) in points {
            for (c, v) in p.iter().enumerate() {
                seen.note((usize::MAX, vec![(1, c)]), *v, *n);
            }
            for group in groups {
                let sum = group.iter().map(|c| p[*c]).sum();
                let of = group.iter().map(|c| (1, *c)).collect();
                seen.note((usize::MAX, of), sum, *n);
            }
            let cells = places..columns;
            for (a, b) in cells
                .clone()
                .flat_map(|a| (a + 1..columns).map(move |b| (a, b)))
            {
                seen.note((usize::MAX, vec![(1, a), (-1, b)]), p[a] - p[b], *n);
            }
            if boldness < Boldness::Exclusions {
                continue;
            }
            for here in (0..places).filter(|c| p[*c] > 0) {
                for (c, v) in p.iter().enumerate().filter(|(c, _)| *c != here) {
                    if c >= places || (here < c) {
                        seen.note((here, vec![(1, c)]), *v, *n);
                    }
                }
            }
        }
        guess.others = seen.facts(&guess);
        guess
    }

    /// All facts.
    pub fn facts(&self) -> Vec<Fact> {
        let equations = self.hull.equations().into_iter().map(|e| {
            let sum = e.coefficients.iter().enumerate();
            let sum = sum.filter(|(_, a)| **a != 0);
            Fact(vec![Sum {
                sum: sum.map(|(c, a)| (*a, self.counted(c))).collect(),
                constant: e.constant,
                is: Comparison::Zero,
            }])
        });
        equations.chain(self.others.iter().cloned()).collect()
    }

    fn counted(&self, column: usize) -> Counted {
        match column.checked_sub(self.places) {
            Some(cell) => Counted::Cell(CellId::new(cell)),
            None => Counted::Place(column as u32),
        }
    }

    /// Whether something gave way.
    pub fn give_way(&mut self, point: &Point) -> bool {
        let before = self.others.len();
        let (counts, cells) = point.split_at(self.places);
        self.others.retain(|f| f.holds(cells, counts));
        self.hull.add(point) || self.others.len() < before
    }

    /// The guess with more places, where nobody has been seen.
    pub fn widen(&mut self, places: usize) {
        self.hull.insert(self.places, places - self.places);
        self.places = places;
    }
}

/// A sum of columns, where somebody is at the place (`usize::MAX`: everywhere).
type Term = (usize, Vec<(i64, usize)>);

/// The least and the greatest value, of all points and of those with fewer threads.
struct Bounds {
    most: u32,
    all: BTreeMap<Term, [(i64, i64); 2]>,
}

impl Bounds {
    fn new(most: u32) -> Self {
        Bounds {
            most,
            all: BTreeMap::new(),
        }
    }

    fn note(&mut self, term: Term, v: i64, threads: u32) {
        let none = (i64::MAX, i64::MIN);
        let both = self.all.entry(term).or_insert([none; 2]);
        let fewer = threads < self.most.max(2);
        for (lo, hi) in both.iter_mut().take(1 + usize::from(fewer)) {
            *lo = (*lo).min(v);
            *hi = (*hi).max(v);
        }
    }

    /// Bounds that do not move with more threads.
    fn facts(&self, guess: &Guess) -> Vec<Fact> {
        let mut facts = Vec::new();
        for ((here, term), [all, fewer]) in &self.all {
            let single = term.len() == 1 && term[0].1 < guess.places;
            let everywhere = self.all.get(&(usize::MAX, term.clone()));
            let everywhere = everywhere.map(|b| b[0]).filter(|_| *here != usize::MAX);
            let stands = match here {
                &usize::MAX => None,
                here => Some(Sum {
                    sum: vec![(1, guess.counted(*here))],
                    constant: 0,
                    is: Comparison::AtMostZero,
                }),
            };
            let bound = |times: i64, constant: i64| {
                let sum = term.iter();
                let bound = Sum {
                    sum: sum.map(|(a, c)| (a * times, guess.counted(*c))).collect(),
                    constant,
                    is: Comparison::AtMostZero,
                };
                Fact(stands.clone().into_iter().chain([bound]).collect())
            };
            // Numbers of threads are never negative.
            let counts = term.iter().all(|(a, c)| *a > 0 && *c < guess.places);
            let tighter = |now: i64, least: bool| match everywhere {
                Some((lo, hi)) => now != if least { lo } else { hi },
                None => true,
            };
            if all.0 == fewer.0 && !(counts && all.0 <= 0) && tighter(all.0, true) {
                facts.push(bound(-1, all.0));
            }
            let excluded = *here != usize::MAX && single;
            if all.1 == fewer.1 && tighter(all.1, false) && (!excluded || all.1 == 0) {
                facts.push(bound(1, all.1.saturating_neg()));
            }
            if facts.len() > MOST_FACTS {
                break;
            }
        }
        facts
    }
}

//! Facts that hold of all states seen, and how they give way when one turns out to be broken.
//!
//! Equations are those of the affine hull of the points; a point that breaks one is taken into the hull.
//! Bounds are those that more threads do not move, and the program's own numbers next to what was seen: a
//! semaphore with five places shows its bound with six threads only, but its text says five.
//! Other facts are dropped when a point breaks them. Facts only ever become weaker, every state seen
//! satisfies them, and what is left when nothing gives way is the strongest of this form that the events
//! keep: a point that follows what satisfies all facts satisfies every weaker set that is kept.

use crate::flagged::{Flagged, flagged};
use crate::held::Held;
use crate::hull::{Equation, Hull};
use crate::phases::Phases;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::Comparison;
use wattle_evidence::certificate::counting::{Claims, Counted, Distinct, Fact, Known, Sum};
use wattle_model::CellId;

/// Numbers of threads at the places, then memory.
pub type Point = Vec<i64>;

/// How many facts of the larger kinds are tried.
const MOST_FACTS: usize = 1_200;

/// Numbers of the program that are tried beyond what was seen.
const NEAREST: usize = 3;

pub struct Guess {
    pub places: usize,
    hull: Hull,
    flagged: Vec<Flagged>,
    phases: Phases,
    held: Vec<Held>,
    others: Vec<Fact>,
    /// Of the threads at places.
    pub known: Vec<Known>,
    /// Of two of them.
    pub distinct: Vec<Distinct>,
}

/// What the text of the program has in it.
#[derive(Default)]
pub struct Text {
    /// Numbers, and those next to them.
    pub numbers: BTreeSet<i64>,
    /// Bits that are set or cleared alone.
    pub flags: BTreeSet<u32>,
    /// How far apart numbers that are compared may be.
    pub apart: Vec<i64>,
}

/// How bold a guess is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boldness {
    /// Equations, and bounds of single quantities.
    Equations,
    /// Also which places exclude each other, and what memory is where somebody is.
    Exclusions,
    /// Equations and bounds, and what threads know.
    Known,
    Everything,
    /// Equations, what threads know, and what holds at some times only.
    Phases,
}

impl Boldness {
    fn excludes(self) -> bool {
        matches!(self, Boldness::Exclusions | Boldness::Everything)
    }

    pub fn knows(self) -> bool {
        matches!(
            self,
            Boldness::Known | Boldness::Everything | Boldness::Phases
        )
    }
}

impl Guess {
    /// `points` come with the number of threads; `groups` are places that are one location.
    pub fn new(
        points: &[(u32, Point)],
        places: usize,
        groups: &[Vec<usize>],
        text: &Text,
        boldness: Boldness,
    ) -> Guess {
        let columns = points.first().map_or(places, |(_, p)| p.len());
        let mut guess = Guess {
            places,
            hull: Hull::default(),
            flagged: flagged(points, places, &text.flags),
            phases: match boldness {
                Boldness::Phases => Phases::new(points, places),
                Boldness::Equations
                | Boldness::Exclusions
                | Boldness::Known
                | Boldness::Everything => Phases::default(),
            },
            held: Vec::new(),
            others: Vec::new(),
            known: Vec::new(),
            distinct: Vec::new(),
        };
        for (_, p) in points {
            guess.take_in(p);
        }
        let most = points.iter().map(|(n, _)| *n).max().unwrap_or(0);
        let mut seen = Bounds::new(most);
        let parts = guess.parts(points, most);
        for (n, p) in points {
            for part in &parts {
                let all = part.iter().map(|(a, c)| a.saturating_mul(p[*c]));
                let sum = all.fold(0, i64::saturating_add);
                seen.note((usize::MAX, part.clone()), sum, *n);
            }
            for (c, v) in p.iter().enumerate() {
                seen.note((usize::MAX, vec![(1, c)]), *v, *n);
            }
            for group in groups {
                let sum = group.iter().map(|c| p[*c]).fold(0, i64::saturating_add);
                let of = group.iter().map(|c| (1, *c)).collect();
                seen.note((usize::MAX, of), sum, *n);
            }
            let cells = places..columns;
            for (a, b) in cells
                .clone()
                .flat_map(|a| (a + 1..columns).map(move |b| (a, b)))
            {
                seen.note(
                    (usize::MAX, vec![(1, a), (-1, b)]),
                    p[a].saturating_sub(p[b]),
                    *n,
                );
            }
            if !boldness.excludes() {
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
        guess.others = seen.facts(&guess, &text.numbers);
        let cells = (places..columns).flat_map(|cell| [(cell - places, 1), (cell - places, -1)]);
        let held = cells.filter_map(|(cell, sign)| Held::new(points, places, most, cell, sign));
        guess.held = held.collect();
        guess
    }

    /// Takes the point into the hulls; whether it was outside of one.
    fn take_in(&mut self, point: &Point) -> bool {
        let cells = &point[self.places..];
        let mut outside = self.hull.add(point);
        for f in &mut self.flagged {
            outside |= f.add(cells, point);
        }
        self.phases.add(point, self.places) || outside
    }

    /// Of each equation the places at which there are never more with more threads, and of these the ones with
    /// at most so many. Who has got in is counted, who is on the way back is not.
    fn parts(&self, points: &[(u32, Point)], most: u32) -> Vec<Vec<(i64, usize)>> {
        let greatest = |c: usize, fewer: bool| {
            let some = points.iter().filter(|(n, _)| !fewer || *n < most.max(2));
            some.map(|(_, p)| p[c]).max().unwrap_or(0)
        };
        let most_at = |c: usize| Some(greatest(c, false)).filter(|m| *m == greatest(c, true));
        let all: Vec<Option<i64>> = (0..self.places).map(most_at).collect();
        let sizes: BTreeSet<i64> = all.iter().flatten().copied().collect();
        let mut parts = Vec::new();
        let flagged = self.flagged.iter().flat_map(Flagged::equations);
        let flagged = flagged.filter_map(|one_of| one_of.into_iter().next());
        for e in self.hull.equations().into_iter().chain(flagged) {
            for (sign, size) in [1, -1]
                .iter()
                .flat_map(|s| sizes.iter().map(move |m| (s, m)))
            {
                let here = e.coefficients[..self.places].iter().enumerate();
                let here = here.map(|(c, a)| (a * sign, c));
                let few = |c: usize| all[c].is_some_and(|m| m <= *size);
                let part: Vec<(i64, usize)> = here.filter(|(a, c)| *a > 0 && few(*c)).collect();
                if part.len() > 1 && !parts.contains(&part) {
                    parts.push(part);
                }
            }
        }
        parts
    }

    /// All facts but those that another says with a closer bound.
    pub fn facts(&self) -> Vec<Fact> {
        let sum = |e: Equation| {
            let sum = e.coefficients.iter().enumerate();
            let sum = sum.filter(|(_, a)| **a != 0);
            Sum {
                sum: sum.map(|(c, a)| (*a, self.counted(c))).collect(),
                constant: e.constant,
                is: Comparison::Zero,
            }
        };
        let odd = self.flagged.iter().flat_map(Flagged::parities);
        let odd = odd.map(|e| Sum {
            is: Comparison::MultipleOf(2),
            ..sum(e)
        });
        let phases = self.phases.facts(&self.hull, self.places, sum);
        let equations = self.hull.equations().into_iter().map(|e| vec![e]);
        let flagged = self.flagged.iter().flat_map(Flagged::equations);
        let equations = equations.chain(flagged);
        let equations = equations.map(|one_of| Fact(one_of.into_iter().map(sum).collect()));
        let closest: BTreeMap<&[(i64, Counted)], i64> = {
            let mut all = BTreeMap::new();
            for part in self.others.iter().filter_map(bound) {
                let most = all.entry(part.sum.as_slice()).or_insert(part.constant);
                *most = part.constant.max(*most);
            }
            all
        };
        let kept = |f: &&Fact| {
            let part = bound(f);
            part.is_none_or(|p| closest.get(p.sum.as_slice()) == Some(&p.constant))
        };
        let others = self.others.iter().filter(kept).cloned();
        let held = self.held.iter().map(Held::fact);
        let equations = equations.chain(odd.map(|one| Fact(vec![one])));
        equations.chain(phases).chain(held).chain(others).collect()
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
        let broken = self.held.iter().any(|h| !h.holds(point));
        self.held.retain_mut(|h| h.admits(point));
        self.take_in(point) || broken || self.others.len() < before
    }

    /// Whether something known at the place gave way, of a thread with this of its own.
    pub fn forget(
        &mut self,
        place: usize,
        point: &Point,
        registers: &[i64],
        values: &[i64],
    ) -> bool {
        let before = self.known.len();
        let (counts, cells) = point.split_at(self.places);
        self.known.retain(|k| {
            k.place as usize != place || k.fact.holds_of(cells, counts, registers, values)
        });
        self.known.len() < before
    }

    /// Two threads at these places have the same of what is distinct: it is not said of the first any more.
    pub fn coincide(&mut self, distinct: usize, places: [usize; 2]) -> bool {
        let Some(Distinct(all)) = self.distinct.get_mut(distinct) else {
            return false;
        };
        let before = all.len();
        all.retain(|(p, _)| *p as usize != places[0]);
        all.len() < before
    }

    pub fn claims<'g>(&'g self, facts: &'g [Fact]) -> Claims<'g> {
        Claims {
            facts,
            known: &self.known,
            distinct: &self.distinct,
        }
    }

    /// The guess with more places, where nobody has been seen.
    pub fn widen(&mut self, places: usize) {
        let flagged = self.flagged.iter_mut().map(|f| &mut f.hull);
        for hull in std::iter::once(&mut self.hull).chain(flagged) {
            hull.insert(self.places, places - self.places);
        }
        self.phases.insert(self.places, places - self.places);
        for held in &mut self.held {
            held.widen(places);
        }
        self.places = places;
    }
}

/// The sum that the fact bounds everywhere, if it is of that form.
fn bound(fact: &Fact) -> Option<&Sum> {
    match fact.0.as_slice() {
        [one] if one.is == Comparison::AtMostZero => Some(one),
        _ => None,
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

    /// Bounds that do not move with more threads, and numbers of the program where they do.
    fn facts(&self, guess: &Guess, numbers: &BTreeSet<i64>) -> Vec<Fact> {
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
            // Of cells, and of several places together.
            let several = term.len() > 1 && counts;
            if *here == usize::MAX && (several || term.len() == 1 && !single) {
                let below = numbers.range(..all.0).rev().take(NEAREST);
                let above = numbers.range(all.1.saturating_add(1)..).take(NEAREST);
                let below = below.filter(|k| !counts || **k > 0);
                facts.extend(below.map(|k| bound(-1, *k)));
                facts.extend(above.map(|k| bound(1, k.saturating_neg())));
                if all.0 != fewer.0 && numbers.contains(&all.0) && !(counts && all.0 <= 0) {
                    facts.push(bound(-1, all.0));
                }
                if all.1 != fewer.1 && numbers.contains(&all.1) {
                    facts.push(bound(1, all.1.saturating_neg()));
                }
            }
            if facts.len() > MOST_FACTS {
                break;
            }
        }
        facts
    }
}

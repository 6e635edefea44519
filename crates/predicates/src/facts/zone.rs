//! Bounds on the differences of variables, and of the number zero: a zone (dill-1989, mine-2001).
//!
//! What a zone cannot say is left out, so everything here is at least as much as it should be.

use std::collections::BTreeSet;
use wattle_logic::{Atom, Formula, Rel, Term, Var, le, not};

/// No bound.
pub const OPEN: i64 = i64::MAX / 8;
/// Larger numbers are not followed.
const MOST: i64 = 1 << 40;

/// The zones of a condition are at most so many; what more it says is left out.
const MOST_CASES: usize = 64;

/// At most `bounds[i * width + j]` is `x_i - x_j`; the last index is zero. Closed under chains, unless it says
/// otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    pub width: usize,
    pub bounds: Vec<i64>,
}

fn sum(a: i64, b: i64) -> i64 {
    if a >= OPEN || b >= OPEN {
        return OPEN;
    }
    bounded(a + b)
}

/// A bound that is followed, and no tighter.
fn bounded(a: i64) -> i64 {
    if a > MOST { OPEN } else { a.max(-MOST) }
}

impl Zone {
    /// Anything.
    pub fn any(vars: usize) -> Self {
        let width = vars + 1;
        let mut bounds = vec![OPEN; width * width];
        (0..width).for_each(|i| bounds[i * width + i] = 0);
        Zone { width, bounds }
    }

    pub fn get(&self, i: usize, j: usize) -> i64 {
        self.bounds[i * self.width + j]
    }

    /// The same with more variables, of which nothing is known.
    pub fn with_more(&self, more: usize) -> Self {
        let mut wide = Zone::any(self.width - 1 + more);
        let there = |i: usize| if i + 1 == self.width { i + more } else { i };
        for i in 0..self.width {
            for j in 0..self.width {
                wide.bounds[there(i) * wide.width + there(j)] = self.get(i, j);
            }
        }
        wide
    }

    /// Makes `x_i - x_j <= c` true; says whether anything is left.
    fn tighten(&mut self, i: usize, j: usize, c: i64) -> bool {
        let c = bounded(c);
        if c >= self.get(i, j) {
            return true;
        }
        if sum(c, self.get(j, i)) < 0 {
            return false;
        }
        let w = self.width;
        let row: Vec<i64> = (0..w).map(|l| self.get(j, l)).collect();
        for k in 0..w {
            let first = sum(self.get(k, i), c);
            if first >= OPEN {
                continue;
            }
            for (l, last) in row.iter().enumerate() {
                let through = sum(first, *last);
                let here = &mut self.bounds[k * w + l];
                *here = (*here).min(through);
            }
        }
        true
    }

    /// All chains; says whether anything is left.
    pub fn close(&mut self) -> bool {
        let w = self.width;
        for k in 0..w {
            for i in 0..w {
                let first = self.get(i, k);
                if first >= OPEN {
                    continue;
                }
                for j in 0..w {
                    let through = sum(first, self.get(k, j));
                    let here = &mut self.bounds[i * w + j];
                    *here = (*here).min(through);
                }
            }
        }
        (0..w).all(|i| self.get(i, i) >= 0)
    }

    /// Whether every point of the other, which is closed, is one of this.
    pub fn covers(&self, other: &Zone) -> bool {
        let mut both = self.bounds.iter().zip(&other.bounds);
        both.all(|(a, b)| a >= b)
    }

    /// The least zone around both.
    pub fn join(&mut self, other: &Zone) {
        for (a, b) in self.bounds.iter_mut().zip(&other.bounds) {
            *a = (*a).max(*b);
        }
    }

    /// As `join`, but a bound that grows goes on to the next threshold. Not closed afterwards, or it might grow for
    /// ever.
    pub fn widen(&mut self, other: &Zone, thresholds: &BTreeSet<i64>) {
        for (a, b) in self.bounds.iter_mut().zip(&other.bounds) {
            if *b > *a {
                *a = thresholds.range(*b..).next().copied().unwrap_or(OPEN);
            }
        }
    }

    /// The most that the term can be.
    fn most(&self, vars: &Numbered<'_>, term: &Term) -> i64 {
        let zero = self.width - 1;
        let Some(mut most) = term.constant_part().to_i64() else {
            return OPEN;
        };
        if let Some((i, j)) = difference(vars, zero, term) {
            return sum(self.get(i, j), most);
        }
        for (v, k) in term.coeffs() {
            let (Some(i), Some(k)) = (vars.at(*v), k.to_i64()) else {
                return OPEN;
            };
            let bound = match k > 0 {
                true => self.get(i, zero),
                false => self.get(zero, i),
            };
            if bound >= OPEN {
                return OPEN;
            }
            let Some(part) = bound.checked_mul(k.abs()) else {
                return OPEN;
            };
            most = sum(most, bounded(part));
        }
        bounded(most)
    }

    /// The points where `term <= 0`, or more; nothing if there are none.
    fn at_most_zero(mut self, vars: &Numbered<'_>, term: &Term) -> Option<Zone> {
        let least = self.most(vars, &term.scaled(&(-1).into()));
        if least < 0 {
            // The term is at least one.
            return None;
        }
        let zero = self.width - 1;
        if let (Some((i, j)), Some(c)) =
            (difference(vars, zero, term), term.constant_part().to_i64())
            && !self.tighten(i, j, -c)
        {
            return None;
        }
        Some(self)
    }

    /// The points where the condition is true, or more.
    pub fn assume(self, vars: &Numbered<'_>, condition: &Formula) -> Vec<Zone> {
        match condition {
            Formula::True => vec![self],
            Formula::False => Vec::new(),
            Formula::Atom(atom) => self.assume_atom(vars, atom),
            Formula::And(parts) => {
                let mut zones = vec![self];
                for part in parts.iter() {
                    let next = zones.iter().flat_map(|z| z.clone().assume(vars, part));
                    let next: Vec<Zone> = next.collect();
                    if next.len() <= MOST_CASES {
                        zones = next;
                    }
                }
                zones
            }
            Formula::Or(parts) => {
                let zones = parts.iter().flat_map(|p| self.clone().assume(vars, p));
                let zones: Vec<Zone> = zones.collect();
                match zones.len() <= MOST_CASES {
                    true => zones,
                    false => vec![self],
                }
            }
        }
    }

    fn assume_atom(self, vars: &Numbered<'_>, atom: &Atom) -> Vec<Zone> {
        let term = atom.term();
        let negative = || term.scaled(&(-1).into());
        match atom.rel() {
            Rel::Le => self.at_most_zero(vars, term).into_iter().collect(),
            Rel::Eq => {
                let below = self.at_most_zero(vars, term);
                let both = below.and_then(|z| z.at_most_zero(vars, &negative()));
                both.into_iter().collect()
            }
            Rel::Ne => {
                let below = self.clone().at_most_zero(vars, &(term.clone() + 1));
                let above = self.at_most_zero(vars, &(negative() + 1));
                below.into_iter().chain(above).collect()
            }
            Rel::Divides(_) | Rel::NotDivides(_) => vec![self],
        }
    }

    /// What holds of the values of the terms; nothing if there are none.
    pub fn image(&self, vars: &Numbered<'_>, terms: &[Term]) -> Option<Zone> {
        let mut image = Zone::any(terms.len());
        let zero = Term::default();
        let term = |i: usize| terms.get(i).unwrap_or(&zero);
        for i in 0..image.width {
            for j in 0..image.width {
                if i != j {
                    let apart = term(i).clone() - term(j).clone();
                    image.bounds[i * image.width + j] = self.most(vars, &apart);
                }
            }
        }
        image.close().then_some(image)
    }
}

/// Which variables a zone speaks of.
pub struct Numbered<'v> {
    pub vars: &'v [Var],
    pub more: &'v [Var],
}

impl Numbered<'_> {
    fn at(&self, v: Var) -> Option<usize> {
        let first = self.vars.iter().position(|x| *x == v);
        let more = || self.more.iter().position(|x| *x == v);
        first.or_else(|| more().map(|i| self.vars.len() + i))
    }
}

/// The term without its constant, if it is a difference of two variables, or of one and zero.
fn difference(vars: &Numbered<'_>, zero: usize, term: &Term) -> Option<(usize, usize)> {
    let sign = |k: &wattle_logic::Int| k.to_i64().filter(|k| k.abs() == 1);
    match term.coeffs() {
        [] => Some((zero, zero)),
        [(v, k)] => match sign(k)? {
            1 => Some((vars.at(*v)?, zero)),
            _ => Some((zero, vars.at(*v)?)),
        },
        [(v, k), (u, l)] => match (sign(k)?, sign(l)?) {
            (1, -1) => Some((vars.at(*v)?, vars.at(*u)?)),
            (-1, 1) => Some((vars.at(*u)?, vars.at(*v)?)),
            _ => None,
        },
        _ => None,
    }
}

/// The conditions, one of which is true, that tell the atom's cases apart.
pub fn sides(atom: &Formula) -> Vec<Formula> {
    let Some(inner) = atom.as_atom() else {
        return vec![Formula::True];
    };
    match inner.rel() {
        Rel::Le => vec![atom.clone(), not(atom)],
        Rel::Eq | Rel::Ne => {
            let term = inner.term();
            let above = le(1, term.clone());
            vec![
                le(term.clone(), -1),
                wattle_logic::eq(term.clone(), 0),
                above,
            ]
        }
        Rel::Divides(_) | Rel::NotDivides(_) => vec![Formula::True],
    }
}

//! General simplex (Dutertre and de Moura, CAV 2006) over exact integers.
//!
//! A row is `den · basic = Σ aⱼ · nonbasicⱼ` with integers without a common
//! factor, so pivots need no fractions and a conflict's Farkas multipliers are
//! read off the row. There are no strict bounds over the integers. Bland's rule
//! makes every check end.

use super::facts::{Conflict, Ledger, Stop, add_scaled};
use crate::int::Int;
use crate::proof::Sum;
use crate::rat::Rat;
use std::cmp::Ordering;

/// A bound on a variable and the facts that sum to it.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) value: Int,
    pub(super) sum: Sum,
}

#[derive(Clone, Copy)]
enum Position {
    Row(usize),
    Col(usize),
}

/// Which side of a variable a bound is on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Lower,
    Upper,
}

/// Variables `0..columns` are the problem's; each row adds a slack variable.
pub(super) struct Simplex {
    columns: usize,
    matrix: Vec<Vec<Int>>,
    den: Vec<Int>,
    basic: Vec<usize>,
    nonbasic: Vec<usize>,
    place: Vec<Position>,
    value: Vec<Rat>,
    lower: Vec<Option<Bound>>,
    upper: Vec<Option<Bound>>,
}

impl Simplex {
    pub(super) fn new(columns: usize) -> Simplex {
        Simplex {
            columns,
            matrix: Vec::new(),
            den: Vec::new(),
            basic: Vec::new(),
            nonbasic: (0..columns).collect(),
            place: (0..columns).map(Position::Col).collect(),
            value: vec![Rat::ZERO; columns],
            lower: vec![None; columns],
            upper: vec![None; columns],
        }
    }

    pub(super) fn value(&self, var: usize) -> &Rat {
        &self.value[var]
    }

    pub(super) fn bound(&self, var: usize, side: Side) -> Option<&Bound> {
        match side {
            Side::Lower => self.lower[var].as_ref(),
            Side::Upper => self.upper[var].as_ref(),
        }
    }

    /// A slack variable equal to `Σ a·x` over problem variables.
    pub(super) fn add_row(&mut self, coeffs: &[(usize, Int)]) -> usize {
        let mut den = Int::ONE;
        for (v, _) in coeffs {
            if let Position::Row(r) = self.place[*v] {
                den = den.lcm(&self.den[r]);
            }
        }
        let mut row = vec![Int::ZERO; self.columns];
        let mut value = Rat::ZERO;
        for (v, a) in coeffs {
            match self.place[*v] {
                Position::Col(c) => row[c] += &(a * &den),
                Position::Row(r) => {
                    let k = a * &den.div_exact(&self.den[r]);
                    for (cell, b) in row.iter_mut().zip(&self.matrix[r]) {
                        if !b.is_zero() {
                            *cell += &(&k * b);
                        }
                    }
                }
            }
            value = value.plus(&self.value[*v].scale(a, &Int::ONE));
        }
        reduce(&mut row, &mut den);
        let var = self.place.len();
        self.place.push(Position::Row(self.matrix.len()));
        self.matrix.push(row);
        self.den.push(den);
        self.basic.push(var);
        self.value.push(value);
        self.lower.push(None);
        self.upper.push(None);
        var
    }

    /// Restores a bound saved before an [`Simplex::assert`].
    pub(super) fn restore(&mut self, var: usize, side: Side, bound: Option<Bound>) {
        match side {
            Side::Lower => self.lower[var] = bound,
            Side::Upper => self.upper[var] = bound,
        }
    }

    /// Bounds a variable; a weaker bound than the present one is ignored.
    pub(super) fn assert(&mut self, var: usize, side: Side, bound: Bound) -> Result<(), Conflict> {
        let (same, opposite) = match side {
            Side::Lower => (&self.lower[var], &self.upper[var]),
            Side::Upper => (&self.upper[var], &self.lower[var]),
        };
        let beyond = |a: &Int, b: &Int| match side {
            Side::Lower => a > b,
            Side::Upper => a < b,
        };
        if same
            .as_ref()
            .is_some_and(|old| !beyond(&bound.value, &old.value))
        {
            return Ok(());
        }
        if let Some(other) = opposite
            && beyond(&bound.value, &other.value)
        {
            let mut sum = bound.sum;
            add_scaled(&mut sum, &Int::ONE, &other.sum);
            return Err(Conflict::farkas(sum));
        }
        let outside = match side {
            Side::Lower => self.value[var].cmp_int(&bound.value).is_lt(),
            Side::Upper => self.value[var].cmp_int(&bound.value).is_gt(),
        };
        if outside && let Position::Col(c) = self.place[var] {
            self.shift(c, &Rat::from_int(bound.value.clone()));
        }
        self.restore(var, side, Some(bound));
        Ok(())
    }

    /// Moves a nonbasic variable to `target`, the basic ones along with it.
    fn shift(&mut self, col: usize, target: &Rat) {
        let var = self.nonbasic[col];
        let delta = target.minus(&self.value[var]);
        for (r, row) in self.matrix.iter().enumerate() {
            if !row[col].is_zero() {
                let b = self.basic[r];
                self.value[b] = self.value[b].plus(&delta.scale(&row[col], &self.den[r]));
            }
        }
        self.value[var] = target.clone();
    }

    /// Moves to a point within all bounds.
    pub(super) fn check(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Stop> {
        while let Some((r, below)) = self.violated() {
            // Numbers beyond a word are some hundred times dearer.
            let dear = self.matrix[r].iter().filter(|a| !a.is_word()).count();
            let far = self
                .basic
                .iter()
                .filter(|&&b| !self.value[b].is_small())
                .count();
            let cells = self.matrix.len() * (self.columns + 400 * dear) + 400 * far;
            ledger.spend(2 + cells as u64 / 16)?;
            let Some(col) = self.entering(r, below) else {
                return Err(self.conflict(r, below).into());
            };
            let var = self.basic[r];
            let bound = if below {
                &self.lower[var]
            } else {
                &self.upper[var]
            };
            let Some(target) = bound.as_ref().map(|b| b.value.clone()) else {
                continue;
            };
            let gap = Rat::from_int(target).minus(&self.value[var]);
            let step = gap.scale(&self.den[r], &self.matrix[r][col]);
            let moved = self.value[self.nonbasic[col]].plus(&step);
            self.shift(col, &moved);
            self.pivot(r, col);
        }
        Ok(())
    }

    /// The lowest basic variable outside its bounds, and whether it is below.
    fn violated(&self) -> Option<(usize, bool)> {
        let mut best: Option<(usize, bool)> = None;
        for (r, &var) in self.basic.iter().enumerate() {
            if best.is_some_and(|(b, _)| self.basic[b] < var) {
                continue;
            }
            let value = &self.value[var];
            if self.lower[var]
                .as_ref()
                .is_some_and(|b| value.cmp_int(&b.value) == Ordering::Less)
            {
                best = Some((r, true));
            } else if self.upper[var]
                .as_ref()
                .is_some_and(|b| value.cmp_int(&b.value) == Ordering::Greater)
            {
                best = Some((r, false));
            }
        }
        best
    }

    /// The lowest nonbasic variable that can move row `r`'s basic one.
    fn entering(&self, r: usize, up: bool) -> Option<usize> {
        let row = &self.matrix[r];
        let usable = |&c: &usize| {
            if row[c].is_zero() {
                return false;
            }
            let var = self.nonbasic[c];
            let side = if row[c].is_positive() == up {
                Side::Upper
            } else {
                Side::Lower
            };
            self.bound(var, side)
                .is_none_or(|b| self.value[var].cmp_int(&b.value) != Ordering::Equal)
        };
        (0..self.columns)
            .filter(usable)
            .min_by_key(|&c| self.nonbasic[c])
    }

    fn conflict(&self, r: usize, below: bool) -> Conflict {
        let var = self.basic[r];
        let mut sum = Sum::new();
        let mut add = |k: &Int, bound: Option<&Bound>| {
            if let Some(b) = bound {
                add_scaled(&mut sum, k, &b.sum);
            }
        };
        add(
            &self.den[r],
            self.bound(var, if below { Side::Lower } else { Side::Upper }),
        );
        for (c, a) in self.matrix[r].iter().enumerate() {
            if !a.is_zero() {
                let side = if a.is_positive() == below {
                    Side::Upper
                } else {
                    Side::Lower
                };
                add(&a.abs(), self.bound(self.nonbasic[c], side));
            }
        }
        Conflict::farkas(sum)
    }

    /// Exchanges row `r`'s basic variable with column `c`'s nonbasic one.
    fn pivot(&mut self, r: usize, c: usize) {
        let mut row = std::mem::take(&mut self.matrix[r]);
        let pivot = std::mem::take(&mut row[c]);
        // pivot · x_c = den · x_r - Σ others
        let positive = pivot.is_positive();
        for a in row.iter_mut() {
            if positive && !a.is_zero() {
                *a = -&*a;
            }
        }
        row[c] = if positive {
            self.den[r].clone()
        } else {
            -&self.den[r]
        };
        let den = pivot.abs();
        for (i, other) in self.matrix.iter_mut().enumerate() {
            if i == r || other.is_empty() || other[c].is_zero() {
                continue;
            }
            let k = std::mem::take(&mut other[c]);
            let unit = den.is_one();
            for (cell, a) in other.iter_mut().zip(&row) {
                if !unit {
                    *cell = &*cell * &den;
                }
                if !a.is_zero() {
                    *cell += &(&k * a);
                }
            }
            if !unit {
                self.den[i] = &self.den[i] * &den;
            }
            reduce(other, &mut self.den[i]);
        }
        self.matrix[r] = row;
        self.den[r] = den;
        let (leaving, entering) = (self.basic[r], self.nonbasic[c]);
        self.basic[r] = entering;
        self.nonbasic[c] = leaving;
        self.place[entering] = Position::Row(r);
        self.place[leaving] = Position::Col(c);
    }
}

/// Divides a row by what its numbers have in common.
fn reduce(row: &mut [Int], den: &mut Int) {
    if den.is_one() {
        return;
    }
    let mut g = den.clone();
    for a in row.iter() {
        if !a.is_zero() {
            g = g.gcd(a);
            if g.is_one() {
                return;
            }
        }
    }
    *den = den.div_exact(&g);
    for a in row.iter_mut() {
        *a = a.div_exact(&g);
    }
}

//! Equalities over the integers.
//!
//! An equality with a unit coefficient is solved for that variable; one without
//! is brought to that form by unimodular changes of variables
//! (`y = xₖ + Σ qᵢ·xᵢ`, Knuth's and Pugh's way to the Hermite form); one whose
//! gcd does not divide its constant has no integer solution. Every row is at all
//! times a known sum of facts, and the new variables are integer terms over the
//! old ones, so rounding a row is a cut on the original facts.

use super::facts::{Conflict, Intro, Ledger, Stop, add_scaled};
use crate::int::Int;
use crate::proof::Sum;

/// `Σ aᵢ·yᵢ + c` over the current local variables.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) coeffs: Vec<Int>,
    pub(super) constant: Int,
}

impl Row {
    fn content(&self) -> Int {
        let mut g = Int::ZERO;
        for a in &self.coeffs {
            if a.is_unit() {
                return Int::ONE;
            }
            if !a.is_zero() {
                g = g.gcd(a);
            }
        }
        g
    }

    fn add_scaled(&mut self, k: &Int, other: &Row) {
        for (a, b) in self.coeffs.iter_mut().zip(&other.coeffs) {
            if !b.is_zero() {
                *a += &(k * b);
            }
        }
        self.constant += &(k * &other.constant);
    }
}

/// `row == 0`, because `plus` sums to `row <= 0` and `minus` to `-row <= 0`.
#[derive(Clone, Debug)]
pub(super) struct Equation {
    pub(super) row: Row,
    pub(super) plus: Sum,
    pub(super) minus: Sum,
}

/// `row <= 0`, because `sum` sums to it.
#[derive(Clone, Debug)]
pub(super) struct Inequality {
    pub(super) row: Row,
    pub(super) sum: Sum,
}

/// How local variables came to be; undone in reverse to get values.
enum Move {
    /// The row, zero, determines `var` (coefficient 1 or -1 there).
    Solved { var: usize, row: Row },
    /// `var` now stands for itself plus `Σ q·x`.
    Changed {
        var: usize,
        quotients: Vec<(usize, Int)>,
    },
}

/// An equality without integer solutions.
pub(super) enum Clash {
    /// The row is a constant other than zero.
    Constant(Sum),
    /// The gcd `g` of the row does not divide its constant.
    Gcd {
        row: Row,
        g: Int,
        plus: Sum,
        minus: Sum,
    },
}

impl Clash {
    pub(super) fn conflict(self, ledger: &mut Ledger<'_>) -> Conflict {
        match self {
            Clash::Constant(sum) => Conflict::farkas(sum),
            Clash::Gcd { g, plus, minus, .. } => {
                let fact = ledger.fresh(1);
                let cut = Intro::cut(plus, g.clone(), fact);
                let mut sum = vec![(fact, g)];
                add_scaled(&mut sum, &Int::ONE, &minus);
                Conflict::farkas(sum).wrapped(vec![cut])
            }
        }
    }
}

/// Equalities and inequalities over local variables `0..width`.
pub(super) struct Lattice {
    pub(super) width: usize,
    pub(super) equations: Vec<Equation>,
    pub(super) inequalities: Vec<Inequality>,
    /// Cuts made so far, in order.
    pub(super) steps: Vec<Intro>,
    moves: Vec<Move>,
    /// `defs[i]`: local variable `i` over the original ones, once one changed.
    defs: Option<Vec<Vec<Int>>>,
}

impl Lattice {
    pub(super) fn new(width: usize) -> Lattice {
        Lattice {
            width,
            equations: Vec::new(),
            inequalities: Vec::new(),
            steps: Vec::new(),
            moves: Vec::new(),
            defs: None,
        }
    }

    /// Local variable `i` over the original ones, as (variable, coefficient).
    pub(super) fn definition(&self, i: usize) -> Vec<(usize, Int)> {
        match &self.defs {
            None => vec![(i, Int::ONE)],
            Some(defs) => {
                let nonzero = defs[i].iter().enumerate().filter(|(_, a)| !a.is_zero());
                nonzero.map(|(j, a)| (j, a.clone())).collect()
            }
        }
    }

    /// Solves all equations; `Ok(Some)` if one has no solution.
    pub(super) fn eliminate(&mut self, ledger: &mut Ledger<'_>) -> Result<Option<Clash>, Stop> {
        while let Some(at) = self.easiest() {
            let rows = self.equations.len() + self.inequalities.len();
            let big = self.equations[at]
                .row
                .coeffs
                .iter()
                .filter(|a| !a.is_word());
            let cells = rows * (self.width + 200 * big.count());
            ledger.spend(1 + cells as u64 / 8)?;
            let g = self.equations[at].row.content();
            let e = &self.equations[at];
            if g.is_zero() {
                let e = self.equations.swap_remove(at);
                if e.row.constant.is_zero() {
                    continue;
                }
                let sum = if e.row.constant.is_positive() {
                    e.plus
                } else {
                    e.minus
                };
                return Ok(Some(Clash::Constant(sum)));
            }
            if !g.divides(&e.row.constant) {
                let Equation { row, plus, minus } = self.equations.swap_remove(at);
                return Ok(Some(Clash::Gcd {
                    row,
                    g,
                    plus,
                    minus,
                }));
            }
            if !g.is_one() {
                self.divide_equation(at, &g, ledger);
            }
            let coeffs = &self.equations[at].row.coeffs;
            let smallest = (0..self.width)
                .filter(|&i| !coeffs[i].is_zero())
                .min_by_key(|&i| coeffs[i].abs());
            let Some(var) = smallest else { continue };
            if coeffs[var].is_unit() {
                self.solve_for(at, var);
            } else {
                self.change(at, var);
            }
        }
        Ok(None)
    }

    /// An equation with a unit coefficient if there is one, for short rows first.
    fn easiest(&self) -> Option<usize> {
        let hard = |e: &Equation| {
            let unit = e.row.coeffs.iter().any(Int::is_unit);
            (!unit, e.row.coeffs.iter().filter(|a| !a.is_zero()).count())
        };
        (0..self.equations.len()).min_by_key(|&i| hard(&self.equations[i]))
    }

    fn divide_equation(&mut self, at: usize, g: &Int, ledger: &mut Ledger<'_>) {
        let first = ledger.fresh(2);
        let second = crate::proof::FactId(first.0 + 1);
        let e = &mut self.equations[at];
        for a in &mut e.row.coeffs {
            *a = a.div_exact(g);
        }
        e.row.constant = e.row.constant.div_exact(g);
        let plus = std::mem::replace(&mut e.plus, vec![(first, Int::ONE)]);
        let minus = std::mem::replace(&mut e.minus, vec![(second, Int::ONE)]);
        self.steps.push(Intro::cut(plus, g.clone(), first));
        self.steps.push(Intro::cut(minus, g.clone(), second));
    }

    /// Removes equation `at` and the variable with a unit coefficient in it.
    fn solve_for(&mut self, at: usize, var: usize) {
        let e = self.equations.swap_remove(at);
        let sign = e.row.coeffs[var].clone();
        for other in &mut self.equations {
            let k = -(&other.row.coeffs[var] * &sign);
            if k.is_zero() {
                continue;
            }
            other.row.add_scaled(&k, &e.row);
            let (same, opposite) = if k.is_positive() {
                (&e.plus, &e.minus)
            } else {
                (&e.minus, &e.plus)
            };
            add_scaled(&mut other.plus, &k.abs(), same);
            add_scaled(&mut other.minus, &k.abs(), opposite);
        }
        for other in &mut self.inequalities {
            let k = -(&other.row.coeffs[var] * &sign);
            if k.is_zero() {
                continue;
            }
            other.row.add_scaled(&k, &e.row);
            add_scaled(
                &mut other.sum,
                &k.abs(),
                if k.is_positive() { &e.plus } else { &e.minus },
            );
        }
        self.moves.push(Move::Solved { var, row: e.row });
    }

    /// Lets local variable `var` stand for a sum that makes equation `at` smaller.
    fn change(&mut self, at: usize, var: usize) {
        let coeffs = &self.equations[at].row.coeffs;
        let pivot = coeffs[var].clone();
        let two = Int::new(2);
        let mut quotients = Vec::new();
        for (i, a) in coeffs.iter().enumerate() {
            if i != var && !a.is_zero() {
                // The nearest integer, so that rests are at most half the pivot.
                let q = (&two * a + &pivot).div_floor(&(&two * &pivot));
                if !q.is_zero() {
                    quotients.push((i, q));
                }
            }
        }
        let rows = self.equations.iter_mut().map(|e| &mut e.row);
        for row in rows.chain(self.inequalities.iter_mut().map(|i| &mut i.row)) {
            let a = row.coeffs[var].clone();
            if !a.is_zero() {
                for (i, q) in &quotients {
                    row.coeffs[*i] -= &(&a * q);
                }
            }
        }
        let width = self.width;
        let defs = self.defs.get_or_insert_with(|| {
            let unit = |i: usize| (0..width).map(|j| Int::from(i32::from(i == j))).collect();
            (0..width).map(unit).collect()
        });
        for (i, q) in &quotients {
            let extra: Vec<Int> = defs[*i].iter().map(|a| q * a).collect();
            for (a, b) in defs[var].iter_mut().zip(&extra) {
                *a += b;
            }
        }
        self.moves.push(Move::Changed { var, quotients });
    }

    /// Drops what is always true, rounds rows to the integers.
    pub(super) fn tidy(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Stop> {
        let mut i = 0;
        while i < self.inequalities.len() {
            let e = &mut self.inequalities[i];
            let g = e.row.content();
            if g.is_zero() {
                let e = self.inequalities.swap_remove(i);
                if e.row.constant.is_positive() {
                    let steps = std::mem::take(&mut self.steps);
                    return Err(Conflict::farkas(e.sum).wrapped(steps).into());
                }
                continue;
            }
            if !g.is_one() {
                for a in &mut e.row.coeffs {
                    *a = a.div_exact(&g);
                }
                e.row.constant = e.row.constant.div_ceil(&g);
                let fact = ledger.fresh(1);
                let sum = std::mem::replace(&mut e.sum, vec![(fact, Int::ONE)]);
                self.steps.push(Intro::cut(sum, g, fact));
            }
            i += 1;
        }
        Ok(())
    }

    /// From values of the remaining local variables to values of the original ones.
    pub(super) fn restore(&self, values: &mut [Int]) {
        for step in self.moves.iter().rev() {
            match step {
                Move::Solved { var, row } => {
                    let mut sum = row.constant.clone();
                    for (i, a) in row.coeffs.iter().enumerate() {
                        if i != *var && !a.is_zero() {
                            sum += &(a * &values[i]);
                        }
                    }
                    values[*var] = if row.coeffs[*var].is_positive() {
                        -sum
                    } else {
                        sum
                    };
                }
                Move::Changed { var, quotients } => {
                    for (i, q) in quotients {
                        let part = q * &values[*i];
                        values[*var] -= &part;
                    }
                }
            }
        }
    }
}

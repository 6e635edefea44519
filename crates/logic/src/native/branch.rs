//! Branch and bound, with cuts from proofs.
//!
//! A fractional variable is split at its value. Where that alone may go on
//! forever (unbounded polyhedra without integer points), the split is taken
//! from the vertex instead: the constraints tight there, read as equalities,
//! often have no integer solution, and the reason is a term whose value is
//! fractional on the whole face (Dillig, Dillig and Aiken, CAV 2009).

use super::facts::{Conflict, Ledger, Stop};
use super::lattice::{Clash, Equation, Lattice, Row};
use super::simplex::{Bound, Side, Simplex};
use crate::int::Int;
use crate::proof::End;
use crate::solver::Reason;
use crate::term::{Term, Var};

/// Plain splits before faces are looked at.
const PLAIN_DEPTH: u32 = 2;
/// Terms with larger coefficients are no good to split on.
const MAX_COEFF: i64 = 1_000_000;

/// Which bounds of problem variables define a face, besides the tight rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bounds {
    None,
    Fixed,
    All,
}

/// A sum of local variables and the floor to split it at.
type Cut = (Vec<(usize, Int)>, Int);

pub(super) struct Branch<'a, 'w> {
    pub(super) simplex: Simplex,
    /// The problem variables that each slack variable sums.
    pub(super) rows: Vec<Vec<(usize, Int)>>,
    pub(super) lattice: &'a Lattice,
    pub(super) vars: &'a [Var],
    pub(super) ledger: &'a mut Ledger<'w>,
    /// How deep splits may nest at present.
    pub(super) limit: u32,
}

impl Branch<'_, '_> {
    /// Moves the simplex to an integer point. Deeper and deeper, so that a
    /// direction without end does not hide a model next to it.
    pub(super) fn run(&mut self) -> Result<(), Stop> {
        for limit in [8, 24, 80] {
            self.limit = limit.min(self.ledger.max_depth);
            match self.descend(0) {
                Err(Stop::GaveUp(Reason::Depth)) => {}
                other => return other,
            }
        }
        Err(Stop::GaveUp(Reason::Depth))
    }

    fn descend(&mut self, depth: u32) -> Result<(), Stop> {
        self.simplex.check(self.ledger)?;
        let width = self.lattice.width;
        let Some(var) = (0..width).find(|&i| !self.simplex.value(i).is_integer()) else {
            return Ok(());
        };
        if depth >= self.limit {
            return Err(Stop::GaveUp(Reason::Depth));
        }
        self.ledger.spend(4)?;
        let face = if depth >= PLAIN_DEPTH {
            self.face()?
        } else {
            None
        };
        let (var, coeffs, floor) = match face {
            Some((coeffs, floor)) if coeffs.len() > 1 => {
                let var = match self.rows.iter().position(|r| *r == coeffs) {
                    Some(i) => width + i,
                    None => {
                        self.rows.push(coeffs.clone());
                        self.simplex.add_row(&coeffs)
                    }
                };
                (var, coeffs, floor)
            }
            _ => (var, vec![(var, Int::ONE)], self.simplex.value(var).floor()),
        };
        self.split(var, self.original(&coeffs), floor, depth)
    }

    /// Tries `var <= floor`, then `var >= floor + 1`; `term` is `var` in the
    /// query's variables.
    fn split(&mut self, var: usize, term: Term, floor: Int, depth: u32) -> Result<(), Stop> {
        let fact = self.ledger.fresh(1);
        let mut proofs = Vec::with_capacity(2);
        let mut used = Vec::new();
        let mut too_deep = false;
        for side in [Side::Upper, Side::Lower] {
            let value = if side == Side::Upper {
                floor.clone()
            } else {
                &floor + &Int::ONE
            };
            let saved = self.simplex.bound(var, side).cloned();
            let bound = Bound {
                value,
                sum: vec![(fact, Int::ONE)],
            };
            let outcome = match self.simplex.assert(var, side, bound) {
                Ok(()) => self.descend(depth + 1),
                Err(conflict) => Err(conflict.into()),
            };
            match outcome {
                Err(Stop::Conflict(c)) if c.uses(fact) => {
                    used.extend(c.used.into_iter().filter(|id| *id != fact));
                    proofs.push(c.proof);
                }
                Err(Stop::GaveUp(Reason::Depth)) => too_deep = true,
                other => {
                    if other.is_err() {
                        self.simplex.restore(var, side, saved);
                    }
                    return other;
                }
            }
            self.simplex.restore(var, side, saved);
        }
        if too_deep {
            return Err(Stop::GaveUp(Reason::Depth));
        }
        let term = term - floor;
        let (Some(high), Some(low)) = (proofs.pop().map(Box::new), proofs.pop().map(Box::new))
        else {
            return Err(Stop::GaveUp(Reason::Budget));
        };
        Err(Conflict::new(
            End::Split {
                term,
                fact,
                low,
                high,
            },
            used,
        )
        .into())
    }

    /// A sum of local variables as a term over the query's.
    fn original(&self, coeffs: &[(usize, Int)]) -> Term {
        let mut monomials = Vec::new();
        for (i, a) in coeffs {
            for (j, b) in self.lattice.definition(*i) {
                monomials.push((self.vars[j], a * &b));
            }
        }
        Term::linear(monomials, Int::ZERO)
    }

    /// A term that is integer for integers but fractional on the whole face of
    /// the present vertex, and the floor of its value there. Few constraints
    /// make a large face and a good split, so bounds of variables, which mostly
    /// come from earlier splits, are only used if the rows alone do not clash.
    fn face(&mut self) -> Result<Option<Cut>, Stop> {
        for with in [Bounds::None, Bounds::Fixed, Bounds::All] {
            if let Some(cut) = self.face_with(with)? {
                return Ok(Some(cut));
            }
        }
        Ok(None)
    }

    fn face_with(&mut self, with: Bounds) -> Result<Option<Cut>, Stop> {
        let width = self.lattice.width;
        let mut face = Lattice::new(width);
        let mut add = |coeffs: &[(usize, Int)], value: &Int| {
            let mut row = Row {
                coeffs: vec![Int::ZERO; width],
                constant: -value,
            };
            for (i, a) in coeffs {
                row.coeffs[*i] = a.clone();
            }
            face.equations.push(Equation {
                row,
                plus: Vec::new(),
                minus: Vec::new(),
            });
        };
        for var in 0..width + self.rows.len() {
            let value = self.simplex.value(var);
            let tight = |side| {
                self.simplex
                    .bound(var, side)
                    .is_some_and(|b| value.cmp_int(&b.value).is_eq())
            };
            let (lower, upper) = (tight(Side::Lower), tight(Side::Upper));
            if var >= width {
                if lower || upper {
                    add(&self.rows[var - width], value.numerator());
                }
            } else if (with != Bounds::None && lower && upper)
                || (with == Bounds::All && (lower || upper))
            {
                add(&[(var, Int::ONE)], value.numerator());
            }
        }
        let Some(Clash::Gcd { row, g, .. }) = face.eliminate(self.ledger)? else {
            return Ok(None);
        };
        let mut sum = vec![Int::ZERO; width];
        for (i, a) in row.coeffs.iter().enumerate() {
            if !a.is_zero() {
                for (j, b) in face.definition(i) {
                    sum[j] += &(a.div_exact(&g) * &b);
                }
            }
        }
        let coeffs: Vec<(usize, Int)> = sum
            .into_iter()
            .enumerate()
            .filter(|(_, a)| !a.is_zero())
            .collect();
        let max = Int::new(MAX_COEFF);
        if coeffs.is_empty() || coeffs.iter().any(|(_, a)| a.abs() > max) {
            return Ok(None);
        }
        Ok(Some((coeffs, (-row.constant).div_floor(&g))))
    }
}

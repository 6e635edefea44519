//! Conjunctions of linear equalities and inequalities over the integers.
//!
//! Difference constraints go to [`super::diff`]. Anything else: equalities are
//! solved ([`super::lattice`]), opposite inequalities that meet become
//! equalities and are solved too, the rest goes to the simplex, and a fractional
//! solution is branched on ([`super::branch`]).

use super::branch::Branch;
use super::diff;
use super::facts::{Fact, Ledger, Stop};
use super::lattice::{Equation, Inequality, Lattice, Row};
use super::simplex::{Bound, Side, Simplex};
use crate::int::Int;
use crate::model::Model;
use crate::term::Var;

/// A model of all facts, or why there is none.
pub(super) fn solve(facts: &[Fact<'_>], ledger: &mut Ledger<'_>) -> Result<Model, Stop> {
    let values = match diff::solve(facts, ledger) {
        Some(outcome) => outcome?,
        None => general(facts, ledger)?,
    };
    Ok(values.into_iter().collect())
}

fn general(facts: &[Fact<'_>], ledger: &mut Ledger<'_>) -> Result<Vec<(Var, Int)>, Stop> {
    let mut vars: Vec<Var> = facts
        .iter()
        .flat_map(|f| f.term.coeffs().iter().map(|(v, _)| *v))
        .collect();
    vars.sort_unstable();
    vars.dedup();
    let mut lattice = load(facts, &vars);
    let directions = loop {
        match lattice.eliminate(ledger)? {
            Some(clash) => {
                let steps = std::mem::take(&mut lattice.steps);
                return Err(clash.conflict(ledger).wrapped(steps).into());
            }
            None => lattice.tidy(ledger)?,
        }
        let directions = group(std::mem::take(&mut lattice.inequalities));
        if !directions.iter().any(Direction::is_point) {
            break directions;
        }
        for direction in directions {
            direction.unload(&mut lattice);
        }
    };
    match branch_and_bound(&lattice, directions, &vars, ledger) {
        Ok(mut values) => {
            lattice.restore(&mut values);
            Ok(vars.into_iter().zip(values).collect())
        }
        Err(Stop::Conflict(c)) => Err(c.wrapped(lattice.steps).into()),
        Err(other) => Err(other),
    }
}

fn load(facts: &[Fact<'_>], vars: &[Var]) -> Lattice {
    let mut lattice = Lattice::new(vars.len());
    for fact in facts {
        let mut coeffs = vec![Int::ZERO; vars.len()];
        for (v, a) in fact.term.coeffs() {
            if let Ok(i) = vars.binary_search(v) {
                coeffs[i] = a.clone();
            }
        }
        let row = Row {
            coeffs,
            constant: fact.term.constant_part().clone(),
        };
        let sum = vec![(fact.id, Int::ONE)];
        if fact.equality {
            let minus = vec![(fact.id, Int::MINUS_ONE)];
            lattice.equations.push(Equation {
                row,
                plus: sum,
                minus,
            });
        } else {
            lattice.inequalities.push(Inequality { row, sum });
        }
    }
    lattice
}

/// `lower <= Σ a·y <= upper`, the first coefficient positive.
struct Direction {
    coeffs: Vec<Int>,
    lower: Option<Bound>,
    upper: Option<Bound>,
}

impl Direction {
    fn is_point(&self) -> bool {
        matches!((&self.lower, &self.upper), (Some(l), Some(u)) if l.value == u.value)
    }

    /// Back to rows, as an equation if the bounds meet.
    fn unload(self, lattice: &mut Lattice) {
        let Direction {
            coeffs,
            lower,
            upper,
        } = self;
        match (lower, upper) {
            (Some(l), Some(u)) if l.value == u.value => {
                let row = Row {
                    coeffs,
                    constant: -u.value,
                };
                lattice.equations.push(Equation {
                    row,
                    plus: u.sum,
                    minus: l.sum,
                });
            }
            (lower, upper) => {
                if let Some(l) = lower {
                    let row = Row {
                        coeffs: coeffs.iter().map(|a| -a).collect(),
                        constant: l.value,
                    };
                    lattice.inequalities.push(Inequality { row, sum: l.sum });
                }
                if let Some(u) = upper {
                    let row = Row {
                        coeffs,
                        constant: -u.value,
                    };
                    lattice.inequalities.push(Inequality { row, sum: u.sum });
                }
            }
        }
    }
}

/// Inequalities by direction, the tightest of each side.
fn group(inequalities: Vec<Inequality>) -> Vec<Direction> {
    let mut out: Vec<Direction> = Vec::with_capacity(inequalities.len());
    for Inequality { row, sum } in inequalities {
        let lead_negative = row
            .coeffs
            .iter()
            .find(|a| !a.is_zero())
            .is_some_and(Int::is_negative);
        let (coeffs, side, value) = if lead_negative {
            (
                row.coeffs.iter().map(|a| -a).collect(),
                Side::Lower,
                row.constant,
            )
        } else {
            (row.coeffs, Side::Upper, -row.constant)
        };
        let at = out
            .iter()
            .position(|d| d.coeffs == coeffs)
            .unwrap_or_else(|| {
                out.push(Direction {
                    coeffs,
                    lower: None,
                    upper: None,
                });
                out.len() - 1
            });
        let (slot, tighter) = match side {
            Side::Lower => {
                let slot = &mut out[at].lower;
                let tighter = slot.as_ref().is_none_or(|b| value > b.value);
                (slot, tighter)
            }
            Side::Upper => {
                let slot = &mut out[at].upper;
                let tighter = slot.as_ref().is_none_or(|b| value < b.value);
                (slot, tighter)
            }
        };
        if tighter {
            *slot = Some(Bound { value, sum });
        }
    }
    out
}

fn branch_and_bound(
    lattice: &Lattice,
    directions: Vec<Direction>,
    vars: &[Var],
    ledger: &mut Ledger<'_>,
) -> Result<Vec<Int>, Stop> {
    let mut simplex = Simplex::new(lattice.width);
    let mut rows = Vec::new();
    for direction in directions {
        let nonzero = direction
            .coeffs
            .into_iter()
            .enumerate()
            .filter(|(_, a)| !a.is_zero());
        let coeffs: Vec<(usize, Int)> = nonzero.collect();
        let var = match coeffs.as_slice() {
            [(i, _)] => *i,
            _ => {
                let var = simplex.add_row(&coeffs);
                rows.push(coeffs);
                var
            }
        };
        if let Some(bound) = direction.lower {
            simplex.assert(var, Side::Lower, bound)?;
        }
        if let Some(bound) = direction.upper {
            simplex.assert(var, Side::Upper, bound)?;
        }
    }
    let mut branch = Branch {
        simplex,
        rows,
        lattice,
        vars,
        ledger,
        limit: 0,
    };
    branch.run()?;
    Ok((0..lattice.width)
        .map(|i| branch.simplex.value(i).numerator().clone())
        .collect())
}

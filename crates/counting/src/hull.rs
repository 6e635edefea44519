//! The least affine space through points: what equations hold of all of them.
//!
//! Exact integers throughout; rows are kept primitive and in reduced echelon form, so equations come out
//! with small coefficients: one for each column without a pivot, in terms of columns with one.

use wattle_logic::Int;

#[derive(Clone, Debug, Default)]
pub struct Hull {
    origin: Option<Vec<Int>>,
    /// Directions, each with its pivot's column; no other row has anything in that column.
    rows: Vec<(usize, Vec<Int>)>,
}

/// `Σ aᵢ·xᵢ + constant = 0`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    pub coefficients: Vec<i64>,
    pub constant: i64,
}

impl Hull {
    /// Takes the point in; whether it was outside.
    pub fn add(&mut self, point: &[i64]) -> bool {
        let point: Vec<Int> = point.iter().map(|v| Int::from(*v)).collect();
        let Some(origin) = &self.origin else {
            self.origin = Some(point);
            return true;
        };
        let mut row: Vec<Int> = point.iter().zip(origin).map(|(a, b)| a - b).collect();
        for (pivot, other) in &self.rows {
            eliminate(&mut row, other, *pivot);
        }
        let Some(pivot) = row.iter().position(|v| !v.is_zero()) else {
            return false;
        };
        primitive(&mut row);
        for (_, other) in &mut self.rows {
            eliminate(other, &row, pivot);
        }
        self.rows.push((pivot, row));
        true
    }

    /// More columns at a place, in which every point so far has nothing.
    pub fn insert(&mut self, at: usize, more: usize) {
        for (pivot, row) in &mut self.rows {
            row.splice(at..at, std::iter::repeat_n(Int::ZERO, more));
            if *pivot >= at {
                *pivot += more;
            }
        }
        if let Some(origin) = &mut self.origin {
            origin.splice(at..at, std::iter::repeat_n(Int::ZERO, more));
        }
    }

    /// A basis of the equations; those whose numbers are too large are left out.
    pub fn equations(&self) -> Vec<Equation> {
        let Some(origin) = &self.origin else {
            return Vec::new();
        };
        let free = (0..origin.len()).filter(|c| self.rows.iter().all(|(p, _)| p != c));
        let all = free.map(|column| self.equation(origin, column));
        all.flatten().collect()
    }

    fn equation(&self, origin: &[Int], column: usize) -> Option<Equation> {
        let used = || self.rows.iter().filter(|(_, row)| !row[column].is_zero());
        let scale = used().fold(Int::from(1), |l, (p, row)| l.lcm(&row[*p]));
        let mut all = vec![Int::ZERO; origin.len() + 1];
        all[column] = scale.clone();
        for (pivot, row) in used() {
            all[*pivot] = -(&scale.div_exact(&row[*pivot]) * &row[column]);
        }
        let sum = all
            .iter()
            .zip(origin)
            .fold(Int::ZERO, |s, (a, x)| s + a * x);
        all[origin.len()] = -sum;
        primitive(&mut all);
        let all: Option<Vec<i64>> = all.iter().map(Int::to_i64).collect();
        let mut coefficients = all?;
        let constant = coefficients.pop()?;
        Some(Equation {
            coefficients,
            constant,
        })
    }
}

/// Equations, and all that follows from them.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// The constant is the last column.
    rows: Vec<(usize, Vec<Int>)>,
}

impl Span {
    /// Takes the equation in; whether it did not follow.
    pub fn add(&mut self, e: &Equation) -> bool {
        let all = e.coefficients.iter().chain([&e.constant]);
        let mut row: Vec<Int> = all.map(|a| Int::from(*a)).collect();
        for (pivot, other) in &self.rows {
            eliminate(&mut row, other, *pivot);
        }
        let pivot = row.iter().position(|v| !v.is_zero());
        self.rows.extend(pivot.map(|pivot| (pivot, row)));
        pivot.is_some()
    }
}

/// Without the other row's pivot column.
fn eliminate(row: &mut [Int], other: &[Int], pivot: usize) {
    if row[pivot].is_zero() {
        return;
    }
    let (a, b) = (other[pivot].clone(), row[pivot].clone());
    for (x, y) in row.iter_mut().zip(other) {
        *x = &(&*x * &a) - &(y * &b);
    }
    primitive(row);
}

/// Without a common factor, the first number positive.
fn primitive(row: &mut [Int]) {
    let gcd = row.iter().fold(Int::ZERO, |g, v| g.gcd(v));
    let negative = row.iter().find(|v| !v.is_zero());
    let negative = negative.is_some_and(Int::is_negative);
    if gcd.is_zero() {
        return;
    }
    let by = if negative { -gcd } else { gcd };
    for v in row {
        *v = v.div_exact(&by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_is_not_new() {
        let mut span = Span::default();
        let e = |coefficients: &[i64], constant| Equation {
            coefficients: coefficients.to_vec(),
            constant,
        };
        assert!(span.add(&e(&[1, 1, 0], -2)));
        assert!(span.add(&e(&[0, 1, 1], -1)));
        assert!(!span.add(&e(&[1, 0, -1], -1)));
        assert!(span.add(&e(&[1, 0, -1], 0)));
    }

    #[test]
    fn the_equations_of_points_hold_of_them_and_of_nothing_else() {
        let mut hull = Hull::default();
        // s + cs = 2, with a third column that is free
        for (s, cs, x) in [(2, 0, 0), (1, 1, 5), (0, 2, 7), (2, 0, 9)] {
            hull.add(&[cs, x, s]);
        }
        let equations = hull.equations();
        let expected = Equation {
            coefficients: vec![1, 0, 1],
            constant: -2,
        };
        assert_eq!(equations, [expected]);
        assert!(!hull.add(&[5, 5, -3]));
        assert!(hull.add(&[5, 5, 5]));
        assert!(hull.equations().is_empty());
        hull.insert(1, 1);
        assert_eq!(hull.equations().len(), 1);
    }
}

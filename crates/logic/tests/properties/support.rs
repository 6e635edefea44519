//! Random queries of several shapes.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use wattle_logic::*;

/// A random generator of formulas over variables `0..vars`.
pub struct Gen {
    rng: SmallRng,
    pub vars: u32,
    pub coeff: i64,
    pub constant: i64,
}

impl Gen {
    pub fn new(seed: u64) -> Gen {
        Gen {
            rng: SmallRng::seed_from_u64(seed),
            vars: 4,
            coeff: 3,
            constant: 8,
        }
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n)
    }

    pub fn int(&mut self, max: i64) -> i64 {
        self.rng.random_range(-max..=max)
    }

    pub fn var(&mut self) -> Var {
        Var(self.rng.random_range(0..self.vars))
    }

    pub fn term(&mut self) -> Term {
        let mut t = Term::constant(self.int(self.constant));
        for _ in 0..1 + self.below(3) {
            let (k, v) = (self.int(self.coeff), self.var());
            t = t + v * k;
        }
        t
    }

    pub fn difference(&mut self) -> Formula {
        let (x, y, c) = (self.var(), self.var(), self.int(self.constant));
        match self.below(6) {
            0 => le(x, c),
            1 => ge(x, c),
            2 => eq(x, y + c),
            3 => lt(x, y),
            _ => le(x, y + c),
        }
    }

    pub fn literal(&mut self) -> Formula {
        let t = self.term();
        match self.below(12) {
            0..=1 => eq(t, 0),
            2 => ne(t, 0),
            3 => {
                let m = 2 + self.below(4) as i64;
                let d = divides(m, t);
                if self.below(2) == 0 { d } else { not(&d) }
            }
            4..=5 => self.difference(),
            _ => le(t, 0),
        }
    }

    pub fn formula(&mut self, depth: u32) -> Formula {
        if depth == 0 || self.below(3) == 0 {
            return self.literal();
        }
        let parts: Vec<Formula> = (0..2 + self.below(2))
            .map(|_| self.formula(depth - 1))
            .collect();
        if self.below(2) == 0 {
            and(parts)
        } else {
            or(parts)
        }
    }

    /// `-size <= x <= size` for every variable.
    pub fn bounds(&self, size: i64) -> Vec<Formula> {
        (0..self.vars)
            .flat_map(|v| [le(Var(v), size), ge(Var(v), -size)])
            .collect()
    }
}

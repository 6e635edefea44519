//! What engines ask of terms.

use super::{Term, Var};
use crate::int::Int;
use crate::model::Model;

impl Term {
    /// The greatest common divisor of the coefficients (not the constant).
    pub fn content(&self) -> Int {
        let mut g = Int::ZERO;
        for (_, a) in &self.coeffs {
            if a.is_unit() {
                return Int::ONE;
            }
            g = g.gcd(a);
        }
        g
    }

    /// The coefficient of `x`, zero if it does not occur.
    pub fn coeff(&self, x: Var) -> Int {
        match self.coeffs.binary_search_by_key(&x, |m| m.0) {
            Ok(i) => self.coeffs[i].1.clone(),
            Err(_) => Int::ZERO,
        }
    }

    /// Whether `x` occurs.
    pub fn mentions(&self, x: Var) -> bool {
        self.coeffs.binary_search_by_key(&x, |m| m.0).is_ok()
    }

    /// The term with its constant replaced.
    pub fn with_constant(mut self, c: Int) -> Term {
        self.constant = c;
        self
    }

    /// The value under a model.
    pub fn eval(&self, model: &Model) -> Int {
        let mut sum = self.constant.clone();
        for (v, a) in &self.coeffs {
            sum += &(a * model.value(*v));
        }
        sum
    }
}

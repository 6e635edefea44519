//! Variables and linear terms `Σ aᵢ·xᵢ + c`.

mod tools;

use crate::int::Int;
use std::collections::BTreeSet;
use std::ops::{Add, Mul, Neg, Sub};

/// An integer variable. What it stands for is known to whoever made it;
/// [`Symbols`](crate::Symbols) keeps the names. Booleans and enumerations are integers with
/// bounds: `0 <= b <= 1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Var(pub u32);

/// A linear term `Σ aᵢ·xᵢ + c`: variables strictly ascending, no zero coefficient.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Term {
    coeffs: Vec<(Var, Int)>,
    constant: Int,
}

impl Term {
    /// The constant term `c`.
    pub fn constant(c: impl Into<Int>) -> Term {
        Term {
            coeffs: Vec::new(),
            constant: c.into(),
        }
    }

    /// The term `a·x`.
    pub fn monomial(a: impl Into<Int>, x: Var) -> Term {
        Term::linear(vec![(x, a.into())], Int::ZERO)
    }

    /// `Σ aᵢ·xᵢ + c` from monomials in any order; repeated variables are added up.
    pub fn linear(mut coeffs: Vec<(Var, Int)>, constant: Int) -> Term {
        if !coeffs.is_sorted_by(|a, b| a.0 < b.0) {
            coeffs.sort_by_key(|m| m.0);
            coeffs.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    kept.1 = &kept.1 + &later.1;
                }
                same
            });
        }
        coeffs.retain(|m| !m.1.is_zero());
        Term { coeffs, constant }
    }

    /// The monomials, by ascending variable.
    pub fn coeffs(&self) -> &[(Var, Int)] {
        &self.coeffs
    }

    /// The constant part.
    pub fn constant_part(&self) -> &Int {
        &self.constant
    }

    /// The value, if no variable occurs.
    pub fn as_constant(&self) -> Option<&Int> {
        self.coeffs.is_empty().then_some(&self.constant)
    }

    /// `self · k`.
    pub fn scaled(&self, k: &Int) -> Term {
        self.map_parts(|a| a * k, |c| c * k)
    }

    /// `self + k·other`.
    pub fn plus_scaled(&self, k: &Int, other: &Term) -> Term {
        if k.is_zero() {
            return self.clone();
        }
        let mut coeffs = Vec::with_capacity(self.coeffs.len() + other.coeffs.len());
        coeffs.extend(self.coeffs.iter().cloned());
        coeffs.extend(other.coeffs.iter().map(|(v, a)| (*v, k * a)));
        Term::linear(coeffs, &self.constant + &(k * &other.constant))
    }

    /// Each coefficient through `f`, the constant through `g`.
    pub(crate) fn map_parts(&self, f: impl Fn(&Int) -> Int, g: impl Fn(&Int) -> Int) -> Term {
        let coeffs = self.coeffs.iter().map(|(v, a)| (*v, f(a)));
        Term::linear(coeffs.collect(), g(&self.constant))
    }

    /// All variables replaced at once; `None` keeps a variable.
    pub fn subst(&self, map: &dyn Fn(Var) -> Option<Term>) -> Term {
        let mut kept = Vec::with_capacity(self.coeffs.len());
        let mut out = Term::constant(self.constant.clone());
        for (v, a) in &self.coeffs {
            match map(*v) {
                None => kept.push((*v, a.clone())),
                Some(t) => out = out.plus_scaled(a, &t),
            }
        }
        out.plus_scaled(&Int::ONE, &Term::linear(kept, Int::ZERO))
    }

    /// Adds the variables that occur to `into`.
    pub fn collect_vars(&self, into: &mut BTreeSet<Var>) {
        into.extend(self.coeffs.iter().map(|m| m.0));
    }
}

impl From<Var> for Term {
    fn from(v: Var) -> Term {
        Term::monomial(Int::ONE, v)
    }
}

impl From<Int> for Term {
    fn from(c: Int) -> Term {
        Term::constant(c)
    }
}

impl From<i64> for Term {
    fn from(c: i64) -> Term {
        Term::constant(c)
    }
}

impl From<i32> for Term {
    fn from(c: i32) -> Term {
        Term::constant(c)
    }
}

impl From<&Term> for Term {
    fn from(t: &Term) -> Term {
        t.clone()
    }
}

macro_rules! operators {
    ($left:ty) => {
        impl<T: Into<Term>> Add<T> for $left {
            type Output = Term;
            fn add(self, other: T) -> Term {
                Term::from(self).plus_scaled(&Int::ONE, &other.into())
            }
        }
        impl<T: Into<Term>> Sub<T> for $left {
            type Output = Term;
            fn sub(self, other: T) -> Term {
                Term::from(self).plus_scaled(&Int::MINUS_ONE, &other.into())
            }
        }
        impl<T: Into<Int>> Mul<T> for $left {
            type Output = Term;
            fn mul(self, k: T) -> Term {
                Term::from(self).scaled(&k.into())
            }
        }
        impl Neg for $left {
            type Output = Term;
            fn neg(self) -> Term {
                Term::from(self).scaled(&Int::MINUS_ONE)
            }
        }
    };
}

operators!(Term);
operators!(&Term);
operators!(Var);

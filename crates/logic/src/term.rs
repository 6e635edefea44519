//! Variables, their names, and linear terms `Σ aᵢ·xᵢ + c`.

use crate::int::Int;
use crate::model::Model;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

/// An integer variable. What it stands for is known to whoever made it;
/// [`Symbols`] keeps the names. Booleans and enumerations are integers with
/// bounds: `0 <= b <= 1`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Var(pub u32);

/// `x7`: the name when no [`Symbols`] is at hand.
impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// Names of variables; variables are numbered in the order they are first named.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: Vec<String>,
    by_name: FxHashMap<String, Var>,
}

impl Symbols {
    /// No names.
    pub fn new() -> Symbols {
        Symbols::default()
    }

    /// The variable with this name, made if need be.
    pub fn var(&mut self, name: &str) -> Var {
        if let Some(&v) = self.by_name.get(name) {
            return v;
        }
        let v = Var(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), v);
        v
    }

    /// A variable no one has named yet: `stem`, `stem'1`, `stem'2`, …
    pub fn fresh(&mut self, stem: &str) -> Var {
        if !self.by_name.contains_key(stem) {
            return self.var(stem);
        }
        let mut n = 1usize;
        loop {
            let name = format!("{stem}'{n}");
            if !self.by_name.contains_key(&name) {
                return self.var(&name);
            }
            n += 1;
        }
    }

    /// The variable with this name, if there is one.
    pub fn lookup(&self, name: &str) -> Option<Var> {
        self.by_name.get(name).copied()
    }

    /// The name of a variable, if it has one.
    pub fn name(&self, var: Var) -> Option<&str> {
        self.names.get(var.0 as usize).map(String::as_str)
    }

    /// How many variables are named.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

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
        let a = a.into();
        let coeffs = if a.is_zero() {
            Vec::new()
        } else {
            vec![(x, a)]
        };
        Term {
            coeffs,
            constant: Int::ZERO,
        }
    }

    /// `Σ aᵢ·xᵢ + c` from monomials in any order; repeated variables are added up.
    pub fn linear(mut coeffs: Vec<(Var, Int)>, constant: Int) -> Term {
        if !coeffs.is_sorted_by(|a, b| a.0 < b.0) {
            coeffs.sort_by_key(|m| m.0);
            coeffs.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    kept.1 += &later.1;
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

    /// The value, if no variable occurs.
    pub fn as_constant(&self) -> Option<&Int> {
        self.coeffs.is_empty().then_some(&self.constant)
    }

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

    /// `self · k`.
    pub fn scaled(&self, k: &Int) -> Term {
        if k.is_zero() {
            return Term::default();
        }
        Term {
            coeffs: self.coeffs.iter().map(|(v, a)| (*v, a * k)).collect(),
            constant: &self.constant * k,
        }
    }

    /// `self + k·other`.
    pub fn plus_scaled(&self, k: &Int, other: &Term) -> Term {
        if k.is_zero() {
            return self.clone();
        }
        let mut coeffs = Vec::with_capacity(self.coeffs.len() + other.coeffs.len());
        let (mut i, mut j) = (0, 0);
        while i < self.coeffs.len() || j < other.coeffs.len() {
            let left = self.coeffs.get(i);
            let right = other.coeffs.get(j);
            match (left, right) {
                (Some(l), Some(r)) if l.0 == r.0 => {
                    let sum = &l.1 + &(k * &r.1);
                    if !sum.is_zero() {
                        coeffs.push((l.0, sum));
                    }
                    i += 1;
                    j += 1;
                }
                (Some(l), r) if r.is_none_or(|r| l.0 < r.0) => {
                    coeffs.push(l.clone());
                    i += 1;
                }
                (_, Some(r)) => {
                    coeffs.push((r.0, k * &r.1));
                    j += 1;
                }
                (_, None) => break,
            }
        }
        Term {
            coeffs,
            constant: &self.constant + &(k * &other.constant),
        }
    }

    /// The term with its constant replaced.
    pub fn with_constant(mut self, c: Int) -> Term {
        self.constant = c;
        self
    }

    /// Each coefficient through `f`, the constant through `g`.
    pub(crate) fn map_parts(&self, f: impl Fn(&Int) -> Int, g: impl Fn(&Int) -> Int) -> Term {
        Term {
            coeffs: self
                .coeffs
                .iter()
                .map(|(v, a)| (*v, f(a)))
                .filter(|(_, a)| !a.is_zero())
                .collect(),
            constant: g(&self.constant),
        }
    }

    /// All variables replaced at once; `None` keeps a variable.
    pub fn subst(&self, map: &dyn Fn(Var) -> Option<Term>) -> Term {
        let mut kept = Vec::with_capacity(self.coeffs.len());
        let mut replaced = Vec::new();
        for (v, a) in &self.coeffs {
            match map(*v) {
                None => kept.push((*v, a.clone())),
                Some(t) => replaced.push((a, t)),
            }
        }
        let mut out = Term {
            coeffs: kept,
            constant: self.constant.clone(),
        };
        for (a, t) in replaced {
            out = out.plus_scaled(a, &t);
        }
        out
    }

    /// The value under a model.
    pub fn eval(&self, model: &Model) -> Int {
        let mut sum = self.constant.clone();
        for (v, a) in &self.coeffs {
            sum += &(a * model.value(*v));
        }
        sum
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

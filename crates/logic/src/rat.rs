//! Exact rationals over [`Int`], for the values inside the simplex.

use crate::int::Int;
use std::cmp::Ordering;

/// A fraction in lowest terms with a positive denominator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rat {
    num: Int,
    den: Int,
}

impl Rat {
    pub(crate) const ZERO: Rat = Rat {
        num: Int::ZERO,
        den: Int::ONE,
    };

    pub(crate) fn from_int(num: Int) -> Rat {
        Rat { num, den: Int::ONE }
    }

    /// `num / den` for a denominator that is not zero.
    pub(crate) fn new(num: Int, den: Int) -> Rat {
        if den.is_one() {
            return Rat { num, den };
        }
        let g = num.gcd(&den);
        let g = if den.is_negative() { -g } else { g };
        Rat {
            num: num.div_exact(&g),
            den: den.div_exact(&g),
        }
    }

    pub(crate) fn is_integer(&self) -> bool {
        self.den.is_one()
    }

    /// Whether both parts are machine words.
    pub(crate) fn is_small(&self) -> bool {
        self.num.is_word() && self.den.is_word()
    }

    pub(crate) fn floor(&self) -> Int {
        self.num.div_floor(&self.den)
    }

    pub(crate) fn numerator(&self) -> &Int {
        &self.num
    }

    pub(crate) fn plus(&self, other: &Rat) -> Rat {
        if self.den.is_one() && other.den.is_one() {
            return Rat::from_int(&self.num + &other.num);
        }
        Rat::new(
            &self.num * &other.den + &other.num * &self.den,
            &self.den * &other.den,
        )
    }

    pub(crate) fn minus(&self, other: &Rat) -> Rat {
        if self.den.is_one() && other.den.is_one() {
            return Rat::from_int(&self.num - &other.num);
        }
        Rat::new(
            &self.num * &other.den - &other.num * &self.den,
            &self.den * &other.den,
        )
    }

    /// `self · num / den`.
    pub(crate) fn scale(&self, num: &Int, den: &Int) -> Rat {
        Rat::new(&self.num * num, &self.den * den)
    }

    pub(crate) fn cmp_int(&self, other: &Int) -> Ordering {
        if self.den.is_one() {
            self.num.cmp(other)
        } else {
            self.num.cmp(&(other * &self.den))
        }
    }
}

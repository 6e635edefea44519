//! Exact integers: a machine word while it fits, a [`BigInt`] when it does not.
//!
//! Every coefficient, bound and model value of this crate is an [`Int`], so no
//! answer can be wrong because something wrapped. The representation is
//! canonical (`Big` only holds what `Small` cannot), which makes the derived
//! equality and hash right.

mod tools;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::ToPrimitive;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::{Add, Mul, Neg, Sub};

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Small(i64),
    Big(Box<BigInt>),
}

use Repr::{Big, Small};

/// An exact integer of any size.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Int(Repr);

impl Int {
    /// Zero.
    pub const ZERO: Int = Int(Small(0));
    /// One.
    pub const ONE: Int = Int(Small(1));
    /// Minus one.
    pub const MINUS_ONE: Int = Int(Small(-1));

    fn from_big(value: BigInt) -> Int {
        match value.to_i64() {
            Some(v) => Int(Small(v)),
            None => Int(Big(Box::new(value))),
        }
    }

    fn to_big(&self) -> BigInt {
        match &self.0 {
            Small(v) => BigInt::from(*v),
            Big(b) => (**b).clone(),
        }
    }

    /// The value, if it fits in 64 bits.
    pub fn to_i64(&self) -> Option<i64> {
        match &self.0 {
            Small(v) => Some(*v),
            Big(_) => None,
        }
    }

    /// Whether the value is 0.
    #[inline]
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Small(0))
    }

    /// Whether the value is 1.
    #[inline]
    pub fn is_one(&self) -> bool {
        matches!(self.0, Small(1))
    }

    /// Whether the value is above 0.
    #[inline]
    pub fn is_positive(&self) -> bool {
        *self > Int::ZERO
    }

    /// Whether the value is below 0.
    #[inline]
    pub fn is_negative(&self) -> bool {
        *self < Int::ZERO
    }

    /// The absolute value.
    pub fn abs(&self) -> Int {
        if self.is_negative() {
            -self
        } else {
            self.clone()
        }
    }

    /// Division rounding down. Dividing by zero gives zero.
    pub fn div_floor(&self, by: &Int) -> Int {
        match (&self.0, &by.0) {
            (_, Small(0)) => Int::ZERO,
            (_, Small(-1)) => -self,
            (Small(a), Small(b)) => Int(Small(a.div_floor(b))),
            _ => Int::from_big(self.to_big().div_floor(&by.to_big())),
        }
    }

    /// Division rounding up. Dividing by zero gives zero.
    pub fn div_ceil(&self, by: &Int) -> Int {
        -(-self).div_floor(by)
    }

    /// Division that is known to leave no rest.
    pub fn div_exact(&self, by: &Int) -> Int {
        match by.is_one() {
            true => self.clone(),
            false => self.div_floor(by),
        }
    }

    /// The rest of [`Int::div_floor`]; in `0..by` for positive `by`.
    pub fn mod_floor(&self, by: &Int) -> Int {
        self - &(&self.div_floor(by) * by)
    }

    /// Whether `self` divides `other` (0 divides only 0).
    pub fn divides(&self, other: &Int) -> bool {
        if self.is_zero() {
            return other.is_zero();
        }
        other.mod_floor(self).is_zero()
    }
}

impl Default for Int {
    fn default() -> Self {
        Int::ZERO
    }
}

impl From<i64> for Int {
    fn from(v: i64) -> Int {
        Int(Small(v))
    }
}

impl From<i32> for Int {
    fn from(v: i32) -> Int {
        Int(Small(i64::from(v)))
    }
}

impl From<i128> for Int {
    fn from(v: i128) -> Int {
        Int::from_big(BigInt::from(v))
    }
}

impl Ord for Int {
    #[inline]
    fn cmp(&self, other: &Int) -> Ordering {
        match (&self.0, &other.0) {
            (Small(a), Small(b)) => a.cmp(b),
            _ => self.to_big().cmp(&other.to_big()),
        }
    }
}

impl PartialOrd for Int {
    #[inline]
    fn partial_cmp(&self, other: &Int) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

macro_rules! binary {
    ($trait:ident, $method:ident, $checked:ident) => {
        impl<T: Borrow<Int>> $trait<T> for &Int {
            type Output = Int;
            #[inline]
            fn $method(self, other: T) -> Int {
                let other = other.borrow();
                if let (Small(a), Small(b)) = (&self.0, &other.0)
                    && let Some(v) = a.$checked(*b)
                {
                    return Int(Small(v));
                }
                Int::from_big(self.to_big().$method(other.to_big()))
            }
        }
        impl<T: Borrow<Int>> $trait<T> for Int {
            type Output = Int;
            #[inline]
            fn $method(self, other: T) -> Int {
                (&self).$method(other)
            }
        }
    };
}

binary!(Add, add, checked_add);
binary!(Sub, sub, checked_sub);
binary!(Mul, mul, checked_mul);

impl Neg for &Int {
    type Output = Int;
    #[inline]
    fn neg(self) -> Int {
        &Int::ZERO - self
    }
}

impl Neg for Int {
    type Output = Int;
    #[inline]
    fn neg(self) -> Int {
        -&self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_and_small_agree_with_bigint() {
        let samples: Vec<BigInt> = [
            0i128,
            1,
            -1,
            2,
            -3,
            7,
            -12,
            i64::MAX as i128,
            i64::MIN as i128,
        ]
        .iter()
        .flat_map(|&v| {
            [
                BigInt::from(v),
                BigInt::from(v) * BigInt::from(3),
                BigInt::from(v) + 1,
            ]
        })
        .collect();
        for a in &samples {
            for b in &samples {
                let (x, y) = (Int::from(a.clone()), Int::from(b.clone()));
                assert_eq!(&x + &y, Int::from(a + b));
                assert_eq!(&x - &y, Int::from(a - b));
                assert_eq!(&x * &y, Int::from(a * b));
                assert_eq!(x.cmp(&y), a.cmp(b));
                assert_eq!(x.gcd(&y), Int::from(a.gcd(b)));
                assert_eq!(-&x, Int::from(-a));
                if !y.is_zero() {
                    assert_eq!(x.div_floor(&y), Int::from(a.div_floor(b)));
                    assert_eq!(x.div_ceil(&y), Int::from(a.div_ceil(b)));
                    assert_eq!(x.mod_floor(&y), Int::from(a.mod_floor(b)));
                }
            }
        }
    }
}

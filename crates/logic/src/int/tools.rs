//! What engines want of integers besides; reading and printing them.

use super::Int;
use super::Repr::{Big, Small};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};
use std::fmt;
use std::ops::{AddAssign, SubAssign};

impl Int {
    /// The integer as a machine word.
    pub const fn new(value: i64) -> Int {
        Int(Small(value))
    }

    /// Whether the value is 1 or −1.
    #[inline]
    pub fn is_unit(&self) -> bool {
        matches!(self.0, Small(1 | -1))
    }

    /// The greatest common divisor, never negative; `gcd(0, 0) = 0`.
    pub fn gcd(&self, other: &Int) -> Int {
        let word = |v: u64| i64::try_from(v).map_or_else(|_| Int::from_big(v.into()), Int::new);
        if let (Small(a), Small(b)) = (&self.0, &other.0) {
            return word(word_gcd(a.unsigned_abs(), b.unsigned_abs()));
        }
        // Euclid until words are left: the library's binary method is slower here.
        let (mut a, mut b) = (self.to_big().abs(), other.to_big().abs());
        while !b.is_zero() {
            if let (Some(x), Some(y)) = (a.to_u64(), b.to_u64()) {
                return word(word_gcd(x, y));
            }
            (a, b) = (b.clone(), a % b);
        }
        Int::from_big(a)
    }

    /// Whether the value is held in a machine word, so that arithmetic is cheap.
    #[inline]
    pub fn is_word(&self) -> bool {
        matches!(self.0, Small(_))
    }

    /// The least common multiple, never negative.
    pub fn lcm(&self, other: &Int) -> Int {
        if self.is_zero() || other.is_zero() {
            return Int::ZERO;
        }
        (&self.div_exact(&self.gcd(other)) * other).abs()
    }
}

/// Stein's binary method.
fn word_gcd(mut a: u64, mut b: u64) -> u64 {
    if a == 0 || b == 0 {
        return a | b;
    }
    let shift = (a | b).trailing_zeros();
    a >>= a.trailing_zeros();
    while b != 0 {
        b >>= b.trailing_zeros();
        if a > b {
            std::mem::swap(&mut a, &mut b);
        }
        b -= a;
    }
    a << shift
}

impl From<u32> for Int {
    fn from(v: u32) -> Int {
        Int(Small(i64::from(v)))
    }
}

impl From<BigInt> for Int {
    fn from(v: BigInt) -> Int {
        Int::from_big(v)
    }
}

impl AddAssign<&Int> for Int {
    #[inline]
    fn add_assign(&mut self, other: &Int) {
        *self = &*self + other;
    }
}

impl SubAssign<&Int> for Int {
    #[inline]
    fn sub_assign(&mut self, other: &Int) {
        *self = &*self - other;
    }
}

/// Decimal text with an optional sign.
impl std::str::FromStr for Int {
    type Err = num_bigint::ParseBigIntError;
    fn from_str(text: &str) -> Result<Int, Self::Err> {
        text.parse::<BigInt>().map(Int::from_big)
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Small(v) => v.fmt(f),
            Big(b) => b.fmt(f),
        }
    }
}

impl fmt::Debug for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

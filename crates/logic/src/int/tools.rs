//! What engines want of integers besides; reading and printing them.

use super::Int;
use super::Repr::{Big, Small};
use num_bigint::BigInt;
use std::fmt;
use std::ops::SubAssign;

impl Int {
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

//! What a value is: one semantics serves several *domains of values*.
//!
//! Expressions, types and the rules of the machine are written once, over a [`Domain`]. In
//! [`Numbers`] a value is a number and a question has one answer: that is the machine. In a domain of
//! terms a value is a term, a question may have both answers, and the rules are run once for each: the
//! answers given are the condition of the path. Whatever the domain, the order in which the rules ask
//! is the same, so a path of terms evaluated in a model is the run of the machine from that model.

use crate::expr::{ArithmeticError, Op1, Op2, wrap};
use std::convert::Infallible;
use std::fmt::Debug;
use std::hash::Hash;

/// Why an expression has no value in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoValue<R> {
    /// By the rules.
    Error(ArithmeticError),
    /// The domain cannot say what the rules want.
    Refused(R),
}

impl<R> From<ArithmeticError> for NoValue<R> {
    fn from(e: ArithmeticError) -> Self {
        NoValue::Error(e)
    }
}

impl From<NoValue<Infallible>> for ArithmeticError {
    fn from(e: NoValue<Infallible>) -> Self {
        match e {
            NoValue::Error(e) => e,
            NoValue::Refused(never) => match never {},
        }
    }
}

pub type Valued<D> = Result<<D as Domain>::Value, NoValue<<D as Domain>::Refusal>>;

pub trait Domain {
    type Value: Clone + Debug + Eq + Ord + Hash;
    /// Why the domain cannot say what an operator gives.
    type Refusal;

    fn constant(&mut self, c: i64) -> Self::Value;

    fn unary(&mut self, op: Op1, a: Self::Value) -> Valued<Self>;

    /// An operator that looks at both operands; see [`Domain::lazy`] for `&&` and `||`.
    fn binary(&mut self, op: Op2, a: Self::Value, b: Self::Value) -> Valued<Self>;

    /// The same up to a multiple of 2⁶⁴: the result is about to be cut to its low bits.
    fn modular(&mut self, op: Op2, a: Self::Value, b: Self::Value) -> Valued<Self> {
        self.binary(op, a, b)
    }

    /// Whether the value is not 0.
    fn truth(&mut self, v: &Self::Value) -> bool;

    /// Whether `lo <= v <= hi`.
    fn within(&mut self, v: &Self::Value, lo: i64, hi: i64) -> bool;

    /// The index as one of `0..length`, if it is one.
    fn position(&mut self, index: &Self::Value, length: u32) -> Option<u32> {
        let one = |i: &u32| self.within(index, i64::from(*i), i64::from(*i));
        (0..length).find(one)
    }

    /// `&&` and `||`: where the left operand's truth is `settles` it is the result, and the right one
    /// is not evaluated.
    fn lazy<E>(
        &mut self,
        settles: bool,
        left: Self::Value,
        mut right: impl FnMut(&mut Self) -> Result<Self::Value, E>,
    ) -> Result<Self::Value, E> {
        let result = match self.truth(&left) == settles {
            true => settles,
            false => {
                let right = right(self)?;
                self.truth(&right)
            }
        };
        Ok(self.constant(i64::from(result)))
    }

    /// A value on its way into memory: where it stands for several, one of them.
    fn settle(&mut self, v: Self::Value) -> Self::Value {
        v
    }
}

/// The machine's own domain.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers;

impl Domain for Numbers {
    type Value = i64;
    type Refusal = Infallible;

    #[inline]
    fn constant(&mut self, c: i64) -> i64 {
        c
    }

    #[inline]
    fn unary(&mut self, op: Op1, a: i64) -> Valued<Self> {
        match op {
            Op1::Neg => a.checked_neg().ok_or(ArithmeticError::Overflow.into()),
            Op1::Not => Ok(i64::from(a == 0)),
            Op1::BitNot => Ok(!a),
            Op1::Wrap { bits, signed } => Ok(wrap(a, bits, signed)),
        }
    }

    #[inline]
    fn binary(&mut self, op: Op2, a: i64, b: i64) -> Valued<Self> {
        Ok(op.apply(a, b)?)
    }

    #[inline]
    fn modular(&mut self, op: Op2, a: i64, b: i64) -> Valued<Self> {
        Ok(op.apply_modular(a, b)?)
    }

    #[inline]
    fn truth(&mut self, v: &i64) -> bool {
        *v != 0
    }

    #[inline]
    fn within(&mut self, v: &i64, lo: i64, hi: i64) -> bool {
        lo <= *v && *v <= hi
    }

    #[inline]
    fn position(&mut self, index: &i64, length: u32) -> Option<u32> {
        u32::try_from(*index).ok().filter(|i| *i < length)
    }
}

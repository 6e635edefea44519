//! Expressions: one tree for register expressions and for conditions of properties, generic in its
//! leaves.
//!
//! Arithmetic is mathematical; wrap-around happens where a value enters a wrap-around register or
//! cell, or at an explicit [`Op1::Wrap`]. Truth is 0 and 1; any non-zero value counts as true.
//! `&&`, `||` and `?:` evaluate only what they need, so a guarded division is no error.

mod shown;
mod substitute;

use crate::domain::{Domain, NoValue, Numbers};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Expr<A> {
    Const(i64),
    Atom(A),
    Unary(Op1, Box<Expr<A>>),
    Binary(Op2, Box<Expr<A>>, Box<Expr<A>>),
    /// `if condition then a else b`.
    Ite(Box<Expr<A>>, Box<Expr<A>>, Box<Expr<A>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Op1 {
    /// `-e`
    Neg,
    /// `!e`
    Not,
    /// `~e`
    BitNot,
    /// Keep the low `bits` (1 to 64), read as unsigned or two's complement.
    Wrap { bits: u8, signed: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Op2 {
    Add,
    Sub,
    Mul,
    /// Rounds towards zero, as in C and Rust.
    Div,
    /// Remainder with the sign of the dividend.
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl Op2 {
    pub fn symbol(self) -> &'static str {
        match self {
            Op2::Add => "+",
            Op2::Sub => "-",
            Op2::Mul => "*",
            Op2::Div => "/",
            Op2::Rem => "%",
            Op2::BitAnd => "&",
            Op2::BitOr => "|",
            Op2::BitXor => "^",
            Op2::Shl => "<<",
            Op2::Shr => ">>",
            Op2::Eq => "==",
            Op2::Ne => "!=",
            Op2::Lt => "<",
            Op2::Le => "<=",
            Op2::Gt => ">",
            Op2::Ge => ">=",
            Op2::And => "&&",
            Op2::Or => "||",
        }
    }

    /// Binding strength for printing and parsing; higher binds tighter. Rust's order: comparisons
    /// bind weaker than bit operators.
    pub fn precedence(self) -> u8 {
        match self {
            Op2::Or => 1,
            Op2::And => 2,
            Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge => 3,
            Op2::BitOr => 4,
            Op2::BitXor => 5,
            Op2::BitAnd => 6,
            Op2::Shl | Op2::Shr => 7,
            Op2::Add | Op2::Sub => 8,
            Op2::Mul | Op2::Div | Op2::Rem => 9,
        }
    }

    /// Whether the result is always 0 or 1.
    pub fn is_logical(self) -> bool {
        self.precedence() <= 3
    }

    /// The operator on two evaluated operands, before it is asked whether the machine has room for the result.
    fn exact(self, a: i64, b: i64) -> Result<i128, ArithmeticError> {
        let (a, b) = (i128::from(a), i128::from(b));
        let shift = u32::try_from(b).ok().filter(|s| *s < 64);
        let shift = shift.ok_or(ArithmeticError::ShiftOutOfRange);
        Ok(match self {
            Op2::Add => a + b,
            Op2::Sub => a - b,
            Op2::Mul => a * b,
            Op2::Div | Op2::Rem if b == 0 => return Err(ArithmeticError::DivisionByZero),
            Op2::Div => a / b,
            Op2::Rem => a % b,
            Op2::BitAnd => a & b,
            Op2::BitOr => a | b,
            Op2::BitXor => a ^ b,
            Op2::Shl => a << shift?,
            Op2::Shr => a >> shift?,
            Op2::Eq => i128::from(a == b),
            Op2::Ne => i128::from(a != b),
            Op2::Lt => i128::from(a < b),
            Op2::Le => i128::from(a <= b),
            Op2::Gt => i128::from(a > b),
            Op2::Ge => i128::from(a >= b),
            Op2::And => i128::from(a != 0 && b != 0),
            Op2::Or => i128::from(a != 0 || b != 0),
        })
    }

    /// The operator on two evaluated operands.
    pub fn apply(self, a: i64, b: i64) -> Result<i64, ArithmeticError> {
        i64::try_from(self.exact(a, b)?).map_err(|_| ArithmeticError::Overflow)
    }

    /// The result up to a multiple of 2⁶⁴, where it is about to be cut to its low bits.
    pub fn apply_modular(self, a: i64, b: i64) -> Result<i64, ArithmeticError> {
        Ok(self.exact(a, b)? as i64)
    }
}

impl Op1 {
    pub fn apply(self, a: i64) -> Result<i64, ArithmeticError> {
        Ok(Numbers.unary(self, a)?)
    }
}

/// The low `bits` of `value`. Unsigned 64-bit values do not fit the machine's numbers; 63 bits are
/// the widest unsigned width the validator admits.
pub fn wrap(value: i64, bits: u8, signed: bool) -> i64 {
    let bits = u32::from(bits.clamp(1, 64));
    if bits == 64 {
        return value;
    }
    let shift = 64 - bits;
    if signed {
        (value << shift) >> shift
    } else {
        ((value as u64) << shift >> shift) as i64
    }
}

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum ArithmeticError {
    #[error("division by zero")]
    DivisionByZero,
    /// Mathematical integers do not overflow: this is a limit of the machine, not of the program.
    #[error("arithmetic overflow of the 64-bit machine")]
    Overflow,
    #[error("shift by a negative amount or by 64 or more")]
    ShiftOutOfRange,
}

impl<A> Expr<A> {
    pub const TRUE: Expr<A> = Expr::Const(1);
    pub const FALSE: Expr<A> = Expr::Const(0);

    pub fn unary(op: Op1, a: Expr<A>) -> Self {
        Expr::Unary(op, Box::new(a))
    }

    pub fn binary(op: Op2, a: Expr<A>, b: Expr<A>) -> Self {
        Expr::Binary(op, Box::new(a), Box::new(b))
    }

    pub fn ite(c: Expr<A>, a: Expr<A>, b: Expr<A>) -> Self {
        Expr::Ite(Box::new(c), Box::new(a), Box::new(b))
    }

    /// Logical negation; comparisons are flipped instead of wrapped.
    pub fn negate(self) -> Self {
        match self {
            Expr::Const(c) => Expr::Const(i64::from(c == 0)),
            Expr::Unary(Op1::Not, e) if e.is_logical() => *e,
            Expr::Binary(op, a, b) => {
                let flipped = match op {
                    Op2::Eq => Op2::Ne,
                    Op2::Ne => Op2::Eq,
                    Op2::Lt => Op2::Ge,
                    Op2::Le => Op2::Gt,
                    Op2::Gt => Op2::Le,
                    Op2::Ge => Op2::Lt,
                    Op2::Add
                    | Op2::Sub
                    | Op2::Mul
                    | Op2::Div
                    | Op2::Rem
                    | Op2::BitAnd
                    | Op2::BitOr
                    | Op2::BitXor
                    | Op2::Shl
                    | Op2::Shr
                    | Op2::And
                    | Op2::Or => return Expr::unary(Op1::Not, Expr::Binary(op, a, b)),
                };
                Expr::Binary(flipped, a, b)
            }
            e @ (Expr::Atom(_) | Expr::Unary(..) | Expr::Ite(..)) => Expr::unary(Op1::Not, e),
        }
    }

    /// Whether the value is certainly 0 or 1.
    pub fn is_logical(&self) -> bool {
        match self {
            Expr::Const(c) => *c == 0 || *c == 1,
            Expr::Atom(_) => false,
            Expr::Unary(op, _) => matches!(op, Op1::Not),
            Expr::Binary(op, ..) => op.is_logical(),
            Expr::Ite(_, a, b) => a.is_logical() && b.is_logical(),
        }
    }

    /// Evaluates with a value for every leaf.
    pub fn eval<E>(&self, env: &E) -> Result<i64, ArithmeticError>
    where
        E: Fn(&A) -> i64 + ?Sized,
    {
        self.evaluate(&mut Numbers, &mut |_, a| Ok(env(a)))
    }

    /// Evaluates in a domain of values.
    pub fn evaluate<D, L, E>(&self, d: &mut D, leaf: &mut L) -> Result<D::Value, E>
    where
        D: Domain,
        L: FnMut(&mut D, &A) -> Result<D::Value, E>,
        E: From<NoValue<D::Refusal>>,
    {
        Ok(match self {
            Expr::Const(c) => d.constant(*c),
            Expr::Atom(a) => leaf(d, a)?,
            Expr::Unary(op @ Op1::Wrap { .. }, a) => {
                let a = a.modular(d, leaf)?;
                d.unary(*op, a)?
            }
            Expr::Unary(op, a) => {
                let a = a.evaluate(d, leaf)?;
                d.unary(*op, a)?
            }
            Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
                let a = a.evaluate(d, leaf)?;
                d.lazy(*op == Op2::Or, a, |d| b.evaluate(d, leaf))?
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (a.evaluate(d, leaf)?, b.evaluate(d, leaf)?);
                d.binary(*op, a, b)?
            }
            Expr::Ite(c, a, b) => {
                let c = c.evaluate(d, leaf)?;
                let chosen = if d.truth(&c) { a } else { b };
                chosen.evaluate(d, leaf)?
            }
        })
    }

    /// Evaluates what is about to be cut to its low bits. The low 64 bits of a sum, a difference or a
    /// product depend on those of its operands only: however large they are, nothing overflows.
    fn modular<D, L, E>(&self, d: &mut D, leaf: &mut L) -> Result<D::Value, E>
    where
        D: Domain,
        L: FnMut(&mut D, &A) -> Result<D::Value, E>,
        E: From<NoValue<D::Refusal>>,
    {
        match self {
            Expr::Binary(op @ (Op2::Add | Op2::Sub | Op2::Mul), a, b) => {
                let (a, b) = (a.modular(d, leaf)?, b.modular(d, leaf)?);
                Ok(d.modular(*op, a, b)?)
            }
            Expr::Binary(op @ Op2::Shl, a, b) => {
                let (a, b) = (a.modular(d, leaf)?, b.evaluate(d, leaf)?);
                Ok(d.modular(*op, a, b)?)
            }
            other @ (Expr::Const(_)
            | Expr::Atom(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Ite(..)) => other.evaluate(d, leaf),
        }
    }

    /// Visits every leaf, left to right.
    pub fn for_each_atom<'a>(&'a self, visit: &mut dyn FnMut(&'a A)) {
        match self {
            Expr::Const(_) => {}
            Expr::Atom(a) => visit(a),
            Expr::Unary(_, a) => a.for_each_atom(visit),
            Expr::Binary(_, a, b) => {
                a.for_each_atom(visit);
                b.for_each_atom(visit);
            }
            Expr::Ite(c, a, b) => {
                c.for_each_atom(visit);
                a.for_each_atom(visit);
                b.for_each_atom(visit);
            }
        }
    }

    /// The constant, if the expression is one.
    pub fn as_const(&self) -> Option<i64> {
        match self {
            Expr::Const(c) => Some(*c),
            Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => None,
        }
    }
}

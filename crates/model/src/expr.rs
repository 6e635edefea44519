//! Expressions: one tree for register expressions and for conditions of properties, generic in its
//! leaves.
//!
//! Arithmetic is mathematical; wrap-around happens where a value enters a wrap-around register or
//! cell, or at an explicit [`Op1::Wrap`]. Truth is 0 and 1; any non-zero value counts as true.
//! `&&`, `||` and `?:` evaluate only what they need, so a guarded division is no error.

use crate::domain::{Domain, NoValue, Numbers};
use serde::Serialize;
use std::fmt;

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

    /// The operator on two evaluated operands.
    pub fn apply(self, a: i64, b: i64) -> Result<i64, ArithmeticError> {
        use ArithmeticError::{DivisionByZero, Overflow, ShiftOutOfRange};
        let shift = |b: i64| u32::try_from(b).ok().filter(|s| *s < 64);
        match self {
            Op2::Add => a.checked_add(b).ok_or(Overflow),
            Op2::Sub => a.checked_sub(b).ok_or(Overflow),
            Op2::Mul => a.checked_mul(b).ok_or(Overflow),
            Op2::Div if b == 0 => Err(DivisionByZero),
            Op2::Rem if b == 0 => Err(DivisionByZero),
            Op2::Div => a.checked_div(b).ok_or(Overflow),
            Op2::Rem => Ok(a.checked_rem(b).unwrap_or(0)),
            Op2::BitAnd => Ok(a & b),
            Op2::BitOr => Ok(a | b),
            Op2::BitXor => Ok(a ^ b),
            Op2::Shl => {
                let s = shift(b).ok_or(ShiftOutOfRange)?;
                let wide = i128::from(a) << s;
                i64::try_from(wide).map_err(|_| Overflow)
            }
            Op2::Shr => shift(b).map(|s| a >> s).ok_or(ShiftOutOfRange),
            Op2::Eq => Ok(i64::from(a == b)),
            Op2::Ne => Ok(i64::from(a != b)),
            Op2::Lt => Ok(i64::from(a < b)),
            Op2::Le => Ok(i64::from(a <= b)),
            Op2::Gt => Ok(i64::from(a > b)),
            Op2::Ge => Ok(i64::from(a >= b)),
            Op2::And => Ok(i64::from(a != 0 && b != 0)),
            Op2::Or => Ok(i64::from(a != 0 || b != 0)),
        }
    }
}

impl Op2 {
    /// The result up to a multiple of 2⁶⁴, where it is about to be cut to its low bits.
    pub fn apply_modular(self, a: i64, b: i64) -> Result<i64, ArithmeticError> {
        match self {
            Op2::Add => Ok(a.wrapping_add(b)),
            Op2::Sub => Ok(a.wrapping_sub(b)),
            Op2::Mul => Ok(a.wrapping_mul(b)),
            Op2::Shl => match u32::try_from(b) {
                Ok(b) if b < 64 => Ok(a << b),
                _ => Err(ArithmeticError::ShiftOutOfRange),
            },
            Op2::Div
            | Op2::Rem
            | Op2::BitAnd
            | Op2::BitOr
            | Op2::BitXor
            | Op2::Shr
            | Op2::Eq
            | Op2::Ne
            | Op2::Lt
            | Op2::Le
            | Op2::Gt
            | Op2::Ge
            | Op2::And
            | Op2::Or => self.apply(a, b),
        }
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

    /// Whether linear arithmetic can say it: sums and comparisons of leaves, products with constants,
    /// remainders by constants.
    pub fn is_linear(&self) -> bool {
        let fixed = |e: &Expr<A>| {
            let mut leaves = false;
            e.for_each_atom(&mut |_| leaves = true);
            !leaves
        };
        match self {
            Expr::Const(_) | Expr::Atom(_) => true,
            Expr::Unary(Op1::Wrap { .. }, a) => fixed(a),
            Expr::Unary(_, a) => a.is_linear(),
            Expr::Binary(op, a, b) => {
                let parts = a.is_linear() && b.is_linear();
                parts
                    && match op {
                        Op2::Mul => fixed(a) || fixed(b),
                        Op2::Rem => fixed(b),
                        Op2::Div | Op2::BitAnd | Op2::BitOr | Op2::BitXor | Op2::Shl | Op2::Shr => {
                            fixed(a) && fixed(b)
                        }
                        Op2::Add
                        | Op2::Sub
                        | Op2::Eq
                        | Op2::Ne
                        | Op2::Lt
                        | Op2::Le
                        | Op2::Gt
                        | Op2::Ge
                        | Op2::And
                        | Op2::Or => true,
                    }
            }
            Expr::Ite(c, a, b) => c.is_linear() && a.is_linear() && b.is_linear(),
        }
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

    /// Replaces every leaf by an expression and folds constants on the way.
    pub fn substitute<B, E, F>(&self, leaf: &mut F) -> Result<Expr<B>, E>
    where
        F: FnMut(&A) -> Result<Expr<B>, E>,
    {
        Ok(match self {
            Expr::Const(c) => Expr::Const(*c),
            Expr::Atom(a) => leaf(a)?,
            Expr::Unary(op, a) => Expr::unary(*op, a.substitute(leaf)?).fold_top(),
            Expr::Binary(op, a, b) => {
                Expr::binary(*op, a.substitute(leaf)?, b.substitute(leaf)?).fold_top()
            }
            Expr::Ite(c, a, b) => Expr::ite(
                c.substitute(leaf)?,
                a.substitute(leaf)?,
                b.substitute(leaf)?,
            )
            .fold_top(),
        })
    }

    /// Folds the top node if its operands are constants and the value exists.
    fn fold_top(self) -> Self {
        match self {
            Expr::Unary(op, a) => match *a {
                Expr::Const(c) => match op.apply(c) {
                    Ok(v) => Expr::Const(v),
                    Err(_) => Expr::unary(op, Expr::Const(c)),
                },
                a @ (Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..)) => {
                    Expr::unary(op, a)
                }
            },
            Expr::Binary(op, a, b) => match (op, *a, *b) {
                (_, Expr::Const(x), Expr::Const(y)) => match op.apply(x, y) {
                    Ok(v) => Expr::Const(v),
                    Err(_) => Expr::binary(op, Expr::Const(x), Expr::Const(y)),
                },
                (Op2::And, Expr::Const(0), _) => Expr::Const(0),
                (Op2::Or, Expr::Const(x), _) if x != 0 => Expr::Const(1),
                (Op2::And, Expr::Const(_), e) if e.is_logical() => e,
                (Op2::Or, Expr::Const(0), e) if e.is_logical() => e,
                (Op2::And, e, Expr::Const(x)) if x != 0 && e.is_logical() => e,
                (Op2::Or, e, Expr::Const(0)) if e.is_logical() => e,
                (Op2::Add | Op2::Sub, e, Expr::Const(0)) => e,
                (Op2::Add, Expr::Const(0), e) => e,
                (op, a, b) => Expr::binary(op, a, b),
            },
            Expr::Ite(c, a, b) => match *c {
                Expr::Const(0) => *b,
                Expr::Const(_) => *a,
                c @ (Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..)) => {
                    Expr::ite(c, *a, *b)
                }
            },
            e @ (Expr::Const(_) | Expr::Atom(_)) => e,
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

    /// The height of the tree.
    pub fn depth(&self) -> usize {
        match self {
            Expr::Const(_) | Expr::Atom(_) => 1,
            Expr::Unary(_, a) => 1 + a.depth(),
            Expr::Binary(_, a, b) => 1 + a.depth().max(b.depth()),
            Expr::Ite(c, a, b) => 1 + c.depth().max(a.depth()).max(b.depth()),
        }
    }

    /// Prints in the syntax of `.wtl`, with as few parentheses as its parser needs, given how to
    /// print a leaf. The output parses back to the same tree.
    pub fn display<'a, L>(&'a self, leaf: &'a L) -> impl fmt::Display + 'a
    where
        L: Fn(&A, &mut fmt::Formatter<'_>) -> fmt::Result,
    {
        Shown { expr: self, leaf }
    }
}

struct Shown<'a, A, L> {
    expr: &'a Expr<A>,
    leaf: &'a L,
}

impl<A, L> fmt::Display for Shown<'_, A, L>
where
    L: Fn(&A, &mut fmt::Formatter<'_>) -> fmt::Result,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self.expr, self.leaf, 0, f)
    }
}

/// `level` is the weakest binding allowed without parentheses; unary operators bind at 10.
fn show<A, L>(expr: &Expr<A>, leaf: &L, level: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result
where
    L: Fn(&A, &mut fmt::Formatter<'_>) -> fmt::Result,
{
    match expr {
        Expr::Const(c) if *c < 0 && level > 8 => write!(f, "({c})"),
        Expr::Const(c) => write!(f, "{c}"),
        Expr::Atom(a) => leaf(a, f),
        Expr::Unary(Op1::Wrap { bits, signed }, a) => {
            write!(f, "{}{bits}(", if *signed { 'i' } else { 'u' })?;
            show(a, leaf, 0, f)?;
            write!(f, ")")
        }
        Expr::Unary(op, a) => {
            write!(
                f,
                "{}",
                match op {
                    Op1::Neg => "-",
                    Op1::Not => "!",
                    Op1::BitNot | Op1::Wrap { .. } => "~",
                }
            )?;
            // `-3` alone would read back as a constant.
            if matches!(**a, Expr::Const(_)) {
                write!(f, "(")?;
                show(a, leaf, 0, f)?;
                write!(f, ")")
            } else {
                show(a, leaf, 10, f)
            }
        }
        Expr::Binary(op, a, b) => {
            let p = op.precedence();
            let open = p < level;
            if open {
                write!(f, "(")?;
            }
            // Comparisons do not chain: both sides must bind tighter.
            show(a, leaf, if p == 3 { 4 } else { p }, f)?;
            write!(f, " {} ", op.symbol())?;
            show(b, leaf, p + 1, f)?;
            if open {
                write!(f, ")")?;
            }
            Ok(())
        }
        Expr::Ite(c, a, b) => {
            if level > 0 {
                write!(f, "(")?;
            }
            show(c, leaf, 1, f)?;
            write!(f, " ? ")?;
            show(a, leaf, 1, f)?;
            write!(f, " : ")?;
            show(b, leaf, 1, f)?;
            if level > 0 {
                write!(f, ")")?;
            }
            Ok(())
        }
    }
}

//! Expressions as text, and how large or simple they are: what messages and refusals need.

use super::{Expr, Op1, Op2};
use std::fmt;

impl<A> Expr<A> {
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

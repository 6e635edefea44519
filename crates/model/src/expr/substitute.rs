//! Expressions over other leaves.

use super::{Expr, Op2};

impl<A> Expr<A> {
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
            Expr::Unary(op, a) => match a.as_const().map(|c| op.apply(c)) {
                Some(Ok(v)) => Expr::Const(v),
                Some(Err(_)) | None => Expr::Unary(op, a),
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
            Expr::Ite(c, a, b) => match c.as_const() {
                Some(0) => *b,
                Some(_) => *a,
                None => Expr::Ite(c, a, b),
            },
            e @ (Expr::Const(_) | Expr::Atom(_)) => e,
        }
    }
}

//! Expressions over variables, apart from whether they have a value: `ok` is a condition that always has one.

use super::Var;
use wattle_model::{Expr, Op1, Op2, Type};

#[derive(Clone, Debug)]
pub(super) struct Lowered {
    pub ok: Expr<Var>,
    pub value: Expr<Var>,
}

impl Lowered {
    /// What always has a value.
    pub fn sure(value: Expr<Var>) -> Self {
        let ok = Expr::TRUE;
        Lowered { ok, value }
    }

    /// As a type stores it; outside of a range is a fault.
    pub fn admitted(self, ty: Type) -> Self {
        match ty {
            Type::Int | Type::Thread(_) => self,
            Type::Range { lo, hi } => Lowered {
                ok: all([self.ok, within(&self.value, lo, hi)]),
                value: self.value,
            },
            Type::Wrap { bits, signed } => Lowered {
                ok: self.ok,
                value: Expr::unary(Op1::Wrap { bits, signed }, self.value),
            },
        }
    }
}

/// `lo <= e && e <= hi`; known for a constant.
pub(super) fn within(e: &Expr<Var>, lo: i64, hi: i64) -> Expr<Var> {
    match e {
        Expr::Const(c) if (lo..=hi).contains(c) => Expr::TRUE,
        e => all([
            Expr::binary(Op2::Ge, e.clone(), Expr::Const(lo)),
            Expr::binary(Op2::Le, e.clone(), Expr::Const(hi)),
        ]),
    }
}

pub(super) fn equal(var: Var, value: i64) -> Expr<Var> {
    Expr::binary(Op2::Eq, Expr::Atom(var), Expr::Const(value))
}

pub(super) fn not(e: Expr<Var>) -> Expr<Var> {
    e.negate()
}

/// Every one of them, left to right.
pub(super) fn all(parts: impl IntoIterator<Item = Expr<Var>>) -> Expr<Var> {
    let parts = parts.into_iter().filter(|e| *e != Expr::TRUE);
    let joined = parts.reduce(|a, b| Expr::binary(Op2::And, a, b));
    joined.unwrap_or(Expr::TRUE)
}

/// One of them, left to right.
pub(super) fn any(parts: impl IntoIterator<Item = Expr<Var>>) -> Expr<Var> {
    let mut parts: Vec<Expr<Var>> = parts.into_iter().collect();
    if parts.contains(&Expr::TRUE) {
        return Expr::TRUE;
    }
    parts.retain(|e| *e != Expr::FALSE);
    let joined = parts.into_iter().reduce(|a, b| Expr::binary(Op2::Or, a, b));
    joined.unwrap_or(Expr::FALSE)
}

/// The value of an expression and when it has one: as it is evaluated, what is not needed is not looked at.
pub(super) fn lower<A>(e: &Expr<A>, leaf: &dyn Fn(&A) -> Lowered) -> Lowered {
    match e {
        Expr::Const(c) => Lowered::sure(Expr::Const(*c)),
        Expr::Atom(a) => leaf(a),
        Expr::Unary(op, a) => {
            let a = lower(a, leaf);
            Lowered {
                ok: a.ok,
                value: Expr::unary(*op, a.value),
            }
        }
        Expr::Binary(op, a, b) => {
            let (a, b) = (lower(a, leaf), lower(b, leaf));
            let ok = match op {
                Op2::And => all([a.ok, any([not(a.value.clone()), b.ok])]),
                Op2::Or => all([a.ok, any([a.value.clone(), b.ok])]),
                Op2::Div | Op2::Rem => {
                    let some = match &b.value {
                        Expr::Const(c) => Expr::Const(i64::from(*c != 0)),
                        b => Expr::binary(Op2::Ne, b.clone(), Expr::Const(0)),
                    };
                    all([a.ok, b.ok, some])
                }
                Op2::Shl | Op2::Shr => all([a.ok, b.ok, within(&b.value, 0, 63)]),
                Op2::Add
                | Op2::Sub
                | Op2::Mul
                | Op2::BitAnd
                | Op2::BitOr
                | Op2::BitXor
                | Op2::Eq
                | Op2::Ne
                | Op2::Lt
                | Op2::Le
                | Op2::Gt
                | Op2::Ge => all([a.ok, b.ok]),
            };
            Lowered {
                ok,
                value: Expr::binary(*op, a.value, b.value),
            }
        }
        Expr::Ite(c, a, b) => {
            let (c, a, b) = (lower(c, leaf), lower(a, leaf), lower(b, leaf));
            let chosen = match a.ok == Expr::TRUE && b.ok == Expr::TRUE {
                true => Expr::TRUE,
                false => Expr::ite(c.value.clone(), a.ok, b.ok),
            };
            Lowered {
                ok: all([c.ok, chosen]),
                value: Expr::ite(c.value, a.value, b.value),
            }
        }
    }
}

//! Conditions over pairs of threads come as one disjunct per ordered pair; half of them say the same.

use std::collections::BTreeSet;
use wattle_model::instance::Fact;
use wattle_model::{Expr, Op1, Op2};

/// The same condition with the order of `||` and `&&` settled and repetitions left out. Only for
/// conditions that always have a value: the order of evaluation then does not matter.
pub fn simplify(e: &Expr<Fact>) -> Expr<Fact> {
    if !is_total(e) {
        return e.clone();
    }
    match e {
        Expr::Binary(op @ (Op2::Or | Op2::And), ..) => {
            let mut parts = BTreeSet::new();
            gather(*op, e, &mut parts);
            balanced(*op, parts.into_iter().collect())
        }
        e @ (Expr::Const(_)
        | Expr::Atom(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Ite(..)) => e.clone(),
    }
}

/// As deep as the logarithm of its width.
fn balanced(op: Op2, mut parts: Vec<Expr<Fact>>) -> Expr<Fact> {
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some(a) = rest.next() {
            next.push(match rest.next() {
                Some(b) => Expr::binary(op, a, b),
                None => a,
            });
        }
        parts = next;
    }
    parts
        .pop()
        .unwrap_or(Expr::Const(i64::from(op == Op2::And)))
}

fn gather(op: Op2, e: &Expr<Fact>, parts: &mut BTreeSet<Expr<Fact>>) {
    match e {
        Expr::Binary(o, a, b) if *o == op => {
            gather(op, a, parts);
            gather(op, b, parts);
        }
        e @ (Expr::Const(_)
        | Expr::Atom(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Ite(..)) => {
            parts.insert(simplify(e));
        }
    }
}

/// Neither arithmetic nor computed addresses: the value always exists.
fn is_total(e: &Expr<Fact>) -> bool {
    match e {
        Expr::Const(_) => true,
        Expr::Atom(fact) => !matches!(fact, Fact::CellAt { .. }),
        Expr::Unary(op, a) => *op == Op1::Not && is_total(a),
        Expr::Binary(op, a, b) => op.is_logical() && is_total(a) && is_total(b),
        Expr::Ite(..) => false,
    }
}

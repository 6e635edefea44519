//! Integers and truth values are two things in BITCHAKU (printz-2015 §3): conditions are made of
//! comparisons, integers of numbers and variables, and neither stands for the other.

use super::ast::Leaf;
use super::lower::Reports;
use crate::diagnostics::Diagnostic;
use wattle_model::{Expr, Op1, Op2, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Truth,
    /// `true` and `1` are the same to the model; both will do.
    Either,
}

/// Reports what is no condition.
pub(super) fn truth(e: &Expr<Leaf>, span: Span, out: &mut Reports<'_>) {
    wanted(e, Kind::Truth, span, out);
}

/// Reports what is no integer.
pub(super) fn number(e: &Expr<Leaf>, span: Span, out: &mut Reports<'_>) {
    wanted(e, Kind::Number, span, out);
}

fn wanted(e: &Expr<Leaf>, kind: Kind, span: Span, out: &mut Reports<'_>) {
    let found = kind_of(e, span, out);
    compare(e, found, kind, span, out);
}

fn compare(e: &Expr<Leaf>, found: Kind, wanted: Kind, span: Span, out: &mut Reports<'_>) {
    let d = match (wanted, found) {
        (Kind::Truth, Kind::Number) => {
            Diagnostic::error(place(e, span), "an integer where a condition is needed")
                .hint("compare it: `x != 0`")
        }
        (Kind::Number, Kind::Truth) => {
            Diagnostic::error(place(e, span), "a condition where an integer is needed")
                .hint("choose with `if`: `if (b) x = 1; else x = 0; endif;`")
        }
        _ => return,
    };
    out.push(d);
}

/// Where the first name stands.
fn place(e: &Expr<Leaf>, span: Span) -> Span {
    let mut first = None;
    e.for_each_atom(&mut |leaf| {
        let (Leaf::Name(_, at) | Leaf::Any(at) | Leaf::Of(_, _, _, at)) = leaf;
        first.get_or_insert(*at);
    });
    first.unwrap_or(span)
}

fn kind_of(e: &Expr<Leaf>, span: Span, out: &mut Reports<'_>) -> Kind {
    match e {
        Expr::Const(0 | 1) => Kind::Either,
        Expr::Const(_) => Kind::Number,
        Expr::Atom(Leaf::Any(_)) => Kind::Truth,
        Expr::Atom(Leaf::Name(..) | Leaf::Of(..)) => Kind::Number,
        Expr::Unary(Op1::Not, a) => {
            wanted(a, Kind::Truth, span, out);
            Kind::Truth
        }
        Expr::Unary(_, a) => {
            wanted(a, Kind::Number, span, out);
            Kind::Number
        }
        Expr::Binary(Op2::And | Op2::Or, a, b) => {
            wanted(a, Kind::Truth, span, out);
            wanted(b, Kind::Truth, span, out);
            Kind::Truth
        }
        // Truth values are compared with each other, integers too; `pc(i) = l` is a position.
        Expr::Binary(Op2::Eq | Op2::Ne, a, b) => {
            let (left, right) = (kind_of(a, span, out), kind_of(b, span, out));
            compare(b, right, left, span, out);
            Kind::Truth
        }
        Expr::Binary(op, a, b) => {
            wanted(a, Kind::Number, span, out);
            wanted(b, Kind::Number, span, out);
            match op {
                Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge => Kind::Truth,
                _ => Kind::Number,
            }
        }
        Expr::Ite(..) => Kind::Either,
    }
}

//! Queries as SMT-LIB 2 text, for a second opinion.

use crate::atom::Rel;
use crate::formula::Formula;
use crate::int::Int;
use crate::term::{Term, Var};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A script that declares the variables (`x0`, `x1`, …), asserts the formulas
/// and asks whether they can hold together.
pub fn to_smt2(assertions: &[Formula]) -> String {
    let mut out = String::from("(set-logic QF_LIA)\n");
    out.push_str(&query_smt2(assertions));
    out
}

/// Declarations, assertions and `(check-sat)` alone, to be put between
/// `(push)` and `(pop)`.
pub fn query_smt2(assertions: &[Formula]) -> String {
    let mut out = String::new();
    for v in variables(assertions) {
        out.push_str(&format!("(declare-const {v} Int)\n"));
    }
    for f in assertions {
        out.push_str("(assert ");
        formula(&mut out, f);
        out.push_str(")\n");
    }
    out.push_str("(check-sat)\n");
    out
}

pub(crate) fn variables(assertions: &[Formula]) -> BTreeSet<Var> {
    let mut vars = BTreeSet::new();
    assertions.iter().for_each(|f| f.collect_vars(&mut vars));
    vars
}

fn formula(out: &mut String, f: &Formula) {
    match f {
        Formula::True => out.push_str("true"),
        Formula::False => out.push_str("false"),
        Formula::And(parts) => list(out, "and", parts),
        Formula::Or(parts) => list(out, "or", parts),
        Formula::Atom(a) => match a.rel() {
            Rel::Le => compare(out, "(<= ", a.term(), " 0)"),
            Rel::Eq => compare(out, "(= ", a.term(), " 0)"),
            Rel::Ne => compare(out, "(not (= ", a.term(), " 0))"),
            Rel::Divides(m) => compare(out, "(= (mod ", a.term(), &format!(" {m}) 0)")),
            Rel::NotDivides(m) => compare(out, "(not (= (mod ", a.term(), &format!(" {m}) 0))")),
        },
    }
}

fn list(out: &mut String, op: &str, parts: &[Formula]) {
    out.push('(');
    out.push_str(op);
    for part in parts {
        out.push(' ');
        formula(out, part);
    }
    out.push(')');
}

fn compare(out: &mut String, open: &str, term: &Term, close: &str) {
    out.push_str(open);
    out.push_str("(+");
    for (v, a) in term.coeffs() {
        out.push_str(" (* ");
        number(out, a);
        // Writing to a string cannot fail.
        let _ = write!(out, " {v})");
    }
    out.push(' ');
    number(out, term.constant_part());
    out.push(')');
    out.push_str(close);
}

fn number(out: &mut String, value: &Int) {
    let _ = if value.is_negative() {
        write!(out, "(- {})", value.abs())
    } else {
        write!(out, "{value}")
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::{divides, le, ne, or};

    #[test]
    fn a_script_reads_like_smt_lib() {
        let (x, y) = (Var(0), Var(1));
        let script = to_smt2(&[le(x * 2, y - 3), or([ne(x, 0), divides(3, y)])]);
        assert_eq!(
            script,
            "(set-logic QF_LIA)\n\
             (declare-const x0 Int)\n\
             (declare-const x1 Int)\n\
             (assert (<= (+ (* 2 x0) (* (- 1) x1) 3) 0))\n\
             (assert (or (not (= (+ (* 1 x0) 0) 0)) (= (mod (+ (* 1 x1) 0) 3) 0)))\n\
             (check-sat)\n"
        );
    }
}

//! Formulas: normal forms, negation, substitution, simplification, display.

use crate::support::Gen;
use wattle_logic::*;

fn points(vars: u32) -> Vec<Model> {
    let values = -3i64..=3;
    let mut out = vec![Model::new()];
    for v in 0..vars {
        let extend = |m: &Model| {
            let m = m.clone();
            values.clone().map(move |k| {
                let mut m = m.clone();
                m.set(Var(v), k);
                m
            })
        };
        out = out.iter().flat_map(extend).collect();
    }
    out
}

#[test]
fn negation_simplification_and_substitution_mean_what_they_say() {
    let points = points(3);
    for seed in 0..400 {
        let mut g = Gen::new(seed);
        g.vars = 3;
        let f = g.formula(3);
        let t = g.term();
        let (negated, simple, assigned) = (not(&f), f.simplified(), f.assign(Var(0), &t));
        assert_eq!(not(&negated), f, "negating twice");
        for m in &points {
            assert_eq!(negated.eval(m), !f.eval(m), "not {f} is {negated} at {m}");
            assert_eq!(
                simple.eval(m),
                f.eval(m),
                "{f} simplified to {simple} at {m}"
            );
            let mut after = m.clone();
            after.set(Var(0), t.eval(m));
            assert_eq!(
                assigned.eval(m),
                f.eval(&after),
                "{f} before x0 := {t} at {m}"
            );
        }
    }
}

#[test]
fn display_reads_like_maths() {
    let mut names = Symbols::new();
    let (x, y, z) = (names.var("x"), names.var("y"), names.var("z"));
    let cases = [
        (lt(x, y), "x < y"),
        (le(x, y + 2), "x <= y + 2"),
        (le(x + 2, y), "x + 2 <= y"),
        (ge(x, 5), "x >= 5"),
        (le(x, -5), "x <= -5"),
        (eq(x * 2, y * 3 + 1), "2*x == 3*y + 1"),
        (eq(x, y), "x == y"),
        (ne(x + y, 0), "x + y != 0"),
        (le(x + y - z * 4, 7), "x + y <= 4*z + 7"),
        (divides(3, x + 1), "3 | x + 1"),
        (not(&divides(3, x + 1)), "not 3 | x + 1"),
        (
            and([or([lt(x, y), lt(y, x)]), ge(z, 0)]),
            "z >= 0 && (y < x || x < y)",
        ),
        (le(x * 2, x + x), "true"),
        (eq(x * 2, 1), "false"),
        (and([le(x, y), ge(x, y)]).simplified(), "x == y"),
        (or([lt(x, y), gt(x, y)]).simplified(), "x != y"),
        (
            and([le(x, 3), le(x, 5), ge(x, 0)]).simplified(),
            "x >= 0 && x <= 3",
        ),
    ];
    for (formula, text) in cases {
        assert_eq!(formula.display(&names).to_string(), text);
    }
}

#[test]
fn fresh_names_differ() {
    let mut names = Symbols::new();
    let (a, b, c) = (names.fresh("t"), names.fresh("t"), names.fresh("t"));
    assert_eq!(
        [a, b, c].map(|v| names.name(v).unwrap_or("?").to_owned()),
        ["t", "t'1", "t'2"]
    );
    assert_eq!(names.lookup("t'1"), Some(b));
}

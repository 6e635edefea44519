//! Which labels a property wants nobody to be at.

use super::absent;
use std::collections::BTreeSet;
use wattle_model::{Expr, FamilyId, Observation, Op1, Op2};

fn condition(text: &str) -> Expr<Observation> {
    let text = format!("shared x; thread t[*] {{ a: skip; b: skip; }} never {text};");
    let program = wattle_syntax::wtl::parse(&text).program;
    program.expect("it parses").properties[0]
        .condition
        .expr
        .clone()
}

#[test]
fn labels_are_found_wherever_they_are_compared() {
    let (a, b) = (condition("t[i]@a"), condition("t[i]@b"));
    let not = |e: &Expr<Observation>| Expr::Unary(Op1::Not, Box::new(e.clone()));
    let both = |op, e: &Expr<Observation>, f: &Expr<Observation>| {
        Expr::Binary(op, Box::new(e.clone()), Box::new(f.clone()))
    };
    let zero = Expr::Const(0);
    for (e, wanted, labels) in [
        (a.clone(), Some(true), ""),
        (a.clone(), Some(false), "a"),
        (a.clone(), None, "a"),
        (not(&a), Some(true), "a"),
        (not(&not(&a)), Some(true), ""),
        (both(Op2::And, &a, &not(&b)), Some(true), "b"),
        (both(Op2::Or, &not(&a), &b), Some(true), "a"),
        (both(Op2::And, &a, &not(&b)), Some(false), "a"),
        (both(Op2::Eq, &a, &zero), Some(true), "a"),
        (both(Op2::Eq, &zero, &a), Some(true), "a"),
        (both(Op2::Lt, &a, &b), Some(true), "ab"),
        (
            both(Op2::Eq, &a, &both(Op2::Add, &zero, &b)),
            Some(true),
            "ab",
        ),
    ] {
        let mut found = BTreeSet::new();
        absent(&e, wanted, FamilyId::new(0), &mut found);
        let found: Vec<String> = found.into_iter().collect();
        assert_eq!(found.concat(), labels, "{e:?} {wanted:?}");
    }
}

//! An automaton that names what it does not have is none, and a part says one formula.

use super::{is_negation, is_whole};
use wattle_evidence::certificate::components::{Automaton, Edge, Obligations, Part};
use wattle_model::instance::Fact;
use wattle_model::{CellId, Expr, Formula};

type Change<'c> = &'c dyn Fn(&mut Automaton);

fn whole() -> Automaton {
    let edge = Edge {
        now: Vec::new(),
        target: 0,
        accepting: vec![0],
    };
    Automaton {
        parts: vec![
            Part::Literal(0, true),
            Part::Literal(1, true),
            Part::Until(0, 1),
        ],
        root: 2,
        untils: vec![2],
        states: vec![Obligations {
            parts: vec![2],
            edges: vec![edge],
        }],
        initial: 0,
    }
}

#[test]
fn what_is_named_is_there() {
    assert_eq!(is_whole(&whole()), Ok(()));
    let changes: [(&str, Change<'_>); 12] = [
        ("root", &|a| a.root = 3),
        ("initial", &|a| a.initial = 1),
        ("until", &|a| a.untils[0] = 3),
        ("one of two untils", &|a| a.untils.push(3)),
        ("part of a state", &|a| a.states[0].parts[0] = 3),
        ("target", &|a| a.states[0].edges[0].target = 1),
        ("set", &|a| a.states[0].edges[0].accepting[0] = 1),
        ("itself, left", &|a| a.parts[2] = Part::Until(2, 1)),
        ("itself, right", &|a| a.parts[2] = Part::Until(0, 2)),
        ("later, left", &|a| a.parts[1] = Part::And(2, 0)),
        ("later, right", &|a| a.parts[1] = Part::Or(0, 2)),
        ("later, both", &|a| a.parts[1] = Part::Release(2, 2)),
    ];
    for (name, change) in changes {
        let mut a = whole();
        change(&mut a);
        assert!(is_whole(&a).is_err(), "{name}");
    }
}

#[test]
fn a_part_says_one_formula() {
    let x = |n: i64| {
        let cell = Expr::Atom(Fact::Cell(CellId::new(0)));
        Expr::binary(wattle_model::Op2::Eq, cell, Expr::Const(n))
    };
    let (zero, one) = (x(0), x(1));
    let atoms = [&zero, &one];
    let now = |n: i64| Box::new(Formula::Now(x(n)));
    let says = |part: Part, f: Formula<Expr<Fact>>, negated: bool| {
        let parts = vec![
            Part::Literal(0, true),
            Part::Literal(1, true),
            Part::Literal(0, false),
            Part::Literal(1, false),
            Part::True,
            Part::False,
            part,
        ];
        let a = Automaton { parts, ..whole() };
        is_negation(&a, &atoms, &f, negated, 6)
    };
    for (n, part) in [0u32, 1].into_iter().flat_map(|n| [(n, true), (n, false)]) {
        for (m, negated) in [0i64, 1].into_iter().flat_map(|m| [(m, true), (m, false)]) {
            let said = says(Part::Literal(n, part), Formula::Now(x(m)), negated);
            assert_eq!(said, i64::from(n) == m && part != negated);
        }
    }
    // Each operator with its negation; 0 and 1 are the operands, 2 and 3 their negations.
    type Of = fn(Box<Formula<Expr<Fact>>>, Box<Formula<Expr<Fact>>>) -> Formula<Expr<Fact>>;
    type To = fn(u32, u32) -> Part;
    let operators: [(Of, To, To); 4] = [
        (Formula::And, Part::And, Part::Or),
        (Formula::Or, Part::Or, Part::And),
        (Formula::Until, Part::Until, Part::Release),
        (Formula::Release, Part::Release, Part::Until),
    ];
    for (i, (of, to, opposite)) in operators.into_iter().enumerate() {
        for (j, (_, other, _)) in operators.into_iter().enumerate() {
            assert_eq!(says(other(0, 1), of(now(0), now(1)), false), i == j);
        }
        assert!(says(opposite(2, 3), of(now(0), now(1)), true));
        assert!(!says(to(2, 3), of(now(0), now(1)), true));
        for (k, l) in (0..6).flat_map(|k| (0..6).map(move |l| (k, l))) {
            let said = says(to(k, l), of(now(0), now(1)), false);
            assert_eq!(said, (k, l) == (0, 1), "{i}: {k}, {l}");
            let said = says(opposite(k, l), of(now(0), now(1)), true);
            assert_eq!(said, (k, l) == (2, 3), "{i}: {k}, {l}");
        }
    }
    for (k, l) in (0..6).flat_map(|k| (0..6).map(move |l| (k, l))) {
        let all = says(Part::Release(k, l), Formula::Globally(now(0)), false);
        assert_eq!(all, (k, l) == (5, 0));
        let some = says(Part::Until(k, l), Formula::Globally(now(0)), true);
        assert_eq!(some, (k, l) == (4, 2));
        let some = says(Part::Until(k, l), Formula::Finally(now(0)), false);
        assert_eq!(some, (k, l) == (4, 0));
        let follows = says(Part::Or(k, l), Formula::Implies(now(0), now(1)), false);
        assert_eq!(follows, (k, l) == (2, 1));
        let fails = says(Part::And(k, l), Formula::Implies(now(0), now(1)), true);
        assert_eq!(fails, (k, l) == (0, 3));
    }
}

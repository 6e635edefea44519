//! Demands on runs: how they group, what they print as, what is wrong with them.

use super::{program, round_trip};
use crate::wtl::parse;
use wattle_model::print;

const HEAD: &str = "shared x, y; thread p[2] { want: x = 1; critical: skip; } ";

fn printed(demand: &str) -> String {
    let text = format!("{HEAD}{demand}");
    round_trip(&text);
    let program = program(&text);
    let last = program.temporal.last().expect(demand);
    print::temporal(&program, last)
}

#[test]
fn operators_group() {
    for (written, shown) in [
        ("ltl G x == 1;", "ltl G (x == 1)"),
        (
            "ltl G (x == 1 -> F y == 2);",
            "ltl G ((x == 1) -> F (y == 2))",
        ),
        (
            "ltl x == 1 U y == 1 U x == 2;",
            "ltl (x == 1) U ((y == 1) U (x == 2))",
        ),
        ("ltl G x == 1 && y == 1;", "ltl G (x == 1) && (y == 1)"),
        (
            "ltl x == 0 && y == 1 U x == 2 || F y;",
            "ltl ((x == 0) && ((y == 1) U (x == 2))) || F (y)",
        ),
        ("ltl !G F !(x == 1);", "ltl !G F (!(x == 1))"),
        (
            "ltl x == 1 R y == 1 -> x W y;",
            "ltl ((x == 1) R (y == 1)) -> ((x) W (y))",
        ),
        (
            "ltl x == 1 -> F y -> G x;",
            "ltl (x == 1) -> (F (y) -> G (x))",
        ),
        (
            "ltl G (p[i]@want -> F p[i]@critical);",
            "ltl G ((p[i]@want) -> F (p[i]@critical))",
        ),
        ("p[i]@want ~> p[i]@critical;", "p[i]@want ~> p[i]@critical"),
        ("x == 1 && y == 0 ~> y == 1;", "x == 1 && y == 0 ~> y == 1"),
        (
            "ltl for p[i], p[j]: G x == i;",
            "ltl for p[i], p[j]: G (x == i)",
        ),
        ("progress;", "progress"),
        ("ltl x == 1;", "ltl x == 1"),
    ] {
        assert_eq!(printed(written), shown, "{written}");
    }
}

/// The letters of operators are names where no operator can stand.
#[test]
fn letters_are_names_elsewhere() {
    let text = "shared G, F, U; thread W { X: F = G; } ltl G (F == U -> F W@X) && F (F U U);";
    let shown = round_trip(text);
    assert!(
        shown.contains("ltl G ((F == U) -> F (W@X)) && F ((F) U (U));"),
        "{shown}"
    );
}

#[test]
fn errors_say_what_to_do() {
    for (demand, told) in [
        ("ltl X x == 1;", "there is no *next* (`X`)"),
        ("ltl G p[i]@nowhere;", "`p` has no label `nowhere`"),
        (
            "ltl G (x == i);",
            "an index variable stands in the brackets",
        ),
        ("ltl G ((F x) + 1 == 2);", "this speaks of a run"),
        ("ltl G;", "unknown name `G`"),
        ("p@want ~> x == 1;", "has several threads"),
        ("x == 1 ~> F y == 1;", "a `;`"),
        ("never F x == 1;", "unexpected"),
        ("ltl G x == 1", "`;`"),
        ("progress x;", "`;`"),
    ] {
        let text = format!("{HEAD}{demand}");
        let parsed = parse(&text);
        let shown = parsed.render("a.wtl", &text);
        assert!(parsed.program.is_none(), "{demand}: {shown}");
        assert!(shown.contains(told) || told == "a `;`", "{demand}: {shown}");
    }
}

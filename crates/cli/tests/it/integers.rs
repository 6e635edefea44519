//! Programs with unbounded integers, from the command line: a second opinion on proofs, and what is
//! said about programs that cannot be treated.

use crate::support::{Scratch, ran, root, run, wattle};
use expect_test::{Expect, expect};

/// A program with unbounded tickets, and the proof that it holds under TSO.
fn proof(s: &Scratch) -> (String, String) {
    let ticket = root().join("examples/abdulla/ticket.wtl");
    let (ticket, proof) = (ticket.display().to_string(), s.path("proof.json"));
    let r = run(&[
        "check",
        &ticket,
        "--engine",
        "cegar",
        "--certificate",
        &proof,
    ]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    (ticket, proof)
}

#[test]
fn z3_gives_a_second_opinion_on_proofs() {
    let s = Scratch::new();
    let (ticket, proof) = proof(&s);
    let own = run(&["audit", &ticket, &proof]);
    assert_eq!(own.code, 0, "{}", own.err);
    assert!(
        own.out.contains("queries were answered by our own"),
        "{}",
        own.out
    );
    // Without z3 the message says how to get it.
    let none = wattle()
        .args(["audit", &ticket, &proof, "--solver", "z3"])
        .env("PATH", s.path("nothing"))
        .output();
    let none = ran(none);
    assert_eq!(none.code, 2, "{}", none.out);
    assert!(none.err.contains("package `z3`"), "{}", none.err);
    if wattle_logic::Z3::start(1000).is_err() {
        println!("skipped: there is no z3 here");
        return;
    }
    let both = run(&["audit", &ticket, &proof, "--solver", "z3"]);
    assert_eq!(both.code, 0, "{}", both.err);
    assert!(both.out.contains(" and Z3 "), "{}", both.out);
    let v = run(&["audit", &ticket, &proof, "--solver", "z3", "--json"]);
    let v: serde_json::Value = serde_json::from_str(&v.out).expect("JSON");
    assert!(v["queries"].as_u64().is_some_and(|n| n > 10), "{v}");
}

/// Something that is called z3 and contradicts, gives up, or dies.
#[cfg(unix)]
#[test]
fn a_second_opinion_that_differs_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let s = Scratch::new();
    let (ticket, proof) = proof(&s);
    for (answer, code, said) in [
        ("echo sat", 4, "Z3 disagrees"),
        ("echo unknown", 3, "Z3 gave up"),
        ("exit 1", 3, "z3 failed"),
    ] {
        let script = format!(
            "#!/bin/sh\nwhile read line; do case \"$line\" in\n\
             *version*) echo '(:version \"0\")';;\n*check-sat*) {answer};;\nesac; done\n"
        );
        let z3 = s.file("bin/z3", script);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&z3, mode).expect("a program");
        let asked = wattle()
            .args(["audit", &ticket, &proof, "--solver", "z3"])
            .env("PATH", s.path("bin"))
            .output();
        let asked = ran(asked);
        assert_eq!(asked.code, code, "{}{}", asked.out, asked.err);
        assert!(asked.err.contains(said), "{}", asked.err);
    }
}

/// What the command says about the program on standard error, with its exit code.
fn complains(text: &str, arguments: &[&str], code: i32, expected: &Expect) {
    let s = Scratch::new();
    let file = s.file("p.wtl", text);
    let r = run(&[&arguments[..1], &[&file], &arguments[1..]].concat());
    assert_eq!(r.code, code, "{}{}", r.out, r.err);
    expected.assert_eq(&r.err.replace(&file, "p.wtl"));
}

const PRODUCT: &str = "\
shared x: int;
thread p {
    local r: int;
    r = x;
    x = r * r;
}
never x == 7;
";

#[test]
fn products_of_variables_are_refused_with_their_place() {
    let cegar = expect![[r#"
        warning: cegar: it treats linear integer programs only: it multiplies two variables, which is not linear
          --> p.wtl:5:5
           |
         5 |     x = r * r;
           |     ^^^^^^^^^^
           = hint: sums, differences, products with a constant, comparisons, `?:`, remainders by a constant that are compared with one, and remainders by 2 to 32 would work
    "#]];
    complains(PRODUCT, &["check", "--engine", "cegar"], 3, &cegar);
    complains(PRODUCT, &["fences", "--engine", "cegar"], 3, &cegar);
    let extrapolate = expect![[r#"
        warning: extrapolate: it treats linear integer programs only: it multiplies two variables, which is not linear
          --> p.wtl:5:5
           |
         5 |     x = r * r;
           |     ^^^^^^^^^^
           = hint: sums, differences, products with a constant, comparisons, `?:`, remainders by a constant that are compared with one, and remainders by 2 to 32 would work
    "#]];
    let asked = ["check", "--engine", "extrapolate", "--model", "all"];
    complains(PRODUCT, &asked, 3, &extrapolate);
    let printed = expect![[r#"
        error: it treats linear integer programs only: it multiplies two variables, which is not linear
          --> p.wtl:5:5
           |
         5 |     x = r * r;
           |     ^^^^^^^^^^
           = hint: sums, differences, products with a constant, comparisons, `?:`, remainders by a constant that are compared with one, and remainders by 2 to 32 would work

        error: p.wtl: 1 error
    "#]];
    complains(PRODUCT, &["show", "--as", "boolean-program"], 2, &printed);
}

#[test]
fn computed_indices_into_much_memory_are_refused_with_their_place() {
    let text = "\
shared a[100]: int, i: int;
thread p {
    local r: int;
    r = i;
    a[r] = 1;
}
never a[3] == 7;
";
    let expected = expect![[r#"
        warning: cegar: it treats linear integer programs only: it computes an index into more than 64 cells
          --> p.wtl:5:5
           |
         5 |     a[r] = 1;
           |     ^^^^^^^^^
           = hint: an array of at most 64 cells would work, or indices that are numbers
    "#]];
    complains(text, &["check", "--engine", "cegar"], 3, &expected);
    // The other engines may do it.
    let s = Scratch::new();
    assert_eq!(run(&["check", &s.file("p.wtl", text)]).code, 0);
}

#[test]
fn predicates_that_mean_nothing_are_errors() {
    let text = "\
shared ticket: int;
thread p { local r: int; r = ticket; }
predicates { tiket >= 0; p.r * ticket > 1 }
never ticket == 7;
";
    let expected = expect![[r#"
        error: unknown name `tiket`
          --> p.wtl:3:14
           |
         3 | predicates { tiket >= 0; p.r * ticket > 1 }
           |              ^^^^^
           = expected: a shared name, `thread.register` or `thread@label`
           = hint: did you mean `ticket`?

        error: this predicate is not linear
          --> p.wtl:3:26
           |
         3 | predicates { tiket >= 0; p.r * ticket > 1 }
           |                          ^^^^^^^^^^^^^^^^
           = hint: sums, differences and comparisons of variables and products with constants would work

        error: p.wtl: 2 errors
    "#]];
    complains(text, &["check", "--engine", "extrapolate"], 2, &expected);
}

/// A loop that stores without a fence: the abstract part of its buffer is chosen on the command line.
#[test]
fn which_stores_stay_exact_can_be_chosen() {
    let s = Scratch::new();
    let text = "shared x: int; thread p { loop { x = 1; x = 2; } } \
                thread q { local s: int; s = x; assert s <= 2; }";
    let file = s.file("p.wtl", text);
    for content in ["oldest=1", "newest=1", "newest=2"] {
        let r = run(&["check", &file, "--engine", "cegar", "--content", content]);
        assert_eq!(r.code, 0, "{content}: {}{}", r.out, r.err);
        assert!(r.out.contains("(proved by cegar, audited)"), "{}", r.out);
    }
    for content in ["multiset", "newest=17"] {
        let r = run(&["check", &file, "--engine", "cegar", "--content", content]);
        assert_eq!(r.code, 2, "{content}: {}{}", r.out, r.err);
        assert!(r.err.contains("oldest=K or newest=K"), "{}", r.err);
    }
}

/// A property of seven index variables has 5,040 disjuncts: nothing may be as deep as they are many.
#[test]
fn properties_of_many_threads_are_no_deep_ones() {
    let s = Scratch::new();
    let text = "shared x; thread p[7] { c: stop; }
        never p[a]@c && p[b]@c && p[d]@c && p[e]@c && p[f]@c && p[g]@c && p[h]@c && x == 5;";
    let file = s.file("many.wtl", text);
    let options = ["--engine", "facts", "--model", "sc", "--budget", "2000"];
    let r = run(&[&["check", &file][..], &options[..]].concat());
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
}

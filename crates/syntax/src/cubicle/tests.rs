//! Small files, and every file of the suites when they are there.

use super::parse;
use std::path::{Path, PathBuf};

fn suites() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites")
}

#[test]
fn every_suite_file_parses_and_prints_back() {
    let folders = [
        "cubicle-w",
        "cubicle-w/challenge",
        "cubicle-w/probes",
        "cubicle-sc",
        "cubicle-more",
    ];
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(suites().join(folder)) else {
            println!("skipped: suite {folder} is not here");
            continue;
        };
        for path in entries.flatten().map(|e| e.path()) {
            if path.extension().is_none_or(|e| e != "cub") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let parsed = parse(&text);
            let name = path.display();
            let messages: String = parsed
                .diagnostics
                .iter()
                .map(|d| d.render(&name.to_string(), &text))
                .collect();
            let system = parsed.system.unwrap_or_else(|| panic!("{messages}"));
            let printed = system.to_string();
            let again = parse(&printed);
            let messages: String = again
                .diagnostics
                .iter()
                .map(|d| d.render(&name.to_string(), &printed))
                .collect();
            let again = again.system.unwrap_or_else(|| panic!("{messages}"));
            assert_eq!(again.to_string(), printed, "{name}");
        }
    }
}

fn messages(text: &str) -> String {
    parse(text)
        .diagnostics
        .iter()
        .map(|d| d.render("a.cub", text))
        .collect()
}

#[test]
fn reports_every_error_with_its_place() {
    let text = "type loc = L1 | L2\narray PC[proc] : lok\nweak var X : int\ninit (p) { PC[p] = L1 && Y = 0 }\nunsafe (p) { PC[q] = L2 }\ntransition t ([p] q)\nrequires { PC[p] = L1 && X + p = 1 }\n{ PC[p] := 3; q @ X := 1 }\n";
    let m = messages(text);
    for part in [
        "unknown type `lok`",
        "did you mean `loc`?",
        "unknown name `Y`",
        "unknown thread `q`",
        "thread identifiers cannot be added",
        "`q` does not act in this transition",
        "a.cub:8:15",
    ] {
        assert!(m.contains(part), "missing {part:?} in\n{m}");
    }
}

#[test]
fn wrong_language_and_truncated_files_are_refused() {
    assert!(messages("shared x; thread t { x = 1; }").contains("unknown declaration `shared`"));
    assert!(messages("").contains("no Cubicle file"));
    let cut = "type t = A | B\narray S[proc] : t\ninit (p) { S[p] = A }\ntransition t (p)\nrequires { S[p] =";
    assert!(messages(cut).contains("the file ends too early"));
    let deep = format!(
        "var X : int\ninit () {{ {}X = 0{} }}\ntransition t () {{ X := 1 }}",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    assert!(messages(&deep).contains("nested more than 60 deep"));
}

#[test]
fn the_fence_leaves_the_quantifier() {
    let text = "type l = A | B\narray PC[proc] : l\nweak array R[proc] : bool\ninit (p) { PC[p] = A && R[p] = False }\nunsafe (p q) { PC[p] = B && PC[q] = B }\ntransition t ([p])\nrequires { forall_other q. R[q] = False && PC[p] = A && fence() }\n{ PC[p] := B }\n";
    let printed = parse(text)
        .system
        .map(|s| s.to_string())
        .unwrap_or_default();
    assert!(
        printed.contains("requires { fence() && (forall_other q. (R[q] = False && PC[p] = A)) }"),
        "{printed}"
    );
}

#[test]
fn any_byte_soup_ends_without_a_panic() {
    let words = [
        "type",
        "=",
        "(",
        ")",
        "{",
        "}",
        "[",
        "p",
        "X",
        "#1",
        "&&",
        "||",
        "case",
        "|",
        "_",
        ":=",
        "forall_other",
        ".",
        "@",
        "fence",
        "init",
        "transition",
        "weak",
        "var",
        ":",
        "int",
        "1.5",
        "99999999999999999999",
        "(*",
        "é",
    ];
    let mut seed = 7u64;
    for _ in 0..2000 {
        let mut text = String::new();
        for _ in 0..30 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(words[(seed >> 33) as usize % words.len()]);
            text.push(' ');
        }
        parse(&text);
    }
}

/// A system with a formula as its guard, printed.
fn guard(formula: &str) -> String {
    let text = format!(
        "type loc = A | B\narray PC[proc] : loc\narray Next[proc] : proc\nvar Turn : proc\n\
         predicate at (x, l) {{ PC[x] = l }}\n\
         predicate alone (l) {{ forall x <> y. not (at(x, l) && at(y, l)) }}\n\
         init (p) {{ PC[p] = A }}\nunsafe (p q) {{ PC[p] = B && PC[q] = B }}\n\
         transition t (p)\nrequires {{ {formula} }}\n{{ PC[p] := B; }}\n"
    );
    match parse(&text).system {
        Some(system) => {
            let printed = system.to_string();
            printed[printed.find("transition").unwrap_or(0)..].to_string()
        }
        None => messages(&text),
    }
}

#[test]
fn connectives_are_those_of_logic() {
    for (written, meant) in [
        ("not (PC[p] = A || Turn = p)", "PC[p] <> A && Turn <> p"),
        ("PC[p] = A => Turn = p", "PC[p] <> A || Turn = p"),
        (
            "PC[p] = A <=> Turn = p",
            "(PC[p] = A && Turn = p) || (PC[p] <> A && Turn <> p)",
        ),
        (
            "not (PC[p] = A <=> Turn = p)",
            "(PC[p] = A && Turn <> p) || (PC[p] <> A && Turn = p)",
        ),
        (
            "if PC[p] = A then Turn = p else Turn <> p",
            "(PC[p] = A && Turn = p) || (PC[p] <> A && Turn <> p)",
        ),
        ("true && at(p, A) && not false", "PC[p] = A"),
        (
            "forall q. at(q, A)",
            "PC[p] = A && forall_other q. PC[q] = A",
        ),
        (
            "not (exists_other q. at(q, B))",
            "forall_other q. PC[q] <> B",
        ),
    ] {
        assert_eq!(guard(written), guard(meant), "{written}");
    }
}

#[test]
fn some_thread_is_a_parameter_or_another() {
    let both = guard("exists q. at(q, B) && Turn = q");
    assert!(both.contains("PC[p] = B && Turn = p"), "{both}");
    assert!(both.contains("transition t_2 (p q)"), "{both}");
    assert!(both.contains("PC[q] = B && Turn = q"), "{both}");
    // What is bound inside is not captured by what stands outside.
    let inner = guard("exists q. (at(q, B) && exists p. (at(p, A) && Next[p] = q))");
    assert!(inner.contains("Next[p] = q"), "{inner}");
    assert!(inner.contains("transition t_5 (p q p_2)"), "{inner}");
    assert!(inner.contains("Next[p_2] = q"), "{inner}");
    // A cell is ordered by the thread that it holds.
    let order = guard("Next[p] < p");
    assert!(order.contains("q = Next[p] && q < p"), "{order}");
}

#[test]
fn who_was_chosen_is_one_of_all() {
    let some = "(exists_other q. Turn = q)";
    let all = "(forall_other r. PC[r] = A)";
    let one = guard(&format!("{some} && {all}"));
    let other = guard(&format!("{all} && {some}"));
    assert!(one.contains("Turn = q && PC[q] = A && (forall"), "{one}");
    assert!(other.contains("PC[q] = A && (forall"), "{other}");
    // Who is no parameter may be the same thread twice.
    let twice = guard("exists_other q. exists_other r. Turn = q && Turn = r");
    assert!(twice.contains("transition t (p q)"), "{twice}");
    assert!(twice.contains("transition t_2 (p q r)"), "{twice}");
    // All threads in one case of two: two transitions.
    let cases = guard("PC[p] = A && (Turn = p || (forall_other q. PC[q] = A))");
    assert!(
        cases.contains("requires { PC[p] = A && Turn = p }"),
        "{cases}"
    );
    assert!(
        cases.contains(
            "transition t_2 (p)\nrequires { PC[p] = A && (forall_other q. (PC[q] = A)) }"
        ),
        "{cases}"
    );
}

/// What a guard binds means nothing in the updates, where the same name may be bound anew.
#[test]
fn a_guards_variable_is_none_of_the_updates() {
    let text = |update: &str| {
        format!(
            "type loc = A | B\narray PC[proc] : loc\ninit (p) {{ PC[p] = A }}\nunsafe (p q) {{ PC[p] = B && PC[q] = B }}\n\
             transition t (p)\nrequires {{ exists_other j. PC[j] = A }}\n{{ {update} }}\n"
        )
    };
    let each = text("PC[j] := case | j = p : B | _ : A");
    let printed = parse(&each).system.map(|s| s.to_string());
    let printed = printed.unwrap_or_else(|| messages(&each));
    assert!(printed.contains("transition t (p j_2)"), "{printed}");
    assert!(printed.contains("requires { PC[j_2] = A }"), "{printed}");
    assert!(messages(&text("PC[j] := B")).contains("unknown thread `j`"));
    // Of `q` there is no such limit: it may be any thread.
    let any = text("PC[p] := case | exists q. PC[q] = A : B | _ : A");
    let printed = parse(&any).system.map(|s| s.to_string());
    let printed = printed.unwrap_or_else(|| messages(&any));
    let some = "| PC[p] = A || PC[j] = A || (exists_other q. (PC[q] = A)) : B";
    assert!(printed.contains(some), "{printed}");
}

#[test]
fn pairs_in_unsafe_and_init_are_parameters() {
    let text = "type loc = A | B\narray PC[proc] : loc\n\
        predicate alone (l) { forall x <> y. PC[x] = l => PC[y] <> l }\n\
        init { forall x. PC[x] = A }\nunsafe { not alone(B) }\n\
        transition t (p)\nrequires { PC[p] = A }\n{ PC[p] := B; }\n";
    let plain = "type loc = A | B\narray PC[proc] : loc\n\
        init (x) { PC[x] = A }\nunsafe (x y) { PC[x] = B && PC[y] = B }\n\
        transition t (p)\nrequires { PC[p] = A }\n{ PC[p] := B; }\n";
    let printed = |text: &str| match parse(text).system {
        Some(system) => system.to_string(),
        None => messages(text),
    };
    assert_eq!(printed(text), printed(plain));
}

#[test]
fn fractions_are_scaled_together() {
    let text = "var X : real\nvar Y : int\ninit () { X = 0.5 && Y = 2 }\n\
        unsafe () { X > 1 + 0.25 && 6 = Y * 2 }\ntransition t (p)\nrequires { X < 1 }\n{ X := X + 1.25; }\n";
    let printed = parse(text).system.map(|s| s.to_string());
    let printed = printed.unwrap_or_else(|| messages(text));
    for part in [
        "X = 50",
        "Y = 2",
        "125 < X",
        "6 = 2 * Y",
        "X < 100",
        "X + 125",
    ] {
        assert!(printed.contains(part), "missing {part} in\n{printed}");
    }
}

#[test]
fn guards_may_speak_of_several_threads() {
    for (formula, meant) in [
        (
            "forall x <> y. at(x, A) || at(y, A)",
            "(forall_other x. ((x = p || (PC[x] = A || PC[p] = A)) && (forall_other y. (x = y || (PC[x] = A || PC[y] = A)))))",
        ),
        (
            "forall x. exists y. Next[x] = y",
            "(forall_other x. (Next[x] = p || (exists_other y. (Next[x] = y))))",
        ),
    ] {
        let found = guard(formula);
        assert!(found.contains(meant), "{formula}: {found}");
    }
}

#[test]
fn what_cannot_be_meant_is_said() {
    for (formula, message) in [
        ("not fence()", "a fence cannot be negated"),
        ("nowhere(p)", "there is no predicate `nowhere`"),
        ("at(p)", "`at` has 2 parameter(s), 1 given"),
        ("PC[p] = A => ", "a value"),
    ] {
        let found = guard(formula);
        assert!(found.contains(message), "{formula}: {found}");
    }
    let text =
        "predicate a (x) { a(x) || a(x) }\nvar X : int\ninit () { X = 0 }\nunsafe (p) { a(p) }\n";
    assert!(messages(text).contains("predicates cannot use themselves"));
    let mut text = String::from("var X : int\ninit () { X = 0 }\npredicate a0 () { X = 1 }\n");
    for i in 1..30 {
        text += &format!("predicate a{i} () {{ a{0}() && a{0}() }}\n", i - 1);
    }
    text += "unsafe (p) { a29() }\n";
    assert!(messages(&text).contains("too large"));
}

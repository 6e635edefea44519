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

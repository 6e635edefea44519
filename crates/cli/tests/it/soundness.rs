//! Families that were once proved although a few threads break them, and others like them: each cause in
//! several variations. What is right was found with a fixed number of threads: one to five, or more where a family says so.

use crate::support::run;
use std::path::Path;

/// The rows of `expected.csv`: file, model, and what is right for any number of threads.
fn rows() -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soundness");
    let text = std::fs::read_to_string(folder.join("expected.csv")).expect("the list");
    let row = |line: &str| {
        let mut parts = line.split(',');
        let mut next = || parts.next().unwrap_or_default().to_string();
        let file = folder.join(next()).display().to_string();
        (file, next(), next())
    };
    text.lines().skip(1).map(row).collect()
}

fn agree(model: &str) {
    let (mut told, mut all) = (0, 0);
    for (file, of, right) in rows().iter().filter(|row| row.1 == model) {
        let r = run(&["check", file, "--model", of]);
        let shown = format!("{file} {of}: {right}\n{}{}", r.out, r.err);
        // Refused, or not decided with the reason, is no wrong answer; nothing else is none.
        match right.as_str() {
            "violated" => assert!(matches!(r.code, 1..=3), "{shown}"),
            "holds" => assert!(matches!(r.code, 0 | 2 | 3), "{shown}"),
            "error" => assert_eq!(r.code, 2, "{shown}"),
            other => panic!("{file}: {other}"),
        }
        all += 1;
        told += usize::from(matches!(
            (right.as_str(), r.code),
            ("violated", 1) | ("holds", 0)
        ));
    }
    assert!(all > 50, "{all}");
    // Most are decided, not only not wrong.
    assert!(told * 10 > all * 8, "{told} of {all}");
}

#[test]
fn families_agree_with_few_threads_on_sc() {
    agree("sc");
}

#[test]
fn families_agree_with_few_threads_on_tso() {
    agree("tso");
}

#[test]
fn families_agree_with_few_threads_on_pso() {
    agree("pso");
}

/// A proof says how far small instances were run.
#[test]
fn how_far_is_told() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/soundness/wrap-lock.wtl");
    let r = run(&["check", &file.display().to_string(), "--json"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let json: serde_json::Value = serde_json::from_str(&r.out).expect("JSON");
    assert_eq!(json["small_worlds"]["threads"], 5, "{}", r.out);
    assert!(
        json["small_worlds"]["states"].as_u64() > Some(20),
        "{}",
        r.out
    );
    // No number leaves its type: nothing is assumed.
    assert_eq!(json["scope"]["data"], "finite", "{}", r.out);
}

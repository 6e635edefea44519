//! Demands on whole runs, from text to evidence that is checked again.

use crate::support::{Scratch, root, run};

fn example(name: &str) -> String {
    let path = root().join("examples/liveness").join(name);
    path.display().to_string()
}

/// What is proved with buffers that have no bound says so, and what it takes for granted; the certificate stands alone.
#[test]
fn proofs_under_memory_fairness_are_audited_again() {
    let s = Scratch::new();
    let (file, kept) = (example("producer-memory.wtl"), s.path("proof.json"));
    for model in ["tso", "pso"] {
        let weak = run(&["check", &file, "--model", model, "--progress"]);
        assert!(!weak.out.contains("under memory fairness"), "{}", weak.out);
        let more = ["--fairness", "memory", "--certificate", &kept];
        let held = run(&[&["check", &file, "--model", model][..], &more[..]].concat());
        assert_eq!(held.code, 0, "{}", held.out);
        let first = "for 2 threads under memory fairness (proved by liveness, audited)";
        assert!(held.out.contains(first), "{}", held.out);
    }
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.contains("\"kind\":\"returning\""), "{text:.300}");
    let audited = run(&["audit", &file, &kept]);
    assert_eq!(audited.code, 0, "{}{}", audited.out, audited.err);
    // Under another fairness it proves nothing.
    let other = text.replacen("[0,\"memory\"]", "[0,\"weak\"]", 1);
    assert_ne!(other, text);
    let other = s.file("other.json", other);
    assert_eq!(run(&["audit", &file, &other]).code, 4);
}

/// A run under memory fairness goes with a proof that every run that begins so is as bad, and `replay` looks at both.
#[test]
fn runs_under_memory_fairness_replay() {
    let s = Scratch::new();
    let (file, kept) = (example("heartbeat-stuck-memory.wtl"), s.path("run.json"));
    let arguments = ["check", &file, "--fairness", "memory", "--trace", &kept];
    let broken = run(&arguments);
    assert_eq!(broken.code, 1, "{}", broken.out);
    assert!(
        broken.out.contains("violated on TSO under memory fairness"),
        "{}",
        broken.out
    );
    let replayed = run(&["replay", &file, &kept]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.out, replayed.err);
    assert!(
        replayed
            .out
            .starts_with("the run replays on TSO under memory fairness"),
        "{}",
        replayed.out
    );
    // Without the proof it is one run among many.
    let text = std::fs::read_to_string(&kept).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let lasso = value["evidence"].as_object_mut().unwrap();
    assert!(lasso.remove("for_ever").is_some());
    let bare = s.file("bare.json", value.to_string());
    let refused = run(&["replay", &file, &bare]);
    assert_eq!(refused.code, 4, "{}{}", refused.out, refused.err);
}

/// What cannot be treated says why.
#[test]
fn memory_fairness_refuses_what_it_cannot_say() {
    let s = Scratch::new();
    let assumed = s.file(
        "assume.wtl",
        "shared x: bool;
thread p { local r: bool; loop { r = any 0..1; assume r == 1; x = r; } }
ltl G x == 0;
",
    );
    let r = run(&["check", &assumed, "--fairness", "memory", "--model", "sc"]);
    assert_eq!(r.code, 3, "{}", r.out);
    assert!(r.out.contains("an assumption may be false"), "{}", r.out);
}

/// The store before the loop is nobody else's business, and neither is the loop: where the first state is, engine and auditor agree.
#[test]
fn runs_begin_where_the_auditor_begins() {
    let s = Scratch::new();
    let file = s.file(
        "private.wtl",
        "shared x: bool, y: bool;
thread p { local r: bool; first: skip; r = x; }
thread q { local r: bool; y = 0; while y == 1 { r = x; r = x; } }
ltl G F x == 0;
progress;
",
    );
    for fairness in ["none", "weak", "strong", "memory"] {
        for model in ["sc", "tso", "pso"] {
            let r = run(&["check", &file, "--model", model, "--fairness", fairness]);
            assert_eq!(r.code, 0, "{model} {fairness}: {}{}", r.out, r.err);
        }
    }
}

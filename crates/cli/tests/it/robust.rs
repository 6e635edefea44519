//! `wattle robust`: what it says is checked by the auditor's own search.

use crate::support::{Scratch, root, run};

fn robust(text: &str) -> (i32, String) {
    let scratch = Scratch::new();
    let ran = run(&["robust", &scratch.file("program.wtl", text)]);
    (ran.code, ran.out + &ran.err)
}

#[test]
fn a_lock_region_is_one_unit() {
    let (code, said) = robust(
        "shared x, a;
        thread t1 { lock; x = 1; x = 2; unlock; }
        thread t2 { local r, s; r = x; a = 1; s = x; }",
    );
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(", audited)"), "{said}");
    // A store still waits in its buffer while another thread is inside.
    let (code, said) = robust(
        "shared x, a;
        thread t1 { local q; lock; x = 1; q = a; unlock; }
        thread t2 { local r; a = 1; r = x; }",
    );
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("not robust against TSO"), "{said}");
}

#[test]
fn what_is_not_robust_has_a_run() {
    for file in ["robust-rc4.wtl", "robust-blocked-atomic.wtl"] {
        let file = root().join("examples/soundness").join(file);
        let ran = run(&["robust", &file.display().to_string()]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert!(ran.out.contains(", audited)"), "{}", ran.out);
        let ran = run(&[
            "fences",
            "--goal",
            "robustness",
            &file.display().to_string(),
        ]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    }
}

#[test]
fn robust_is_audited() {
    let text = "shared x, y;
        thread p { local a; x = 1; fence; a = y; }
        thread q { local b; y = 1; fence; b = x; }";
    let scratch = Scratch::new();
    let ran = run(&["robust", &scratch.file("fenced.wtl", text)]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("robust against TSO"), "{}", ran.out);
    assert!(ran.out.contains(", audited)"), "{}", ran.out);
}

#[test]
fn what_must_be_reachable_cannot_be_fenced() {
    let scratch = Scratch::new();
    let file = scratch.file("r.wtl", "shared x; thread t { x = 1; } reachable x == 2;");
    let ran = run(&["fences", &file]);
    assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
}

#[test]
fn a_thread_that_counts_for_ever_does_not_hide_an_attack() {
    let file = root().join("examples/trencher/counting-forever.trench");
    let ran = run(&["robust", &file.display().to_string()]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("not robust against TSO"), "{}", ran.out);
}

#[test]
fn one_thread_is_no_threads() {
    let s = Scratch::new();
    let file = s.file("one.wtl", "shared x: 0..1;\nthread p { x = 1; }\n");
    let r = run(&["robust", &file]);
    assert!(r.out.contains("(1 thread, "), "{}", r.out);
}

/// A place has the same words wherever it is told.
#[test]
fn the_same_place_in_the_same_words() {
    let peterson = root().join("examples/peterson.wtl").display().to_string();
    let place = "fence after line 10";
    for command in ["check", "fences", "robust"] {
        let r = run(&[command, &peterson]);
        assert!(r.out.contains(place), "{command}: {}", r.out);
    }
    let r = run(&["robust", &peterson, "--json"]);
    let said = format!("\"place\":\"{place}\"");
    assert!(r.out.contains(&said), "{}", r.out);
    // In a line with others, the statement is named.
    let sb = root().join("examples/litmus-sb.wtl").display().to_string();
    for command in ["check", "fences", "robust"] {
        let r = run(&[command, &sb]);
        let said = "fence in line 5 after `x = 1`";
        assert!(r.out.contains(said), "{command}: {}", r.out);
    }
    let s = Scratch::new();
    let text = "shared data, ready;
        thread writer {
            data = 1;
            ready = 1;
        }
        thread reader { local r, d; r = ready; d = data; }
        finally !(reader.r == 1 && reader.d == 0);";
    let file = s.file("passing.wtl", text);
    for command in ["check", "fences", "robust"] {
        let r = run(&[command, "-m", "pso", &file]);
        let said = "store fence after line 3";
        assert!(r.out.contains(said), "{command}: {}", r.out);
    }
}

//! Programs with unbounded integers, from the command line: a second opinion on proofs.

use crate::support::{Scratch, ran, root, run, wattle};

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

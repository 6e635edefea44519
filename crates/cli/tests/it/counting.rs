//! How many threads are where, from the text to the audited proof; and bugs that need many of them.

use super::support::{Scratch, run};

const SEMAPHORE: &str = "shared s = 2;
thread p[*] { local r; loop { loop { r = s; if r > 0 { if cas(s, r, r-1) { break; } } }
 cs: skip; fetch_add(s, 1); } }
never p[i]@cs && p[j]@cs && p[k]@cs;
";

#[test]
fn proofs_are_audited_and_kept() {
    let s = Scratch::new();
    let file = s.file("semaphore.wtl", SEMAPHORE);
    for model in ["sc", "tso", "pso"] {
        let proof = s.path("proof.json");
        let args = ["check", &file, "--model", model, "--engine", "counting"];
        let r = run(&[&args[..], &["--certificate", &proof]].concat());
        assert_eq!(r.code, 0, "{model} {}{}", r.out, r.err);
        assert!(r.out.contains("(proved by counting, audited)"), "{}", r.out);
        let r = run(&["audit", &file, &proof]);
        assert_eq!(r.code, 0, "{model} {}", r.err);
        assert!(r.out.contains("how many threads"), "{}", r.out);
        // Another program, and facts that say too much or too little.
        let other = s.file("other.wtl", SEMAPHORE.replace("s = 2", "s = 3"));
        assert_eq!(run(&["audit", &other, &proof]).code, 2);
        let text = std::fs::read_to_string(&proof).expect("written");
        let changes: [fn(&mut serde_json::Value); 3] = [
            |e| e["facts"] = serde_json::json!([]),
            |e| e["facts"] = serde_json::json!([[]]),
            |e| e["places"] = serde_json::json!([]),
        ];
        for change in changes {
            let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            change(&mut json["evidence"]);
            let forged = s.file("forged.json", json.to_string());
            let r = run(&["audit", &file, &forged]);
            assert_eq!(r.code, 4, "{model} {}", r.err);
        }
    }
}

/// Readers are counted in a byte: true as long as it does not wrap around.
#[test]
fn numbers_that_may_wrap_are_an_assumption() {
    let s = Scratch::new();
    let text = "shared w: bool, n: u8;
thread p[*] { local r; loop { choose {
   loop { atomic { r = w; if r == 0 { n = n + 1; } } if r == 0 { break; } } rd: skip; fetch_add(n,-1); }
 or { loop { atomic { r = w + n; if r == 0 { w = 1; } } if r == 0 { break; } } wr: skip; w = 0; } } }
never p[i]@wr && p[j]@rd;
";
    let file = s.file("readers.wtl", text);
    let r = run(&["check", &file, "--engine", "counting"]);
    assert_eq!(r.code, 3, "{}{}", r.out, r.err);
    assert!(r.out.contains("if no number wraps around"), "{}", r.out);
    // With 32 bits it is true of as many threads as there can be, and of no more.
    let file = s.file("readers.wtl", text.replace("u8", "u32"));
    let proof = s.path("proof.json");
    let args = ["check", &file, "--engine", "counting", "--certificate"];
    let r = run(&[&args[..], &[&proof]].concat());
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.contains("for at most 4194304 threads"), "{}", r.out);
    let r = run(&["audit", &file, &proof]);
    assert_eq!(r.code, 0, "{}", r.err);
    assert!(r.out.contains("threads of at most 4194304"), "{}", r.out);
    let told = "holds on TSO for at most 4194304 threads";
    assert!(r.out.contains(told), "{}", r.out);
    let kept = std::fs::read_to_string(&proof).expect("written");
    let mut json: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    json["evidence"]["at_most"] = serde_json::Value::Null;
    let forged = s.file("forged.json", json.to_string());
    let r = run(&["audit", &file, &forged]);
    assert_eq!(r.code, 4, "{}{}", r.out, r.err);
}

#[test]
fn bugs_that_need_four_and_five_threads_are_found() {
    let s = Scratch::new();
    let token = "shared t: 0..5;
thread p[*] { local r: 0..5; atomic { r = t; assume r < 5; t = r + 1; } if r == 4 { assert 0; } }
";
    let semaphore = SEMAPHORE
        .replace("s = 2", "s = 4")
        .replace("&& p[k]@cs", "&& p[k]@cs && p[l]@cs");
    for (name, text) in [("token.wtl", token), ("semaphore.wtl", &semaphore)] {
        let r = run(&["check", &s.file(name, text)]);
        assert_eq!(r.code, 1, "{name} {}{}", r.out, r.err);
    }
}

#[test]
fn what_is_not_counted_is_refused() {
    let s = Scratch::new();
    for text in [
        "shared x; thread t[*] { lock; x = 1; unlock; } never x == 7;\n",
        "shared x[thread]; thread t[*] { x[self] = 1; no: skip; } never t[i]@no && t[j]@no;\n",
    ] {
        let r = run(&["check", &s.file("x.wtl", text), "--engine", "counting"]);
        assert!(matches!(r.code, 2 | 3), "{}{}", r.out, r.err);
    }
    let fixed = "shared x; thread t { x = 1; } never x == 7;\n";
    let r = run(&["check", &s.file("x.wtl", fixed), "--engine", "counting"]);
    assert!(matches!(r.code, 2 | 3), "{}{}", r.out, r.err);
}

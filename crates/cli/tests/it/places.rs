//! Fences people act on: which of those that are there are needed, and places of the source text.

use crate::support::{Scratch, run};
use serde_json::Value;

/// A ring for one producer and one consumer, right on TSO without any fence, with four of them.
const SPSC: &str = "\
shared slot[2]: 0..2, head: 0..2, tail: 0..2;
thread producer {
    local h: 0..2;
    for i in 1..2 {
        h = head;
        fence;
        slot[i - 1] = i;
        fence;
        tail = i;
    }
}
thread consumer {
    local t: 0..2, v: 0..2;
    for i in 1..2 {
        await tail >= i;
        fence;
        v = slot[i - 1];
        assert v == i;
        fence;
        head = i;
    }
}
";

/// Two rounds of store buffering in a `for`: the rounds are one place.
const ROUNDS: &str = "\
shared x, y;
thread p {
    local r;
    for i in 1..2 {
        x = i;
        r = y;
        assert r >= 0;
    }
}
thread q {
    local s;
    y = 1;
    s = x;
}
finally !(p.r == 0 && q.s == 0);
";

#[test]
fn useless_fences_are_found() {
    let s = Scratch::new();
    let file = s.file("spsc.wtl", SPSC);
    let r = run(&["fences", &file]);
    assert!(
        r.out
            .starts_with("no further fence is needed for safety on TSO"),
        "{}",
        r.out
    );
    let r = run(&["fences", &file, "--existing"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(
        r.out
            .starts_with("4 of 4 superfluous for safety on TSO (proved, audited)"),
        "{}",
        r.out
    );
    assert_eq!(
        r.out.matches("superfluous (proved)").count(),
        4,
        "{}",
        r.out
    );
    assert!(
        r.out
            .contains("without these 4 together it still holds (proved)"),
        "{}",
        r.out
    );
    assert!(
        r.out.contains("without any fence of its own it needs none"),
        "{}",
        r.out
    );
    // On PSO the one between the two stores is needed, and a store fence would do.
    let r = run(&["fences", &file, "--existing", "--model", "pso", "--json"]);
    let v: Value = serde_json::from_str(&r.out).expect("JSON");
    let roles: Vec<(u64, &str)> = (v["existing"].as_array().into_iter().flatten())
        .map(|e| {
            (
                e["line"].as_u64().unwrap_or(0),
                e["role"].as_str().unwrap_or(""),
            )
        })
        .collect();
    let expected = [
        (6, "superfluous"),
        (8, "weaker-suffices"),
        (16, "superfluous"),
        (19, "superfluous"),
    ];
    assert_eq!(roles, expected, "{v:#}");
}

#[test]
fn needed_fences_come_with_their_run() {
    let s = Scratch::new();
    let text = "shared x, y;\nthread p { local a; x = 1; fence; a = y; fence; }\nthread q { local b; swap(y, 1); b = x; }\nfinally !(p.a == 0 && q.b == 0);\n";
    let r = run(&["fences", &s.file("sb.wtl", text), "--existing"]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.starts_with("1 of 3 superfluous"), "{}", r.out);
    assert!(
        r.out
            .contains("needed: without it p can load y before its store to x"),
        "{}",
        r.out
    );
    assert!(
        r.out.contains("atomic statement in line 3: `swap(y, 1)"),
        "{}",
        r.out
    );
    assert!(
        r.out
            .contains("needed: without it q can load x before its store to y"),
        "{}",
        r.out
    );
    assert!(
        r.out
            .contains("from none: 1 fence, fence after line 2 in p, and fewer do not suffice"),
        "{}",
        r.out
    );
    // What is broken as it is has no inventory.
    let r = run(&[
        "fences",
        &s.file("bare.wtl", text.replace("fence; ", "")),
        "--existing",
    ]);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert!(
        r.out.starts_with("safety is missed on TSO as it is"),
        "{}",
        r.out
    );
}

#[test]
fn rounds_of_a_for_are_one_place() {
    let s = Scratch::new();
    let (file, out) = (s.file("rounds.wtl", ROUNDS), s.path("fenced.wtl"));
    let r = run(&["fences", &file, "--write", &out]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(
        r.out
            .starts_with("2 fences for safety on TSO, and fewer do not suffice"),
        "{}",
        r.out
    );
    assert!(
        r.out.contains("p          fence after line 5\n"),
        "{}",
        r.out
    );
    assert!(
        r.out.contains("q          fence after line 12\n"),
        "{}",
        r.out
    );
    assert!(r.out.contains(&format!("+++ {out}\n")), "{}", r.out);
    let written = std::fs::read_to_string(&out).expect("the fenced program");
    let expected = ROUNDS
        .replace("        x = i;\n", "        x = i;\n        fence;\n")
        .replace("    y = 1;\n", "    y = 1;\n    fence;\n");
    assert_eq!(written, expected);
    // Whoever reads the words under a trace reads the same.
    let r = run(&["check", &file]);
    assert!(r.out.contains("A fence after line 12"), "{}", r.out);
}

/// A queue of waiters behind a locked word, as qspinlock has it, for two contenders: the fence stays out of
/// the loops that wait.
const QSPINLOCK: &str = "\
shared locked, pending, queue;
thread p[2] {
    loop {
        pending = 1;
        while swap(locked, 1) == 1 {
            while locked == 1 { }
        }
        pending = 0;
        critical: skip;
        locked = 0;
    }
}
never p[i]@critical && p[j]@critical;
";

#[test]
fn fences_stay_out_of_loops_that_wait() {
    let s = Scratch::new();
    let r = run(&["fences", &s.file("qspinlock.wtl", QSPINLOCK)]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.starts_with("no further fence is needed"), "{}", r.out);
    let peterson = "\
shared flag[2], turn;
thread p[2] {
    let other = 1 - self;
    loop {
        flag[self] = 1;
        turn = other;      // mine is set\r
        while flag[other] == 1 && turn == other { }
        critical: skip;
        flag[self] = 0;
    }
}
never p[i]@critical && p[j]@critical;
";
    // Line ends stay as they are, and the comment stays on its line.
    let text = peterson.replace("\r", "").replace('\n', "\r\n");
    let (file, out) = (s.file("peterson.wtl", &text), s.path("fenced.wtl"));
    let r = run(&["fences", &file, "--write", &out]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let written = std::fs::read_to_string(&out).expect("the fenced program");
    let mine = "turn = other;      // mine is set\r\n";
    assert_eq!(
        written,
        text.replace(mine, &format!("{mine}        fence;\r\n"))
    );
}

/// In litmus tests too the fence is behind the store and not behind the label of the loop.
#[test]
fn litmus_loops_that_wait() {
    let s = Scratch::new();
    let text = "X86 spin\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n LC00:       |             ;\n MOV EAX,[y] | MOV EAX,[x] ;\n CMP EAX,$2  |             ;\n JE LC00     |             ;\n~exists (0:EAX=0 /\\ 1:EAX=0)\n";
    let (file, out) = (s.file("spin.litmus", text), s.path("fenced.litmus"));
    let r = run(&["fences", &file, "--write", &out]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let written = std::fs::read_to_string(&out).expect("the fenced test");
    let lines: Vec<&str> = written.lines().collect();
    let label = lines
        .iter()
        .position(|l| l.contains("LC00:"))
        .expect("the label");
    let fence = lines
        .iter()
        .position(|l| l.starts_with(" MFENCE") || l.starts_with("MFENCE"));
    assert!(fence.is_some_and(|f| f < label), "{written}");
}

#[test]
fn loops_cost() {
    let s = Scratch::new();
    let r = run(&[
        "fences",
        &s.file("rounds.wtl", ROUNDS),
        "--cost",
        "loop=5",
        "--json",
    ]);
    let v: Value = serde_json::from_str(&r.out).expect("JSON");
    assert_eq!(v["number_of_fences"], 2, "{v:#}");
    assert_eq!(
        (&v["fences"][0]["line"], &v["fences"][0]["place"]),
        (&5.into(), &"fence after line 5".into()),
        "{v:#}"
    );
    assert!(v["fences"][0]["column"].is_number(), "{v:#}");
}

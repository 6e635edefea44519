//! Fences people act on: which of those that are there are needed, and places of the source text.

use crate::support::{Scratch, ran, run, wattle};
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
        r.out
            .contains("atomic statement in line 3, column 21: `swap(y, 1)"),
        "{}",
        r.out
    );
    // Nobody minds that it is not one step, as long as the store does not wait.
    assert!(
        r.out.contains(
            "a weaker one suffices (proved): not atomic, with a fence after it\n             \
             without it q can load x before its store to y"
        ),
        "{}",
        r.out
    );
    assert!(
        r.out.contains(
            "from none: 1 fence, fence in line 2 after `x = 1` in p, and fewer do not suffice"
        ),
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
fn weaker_forms_of_locks_and_exchanges() {
    let s = Scratch::new();
    let role = |name: &str, text: &str, model: &str| {
        let r = run(&[
            "fences",
            &s.file(name, text),
            "--existing",
            "--json",
            "--model",
            model,
        ]);
        assert_eq!(r.code, 0, "{}{}", r.out, r.err);
        let v: Value = serde_json::from_str(&r.out).expect("JSON");
        let first = &v["existing"][0];
        assert!(first["without"].is_string(), "{v:#}");
        let word = |key: &str| first[key].as_str().unwrap_or("").to_string();
        (word("role"), word("why"))
    };
    // Two loads at one time: nobody minds what waits in the buffer.
    let snapshot = "shared x, y;\nthread p { local a, b; atomic { a = x; b = y; } }\nthread q { atomic { x = 1; y = 1; } }\nfinally p.a == p.b;\n";
    let (kind, why) = role("snapshot.wtl", snapshot, "tso");
    assert_eq!(kind, "weaker-suffices", "{why}");
    assert!(why.contains("atomic buffered"), "{why}");
    // A counter would lose what is still on its way to memory.
    let counter = "shared x;\nthread p[2] { fetch_add(x, 1); }\nfinally x == 2;\n";
    let (kind, why) = role("counter.wtl", counter, "tso");
    assert_eq!(kind, "needed", "{why}");
    // A lock needs both.
    let lock = "shared l;\nthread p[2] { while swap(l, 1) == 1 { } in: skip; l = 0; }\nnever p[i]@in && p[j]@in;\n";
    let (kind, why) = role("lock.wtl", lock, "tso");
    assert_eq!(kind, "needed", "{why}");
    // A flag that says that the data is there: on PSO its order is needed, and that of stores is enough.
    let flag = "shared d, f;\nthread p { d = 1; swap(f, 1); }\nthread q { local a, b; a = f; b = d; }\nfinally !(q.a == 1 && q.b == 0);\n";
    let (kind, why) = role("flag.wtl", flag, "pso");
    assert_eq!(kind, "weaker-suffices", "{why}");
    assert!(why.contains("`fence store` before it"), "{why}");
    // A lock prefix of an x86 program that only orders.
    let sb = "X86 SB\n{ x=0; y=0; }\n P0 | P1 ;\n XCHG [x],ECX | MOV [y],$1 ;\n MOV EAX,[y] | MFENCE ;\n | MOV EAX,[x] ;\n~exists (0:EAX=0 /\\ 1:EAX=0)\n".replace("{ x=0;", "{ 0:ECX=1; x=0;");
    let (kind, why) = role("sb.litmus", &sb, "tso");
    assert_eq!(kind, "weaker-suffices", "{why}");
    assert!(why.contains("a fence after it"), "{why}");
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

/// A sequence lock whose writer is unrolled: two store fences in the text, whatever the number of rounds.
const SEQLOCK: &str = "\
shared seq, a, b;
thread writer {
    for i in 1..4 {
        seq = seq + 1;
        a = i;
        b = i;
        seq = seq + 1;
    }
}
thread reader {
    local s, x, y, e;
    loop {
        s = seq;
        x = a;
        y = b;
        e = seq;
        if s == e && s % 2 == 0 { assert x == y; }
    }
}
";

#[test]
fn a_seqlock_in_a_for_loop() {
    let s = Scratch::new();
    let (file, out) = (s.file("seqlock.wtl", SEQLOCK), s.path("fenced.wtl"));
    let r = run(&["fences", &file, "--model", "pso", "--write", &out]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    for told in [
        "2 fences for safety on PSO, and fewer do not suffice",
        "store fence after line 4\n",
        "without it writer can store a before its store to seq is in memory",
        "store fence after line 6\n",
        "without it writer can store seq before its store to b is in memory",
    ] {
        assert!(r.out.contains(told), "{told}\n{}", r.out);
    }
    let written = std::fs::read_to_string(&out).expect("the fenced program");
    let expected = SEQLOCK
        .replacen("+ 1;\n", "+ 1;\n        fence store;\n", 1)
        .replace("b = i;\n", "b = i;\n        fence store;\n");
    assert_eq!(written, expected);
}

/// Branches that end with a store: one fence behind both, or behind the one that needs it.
#[test]
fn one_fence_for_two_branches() {
    let s = Scratch::new();
    let text = "shared x, y, z;\nthread p {\n    local r;\n    if z == 0 {\n        x = 1;\n    } else {\n        x = 2;\n    }\n    r = y;\n}\nthread q { local s; y = 1; fence; s = x; }\nthread w { z = 1; }\nfinally !(p.r == 0 && q.s == 0);\n";
    let (file, out) = (s.file("branches.wtl", text), s.path("fenced.wtl"));
    let r = run(&["fences", &file, "--write", &out]);
    assert!(
        r.out.starts_with("1 fence for safety on TSO, and fewer"),
        "{}",
        r.out
    );
    assert!(r.out.contains("fence before line 9\n"), "{}", r.out);
    let written = std::fs::read_to_string(&out).expect("the fenced program");
    assert_eq!(
        written,
        text.replace("    r = y;\n", "    fence;\n    r = y;\n")
    );
}

/// A loop that stores before it comes round: one fence at the beginning of its body, in the text.
#[test]
fn one_fence_for_the_way_in_and_the_way_round() {
    let s = Scratch::new();
    let text = "shared x, y;\nthread p {\n    local r;\n    x = 1;\n    loop {\n        r = y;\n        if r == 0 { in: skip; }\n        x = 0;\n        x = 1;\n    }\n}\nthread q {\n    local s;\n    y = 1;\n    fence;\n    s = x;\n    if s == 0 { in: skip; }\n    y = 0;\n}\nnever p@in && q@in;\n";
    let (file, out) = (s.file("round.wtl", text), s.path("fenced.wtl"));
    let r = run(&["fences", &file, "--write", &out]);
    assert!(
        r.out.starts_with("1 fence for safety on TSO, and fewer"),
        "{}",
        r.out
    );
    assert!(r.out.contains("fence before line 6\n"), "{}", r.out);
    let written = std::fs::read_to_string(&out).expect("the fenced program");
    assert_eq!(
        written,
        text.replace("        r = y;\n", "        fence;\n        r = y;\n")
    );
}

/// Tells the fences of a program and writes them: told is what is written, in so many lines.
fn told_and_written(name: &str, text: &str, fences: usize, words: &str, written: &str) {
    let s = Scratch::new();
    let (file, out) = (s.file(name, text), s.path("fenced.wtl"));
    let r = run(&["fences", &file, "--write", &out]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let number = match fences {
        1 => "1 fence".to_string(),
        n => format!("{n} fences"),
    };
    let first = format!("{number} for safety on TSO, and fewer do not suffice");
    assert!(r.out.starts_with(&first), "{}", r.out);
    assert!(r.out.contains(words), "{}", r.out);
    let new = std::fs::read_to_string(&out).expect("the fenced program");
    assert_eq!(new, written, "{}", r.out);
}

/// Who looks whether the stores are there, and who makes the second way be taken.
const OTHERS: &str = "\
thread q { local s; y = 1; fence; s = x; }
thread w { z = 1; z = 0; }
";

#[test]
fn one_fence_at_the_end_of_a_loop() {
    let text = format!(
        "shared x, y, z;\nthread p {{\n    local r, n;\n    while n == 0 || (y == 0 && n == 1) {{\n        n = n + 1;\n        if z == 0 {{\n            x = 1;\n        }} else {{\n            x = 2;\n        }}\n    }}\n    r = n;\n}}\n{OTHERS}finally !(p.r == 2 && q.s == 0);\n"
    );
    let written = text.replace("        }\n    }\n", "        }\n        fence;\n    }\n");
    told_and_written("end.wtl", &text, 1, "fence after line 10\n", &written);
}

#[test]
fn one_fence_behind_a_loop() {
    let text = format!(
        "shared x, y, z;\nthread p {{\n    local r, n;\n    x = 1;\n    while n < 1 && z == 1 {{\n        x = 2;\n        n = n + 1;\n    }}\n    r = y;\n}}\n{OTHERS}finally !(p.r == 0 && q.s != 2 && p.n == 1) && !(p.r == 0 && q.s == 0);\n"
    );
    let written = text.replace("    r = y;\n", "    fence;\n    r = y;\n");
    told_and_written("behind.wtl", &text, 1, "fence before line 9\n", &written);
}

#[test]
fn one_fence_behind_a_label_that_is_jumped_to() {
    let text = "shared x, y;\nthread p {\n    local r;\n    x = 1;\n    again: r = y;\n    if r == 0 { in: skip; }\n    x = 0;\n    x = 1;\n    goto again;\n}\nthread q {\n    local s;\n    y = 1;\n    fence;\n    s = x;\n    if s == 0 { in: skip; }\n    y = 0;\n}\nnever p@in && q@in;\n";
    let written = text.replace("again: r", "again: fence; r");
    told_and_written(
        "goto.wtl",
        text,
        1,
        "fence in line 5 before `r = y`\n",
        &written,
    );
}

#[test]
fn before_an_unrolled_loop_rather_than_in_it() {
    let text = "shared x, y, z;\nthread p {\n    local r, a;\n    if z == 0 {\n        x = 1;\n    } else {\n        x = 2;\n    }\n    for i in 1..3 {\n        r = y;\n        a = r;\n    }\n}\nthread q { local s; y = 1; fence; s = x; }\nthread w { z = 1; }\nfinally !(p.r == 0 && q.s == 0);\n";
    let written = text.replace("    for i", "    fence;\n    for i");
    told_and_written("for.wtl", text, 1, "fence before line 9\n", &written);
}

/// What a line has beside the place of the fence decides whether it is told, and written, in the line or below it.
#[test]
fn a_line_of_several_statements() {
    let threads = |p: &str| {
        format!(
            "shared x, y;\nthread p {{\n    local r;\n{p}}}\n\
             thread q {{\n    local s;\n    y = 1;\n    fence;\n    s = x;\n}}\n\
             finally !(p.r == 0 && q.s == 0);\n"
        )
    };
    let cases = [
        // The store ends its line: the fence gets one of its own.
        (
            "    r = 5; x = 1;\n    r = y;\n",
            "fence after line 4",
            "    r = 5; x = 1;\n    fence;\n    r = y;\n",
        ),
        (
            "    x = 1; r = y;\n",
            "fence in line 4 after `x = 1`",
            "    x = 1; fence; r = y;\n",
        ),
        (
            "    loop { x = 1; if r == 0 { r = 7; } r = y; stop; }\n",
            "fence in line 4 ",
            "fence; ",
        ),
    ];
    let s = Scratch::new();
    for (text, told, written) in cases {
        let new = s.path("new.wtl");
        let file = s.file("old.wtl", threads(text));
        let r = run(&["fences", &file, "--write", &new]);
        assert_eq!(r.code, 0, "{text}{}{}", r.out, r.err);
        assert!(r.out.contains(told), "{text}{}", r.out);
        let fenced = std::fs::read_to_string(&new).expect("written");
        assert!(fenced.contains(written), "{text}{fenced}");
    }
}

#[test]
fn a_fence_before_a_brace_is_told_in_its_line() {
    let s = Scratch::new();
    let text = "shared want[2], turn;\nthread p[2] {\n  loop { want[self] = 1; while want[1 - self] == 1 \
        { if turn != self { want[self] = 0; while turn != self { } want[self] = 1; } } c: skip; turn = 1 - self; \
        want[self] = 0; }\n}\nnever p[i]@c && p[j]@c;\n";
    let r = run(&["fences", &s.file("dekker.wtl", text)]);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    let places = r
        .out
        .lines()
        .filter(|l| l.contains("fence in line 3 after `"));
    assert_eq!(places.count(), 2, "{}", r.out);
}

/// What is said of a fence folds at the width of the page.
#[test]
fn reasons_fold_on_narrow_pages() {
    let s = Scratch::new();
    let missing = s.file("rounds.wtl", ROUNDS);
    let there = (ROUNDS.replace("        r = y;", "        fence;\n        r = y;"))
        .replace("    s = x;", "    fence;\n    s = x;");
    let there = s.file("there.wtl", there);
    for arguments in [&["fences", &missing][..], &["fences", &there, "--existing"]] {
        let r = ran(wattle().args(arguments).env("COLUMNS", "60").output());
        assert_eq!(r.code, 0, "{}{}", r.out, r.err);
        let reasons: Vec<&str> = r.out.lines().filter(|l| l.starts_with("     ")).collect();
        assert!(reasons.len() > 2, "{}", r.out);
        assert!(reasons.iter().all(|l| l.chars().count() <= 60), "{}", r.out);
    }
}

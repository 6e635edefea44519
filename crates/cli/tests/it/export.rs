//! `wattle show --as smt2` and `--as promela`: another tool says what `wattle check` says.
//!
//! Skipped with a printed line where `z3`, or `spin` and `gcc`, are not on the search path.

use crate::support::{Scratch, root, run};
use std::process::Command;
use wattle_model::print;
use wattle_random::{Loops, Shape, program};

fn example(name: &str) -> String {
    root().join("examples").join(name).display().to_string()
}

fn there(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok()
}

/// Programs with their own operators, types and faults: each is one that holds and one that does not.
const PAIRS: &[(&str, &str, &str)] = &[
    (
        "wrap",
        "shared x: u2; thread p { local r; r = x; x = r + 3; r = x; x = r + 2; }",
        "finally x == N;|1|2",
    ),
    (
        "signed",
        "shared x: i3 = 3; thread p { local r; r = x; x = r + 1; }",
        "finally x == N;|-4|4",
    ),
    (
        "division",
        "shared x = -7; thread p { local r, q; r = x; q = r / 2; x = q * 10 + r % 2; }",
        "finally x == N;|-31|-41",
    ),
    (
        "by-zero",
        "shared x = 1; thread p { local r; r = x; if r != N && 1 / (r - 1) == 1 { x = 2; } }",
        "|1|2",
    ),
    (
        "range",
        "shared x: 0..3 = 2; thread p { local r; r = x; x = r + N; }",
        "|1|2",
    ),
    (
        "index",
        "shared a[3], i = 2; thread p { local k; k = i; a[k + N] = 5; }",
        "|0|1",
    ),
    (
        "array",
        "shared a[3], i = 2; thread p { local k, r; k = i; a[k] = 5; a[k - 1] = 4; r = a[k]; a[0] = r; }",
        "finally a[0] == N;|5|4",
    ),
    (
        "bits",
        "shared x: 0..15 = 12; thread p { local r: 0..15; r = x; x = (r & 10) | (r ^ 15) | ((r >> 3) << 2); }",
        "finally x == N;|15|12",
    ),
    (
        "choice",
        "shared x: 0..3 = any; thread p { local r, s; r = any 1..2; s = x; x = s / 4 + r; }",
        "finally x <= N;|2|1",
    ),
    (
        "atomic",
        "shared x; thread p[2] { local r; atomic { r = x; x = r + 1; } }",
        "finally x == N;|2|1",
    ),
    (
        "torn",
        "shared x; thread p { atomic { x = 1; x = 2; } } thread q { local r; r = x; assert r != N; }",
        "|1|2",
    ),
    (
        "exchange",
        "shared l, x; thread p[2] { local r; while swap(l, 1) == 1 { } r = x; x = r + 1; l = 0; }",
        "finally x == N;|2|1",
    ),
    (
        "reachable",
        "shared x; thread p { x = 1; } thread q { x = 2; }",
        "reachable x == N;|2|3",
    ),
    (
        "blocked",
        "shared x; thread p { local r; r = x; assume r == 1; x = N; } thread q { x = 1; }",
        "never x == 3;|2|3",
    ),
    (
        "lazy",
        "shared x; thread p { local r; r = x; if r == N || 4 / r == 1 { x = 1; } }",
        "|0|1",
    ),
];

/// Files, whether each holds, and how it is shown.
fn programs(s: &Scratch) -> Vec<(String, bool, Vec<String>)> {
    let mut all = Vec::new();
    for (name, text, rest) in PAIRS {
        let mut rest = rest.split('|');
        let property = rest.next().unwrap_or("");
        for (n, holds) in rest.zip([true, false]) {
            let text = format!("{text} {property}").replace('N', n);
            let file = s.file(&format!("{name}-{holds}.wtl"), &text);
            let code = run(&["check", "-q", "-m", "sc", &file]).code;
            assert_eq!(code, i32::from(!holds), "{text}");
            all.push((file, holds, Vec::new()));
        }
    }
    for (name, tso) in [
        ("peterson.wtl", false),
        ("peterson-fenced.wtl", true),
        ("litmus-sb.wtl", false),
    ] {
        all.push((example(name), true, Vec::new()));
        all.push((
            example(name),
            tso,
            vec!["--reduce".into(), "tso,k=2".into()],
        ));
    }
    let shape = Shape {
        threads: 2,
        statements: 4,
        loops: Loops::None,
        ..Shape::default()
    };
    let mut seed = 0;
    let more = wattle_random::setting("WATTLE_EXPORTED_PROGRAMS", 12);
    let wanted = all.len() + more as usize;
    while all.len() < wanted {
        seed += 1;
        let program = program(seed, &shape);
        // The first property is written, and `check` asks them all.
        if program.properties.len() > 1 {
            continue;
        }
        let file = s.file(&format!("{seed}.wtl"), print::to_wtl(&program));
        let holds = match run(&["check", "-q", "-m", "sc", &file]).code {
            0 => true,
            1 => false,
            _ => continue,
        };
        let shown = run(&["show", &file, "--as", "smt2"]);
        if shown.code == 0 {
            all.push((file, holds, Vec::new()));
        }
    }
    all
}

fn shown(file: &str, form: &str, rest: &[String]) -> Result<String, String> {
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let r = run(&[&["show", file, "--as", form], rest.as_slice()].concat());
    match r.code {
        0 => Ok(r.out),
        _ => Err(r.err),
    }
}

#[test]
fn z3_says_the_same() {
    if !there("z3", "--version") {
        println!("skipped: `z3` (Debian's package of that name) is needed");
        return;
    }
    let s = Scratch::new();
    let (mut held, mut broken, mut open) = (0, 0, 0);
    for (file, holds, rest) in programs(&s) {
        let text = shown(&file, "smt2", &rest).expect("it is written");
        let wanted_first = text.contains("; sat: it is never reached");
        // Pending stores as variables take it far longer than they take us.
        if !rest.is_empty() {
            continue;
        }
        let path = s.file("clauses.smt2", &text);
        let out = Command::new("z3").args(["rlimit=40000000", &path]).output();
        let out = out.expect("it runs");
        let told = String::from_utf8_lossy(&out.stdout).trim().to_string();
        // Products and quotients of variables are beyond what it decides.
        if told == "unknown" {
            open += 1;
            continue;
        }
        let wanted = if holds != wanted_first {
            "sat"
        } else {
            "unsat"
        };
        assert_eq!(told, wanted, "{file} {rest:?}\n{text}");
        held += u32::from(holds);
        broken += u32::from(!holds);
    }
    println!(
        "z3 says the same of {held} programs that hold and {broken} that do not; it gives up on {open}"
    );
    assert!(open < 6, "{open}");
}

#[test]
fn spin_says_the_same() {
    if !there("spin", "-V") || !there("gcc", "--version") {
        println!("skipped: `spin` (Debian's package of that name) and `gcc` are needed");
        return;
    }
    let s = Scratch::new();
    let (mut held, mut broken, mut refused) = (0, 0, 0);
    for (file, holds, rest) in programs(&s) {
        let text = match shown(&file, "promela", &rest) {
            Ok(text) => text,
            Err(why) => {
                assert!(
                    why.contains("Promela") || why.contains("written down"),
                    "{why}"
                );
                refused += 1;
                continue;
            }
        };
        let path = s.file("model.pml", &text);
        let directory = std::path::Path::new(&path).parent().expect("a directory");
        let made = Command::new("spin")
            .current_dir(directory)
            .args(["-a", &path])
            .output();
        let made = made.expect("it runs");
        assert!(made.status.success(), "{text}\n{made:?}");
        let pan = s.path("pan");
        let mut gcc = Command::new("gcc");
        gcc.current_dir(directory)
            .args(["-w", "-O0", "-o", &pan, "pan.c"]);
        assert!(gcc.status().expect("it runs").success(), "{text}");
        let out = Command::new(&pan)
            .current_dir(directory)
            .arg("-m200000")
            .output();
        let told = String::from_utf8_lossy(&out.expect("it runs").stdout).into_owned();
        assert!(!told.contains("max search depth too small"), "{told}");
        assert!(!told.contains("too_large"), "{file}: {told}");
        let found = !told.contains("errors: 0");
        let reached = text.contains("reached: the property holds");
        assert_eq!(found, holds == reached, "{file} {rest:?}\n{told}\n{text}");
        held += u32::from(holds);
        broken += u32::from(!holds);
    }
    println!(
        "Spin says the same of {held} programs that hold and {broken} that do not; {refused} are not written"
    );
    assert!(refused < 8, "{refused}");
}

#[test]
fn what_has_no_words_is_refused() {
    let s = Scratch::new();
    let open = example("families/szymanski.wtl");
    for form in ["promela", "smt2"] {
        let r = run(&["show", &open, "--as", form]);
        assert_eq!(r.code, 2);
        assert!(r.err.contains("--threads p=2"), "{}", r.err);
        assert_eq!(
            run(&["show", &open, "--as", form, "--threads", "p=2"]).code,
            0
        );
        let json = run(&["show", &example("peterson.wtl"), "--as", form, "--json"]);
        assert!(json.out.contains("\"text\""), "{}", json.out);
        let r = run(&[
            "show",
            &example("peterson.wtl"),
            "--as",
            form,
            "--reduce",
            "tso,k=1",
        ]);
        assert!(r.out.contains("TSO (buffers are variables"), "{}", r.out);
        let r = run(&["show", &example("liveness/spin.wtl"), "--as", form]);
        assert!(r.code == 0 || r.err.contains("whole runs"), "{}", r.err);
    }
    let wide = s.file(
        "wide.wtl",
        "shared x, y;\nthread p {\n    local r, s;\n    r = x;\n    s = y;\n    x = r & s;\n}\nnever x == 7;\n",
    );
    let r = run(&["show", &wide, "--as", "smt2"]);
    assert_eq!(r.code, 2);
    assert!(
        r.err.contains("wide.wtl:6:") && r.err.contains("no words"),
        "{}",
        r.err
    );
    let large = s.file(
        "large.wtl",
        "shared x;\nthread p {\n    local r;\n    r = x;\n    x = r * r * r;\n}\nnever x == 7;\n",
    );
    let r = run(&["show", &large, "--as", "promela"]);
    assert_eq!(r.code, 2);
    assert!(
        r.err.contains("large.wtl:5:") && r.err.contains("32 bits"),
        "{}",
        r.err
    );
    assert_eq!(run(&["show", &large, "--as", "smt2"]).code, 0);
}

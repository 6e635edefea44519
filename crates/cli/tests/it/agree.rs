//! Small programs that every engine must answer alike: lock regions, atomic blocks, swaps, a thread's own
//! pending stores, store fences, several properties, empty threads.

use wattle::{Language, MemoryModel, Options, Run, Verdict};
use wattle_evidence::Progress;

/// The answers by model (SC, TSO, PSO), one letter per property: holds, violated, open.
const PROGRAMS: &[(&str, [&str; 3], &str)] = &[
    (
        "lockfwd",
        ["h", "h", "h"],
        "shared x, y; \
         thread p { local a, b; x = 1; lock; a = x; y = 1; b = y; unlock; } \
         thread q { local c, d; c = y; d = x; } \
         finally !(q.c == 1 && q.d == 0);",
    ),
    (
        "locksb",
        ["h", "v", "v"],
        "shared x, y; \
         thread p { local a; lock; x = 1; a = y; unlock; } \
         thread q { local b; y = 1; b = x; } \
         finally !(p.a == 0 && q.b == 0);",
    ),
    (
        "locksb2",
        ["h", "h", "h"],
        "shared x, y; \
         thread p { local a; lock; x = 1; unlock; a = y; } \
         thread q { local b; lock; y = 1; unlock; b = x; } \
         finally !(p.a == 0 && q.b == 0);",
    ),
    (
        "swap",
        ["h", "v", "v"],
        "shared x, y; \
         thread p { local a, o; o = swap(x, 1); a = y; } \
         thread q { local b; y = 1; b = x; } \
         finally !(p.a == 0 && q.b == 0);",
    ),
    (
        "ownfwd",
        ["h", "v", "v"],
        "shared x, y; \
         thread p { local a, b; x = 1; a = x; b = y; } \
         thread q { local c, d; y = 1; c = y; d = x; } \
         finally !(p.a == 1 && p.b == 0 && q.c == 1 && q.d == 0);",
    ),
    (
        "sf",
        ["h", "h", "h"],
        "shared x, y; \
         thread p { x = 1; fence store; y = 1; } \
         thread q { local a, b; a = y; b = x; } \
         finally !(q.a == 1 && q.b == 0);",
    ),
    (
        "sf2",
        ["hhv", "hhv", "hhv"],
        "shared x, y, z; \
         thread p { x = 1; z = 1; fence store; y = 1; z = 2; } \
         thread q { local a, b, c; a = y; b = x; c = z; } \
         finally !(q.a == 1 && q.b == 0); \
         finally !(q.a == 1 && q.c == 0); \
         finally !(q.c == 2 && q.b == 0);",
    ),
    (
        "empty",
        ["hv", "hv", "hv"],
        "shared x; \
         thread p { } \
         thread q { local a; a = x; } \
         finally q.a == 0; \
         reachable q.a == 1;",
    ),
    (
        "atomicsb",
        ["h", "h", "h"],
        "shared x, y; \
         thread p { local a; atomic { x = 1; } a = y; } \
         thread q { local b; y = 1; atomic { b = x; } } \
         finally !(p.a == 0 && q.b == 0);",
    ),
    (
        "atomicmid",
        ["hh", "hh", "hh"],
        "shared x, y; \
         thread p { atomic { x = 1; y = 1; } } \
         thread q { local a, b; a = x; b = y; } \
         never x == 1 && y == 0; \
         finally !(q.a == 1 && q.b == 0);",
    ),
    (
        "lockwait",
        ["vv", "vv", "vv"],
        "shared x, y; \
         thread p { local a; x = 1; lock; y = 1; unlock; a = y; } \
         thread q { local b; lock; b = x; b = x; unlock; y = 2; } \
         finally !(q.b == 0 && y == 1 && x == 1); \
         finally p.a == 1;",
    ),
    (
        "lockhides",
        ["hv", "hv", "hv"],
        "shared x: 0..2, y; \
         thread p { lock; x = 1; y = 1; x = 2; unlock; } \
         thread q { local r: 0..2; y = 0; r = x; } \
         finally q.r != 1; \
         never x == 1;",
    ),
    (
        "choose",
        ["vv", "vv", "vv"],
        "shared x: 0..3 = any, y; \
         thread p { local a; choose { x = 1; } or { y = 1; fence; } a = x + y; } \
         thread q { local b; b = any 0..3; x = b; } \
         finally p.a <= 3; \
         finally !(p.a == 4);",
    ),
    (
        "fencepast",
        ["h", "v", "v"],
        "shared x, y, z; \
         thread p { local a; x = 1; z = 1; fence; a = y; } \
         thread q { local b; y = 1; b = z; b = x; } \
         finally !(p.a == 0 && q.b == 0);",
    ),
    (
        "assert",
        ["v", "v", "v"],
        "shared x, y; \
         thread p { local a; x = 1; a = y; assert a == 0 || a == 1; } \
         thread q { local b; y = 1; b = x; assert b == 1; }",
    ),
    (
        "idx",
        ["hv", "hv", "hv"],
        "shared a[2], i: 0..1; \
         thread p { local r; i = 1; r = i; a[r] = 1; } \
         thread q { local s, t; s = i; t = a[s]; i = 0; } \
         finally !(q.s == 0 && q.t == 1); \
         finally a[0] == 0 && a[1] == 1;",
    ),
];

/// Polls after which an engine gives up: a deterministic stand-in for a time limit.
const MOST: usize = 60;

fn letters(text: &str, engine: Option<&str>, model: MemoryModel) -> String {
    let program = wattle::parse(Language::Wtl, text).program;
    let program = program.unwrap_or_else(|| panic!("does not parse: {text}"));
    let options = Options {
        models: vec![model],
        engine: engine.map(String::from),
        explain: false,
        ..Options::default()
    };
    let enough = std::sync::atomic::AtomicBool::new(false);
    let polls = std::sync::atomic::AtomicUsize::new(0);
    let sink = |_: &'static str, _: Progress| {
        if polls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > MOST {
            enough.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let run = Run {
        cancel: Some(&enough),
        sink: Some(&sink),
    };
    let checked = wattle::check_with(&program, &options, &run).expect("can be checked");
    let results = checked.results.iter().map(|r| match r {
        Ok(finding) => match finding.judged.verdict {
            Verdict::Holds { .. } => 'h',
            Verdict::Violated { .. } => 'v',
            Verdict::HoldsIf { .. } | Verdict::Bounded { .. } | Verdict::Undecided { .. } => 'o',
        },
        Err(unsound) => panic!("{text}: {unsound}"),
    });
    results.collect()
}

#[test]
fn no_engine_contradicts_another() {
    let mut decided = 0;
    for (name, answers, text) in PROGRAMS {
        for (model, answer) in MemoryModel::ALL.into_iter().zip(answers) {
            let engines = wattle::plan::names().into_iter().map(Some);
            for engine in engines.chain([None]) {
                let got = letters(text, engine, model);
                assert_eq!(got.len(), answer.len(), "{name} on {model}");
                for (g, a) in got.chars().zip(answer.chars()) {
                    let agrees = g == 'o' || a == 'o' || g == a;
                    assert!(
                        agrees,
                        "{name} on {model} by {engine:?}: {got}, not {answer}"
                    );
                    decided += usize::from(g != 'o');
                }
            }
        }
    }
    assert!(decided > 250, "only {decided} answers");
}

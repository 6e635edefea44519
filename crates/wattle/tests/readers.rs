//! Any number of threads that only read: what is told of them is what instances with one, two and three of them say,
//! proofs pass the audit, and none does for a family that does more than read.

use std::fmt::Write;
use wattle::plan;
use wattle::{MemoryModel, Options};
use wattle_auditor::{Solvers, audit_open};
use wattle_evidence::{AnyNumber, Certificate, Control, OpenTask, Proof, Task, Verdict};
use wattle_model::{Counts, Program};
use wattle_random::Rng;

const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

fn program(text: &str) -> Program {
    let program = wattle_syntax::wtl::parse(text).program;
    program.unwrap_or_else(|| panic!("{text}"))
}

fn asked(program: &Program, model: MemoryModel, question: Option<usize>) -> OpenTask<'_> {
    OpenTask {
        of: AnyNumber::Program(program),
        model,
        question,
        deadlock: false,
    }
}

/// One or two that write, and any number of readers.
fn text(seed: u64) -> String {
    let mut random = Rng::new(seed);
    let mut out = String::from("shared a: 0..2, b: 0..2;\n");
    for name in ["w", "v"].iter().take(1 + random.below(2)) {
        let _ = writeln!(out, "thread {name} {{\n  local r: 0..2;");
        for _ in 0..2 + random.below(2) {
            let (cell, value) = (["a", "b"][random.below(2)], random.below(3));
            let _ = match random.below(6) {
                0..=2 => writeln!(out, "  {cell} = {value};"),
                3 => writeln!(out, "  r = {cell};"),
                4 => writeln!(out, "  lock;\n  {cell} = {value};\n  unlock;"),
                _ => writeln!(out, "  atomic {{ r = {cell}; {cell} = {value}; }}"),
            };
        }
        let _ = writeln!(out, "}}");
    }
    let _ = writeln!(out, "thread p[*] {{\n  local x: 0..2, y: 0..2;");
    for _ in 0..2 + random.below(2) {
        let (cell, local) = (["a", "b"][random.below(2)], ["x", "y"][random.below(2)]);
        let _ = match random.below(7) {
            0..=2 => writeln!(out, "  {local} = {cell};"),
            3 => writeln!(out, "  atomic {{ x = {cell}; y = {cell}; }}"),
            4 => writeln!(out, "  assume {local} != {};", random.below(3)),
            5 => writeln!(out, "  assert {local} < 2;"),
            _ => writeln!(out, "  fence;"),
        };
    }
    let _ = writeln!(out, "  end: skip;\n}}");
    let mut fact = |i: &str| match random.below(3) {
        0 => format!("p[{i}].x == {}", random.below(3)),
        1 => format!("p[{i}].y > p[{i}].x"),
        _ => format!("p[{i}]@end && b == {}", random.below(3)),
    };
    let _ = writeln!(out, "never {};", fact("i"));
    let _ = writeln!(out, "never {} && {};", fact("i"), fact("j"));
    let _ = writeln!(out, "always !({} && p[j]@end);", fact("i"));
    out
}

/// Whether an instance with so many readers breaks it.
fn broken(program: &Program, n: u32, model: MemoryModel, question: usize) -> bool {
    let instance = program.instantiate(&Counts([("p".to_string(), n)].into()));
    let instance = instance.expect("an instance");
    let task = Task {
        instance: &instance,
        model,
        question: Some(question),
        deadlock: false,
    };
    let options = Options {
        engine: Some("explicit".into()),
        ..Options::default()
    };
    let outcome = plan::run(&task, &options, &Control::unlimited()).expect("sound");
    match outcome.judged.verdict {
        Verdict::Holds { .. } => false,
        Verdict::Violated { .. } => true,
        other => panic!("finite and small: {other:?}"),
    }
}

#[test]
fn a_few_say_what_any_number_do() {
    let control = Control::unlimited();
    let (mut proved, mut refuted) = (0, 0);
    for seed in 0..60 {
        let text = text(seed);
        let program = program(&text);
        let stores = program_that_stores(&text);
        for (model, question) in MODELS.iter().flat_map(|m| (0..3).map(move |q| (*m, q))) {
            let task = asked(&program, model, Some(question));
            let outcome = plan::run(&task, &Options::default(), &control).expect("sound");
            let really = (1..=3).any(|n| broken(&program, n, model, question));
            match &outcome.judged.verdict {
                Verdict::Violated { .. } => {
                    assert!(really, "{model} {question}\n{text}");
                    refuted += 1;
                }
                Verdict::Holds {
                    proof: Proof::Certificate(certificate),
                    ..
                } => {
                    assert!(!really, "{model} {question}\n{text}");
                    assert!(matches!(certificate, Certificate::Readers(_)));
                    proved += 1;
                    let own = Solvers::own();
                    audit_open(&own, &task, certificate, None, &control).expect("it is audited");
                    let other = asked(&stores, model, Some(question));
                    let refused = audit_open(&own, &other, certificate, None, &control);
                    assert!(refused.is_err(), "{text}");
                    let deadlock = OpenTask {
                        deadlock: true,
                        ..task
                    };
                    let refused = audit_open(&own, &deadlock, certificate, None, &control);
                    assert!(refused.is_err(), "{text}");
                }
                other => panic!("{other:?}\n{text}"),
            }
        }
    }
    assert!(proved > 50 && refuted > 50, "{proved} {refuted}");
}

/// The same program with readers that write where they end; nobody sees it in the properties.
fn program_that_stores(text: &str) -> Program {
    let stores = text.replace("  end: skip;\n}", "  end: skip;\n  a = 0;\n}");
    assert_ne!(text, stores);
    program(&stores)
}

/// Numbers without a bound, and buffers without one.
#[test]
fn any_number_read_what_one_writes_for_ever() {
    let text = "shared data, flag;
thread w { local n; loop { n = n + 1; data = n; flag = n; } }
thread r[*] { local f, d; loop { f = flag; d = data; assert d >= f; } }";
    let program = program(text);
    for (model, holds) in [
        (MemoryModel::Sc, true),
        (MemoryModel::Tso, true),
        (MemoryModel::Pso, false),
    ] {
        let task = asked(&program, model, None);
        let outcome = plan::run(&task, &Options::default(), &Control::unlimited());
        let judged = outcome.expect("sound").judged;
        match judged.verdict {
            Verdict::Holds { .. } => assert!(holds && judged.unchecked.is_none()),
            Verdict::Violated { .. } => assert!(!holds),
            other => panic!("{model}: {other:?}"),
        }
    }
}

//! What `wattle show --reduce` and `--as boolean-program` print, as a person reads it.
//! `UPDATE_EXPECT=1` rewrites the texts.

use expect_test::{ExpectFile, expect_file};
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_extrapolate::reduction::reduce;
use wattle_extrapolate::{Extrapolate, Method, PureOutcome};
use wattle_memory::MemoryModel::{self, Pso, Tso};
use wattle_model::print::to_wtl;
use wattle_search::Explicit;

const TEXT: &str = "
    shared x: int, y: int;
    thread p {
        local r: int;
        x = 1;
        r = y;
    }
    thread q {
        y = 1;
        fence;
    }
    never x > 1;
    predicates { x <= 1; }";

fn reduced(model: MemoryModel, k: usize, expected: &ExpectFile) {
    let program = wattle_syntax::wtl::parse(TEXT).program.expect("a program");
    let instance = program.instance().expect("an instance");
    let reduced = reduce(&program, &instance, model, k).expect("a reduced program");
    expected.assert_eq(&to_wtl(&reduced));
}

fn abstracted(model: MemoryModel, expected: &ExpectFile) {
    let program = wattle_syntax::wtl::parse(TEXT).program.expect("a program");
    let instance = program.instance().expect("an instance");
    let task = Task {
        instance: &instance,
        model,
        question: Some(0),
        deadlock: false,
    };
    let text = Extrapolate::default().boolean_program(&task, 1, &Control::unlimited());
    expected.assert_eq(&text.expect("a boolean program"));
}

#[test]
fn reduced_programs() {
    reduced(Tso, 1, &expect_file!["printed/reduced-tso.wtl"]);
    reduced(Pso, 2, &expect_file!["printed/reduced-pso.wtl"]);
}

#[test]
fn boolean_programs() {
    abstracted(Tso, &expect_file!["printed/boolean-tso.txt"]);
    abstracted(Pso, &expect_file!["printed/boolean-pso.txt"]);
}

/// What our own checker says of the printed program: whether it reaches its bad state.
fn reaches(boolean: &str) -> bool {
    let parsed = wattle_syntax::boolean::parse(boolean);
    let program = parsed.program.unwrap_or_else(|| {
        panic!("{:?}\n{boolean}", parsed.diagnostics);
    });
    let instance = program.instance().expect("an instance");
    let task = Task {
        instance: &instance,
        model: MemoryModel::Sc,
        question: Some(0),
        deadlock: false,
    };
    match Explicit::default().run(&task, &Control::unlimited()) {
        Answer::Reached { .. } => true,
        Answer::Unreachable { .. } => false,
        other => panic!("{other:?}\n{boolean}"),
    }
}

/// Printed programs do what the engine says of the programs they were made of: locks, atomic blocks,
/// fences, final states.
#[test]
fn printed_boolean_programs_run() {
    let texts = [
        include_str!("../../../examples/soundness/boolean-program-of-lock.wtl"),
        include_str!("../../../examples/soundness/lock-hides-inside.wtl"),
        "shared x: int, y: int; thread p { x = 1; y = 1; } \
         thread q { local r: int, s: int; r = y; s = x; } finally !(q.r == 1 && q.s == 0);",
        "shared x: int, y: int; thread p { local r: int; x = 1; fence; r = y; end: skip; } \
         thread q { local r: int; y = 1; fence; r = x; end: skip; } \
         never p@end && q@end && p.r == 0 && q.r == 0;",
        "shared x: int, y: int; thread p { local r: int; atomic { x = 1; } r = y; end: skip; } \
         thread q { local r: int; y = 1; r = x; end: skip; } \
         never p@end && q@end && p.r == 0 && q.r == 0;",
        "shared x: int, y: int; thread p { atomic { x = 1; y = 2; y = 1; } } \
         thread q { local r: int; r = y; end: skip; } never q.r == 2;",
    ];
    let mut seen = [0, 0];
    for text in texts {
        let program = wattle_syntax::wtl::parse(text).program.expect("a program");
        let instance = program.instance().expect("an instance");
        for model in [Tso, Pso] {
            let task = Task {
                instance: &instance,
                model,
                question: Some(0),
                deadlock: false,
            };
            let control = Control::unlimited();
            let reached = match Extrapolate::default().run(&task, &control) {
                Answer::Reached { .. } => true,
                Answer::Unreachable { .. } => false,
                other => panic!("{other:?}\n{text}"),
            };
            let printed = Extrapolate::default().boolean_program(&task, 3, &control);
            let printed = printed.expect("a boolean program");
            assert_eq!(reaches(&printed), reached, "{model}\n{text}\n{printed}");
            seen[usize::from(reached)] += 1;
        }
    }
    assert!(seen[0] > 2 && seen[1] > 2, "{seen:?}");
}

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../examples/bitchaku/", $name, ".bit"))
    };
}

/// A program of dan-2013 under the model it is fenced for, and what is done with its text.
fn of_the_paper<T>(text: &str, model: MemoryModel, then: impl FnOnce(&Task<'_>) -> T) -> T {
    let program = wattle_syntax::bitchaku::parse(text).program;
    let instance = program.expect("a program").instance().expect("an instance");
    then(&Task {
        instance: &instance,
        model,
        question: Some(0),
        deadlock: false,
    })
}

/// The boolean programs that prove the seven programs of dan-2013, printed and read, are proved by the explicit
/// search.
#[test]
fn the_seven_programs_of_the_paper() {
    let programs = [
        ("Dekker", Tso, example!("dekker")),
        ("Dekker", Pso, example!("dekker")),
        ("Peterson", Tso, example!("peterson")),
        ("Peterson", Pso, example!("peterson-pso")),
        ("ABP", Tso, example!("abp")),
        ("ABP", Pso, example!("abp")),
        ("Szymanski", Tso, example!("szymanski")),
        ("Szymanski", Pso, example!("szymanski")),
        ("Queue", Tso, example!("queue")),
        ("Queue", Pso, example!("queue-pso")),
        ("Bakery", Tso, example!("bakery")),
        ("Bakery", Pso, example!("bakery-pso")),
        ("Ticket", Tso, example!("ticket")),
        ("Ticket", Pso, example!("ticket")),
    ];
    for (name, model, text) in programs {
        let printed = of_the_paper(text, model, |task| {
            Extrapolate::default().proving_program(task, &Control::unlimited())
        });
        let printed = printed.unwrap_or_else(|why| panic!("{name} {model}: {why:?}"));
        assert!(!reaches(&printed), "{name} {model}\n{printed}");
    }
}

/// What is printed with each extrapolation and each length of buffers says what the engine says of that very
/// boolean program: no more entries than asked for, although paths could fill more.
#[test]
fn every_extrapolation_and_length() {
    let programs = [
        ("Dekker", Tso, 3, example!("dekker")),
        ("Dekker", Pso, 3, example!("dekker")),
        ("Peterson", Tso, 3, example!("peterson")),
        ("Peterson", Pso, 3, example!("peterson-pso")),
        ("ABP", Tso, 2, example!("abp")),
        ("ABP", Pso, 2, example!("abp")),
        ("Szymanski", Tso, 1, example!("szymanski")),
        ("Szymanski", Pso, 1, example!("szymanski")),
        ("Queue", Pso, 1, example!("queue-pso")),
        ("Bakery", Tso, 1, example!("bakery")),
        ("Ticket", Tso, 1, example!("ticket")),
    ];
    let mut seen = [0, 0];
    let mut short = Vec::new();
    for (name, model, longest, text) in programs {
        for method in [Method::None, Method::Predicates, Method::Cubes] {
            for k in 1..=longest {
                of_the_paper(text, model, |task| {
                    let control = Control::unlimited();
                    let engine = Extrapolate {
                        method,
                        ..Extrapolate::default()
                    };
                    let printed = engine.boolean_program(task, k, &control);
                    let printed = printed.expect("a boolean program");
                    let pure = engine.pure(task, k, &control).expect("a check");
                    let about = format!("{name} {model} {method:?} k={k}: {:?}", pure.outcome);
                    let proved = pure.outcome == PureOutcome::Proved;
                    assert_eq!(reaches(&printed), !proved, "{about}\n{printed}");
                    seen[usize::from(proved)] += 1;
                    if pure.outcome == PureOutcome::Overflow {
                        assert!(printed.contains("abort(\"overflow\")"), "{about}");
                        short.push((name, k));
                    }
                });
            }
        }
    }
    assert!(seen[0] > 10 && seen[1] > 10, "{seen:?}");
    // Three stores from one fence to the next.
    assert!(short.contains(&("Peterson", 1)) && short.contains(&("Peterson", 2)));
    assert!(!short.contains(&("Peterson", 3)), "{short:?}");
}

/// With a fence too few nothing proves them, and what is printed of them reaches its bad state.
#[test]
fn the_programs_with_a_fence_too_few() {
    let programs = [
        ("Dekker", Tso, example!("dekker-broken")),
        ("Peterson", Tso, example!("peterson-broken")),
        ("Queue", Pso, example!("queue-pso-broken")),
        ("Bakery", Tso, example!("bakery-broken")),
        ("Ticket", Tso, example!("ticket-broken")),
    ];
    for (name, model, text) in programs {
        of_the_paper(text, model, |task| {
            let control = Control::unlimited();
            assert!(
                Extrapolate::default()
                    .proving_program(task, &control)
                    .is_err()
            );
            // Where SC is violated too there is no proof to abstract by.
            if let Ok(printed) = Extrapolate::default().boolean_program(task, 2, &control) {
                assert!(reaches(&printed), "{name} {model}\n{printed}");
            }
        });
    }
}

/// The example is what is printed.
#[test]
fn the_printed_example() {
    let printed = of_the_paper(example!("peterson-pso"), Pso, |task| {
        Extrapolate::default().proving_program(task, &Control::unlimited())
    });
    let kept = include_str!("../../../examples/boolean/peterson-pso.bp");
    let (_, kept) = kept.split_once("\n\n").expect("a header");
    assert_eq!(printed.as_deref(), Ok(kept));
}

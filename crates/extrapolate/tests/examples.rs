//! The programs of dan-2013, under every memory model: all evidence is checked.

use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_extrapolate::{Extrapolate, Method};
use wattle_memory::MemoryModel::{self, Pso, Sc, Tso};
use wattle_model::Instance;

fn example(name: &str) -> Instance {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(root.join(name)).unwrap();
    let program = match name.ends_with(".bit") {
        true => wattle_syntax::bitchaku::parse(&text).program,
        false => wattle_syntax::wtl::parse(&text).program,
    };
    program.unwrap().instance().unwrap()
}

/// `Some(true)` if something bad is reachable.
fn decide(engine: &Extrapolate, instance: &Instance, model: MemoryModel) -> Option<bool> {
    let task = Task {
        instance,
        model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    };
    match engine.run(&task, &Control::unlimited()) {
        Answer::Reached { trace, .. } => {
            trace.check(&task).unwrap();
            Some(true)
        }
        Answer::Unreachable { certificate, .. } => {
            audit(&task, &certificate, &Control::unlimited()).unwrap();
            Some(false)
        }
        Answer::Bounded { .. } | Answer::Undecided { .. } => None,
    }
}

#[test]
fn the_seven_programs_hold() {
    for (tso, pso) in [
        ("dekker", "dekker"),
        ("peterson", "peterson-pso"),
        ("abp", "abp"),
        ("szymanski", "szymanski"),
        ("queue", "queue-pso"),
        ("bakery", "bakery-pso"),
        ("ticket", "ticket"),
    ] {
        for (name, model) in [(tso, Sc), (tso, Tso), (pso, Pso)] {
            let instance = example(&format!("bitchaku/{name}.bit"));
            let engine = Extrapolate::default();
            assert_eq!(
                decide(&engine, &instance, model),
                Some(false),
                "{name} {model}"
            );
        }
    }
}

#[test]
fn one_fence_short_is_violated() {
    for name in ["dekker", "peterson", "szymanski", "bakery", "ticket"] {
        let instance = example(&format!("bitchaku/{name}-broken.bit"));
        let engine = Extrapolate::default();
        assert_eq!(decide(&engine, &instance, Tso), Some(true), "{name}");
    }
}

/// Figs. 3 and 10: an abstraction that ignores buffers would prove this. Figs. 8 and 13 hold.
/// The last store of a register that is dead afterwards changes what predicates over both say.
#[test]
fn predicates_that_died_are_not_asked() {
    let instance = example("barrier.wtl");
    for model in MemoryModel::ALL {
        let found = decide(&Extrapolate::default(), &instance, model);
        assert_eq!(found, Some(false), "{model}");
    }
}

#[test]
fn the_figures() {
    for model in [Tso, Pso] {
        let engine = Extrapolate::default();
        let unsound = example("bitchaku/unsound.bit");
        assert_eq!(decide(&engine, &unsound, model), Some(true), "{model}");
        let coherence = example("bitchaku/coherence.bit");
        assert_eq!(decide(&engine, &coherence, model), Some(false), "{model}");
    }
}

#[test]
fn predicates_alone_suffice_for_the_finite_ones() {
    for name in ["dekker", "peterson", "abp", "szymanski", "ticket"] {
        let engine = Extrapolate {
            method: Method::Predicates,
            fall_back: false,
            ..Extrapolate::default()
        };
        let instance = example(&format!("bitchaku/{name}.bit"));
        assert_eq!(decide(&engine, &instance, Tso), Some(false), "{name}");
    }
}

/// dan-2013, Table 2: solver calls under cube extrapolation, in thousands.
const CALLS: [(&str, MemoryModel, u64); 6] = [
    ("queue", Tso, 163),
    ("queue-pso", Pso, 98),
    ("bakery", Tso, 7048),
    ("bakery-pso", Pso, 9018),
    ("ticket", Tso, 6941),
    ("ticket", Pso, 15644),
];

/// All calls count: those for the program that proves it, for every program on the way to it, and for
/// leaving predicates out.
#[test]
fn the_solver_is_asked_fifty_times_less_than_in_the_paper() {
    for (name, model, paper) in CALLS {
        let instance = example(&format!("bitchaku/{name}.bit"));
        let task = Task {
            instance: &instance,
            model,
            question: (!instance.questions.is_empty()).then_some(0),
            deadlock: false,
        };
        let engine = Extrapolate {
            fall_back: false,
            ..Extrapolate::default()
        };
        let (answer, stages) = engine.explain(&task, &Control::unlimited());
        assert!(
            matches!(answer, Answer::Unreachable { .. }),
            "{name} {model}"
        );
        let last = stages.last().expect("a boolean program");
        let (calls, all) = (last.built.solver_calls, last.calls);
        println!("{name} {model}: {calls} calls ({all} in all), the paper {paper},000");
        assert!(all * 50 <= paper * 1000, "{name} {model}: {all}");
    }
}

/// The predicates of SC without their buffered versions say nothing of what is pending.
#[test]
fn without_extrapolation_the_ticket_lock_is_not_proved() {
    let engine = Extrapolate {
        method: Method::None,
        fall_back: false,
        ..Extrapolate::default()
    };
    let instance = example("bitchaku/ticket.bit");
    assert_eq!(decide(&engine, &instance, Tso), None);
}

/// Four entries are no proof; blurred buffers of any length are.
#[test]
fn buffers_without_a_bound() {
    let text = "shared x: int, y: int; thread p { local r: int; loop { x = 1; } } \
                thread q { local s: int; s = x; assert s <= 1; }";
    let program = wattle_syntax::wtl::parse(text).program.unwrap();
    let instance = program.instance().unwrap();
    let exact = Extrapolate {
        fall_back: false,
        ..Extrapolate::default()
    };
    assert_eq!(decide(&exact, &instance, Sc), Some(false));
    for model in [Tso, Pso] {
        assert_eq!(decide(&exact, &instance, model), None);
        assert_eq!(
            decide(&Extrapolate::default(), &instance, model),
            Some(false)
        );
    }
}

/// A loop that stores but never fills its buffer, which only a predicate about the buffer tells.
#[test]
fn buffers_that_no_run_fills() {
    let text = "shared x: int, y: int; \
                thread p { local r: int, n: int; while n == 0 { x = 1; r = x; if r == 1 { n = 1; } } y = 1; } \
                thread q { local s: int; s = y; assert s <= 1; }";
    let program = wattle_syntax::wtl::parse(text).program.unwrap();
    let instance = program.instance().unwrap();
    let exact = Extrapolate {
        fall_back: false,
        ..Extrapolate::default()
    };
    for model in [Tso, Pso] {
        assert_eq!(decide(&exact, &instance, model), Some(false), "{model}");
    }
}

//! `cegar` against `explicit` on random programs with small ranges, under all three models: every
//! run is replayed, every certificate audited.

use wattle_evidence::{Answer, Control, Engine, Task, audit};
use wattle_memory::MemoryModel;
use wattle_predicates::Cegar;
use wattle_random::{Loops, Shape};
use wattle_search::Explicit;

/// Set `WATTLE_SEED` to try other programs, `WATTLE_PROGRAMS` to try more.
fn setting(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok().and_then(|v| v.parse().ok());
    given.unwrap_or(default)
}

fn shape(n: u64) -> Shape {
    Shape {
        threads: 2,
        statements: if n.is_multiple_of(3) { 4 } else { 3 },
        registers: 2,
        greatest: 2,
        wraps: false,
        faults: n.is_multiple_of(4),
        loops: match n % 5 {
            0 | 2 => Loops::Any,
            1 => Loops::Fenced,
            _ => Loops::None,
        },
        ..Shape::default()
    }
}

/// `Some(true)` if something bad is reachable.
fn decided(task: &Task<'_>, answer: &Answer, what: &dyn Fn() -> String) -> Option<bool> {
    match answer {
        Answer::Reached { trace, .. } => {
            if let Err(e) = trace.check(task) {
                panic!("{}: the trace does not replay: {e}", what());
            }
            Some(true)
        }
        Answer::Unreachable { certificate, .. } => {
            if let Err(e) = audit::audit(task, certificate, &Control::unlimited()) {
                panic!("{}: the certificate does not check: {e}", what());
            }
            Some(false)
        }
        Answer::Bounded { .. } | Answer::Undecided { .. } => None,
    }
}

#[test]
fn agrees_with_explicit_on_random_programs() {
    let seed = setting("WATTLE_SEED", 1);
    let programs = setting("WATTLE_PROGRAMS", 5_000);
    println!("seed {seed}, {programs} programs, three models");
    // By the engine's own account, the same on every machine.
    let control = Control::unlimited().with_memory(Some(4 << 20));
    let (mut both, mut reached, mut refused, mut open) = (0, 0, 0, 0);
    for n in 0..programs {
        let program = wattle_random::program(seed.wrapping_mul(1_000_003) + n, &shape(n));
        let Ok(instance) = program.instance() else {
            continue;
        };
        // Buffers are blurred as soon as they can hold two stores, the oldest or the newest exact.
        let engine = Cegar {
            most_entries: 2,
            most_exact: if n.is_multiple_of(2) { 1 } else { 4 },
            most_rounds: 60,
            hunt: 0,
            newest: n.is_multiple_of(4),
        };
        for model in MemoryModel::ALL {
            let task = Task {
                instance: &instance,
                model,
                question: (!instance.questions.is_empty()).then_some(0),
                deadlock: false,
            };
            if engine.accepts(&task).is_err() {
                refused += 1;
                continue;
            }
            let what = || {
                format!(
                    "seed {seed}, program {n}, {model}\n{}",
                    wattle_model::print::to_wtl(&program)
                )
            };
            let mine = decided(&task, &engine.run(&task, &control), &what);
            let theirs = match Explicit::default().run(&task, &control) {
                Answer::Reached { .. } => Some(true),
                Answer::Unreachable { .. } => Some(false),
                _ => None,
            };
            match (mine, theirs) {
                (Some(a), Some(b)) => {
                    assert_eq!(a, b, "cegar and explicit disagree: {}", what());
                    both += 1;
                    reached += u64::from(a);
                }
                _ => open += 1,
            }
        }
    }
    println!("{both} decided by both ({reached} reached), {refused} refused, {open} open");
    assert!(both > programs, "too few are decided: {both}");
}

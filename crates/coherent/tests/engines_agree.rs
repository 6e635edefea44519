//! Engines against each other on random programs: whoever decides, decides the same; every trace
//! replays, every certificate audits.
//!
//! Set `WATTLE_SEED` to try other programs, `WATTLE_PROGRAMS` to try more.

use wattle_auditor::audit;
use wattle_coherent::Coherent;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_model::Program;
use wattle_random::{Loops, Shape, trial};
use wattle_robust::Robust;
use wattle_search::Explicit;
use wattle_wsts::{Exact, Multiset};

fn engines() -> Vec<Box<dyn Engine>> {
    vec![
        Box::new(Explicit::default()),
        Box::new(Robust::default()),
        Box::new(Coherent::OldestK),
        Box::new(Coherent::NewestK),
        Box::new(Exact),
        Box::new(Multiset),
    ]
}

/// What an engine says for sure: whether something bad can be reached. Evidence that does not check
/// is an error.
fn decision(engine: &dyn Engine, task: &Task<'_>, audits: bool) -> Result<Option<bool>, String> {
    // The engines' own accounts of memory are the same on every machine; time is not.
    let control = Control::unlimited().with_memory(Some(1 << 20));
    if engine.accepts(task).is_err() {
        return Ok(None);
    }
    let answer = engine.run(task, &control);
    let settled = answer.settles(task);
    match answer {
        Answer::Reached { trace, .. } => match trace.check(task) {
            Ok(_) => Ok(settled),
            Err(e) => Err(format!(
                "{}: the trace does not replay: {e:?}",
                engine.name()
            )),
        },
        Answer::Unreachable { certificate, .. } if audits => {
            use wattle_auditor::AuditError::{Refused, Stopped};
            // Where a reduction made an infinite space finite, the auditor cannot follow.
            let budget = Control::unlimited().with_memory(Some(2 << 20));
            match audit(task, &certificate, &budget) {
                Ok(_) | Err(Refused(_) | Stopped(_)) => Ok(Some(false)),
                Err(e) => Err(format!(
                    "{}: the certificate does not audit: {e}",
                    engine.name()
                )),
            }
        }
        Answer::Unreachable { .. } => Ok(Some(false)),
        Answer::Bounded { .. } | Answer::Undecided { .. } => Ok(None),
    }
}

/// Why the program shows a disagreement, if it does. Counts the decisions.
fn disagreement(program: &Program, audits: bool, decided: &mut u64) -> Option<String> {
    let instance = program.instance().ok()?;
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        for question in 0..instance.questions.len() {
            let task = Task {
                instance: &instance,
                model,
                question: Some(question),
                deadlock: false,
            };
            let mut first: Option<(&'static str, bool)> = None;
            for engine in engines() {
                match decision(engine.as_ref(), &task, audits) {
                    Err(e) => return Some(format!("{model}: {e}")),
                    Ok(None) => {}
                    Ok(Some(bad)) => {
                        *decided += 1;
                        match first {
                            None => first = Some((engine.name(), bad)),
                            Some((_, other)) if other == bad => {}
                            Some((name, other)) => {
                                let mine = engine.name();
                                return Some(format!("{model}: {name} {other}, {mine} {bad}"));
                            }
                        }
                    }
                }
            }
        }
    }
    None
}

fn agree(shape: &Shape, programs: u64, salt: u64) {
    let (programs, decided) = trial(shape, programs, salt, |p, n, decided| {
        disagreement(p, n.is_multiple_of(8), decided)
    });
    println!("{decided} decisions");
    assert!(decided >= programs, "hardly anything was decided");
}

#[test]
fn acyclic() {
    let shape = Shape {
        threads: 2,
        ..Shape::default()
    };
    agree(&shape, 12_000, 0);
}

#[test]
fn with_loops() {
    let shape = Shape {
        threads: 2,
        statements: 3,
        regions: 2,
        registers: 1,
        greatest: 1,
        arrays: false,
        loops: Loops::Any,
        ..Shape::default()
    };
    agree(&shape, 6_000, 1 << 32);
}

#[test]
fn with_faults() {
    let shape = Shape {
        threads: 2,
        statements: 3,
        faults: true,
        loops: Loops::Fenced,
        ..Shape::default()
    };
    agree(&shape, 3_000, 2 << 32);
}

/// Properties that look at both threads while one of them holds the lock.
#[test]
fn with_lock_regions() {
    let shape = Shape {
        threads: 2,
        statements: 4,
        regions: 2,
        registers: 1,
        greatest: 1,
        arrays: false,
        atomics: false,
        fences: false,
        faults: true,
        ..Shape::default()
    };
    agree(&shape, 4_000, 7 << 32);
}

/// While one thread holds the lock the other goes on past its store, under TSO and not under SC.
#[test]
fn stores_that_wait_for_the_lock_are_passed() {
    let threads = "shared x: 0..1, y: 0..1;
        thread p { x = 1; l: skip; }
        thread q { local r: 0..1; lock; r = x; m: skip; LEAVE }\n";
    let variants = [
        ("unlock;", "never p@l && q.r == 0 && q@m;"),
        ("unlock;", "never p@l && q.r == 0 && q@m && x == 0;"),
        ("loop { }", "never p@l && q.r == 0 && q@m;"),
        ("assume false; unlock;", "never p@l && q.r == 0 && q@m;"),
    ];
    for (leave, property) in variants {
        let text = threads.replace("LEAVE", leave) + property;
        let program = wattle_syntax::wtl::parse(&text).program.unwrap();
        assert_eq!(disagreement(&program, true, &mut 0), None, "{text}");
        let instance = program.instance().unwrap();
        let task = Task {
            instance: &instance,
            model: MemoryModel::Tso,
            question: Some(0),
            deadlock: false,
        };
        assert_eq!(decision(&Exact, &task, true), Ok(Some(true)), "{text}");
        assert!(Robust::default().accepts(&task).is_err(), "{text}");
    }
}

/// Others neither load nor drain while the lock is held; a fault of theirs does not need it.
#[test]
fn nobody_sees_the_inside_of_a_lock_region() {
    let texts = [
        "shared x: 0..2; thread p { lock; x = 1; x = 2; unlock; }
         thread q { local r: 0..2; r = x; l: skip; } never q.r == 1;",
        "shared x: 0..2, y: 0..2; thread p { lock; x = 1; y = 1; x = 2; y = 2; unlock; }
         thread q { local r: 0..2, s: 0..2; y = 0; r = y; s = x; } finally q.r != 1 && q.s != 1;",
        "shared x: 0..2; thread p { lock; x = 1; loop { } }
         thread q { local r: 0..2; r = x; assert r == 0; } never x == 2;",
        "shared x: 0..2; thread p { lock; x = 1; m: skip; assume false; unlock; }
         thread q { local r: 0..2; x = 0; r = x; l: skip; assert r == 0; } never x == 2;",
    ];
    for text in texts {
        let program = wattle_syntax::wtl::parse(text).program.unwrap();
        assert_eq!(disagreement(&program, true, &mut 0), None, "{text}");
        let instance = program.instance().unwrap();
        let task = Task {
            instance: &instance,
            model: MemoryModel::Tso,
            question: Some(0),
            deadlock: false,
        };
        assert_eq!(decision(&Exact, &task, true), Ok(Some(false)), "{text}");
    }
}

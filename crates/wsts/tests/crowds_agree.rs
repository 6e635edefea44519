//! Random programs with a family of any number of threads that nothing tells apart: what `exact` says
//! agrees with `params` where both decide, `holds` audits and means that one, two and three threads
//! hold explicitly, and `violated` is a run with the number of threads it names.
//!
//! Set `WATTLE_SEED` to try other programs, `WATTLE_PROGRAMS` to try more.

use std::cell::Cell;
use wattle_auditor::{AuditError, audit_crowd};
use wattle_evidence::{Answer, Certificate, Control, Engine, OpenAnswer, Reason, Task};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Counts, Instance, Program};
use wattle_params::lower::lower;
use wattle_params::{Options, Outcome, check};
use wattle_random::{Loops, Shape, trial};
use wattle_search::Explicit;
use wattle_wsts::crowd;

#[derive(Default, Debug)]
struct Tally {
    holds: u64,
    violated: u64,
    open: u64,
    /// Where `params` has an answer too.
    twice: u64,
    /// The greatest number of threads a violation needed.
    most: usize,
}

/// What explicit search says about an instance: whether something bad can be reached.
fn explicitly(instance: &Instance, model: MemoryModel, question: usize) -> Option<bool> {
    let task = Task {
        instance,
        model,
        question: Some(question),
        deadlock: false,
    };
    let control = Control::unlimited().with_memory(Some(1 << 20));
    match Explicit::default().run(&task, &control) {
        Answer::Reached { .. } => Some(true),
        Answer::Unreachable { .. } => Some(false),
        Answer::Bounded { .. } | Answer::Undecided { .. } => None,
    }
}

fn with_threads(program: &Program, n: u32) -> Option<Instance> {
    let open = program.families.iter().filter(|f| f.count == Count::Any);
    let counts = open.map(|f| (f.name.clone(), n)).collect();
    program.instantiate(&Counts(counts)).ok()
}

/// What `params` says for any number of threads: whether something bad can be reached.
fn by_params(program: &Program, model: MemoryModel, question: usize) -> Option<bool> {
    let lowered = lower(program, Some(question)).ok()?;
    let options = Options {
        small_first: true,
        guess: false,
        plain_first: 400,
        sampled: 60,
        views: 24,
    };
    let polls = Cell::new(0usize);
    let stop = |held: usize| {
        polls.set(polls.get() + usize::from(held > 0));
        polls.get() > 60 || held > 200
    };
    match check(&lowered.system, model, options, &stop).0 {
        Outcome::Holds(_) => Some(false),
        Outcome::Violated(_) => Some(true),
        Outcome::Undecided(_) | Outcome::Refused(_) => None,
    }
}

/// Why the program shows a disagreement, if it does.
fn disagreement(program: &Program, params: bool, tally: &mut Tally) -> Option<String> {
    for model in MemoryModel::ALL {
        for question in 0..program.properties.len() {
            let wrong = |why: &str| Some(format!("{model}, property {question}: {why}"));
            let crowd = match program.crowd(Some(question)) {
                Ok(crowd) => crowd,
                Err(n) => return wrong(&n.message),
            };
            let control = Control::unlimited().with_memory(Some(2 << 20));
            let answer = crowd::decide(program, &crowd, model, Some(question), &control);
            let bad = match answer {
                OpenAnswer::Undecided { reason, .. } => {
                    if let (MemoryModel::Pso, Reason::Refused(_)) = (model, &reason) {
                        continue;
                    }
                    let reason = format!("{reason:?}");
                    if reason.contains("did not replay") || reason.contains("no instance") {
                        return wrong(&reason);
                    }
                    tally.open += 1;
                    continue;
                }
                OpenAnswer::Reached {
                    instance, trace, ..
                } => {
                    tally.violated += 1;
                    tally.most = tally.most.max(instance.threads.len());
                    let task = Task {
                        instance: &instance,
                        model,
                        question: Some(question),
                        deadlock: false,
                    };
                    if let Err(e) = trace.check(&task) {
                        return wrong(&e.to_string());
                    }
                    if explicitly(&instance, model, question) == Some(false) {
                        return wrong("explicit search does not find the violation");
                    }
                    true
                }
                OpenAnswer::Suspected { .. } | OpenAnswer::Ran { .. } => {
                    return wrong("a run of no instance");
                }
                OpenAnswer::Unreachable { proof, .. } => {
                    let certificate = proof.certificate;
                    tally.holds += 1;
                    let Certificate::LoadBuffers(basis) = &certificate else {
                        return wrong("another kind of certificate");
                    };
                    let budget = Control::unlimited();
                    match audit_crowd(program, model, Some(question), basis, &budget) {
                        Ok(_) | Err(AuditError::Refused(_)) => {}
                        Err(e) => return wrong(&e.to_string()),
                    }
                    // A basis is minimal: without any one of its configurations it proves nothing.
                    if !basis.basis.is_empty() {
                        let mut less = basis.clone();
                        less.basis.remove(tally.holds as usize % basis.basis.len());
                        if audit_crowd(program, model, Some(question), &less, &budget).is_ok() {
                            return wrong("the auditor does not miss a configuration");
                        }
                    }
                    for n in 0..=3 {
                        let instance = with_threads(program, n);
                        let said = instance.and_then(|i| explicitly(&i, model, question));
                        if said == Some(true) {
                            return wrong(&format!("violated with {n} threads"));
                        }
                    }
                    false
                }
            };
            let other = params
                .then(|| by_params(program, model, question))
                .flatten();
            tally.twice += u64::from(other.is_some());
            if other.is_some_and(|o| o != bad) {
                return wrong(&format!("exact {bad}, params {other:?}"));
            }
        }
    }
    None
}

fn agree(shape: &Shape, programs: u64, salt: u64) {
    // Proofs of `params` do not know wrap-around.
    let params = !shape.wraps;
    let (programs, tally) = trial(shape, programs, salt, |p, _, tally: &mut Tally| {
        disagreement(p, params, tally)
    });
    println!("{programs} programs: {tally:?}");
    assert!(tally.open * 5 <= tally.holds + tally.violated, "{tally:?}");
    assert!(tally.holds * 20 >= programs && tally.violated * 5 >= programs);
    assert!(!params || tally.twice >= programs / 2, "{tally:?}");
}

/// The auditor looks itself whether threads are told apart.
#[test]
fn told_apart() {
    let texts = [
        "shared x; thread t[*] { x = self; } never x == 7;",
        "shared x; thread t[*] { x = count(t); } never x == 7;",
        "shared x[thread]; thread t[*] { x[self] = 1; no: skip; } never t[i]@no;",
        "shared x: t; thread t[*] { x = none; } never x == 7;",
        "shared x; thread t[*] { x = 1; no: skip; } never t[0]@no;",
        "shared x; thread t[*] { x = 1; } finally x == 1;",
    ];
    let empty = wattle_evidence::certificate::LoadBuffers { basis: Vec::new() };
    for text in texts {
        let parsed = wattle_syntax::wtl::parse(text);
        let Some(program) = parsed.program else {
            panic!("{text}: {:?}", parsed.diagnostics);
        };
        assert!(program.crowd(Some(0)).is_err());
        let control = Control::unlimited();
        let audited = audit_crowd(&program, MemoryModel::Tso, Some(0), &empty, &control);
        assert!(matches!(audited, Err(AuditError::Other(_))), "{text}");
    }
}

fn shape() -> Shape {
    Shape {
        threads: 2,
        statements: 4,
        regions: 2,
        registers: 2,
        greatest: 1,
        arrays: false,
        wraps: false,
        any: false,
        locks: false,
        crowd: true,
        ..Shape::default()
    }
}

#[test]
fn acyclic() {
    agree(&shape(), 900, 0);
}

#[test]
fn with_loops() {
    let shape = Shape {
        statements: 3,
        registers: 1,
        loops: Loops::Any,
        ..shape()
    };
    agree(&shape, 500, 1 << 32);
}

/// Everything at once: locks, arrays, wrap-around, faults, any start.
#[test]
fn with_everything() {
    let shape = Shape {
        statements: 3,
        arrays: true,
        wraps: true,
        any: true,
        locks: true,
        faults: true,
        loops: Loops::Fenced,
        ..shape()
    };
    agree(&shape, 500, 2 << 32);
}

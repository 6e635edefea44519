//! How much the search for attacks goes through, and what it says of questions under SC.

use wattle_auditor::{AuditError, audit, audit_robustness};
use wattle_evidence::certificate::{Explored, Robust};
use wattle_evidence::{Certificate, Control, Task};
use wattle_memory::MemoryModel;
use wattle_model::Instance;
use wattle_random::{Loops, Shape, program};
use wattle_syntax::wtl;

fn states(choices: &str) -> u64 {
    let text = format!(
        "shared x, y, z;
         thread p[3] {{ local r; r = x; {choices} y = 1; r = z; }}
         thread q {{ z = 1; }}"
    );
    let program = wtl::parse(&text).program.expect("it parses");
    let instance = program.instance().expect("an instance");
    audit_robustness(&instance, &Control::unlimited()).expect("it is robust")
}

/// Of several steps on registers one alone is enabled: nobody notices when it is taken.
#[test]
fn choices_by_registers_are_taken_at_once() {
    let choice = "choose { assume r == 0; } or { assume r == 1; } or { assume r >= 2; }";
    assert_eq!(states(&[choice; 5].join(" ")), states(""));
    // Two are enabled: others may come before, and it matters which.
    let both = "choose { assume r == 0; } or { assume r >= 0; r = 5; }";
    assert!(states(both) > states(""));
}

/// A proof by robustness and one by all states of SC, of the same question.
fn both(instance: &Instance, question: Option<usize>) -> [Result<(), AuditError>; 2] {
    let explored = Certificate::Explored(Explored::new(MemoryModel::Sc, 1 << 20));
    let robust = Certificate::Robust(Robust {
        under_sc: Box::new(explored.clone()),
    });
    [(MemoryModel::Tso, robust), (MemoryModel::Sc, explored)].map(|(model, proof)| {
        let task = Task {
            instance,
            model,
            question,
            deadlock: false,
        };
        audit(&task, &proof, &Control::unlimited()).map(|_| ())
    })
}

/// The search for attacks asks the question of the states of SC on its way: it says what all states of SC say.
#[test]
fn the_question_is_asked_of_every_state_of_sc() {
    let shape = Shape {
        faults: true,
        loops: Loops::Any,
        ..Shape::default()
    };
    let (mut fine, mut bad, mut faulty) = (0, 0, 0);
    for seed in 0..1500 {
        let Ok(instance) = program(seed, &shape).instance() else {
            continue;
        };
        let is_robust = audit_robustness(&instance, &Control::unlimited()).is_ok();
        let questions = (0..instance.questions.len()).map(Some);
        for question in questions.chain([None]) {
            let [robust, sc] = both(&instance, question);
            let says_nothing = matches!(&robust, Err(AuditError::Other(why)) if why.starts_with("robustness says"));
            if says_nothing || matches!(robust, Err(AuditError::Refused(_))) {
                continue;
            }
            assert!(
                robust.is_err() || is_robust && sc.is_ok(),
                "{seed} {question:?}"
            );
            assert!(
                robust.is_ok() || !is_robust || sc.is_err(),
                "{seed} {question:?}: {robust:?}"
            );
            match (is_robust, sc) {
                (true, Ok(())) => fine += 1,
                (true, Err(AuditError::Fault { .. })) => faulty += 1,
                (true, Err(_)) => bad += 1,
                (false, _) => {}
            }
        }
    }
    println!("{fine} fine, {bad} bad, {faulty} with faults");
    assert!(
        fine > 300 && bad > 50 && faulty > 50,
        "{fine} {bad} {faulty}"
    );
}

/// What is seen between two steps on registers, while another holds the lock, and at the end.
#[test]
fn a_question_about_registers_and_places_is_not_passed_by() {
    for (text, holds) in [
        ("thread p[2] { local r; r = 1; r = 2; } never for p[i], p[j]: p[i].r == 1 && p[j].r == 1;", false),
        ("thread p[2] { local r; r = 1; r = 2; } never for p[i], p[j]: p[i].r == 1 && p[j].r == 3;", true),
        ("thread p[2] { skip; here: skip; skip; } never for p[i], p[j]: p[i]@here && p[j]@here;", false),
        ("shared x; thread p { lock; x = 1; unlock; done: skip; skip; } thread q { local r; skip; r = 2; r = 3; }
          never p@done && q.r == 2;", false),
        ("shared x; thread p { lock; x = 1; unlock; done: skip; skip; } thread q { local r; skip; r = 2; r = 3; }
          never p@done && q.r == 4;", true),
        ("shared x; thread p[2] { fence; x = 1; fence; } finally x == 1;", true),
        ("shared x; thread p[2] { local r; r = x; fence; x = r + 1; fence; } finally x == 2;", false),
        ("thread p { local r; r = 1; assert r == 2; }", false),
        ("thread p { local r; r = 1; assert r == 1; }", true),
    ] {
        let parsed = wtl::parse(text);
        let program = parsed.program.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let instance = program.instance().expect("an instance");
        let question = (!instance.questions.is_empty()).then_some(0);
        let [robust, sc] = both(&instance, question);
        if matches!(&robust, Err(AuditError::Other(_))) {
            panic!("{text}: {robust:?}");
        }
        assert_eq!((robust.is_ok(), sc.is_ok()), (holds, holds), "{text}: {robust:?} {sc:?}");
    }
}

/// An attack goes through a block that chooses, and may end with a load that is a fault.
#[test]
fn what_is_not_robust_is_found() {
    for text in [
        "shared x, y; thread p { local r; atomic { choose { r = 1; } or { r = 2; } } x = 1; r = y; }
         thread q { local r; y = 1; r = x; }",
        "shared x, y; thread p { local r; atomic { r = x; choose { r = y; } or { r = 2; } } x = 1; r = y; }
         thread q { local r; y = 1; fence; r = x; }",
        "shared x, y; thread p { local r; x = 1; r = y; }
         thread q { local r: 1..1 = 1; y = 1; fence; r = x; }",
        // What is chosen is who looks at memory, or whether somebody waits.
        "shared x, y, z; thread p { local r; choose { x = 1; } or { z = 1; } choose { r = y; } or { r = z; } }
         thread q { local r; y = 1; fence; r = x; }",
        "shared x, y, z; thread p { local r; x = 1; choose { r = z; } or { r = y; } or { fence; } }
         thread q { local r; choose { y = 1; } or { z = 1; } fence; choose { r = x; } or { r = z; } }",
        "shared x, y; thread p { local r; choose { x = 1; r = y; } or { atomic { r = y; } x = 2; r = y; } }
         thread q { local r; choose { atomic { y = 1; } r = x; } or { fence; y = 2; fence; r = x; } }",
        // One step alone is enabled, and looks at memory: somebody else has to come before.
        "shared x, y, z; thread p { local r; x = 1; r = y; }
         thread q { local r, s; y = 1; fence; choose { assume s == 1; } or { r = z; } assume r == 1; r = x; }
         thread t { await y == 1; z = 1; }",
    ] {
        let program = wtl::parse(text).program.expect("it parses");
        let instance = program.instance().expect("an instance");
        let said = audit_robustness(&instance, &Control::unlimited());
        assert!(matches!(said, Err(AuditError::NotRobust)), "{text}: {said:?}");
    }
}

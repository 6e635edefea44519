//! What facts prove: integers and buffers without bounds, three threads, remainders, numbers that wrap
//! around. And the same programs with a mistake, which must not be proved.

use wattle_auditor::audit;
use wattle_evidence::certificate::{Inductive, Quantity, View};
use wattle_evidence::{Answer, Certificate, Control, Engine, Task};
use wattle_memory::MemoryModel::{self, Pso, Sc, Tso};
use wattle_model::{Instance, ThreadId};
use wattle_predicates::Facts;

fn program(name: &str) -> Instance {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integers");
    let text = std::fs::read_to_string(folder.join(name)).unwrap();
    let program = wattle_syntax::wtl::parse(&text).program.unwrap();
    program.instance().unwrap()
}

fn task(instance: &Instance, model: MemoryModel) -> Task<'_> {
    Task {
        instance,
        model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    }
}

/// The proof, if there is one; it is audited, and what is written down reads back.
fn proof(task: &Task<'_>) -> Option<Inductive> {
    let Answer::Unreachable { certificate, .. } = Facts.run(task, &Control::unlimited()) else {
        return None;
    };
    audit(task, &certificate, &Control::unlimited()).unwrap();
    let text = serde_json::to_string(&certificate).unwrap();
    let read: Certificate = serde_json::from_str(&text).unwrap();
    assert_eq!(read, certificate);
    match certificate {
        Certificate::Inductive(c) => Some(c),
        other => panic!("{}", other.describe()),
    }
}

#[test]
fn what_is_proved_and_what_is_not() {
    for (name, proved) in [
        // One cell: PSO is as good as TSO.
        ("mono.wtl", [true, true, true]),
        ("mono-down.wtl", [true, true, true]),
        ("mono-bad.wtl", [false, false, false]),
        ("mp-unbounded.wtl", [true, true, false]),
        ("mp3.wtl", [true, true, false]),
        ("mp-bad.wtl", [false, false, false]),
        ("seqlock2.wtl", [true, true, false]),
        ("seqlock2-bad.wtl", [false, false, false]),
        ("barrier2.wtl", [true, true, true]),
        ("barrier3b.wtl", [true, true, true]),
        ("barrier3-bad.wtl", [false, false, false]),
        ("ring-mod.wtl", [true, true, false]),
        ("ring-bad.wtl", [false, false, false]),
        ("parity.wtl", [true, true, true]),
        ("mask.wtl", [true, true, true]),
        ("parity-bad.wtl", [false, false, false]),
        ("many-equal.wtl", [true, true, true]),
        ("ticket2-u8.wtl", [true, true, true]),
        ("ticket2-bad.wtl", [false, false, false]),
        // By cases: what was read of a ticket is zero, or it is not.
        ("bakery3.wtl", [true, true, true]),
        ("bakery2-bad.wtl", [false, false, false]),
    ] {
        let instance = program(name);
        for (model, expected) in [Sc, Tso, Pso].into_iter().zip(proved) {
            let found = proof(&task(&instance, model)).is_some();
            assert_eq!(found, expected, "{name} under {model}");
        }
    }
}

/// The certificate for message passing, changed in one place.
fn changed(change: &dyn Fn(&mut Inductive)) -> bool {
    let instance = program("mp-unbounded.wtl");
    let task = task(&instance, Tso);
    let mut c = proof(&task).unwrap();
    change(&mut c);
    audit(&task, &Certificate::Inductive(c), &Control::unlimited()).is_ok()
}

#[test]
fn the_auditor_has_its_own_idea_of_views() {
    assert!(changed(&|_| {}));
    // Nothing is known of the reader's buffer, so it may be known by views; the writer's must be.
    assert!(!changed(&|c| c.views.clear()));
    assert!(!changed(&|c| c.views = vec![ThreadId(7)]));
    // No formula speaks of memory where views are of the cell: a drain would not be looked at.
    assert!(!changed(&|c| {
        for (_, q) in c.predicates.iter_mut().flat_map(|p| &mut p.sum) {
            if let Quantity::View(_, View::Lower, cell) = *q {
                *q = Quantity::Cell(cell);
            }
        }
    }));
    // Stronger than true, and weaker than needed.
    for n in [-1, 1] {
        assert!(!changed(&|c| c
            .predicates
            .iter_mut()
            .for_each(|p| p.constant += n)));
    }
    assert!(!changed(&|c| {
        c.invariants
            .iter_mut()
            .for_each(|i| i.cubes = vec![Vec::new()]);
    }));
    assert!(!changed(&|c| {
        c.invariants.pop();
    }));
}

#[test]
fn the_auditor_wants_parts_about_everything() {
    let instance = program("alone.wtl");
    let task = task(&instance, Sc);
    let c = proof(&task).unwrap();
    assert!(c.parts.len() > 1 && c.invariants.is_empty());
    let fails = |change: &dyn Fn(&mut Inductive)| {
        let mut c = c.clone();
        change(&mut c);
        audit(&task, &Certificate::Inductive(c), &Control::unlimited()).is_err()
    };
    // A thread that no part is about.
    assert!(fails(&|c| {
        c.parts.pop();
    }));
    // A part about nobody.
    assert!(fails(&|c| {
        c.parts[0].about.pop();
    }));
    // A part about all threads that says where only one of them is.
    let all: Vec<ThreadId> = instance.thread_ids().collect();
    assert!(fails(&|c| c.parts[0].about.clone_from(&all)));
    assert!(fails(&|c| c.parts[0].invariants.clear()));
}

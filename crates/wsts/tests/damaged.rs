//! Of a basis nothing can be left out: the auditor misses every configuration that is missing.

use wattle_auditor::audit;
use wattle_evidence::certificate::{LoadBuffers, Multisets};
use wattle_evidence::{Answer, Certificate, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_random::{Loops, Shape, program};
use wattle_wsts::{Exact, Multiset};

/// The certificate without one configuration, for each of them.
fn shorter(certificate: &Certificate) -> Vec<Certificate> {
    fn each<T: Clone>(all: &[T]) -> impl Iterator<Item = Vec<T>> + '_ {
        (0..all.len()).map(|gone| {
            let kept = all.iter().enumerate().filter(move |(i, _)| *i != gone);
            kept.map(|(_, c)| c.clone()).collect()
        })
    }
    match certificate {
        Certificate::LoadBuffers(c) => each(&c.basis)
            .map(|basis| Certificate::LoadBuffers(LoadBuffers { basis }))
            .collect(),
        Certificate::Multisets(c) => each(&c.basis)
            .map(|basis| Certificate::Multisets(Multisets { basis }))
            .collect(),
        other => panic!("{}", other.describe()),
    }
}

#[test]
fn nothing_can_be_left_out_of_a_basis() {
    let engines: [&dyn Engine; 2] = [&Exact, &Multiset];
    let mut refused = [0; 2];
    let plain = || Shape {
        threads: 2,
        statements: 4,
        regions: 2,
        registers: 1,
        greatest: 1,
        ..Shape::default()
    };
    let faults = Shape {
        faults: true,
        ..plain()
    };
    let loops = Shape {
        loops: Loops::Any,
        ..plain()
    };
    // Stores to one cell follow each other.
    let stores = Shape {
        statements: 6,
        regions: 1,
        arrays: false,
        atomics: false,
        locks: false,
        fences: false,
        ..plain()
    };
    let shapes = [plain(), faults, loops, stores];
    for (seed, shape) in (0..250).flat_map(|s| shapes.iter().map(move |shape| (s, shape))) {
        let Ok(instance) = program(seed, shape).instance() else {
            continue;
        };
        for (n, engine) in engines.iter().enumerate() {
            let task = Task {
                instance: &instance,
                model: MemoryModel::Tso,
                question: (!instance.questions.is_empty()).then_some(0),
                deadlock: false,
            };
            if engine.accepts(&task).is_err() {
                continue;
            }
            let all = Control::unlimited();
            let Answer::Unreachable { certificate, .. } = engine.run(&task, &all) else {
                continue;
            };
            for less in shorter(&certificate).into_iter().take(40) {
                let said = audit(&task, &less, &all);
                assert!(said.is_err(), "seed {seed}, {}", engine.name());
                refused[n] += 1;
            }
        }
    }
    assert!(refused.iter().all(|n| *n > 500), "{refused:?}");
}

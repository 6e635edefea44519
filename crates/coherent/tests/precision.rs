//! What sets, counts and order can and cannot prove.

use wattle_coherent::Coherent;
use wattle_evidence::{Answer, Certificate, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_model::Instance;
use wattle_wsts::{Exact, Multiset};

fn instance(text: &str) -> Instance {
    let program = wattle_syntax::trencher::parse(text).program;
    program.expect("parses").instance().expect("an instance")
}

fn task(instance: &Instance) -> Task<'_> {
    Task {
        instance,
        model: MemoryModel::Tso,
        question: Some(0),
        deadlock: false,
    }
}

fn holds(engine: &dyn Engine, task: &Task<'_>) -> bool {
    let answer = engine.run(task, &Control::unlimited());
    matches!(answer, Answer::Unreachable { .. })
}

#[test]
fn a_store_behind_two_others_needs_three_in_order_or_a_count() {
    let i = instance(include_str!(
        "../../../examples/trencher/one-store-seen-twice.trench"
    ));
    let task = task(&i);
    let answer = Coherent::OldestK.run(&task, &Control::unlimited());
    let Answer::Unreachable {
        certificate: Certificate::Coherent(c),
        ..
    } = answer
    else {
        panic!("not proved: {answer:?}");
    };
    assert_eq!(
        c.bounds[0].0, 3,
        "the set, k = 1 and k = 2 have spurious traces"
    );
    assert!(holds(&Multiset, &task));
    assert!(holds(&Exact, &task));
}

#[test]
fn stores_without_end_are_no_problem_for_sets() {
    let i = instance(include_str!(
        "../../../examples/trencher/spinning-stores.trench"
    ));
    let task = task(&i);
    assert!(holds(&Coherent::OldestK, &task));
    assert!(holds(&Exact, &task));
    assert!(holds(&Multiset, &task));
    let control = Control::unlimited().with_memory(Some(64 << 20));
    let lazy = wattle_robust::Lazy::default().run(&task, &control);
    assert!(
        !matches!(lazy, Answer::Unreachable { .. } | Answer::Reached { .. }),
        "{lazy:?}"
    );
}

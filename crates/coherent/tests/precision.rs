//! What sets, counts and order can and cannot prove.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wattle_auditor::audit;
use wattle_coherent::{Coherent, Hierarchy};
use wattle_evidence::{Answer, Certificate, Control, Engine, Reason, Task};
use wattle_memory::MemoryModel;
use wattle_model::Instance;
use wattle_search::Explicit;
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
    // It would unroll the loops for ever: enough is when it has looked at its limits so often.
    let (polls, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let sink = |_: &'static str, _| {
        if polls.fetch_add(1, Ordering::Relaxed) > 20 {
            enough.store(true, Ordering::Relaxed);
        }
    };
    let flags = [&enough];
    let control = Control::unlimited().with_sink(&sink).with_cancel(&flags);
    let lazy = wattle_robust::Lazy::default().run(&task, &control);
    assert!(
        !matches!(lazy, Answer::Unreachable { .. } | Answer::Reached { .. }),
        "{lazy:?}"
    );
}

/// What `explicit` says with buffers of this content; proofs audited.
fn with_content(task: &Task<'_>, content: &str) -> String {
    let mut engine = Explicit::default();
    engine.options.content = content.parse().expect("a content");
    engine.options.most_buffered = 2;
    match engine.run(task, &Control::unlimited()) {
        Answer::Unreachable { certificate, .. } => {
            let control = Control::unlimited();
            audit(task, &certificate, &control).expect("the proof audits");
            "holds".into()
        }
        Answer::Reached { trace, .. } => {
            trace.check(task).expect("the trace replays");
            "violated".into()
        }
        Answer::Bounded { limits, .. } => format!("bounded by {}", limits.buffered_stores),
        Answer::Undecided {
            reason: Reason::Other(why),
            ..
        } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn contents_prove_what_they_remember() {
    let i = instance(include_str!(
        "../../../examples/trencher/one-store-seen-twice.trench"
    ));
    let task = task(&i);
    let spurious = |content: &str| {
        let said = with_content(&task, content);
        said == format!("buffers of content `{content}` have a run that real ones do not")
    };
    assert!(spurious("set"));
    assert!(spurious("oldest=2"));
    // What nobody else looks at leaves the buffer at once: one slot is enough.
    for content in ["exact", "multiset", "oldest=3", "atmost=1"] {
        assert_eq!(with_content(&task, content), "holds", "{content}");
    }
}

#[test]
fn counts_have_no_bound_and_sets_need_none() {
    let i = instance(include_str!(
        "../../../examples/trencher/spinning-stores.trench"
    ));
    let task = task(&i);
    for content in ["set", "oldest=1", "newest=1"] {
        assert_eq!(with_content(&task, content), "holds", "{content}");
    }
    for content in ["exact", "multiset"] {
        assert_eq!(with_content(&task, content), "bounded by 2", "{content}");
    }
    assert_eq!(with_content(&task, "atmost=1"), "bounded by 1");
}

#[test]
fn a_real_run_is_found_whatever_is_forgotten() {
    let text =
        "shared x, y; thread p { local a; x = 1; a = y; } thread q { local b; y = 1; b = x; }
                finally !(p.a == 0 && q.b == 0);";
    let program = wattle_syntax::wtl::parse(text).program.expect("parses");
    let i = program.instance().expect("an instance");
    for content in [
        "exact", "set", "multiset", "oldest=1", "newest=1", "atmost=1",
    ] {
        assert_eq!(with_content(&task(&i), content), "violated", "{content}");
    }
}

/// Algorithm 3.2: by counting, by order, or by a run.
#[test]
fn one_approximation_after_the_other() {
    let twice = instance(include_str!(
        "../../../examples/trencher/one-store-seen-twice.trench"
    ));
    let answer = Hierarchy.run(&task(&twice), &Control::unlimited());
    assert!(
        matches!(
            answer,
            Answer::Unreachable {
                certificate: Certificate::Multisets(_),
                ..
            }
        ),
        "{answer:?}"
    );
    let text = "shared x, y; thread p { x = 1; y = 1; } \
                thread q { local r, s; r = y; s = x; end: skip; } never q@end && q.r == 1 && q.s == 0;";
    let program = wattle_syntax::wtl::parse(text).program.expect("parses");
    let ordered = program.instance().expect("an instance");
    let asked = task(&ordered);
    assert!(!holds(&Multiset, &asked), "they forget the order");
    let answer = Hierarchy.run(&asked, &Control::unlimited());
    let Answer::Unreachable { certificate, .. } = &answer else {
        panic!("{answer:?}");
    };
    assert!(matches!(certificate, Certificate::Coherent(_)));
    audit(&asked, certificate, &Control::unlimited()).expect("a proof");
    let pso = Task {
        model: MemoryModel::Pso,
        ..asked
    };
    let answer = Hierarchy.run(&pso, &Control::unlimited());
    assert!(matches!(answer, Answer::Reached { .. }), "{answer:?}");
}

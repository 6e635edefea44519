//! The engine on small programs, each made for one rule.

use wattle_evidence::{Answer, Certificate, Control, End, Engine, Reason, Task};
use wattle_memory::MemoryModel;
use wattle_model::{CellId, Instance};
use wattle_search::rounds::Cut;
use wattle_search::{Explicit, Observed, Options, Reduce, final_states};

fn instance(text: &str) -> Instance {
    let parsed = wattle_syntax::wtl::parse(text);
    let program = parsed
        .program
        .unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
    program.instance().expect("an instance")
}

fn run(instance: &Instance, model: MemoryModel, deadlock: bool) -> Answer {
    let task = Task {
        instance,
        model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock,
    };
    let answer = Explicit::default().run(&task, &Control::unlimited());
    match &answer {
        Answer::Reached { trace, .. } => {
            trace.check(&task).expect("the trace replays");
        }
        Answer::Unreachable { certificate, .. } => {
            wattle_auditor::audit(&task, certificate, &Control::unlimited())
                .expect("the certificate audits");
        }
        _ => {}
    }
    answer
}

#[test]
fn counters_outgrow_the_guess_and_are_packed_anew() {
    let i = instance(
        "shared x, y;
         thread p { local i; while i < 300 { i = i + 1; x = i; fence; } }
         thread q { local i; while i < 3 { i = i - 1; if i < -70 { i = 5; } y = i; fence; } }",
    );
    for model in MemoryModel::ALL {
        let observed = [Observed::Cell(CellId(0)), Observed::Cell(CellId(1))];
        let finals = final_states(&i, model, &observed, &Control::unlimited()).expect("finals");
        assert_eq!(finals.cut, Cut::Nothing);
        assert_eq!(
            finals.states.into_iter().collect::<Vec<_>>(),
            [vec![300, 5]]
        );
    }
}

#[test]
fn large_arrays_are_learnt_small() {
    let i = instance(
        "shared a[100], done[3]: 0..1;
         thread p[3] {
             local k;
             while k < 4 { a[(k * 37 + self * 11) % 100] = k * 1000 + self; k = k + 1; fence; }
             done[self] = 1;
         }
         never done[0] + done[1] + done[2] == 3 && a[11] == 7;",
    );
    for model in MemoryModel::ALL {
        let answer = run(&i, model, false);
        assert!(matches!(answer, Answer::Unreachable { .. }), "{answer:?}");
    }
}

#[test]
fn numbers_that_outgrow_the_machine_are_no_verdict() {
    let i = instance("thread p { local i = 1; loop { i = i * 1000; } }");
    let answer = run(&i, MemoryModel::Sc, false);
    let Answer::Undecided {
        reason: Reason::MachineOverflow { place },
        ..
    } = answer
    else {
        panic!("{answer:?}");
    };
    assert!(place.contains("line 1"), "{place}");
}

#[test]
fn a_loop_that_stores_without_a_fence_is_bounded() {
    let i = instance(
        "shared x: 0..1, y: 0..1;
         thread p { loop {
             x = 1 - x; } }
         thread q { loop { y = x; } }
         never x == 1 && y == 2;",
    );
    assert!(matches!(
        run(&i, MemoryModel::Sc, false),
        Answer::Unreachable { .. }
    ));
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let answer = run(&i, model, false);
        let Answer::Bounded { limits, .. } = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(limits.buffered_stores, 6);
        assert!(limits.cause.contains("thread p"), "{}", limits.cause);
        assert!(limits.cause.contains("line 3"), "{}", limits.cause);
    }
}

#[test]
fn stores_nobody_else_can_see_do_not_pile_up() {
    let i = instance(
        "shared mine: 0..1, x: 0..1;
         thread p { loop { mine = 1 - mine; } }
         thread q { x = 1; }
         never x == 1 && mine == 2;",
    );
    // Seen by the property: not private.
    assert!(matches!(
        run(&i, MemoryModel::Tso, false),
        Answer::Bounded { .. }
    ));
    let i = instance(
        "shared mine: 0..1, x: 0..1;
         thread p { loop { mine = 1 - mine; } }
         thread q { x = 1; }
         never x == 2;",
    );
    let answer = run(&i, MemoryModel::Tso, false);
    let Answer::Unreachable { certificate, .. } = &answer else {
        panic!("{answer:?}");
    };
    assert!(matches!(certificate, Certificate::Explored(_)));
}

#[test]
fn deadlocks_are_found_and_waiting_is_not_one() {
    let two_locks = "shared a: 0..1, b: 0..1;
         thread p { local r; r = cas(a, 0, 1); while r == 0 { r = cas(a, 0, 1); }
                    r = cas(b, 0, 1); while r == 0 { r = cas(b, 0, 1); } b = 0; a = 0; }
         thread q { local r; r = cas(b, 0, 1); while r == 0 { r = cas(b, 0, 1); }
                    r = cas(a, 0, 1); while r == 0 { r = cas(a, 0, 1); } a = 0; b = 0; }";
    let spins = instance(two_locks);
    for model in MemoryModel::ALL {
        let answer = run(&spins, model, true);
        let Answer::Reached { trace, .. } = &answer else {
            panic!("{answer:?}");
        };
        assert_eq!(trace.end, End::Deadlock);
        assert!(matches!(
            run(&spins, model, false),
            Answer::Unreachable { .. }
        ));
    }
    let hands_over = instance(
        "shared x: 0..1;
         thread p { await x == 1; }
         thread q { x = 1; }",
    );
    let discarded = instance("shared x: 0..1; thread p { assume x == 1; } thread q { x = 0; }");
    for i in [&hands_over, &discarded] {
        for model in MemoryModel::ALL {
            let answer = run(i, model, true);
            assert!(matches!(answer, Answer::Unreachable { .. }), "{answer:?}");
        }
    }
}

#[test]
fn faults_inside_chains_and_atomic_blocks_are_found() {
    for text in [
        "shared x: 0..1; thread p { local r; r = 3; r = r + 1; assert r == 3, \"why\"; }",
        "shared x: 0..1; thread p { atomic { x = 1; x = 2; } }",
        "shared x: 0..1; thread p { local r; r = x; r = 1 / r; }",
    ] {
        for model in MemoryModel::ALL {
            let answer = run(&instance(text), model, false);
            let Answer::Reached { trace, .. } = &answer else {
                panic!("{answer:?}");
            };
            assert!(matches!(trace.end, End::Fault(_)));
        }
    }
}

#[test]
fn thousands_of_threads_are_refused() {
    let i = instance("shared x: 0..1; thread p[10000] { local r; r = x; x = 1 - r; }");
    let task = Task {
        instance: &i,
        model: MemoryModel::Tso,
        question: None,
        deadlock: false,
    };
    assert!(Explicit::default().accepts(&task).is_err());
}

#[test]
fn nobody_sees_the_inside_of_a_lock_region() {
    let i = instance(
        "shared x, z: 0..2;
         thread p { local a, b; a = z; x = 1; fence; b = z; }
         thread q { lock; z = 1; z = 2; unlock; }
         finally p.a != 1 && p.b != 1;",
    );
    for model in MemoryModel::ALL {
        let answer = run(&i, model, false);
        assert!(
            matches!(answer, Answer::Unreachable { .. }),
            "{model}: {answer:?}"
        );
    }
}

/// Six threads of a kind: of the states that differ in who is who one is stored.
#[test]
fn of_six_of_a_kind_one_in_fifty_is_stored() {
    let test_and_set = "shared lock: bool; thread p[6] { local got: bool; again: got = swap(lock, 1); \
        if got == 1 { goto again; } critical: skip; lock = 0; goto again; } \
        never p[i]@critical && p[j]@critical;";
    let counter = "shared x: 0..15; thread p[6] { local r: 0..15; r = x; x = (r + 1) % 16; end: skip; } \
        finally x >= 1;";
    let ticket = "shared next: u3, serving: u3; thread p[6] { local mine: u3; mine = fetch_add(next, 1); \
        await serving == mine; critical: skip; serving = mine + 1; } never p[i]@critical && p[j]@critical;";
    let families = [
        (test_and_set, Reduce::None),
        (counter, Reduce::Persistent),
        (ticket, Reduce::Persistent),
    ];
    for (text, reduce) in families {
        let instance = instance(text);
        let task = Task {
            instance: &instance,
            model: MemoryModel::Sc,
            question: Some(0),
            deadlock: false,
        };
        let [one, all] = [true, false].map(|symmetry| {
            let options = Options {
                symmetry,
                ..Options::default().reduced(reduce)
            };
            let answer = Explicit { options }.run(&task, &Control::unlimited());
            assert!(matches!(answer, Answer::Unreachable { .. }), "{text}");
            answer.effort().states
        });
        assert!(50 * one <= all, "{one} of {all} states of {text}");
    }
}

/// Lamport's fast mutex with four threads: whoever has found the way free enters at once, so that what it has read
/// is not remembered. Spin with its reduction stores 440,140 states.
#[test]
fn four_in_lamports_fast_mutex() {
    let text = "shared b[4]: bool, x: 0..4, y: 0..4; thread p[4] { let me = self + 1; again: b[self] = 1; x = me; \
        if y != 0 { b[self] = 0; await y == 0; goto again; } y = me; \
        if x != me { b[self] = 0; for j in 0..3 { await b[j] == 0; } if y != me { await y == 0; goto again; } } \
        critical: skip; y = 0; b[self] = 0; goto again; } never p[i]@critical && p[j]@critical;";
    let answer = run(&instance(text), MemoryModel::Sc, false);
    assert!(matches!(answer, Answer::Unreachable { .. }));
    let states = answer.effort().states;
    assert!(states <= 440_140, "{states}");
}

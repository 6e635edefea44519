//! The engine `lazy`: never wrong, and good at finding.

mod random;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wattle_auditor::audit;
use wattle_evidence::{Answer, Certificate, Control, Engine, Reason, Task};
use wattle_memory::MemoryModel;
use wattle_model::instance::{Fact, Question};
use wattle_model::{Expr, Instance, LocationId, Op2, PropertyKind, RegisterId, Span, ThreadId};
use wattle_robust::{Lazy, Oracle};
use wattle_search::Explicit;

fn task(instance: &Instance) -> Task<'_> {
    Task {
        instance,
        model: MemoryModel::Tso,
        question: Some(0),
        deadlock: false,
    }
}

/// Theorem 8: acyclic programs are decided, whoever says where to buffer.
#[test]
fn decides_acyclic_programs() {
    for oracle in [Oracle::Robustness, Oracle::Enumeration] {
        let lazy = Lazy {
            oracle,
            ..Lazy::default()
        };
        let (mut found, mut proved, mut later, mut open) = (0, 0, 0, 0);
        for (seed, shape) in [
            (11, random::Shape::plain(2, 5)),
            (12, random::Shape::plain(3, 3)),
            (13, random::Shape::plain(2, 4).atomic()),
            (14, random::Shape::plain(2, 3).locks()),
        ] {
            let mut rng = SmallRng::seed_from_u64(seed);
            for i in 0..300 {
                let mut instance = random::program(&mut rng, shape).instance().unwrap();
                let register = |t, r| Expr::Atom(Fact::Register(ThreadId(t), RegisterId(r)));
                let equals = |a, v| Expr::binary(Op2::Eq, a, Expr::Const(v));
                let target = Expr::binary(
                    Op2::And,
                    equals(register(0, i % 2), i64::from(i) % 3),
                    equals(register(1, (i / 2) % 2), i64::from(i / 3) % 3),
                );
                instance.questions = vec![Question {
                    kind: PropertyKind::Never,
                    target,
                    // Somewhere on the way, too: no state of a thread may be lost.
                    only_final: i % 3 > 0,
                    span: Span::NONE,
                }];
                let task = task(&instance);
                let control = Control::unlimited();
                let truth = match Explicit::default().run(&task, &control) {
                    Answer::Reached { .. } => true,
                    Answer::Unreachable { .. } => false,
                    other => panic!("{other:?}"),
                };
                match lazy.run(&task, &control) {
                    Answer::Reached { trace, .. } => {
                        assert!(truth);
                        trace.check(&task).unwrap();
                        found += 1;
                    }
                    Answer::Unreachable { certificate, .. } => {
                        assert!(!truth);
                        later += u32::from(!matches!(certificate, Certificate::Robust(_)));
                        audit(&task, &certificate, &control).unwrap();
                        proved += 1;
                    }
                    // A thread may be seen to wait for the lock.
                    Answer::Undecided { reason, .. } => {
                        let refused = matches!(reason, Reason::Refused(_));
                        assert!(refused && !truth && seed == 14, "{seed} {i}: {reason}");
                        open += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        println!("{oracle:?}: {found} found, {proved} proved ({later} extended), {open} refused");
        assert!(found > 100 && later > 20);
    }
}

/// The extension itself, whatever is listed afterwards: what SC reaches of the last program is what TSO
/// reaches of the first. Every location of every thread is asked for.
#[test]
fn nothing_is_lost_on_the_way() {
    let lazy = Lazy {
        oracle: Oracle::Enumeration,
        most_rounds: usize::MAX,
        ..Lazy::default()
    };
    let mut rng = SmallRng::seed_from_u64(21);
    let mut reached = [0, 0];
    for _ in 0..150 {
        let mut instance = random::program(&mut rng, random::Shape::plain(2, 4))
            .instance()
            .unwrap();
        for (a, b, v) in places(&instance) {
            let at = |t, l| Expr::Atom(Fact::At(ThreadId(t), vec![LocationId::new(l)]));
            let value = Expr::Atom(Fact::Register(ThreadId(0), RegisterId(0)));
            let value = Expr::binary(Op2::Eq, value, Expr::Const(v));
            let both = Expr::binary(Op2::And, at(0, a), at(1, b));
            instance.questions = vec![Question {
                kind: PropertyKind::Never,
                target: Expr::binary(Op2::And, both, value),
                only_final: false,
                span: Span::NONE,
            }];
            let task = task(&instance);
            let control = Control::unlimited();
            let truth = matches!(
                Explicit::default().run(&task, &control),
                Answer::Reached { .. }
            );
            match lazy.reaches(&task, &control) {
                Some(said) => assert_eq!(said, truth, "{a} {b} {v}"),
                None => panic!("{a} {b} {v}: not decided"),
            }
            reached[usize::from(truth)] += 1;
        }
    }
    assert!(reached[0] > 500 && reached[1] > 500, "{reached:?}");
}

/// Some pairs of locations, each with a value.
fn places(instance: &Instance) -> Vec<(usize, usize, i64)> {
    let count = |t: usize| instance.threads[t].locations.len();
    let all = (0..count(0)).flat_map(|a| (0..count(1)).map(move |b| (a, b)));
    all.map(|(a, b)| (a, b, ((a + b) % 3) as i64)).collect()
}

/// Theorem 9: a program with loops, unrolled until the run is there.
#[test]
fn unrolls_loops() {
    let text = include_str!("../../../examples/trencher/dekker.trench");
    let program = wattle_syntax::trencher::parse(text).into_result().unwrap();
    let instance = program.instance().unwrap();
    let lazy = Lazy {
        most_rounds: 0,
        ..Lazy::default()
    };
    let task = task(&instance);
    match lazy.run(&task, &Control::unlimited()) {
        Answer::Reached { trace, .. } => {
            trace.check(&task).unwrap();
        }
        other => panic!("{other:?}"),
    }
}

/// Fig. 3.3: two threads that store and load in loops and never see what they wait for. It holds,
/// but there is always one more sequence to buffer.
#[test]
fn gives_up_where_the_thesis_diverges() {
    let text = "
thread t1
initial q0
final qm
transition q0 q0 write - 1 r1 0
transition q0 q0 read r1 1
transition q0 qm check == r1 2
end
thread t2
initial q0
final qm
transition q0 q0 write - 1 r2 1
transition q0 q0 read r2 0
transition q0 qm check == r2 2
end
";
    let program = wattle_syntax::trencher::parse(text).into_result().unwrap();
    let instance = program.instance().unwrap();
    let lazy = Lazy {
        most_rounds: 5,
        ..Lazy::default()
    };
    // Unrolling goes on for ever: enough is when this many looks at the clock were taken.
    let (polls, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let sink = |_: &'static str, _| {
        if polls.fetch_add(1, Ordering::Relaxed) > 20 {
            enough.store(true, Ordering::Relaxed);
        }
    };
    let flags = [&enough];
    let control = Control::unlimited().with_sink(&sink).with_cancel(&flags);
    let answer = lazy.run(&task(&instance), &control);
    assert!(matches!(answer, Answer::Undecided { .. }), "{answer:?}");
}

/// Fig. 5.4 with three stores in the loop: the sequence to buffer goes round it twice.
#[test]
fn unwinds_a_loop() {
    let text = "
thread t1
initial q0
final end
transition q0 store check < i 3
transition store next write i 0
transition next q0 local i + i 1
transition q0 full check == i 3
transition full q0 local i 0
transition full q2 read r 1
transition q2 end check == r 0
end
thread t2
initial q0
final end
transition q0 q1 write 1 1
transition q1 q2 read r 0
transition q2 q3 check == r 1
transition q3 q4 read r 0
transition q4 end check == r 0
end
";
    let program = wattle_syntax::trencher::parse(text).into_result().unwrap();
    let instance = program.instance().unwrap();
    let task = task(&instance);
    match Lazy::default().run(&task, &Control::unlimited()) {
        Answer::Reached { trace, .. } => {
            trace.check(&task).unwrap();
        }
        other => panic!("{other:?}"),
    }
}

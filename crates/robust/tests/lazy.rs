//! The engine `lazy`: never wrong, and good at finding.

mod random;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_model::instance::{Fact, Question};
use wattle_model::{Expr, Instance, Op2, PropertyKind, RegisterId, Span, ThreadId};
use wattle_robust::Lazy;
use wattle_search::Explicit;

fn task(instance: &Instance) -> Task<'_> {
    Task {
        instance,
        model: MemoryModel::Tso,
        question: Some(0),
        deadlock: false,
    }
}

#[test]
fn finds_what_explicit_finds() {
    let (mut found, mut missed, mut proved, mut open) = (0, 0, 0, 0);
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
                only_final: true,
                span: Span::NONE,
            }];
            let task = task(&instance);
            let control = Control::unlimited();
            let truth = match Explicit::default().run(&task, &control) {
                Answer::Reached { .. } => true,
                Answer::Unreachable { .. } => false,
                other => panic!("{other:?}"),
            };
            match Lazy::default().run(&task, &control) {
                Answer::Reached { trace, .. } => {
                    assert!(truth);
                    trace.check(&task).unwrap();
                    found += 1;
                }
                Answer::Unreachable { certificate, .. } => {
                    assert!(!truth);
                    audit(&task, &certificate, &control).unwrap();
                    proved += 1;
                }
                _ if truth => missed += 1,
                _ => open += 1,
            }
        }
    }
    println!("{found} found, {missed} missed, {proved} proved, {open} left open");
    assert!(found > 100 && missed == 0);
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
    let answer = lazy.run(&task(&instance), &Control::unlimited());
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

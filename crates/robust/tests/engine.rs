//! The engine `robust` on small programs: its certificates pass the audit, its traces replay, and it
//! agrees with `explicit`.

mod random;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_model::instance::Fact;
use wattle_model::{Expr, Op2, PropertyKind, RegisterId, Span, ThreadId};
use wattle_robust::Robust;
use wattle_search::Explicit;

/// Numbers grow for ever, but no load overtakes a store that somebody could miss: there is nothing to search.
#[test]
fn where_no_attack_can_start_states_are_not_gone_through() {
    let fenced = |fence: &str| {
        format!(
            "shared head, tail, own[2];
            thread p[2] {{
                local t, h;
                loop {{
                    t = fetch_add(tail, 1);
                    own[self] = t;
                    h = own[self];
                    await head == t;
                    head = t + 1; {fence}
                }}
            }}"
        )
    };
    let instance = |text: &str| {
        let parsed = wattle_syntax::parse(wattle_syntax::Language::Wtl, text);
        parsed.program.unwrap().instance().unwrap()
    };
    let options = wattle_robust::Options::new(wattle_robust::Goal::Robustness, MemoryModel::Tso);
    let control = Control::unlimited();
    let free = instance(&fenced("fence;"));
    match wattle_robust::search(&free, options, &control) {
        wattle_robust::Finding::Free { effort } => assert!(effort.states < 10, "{effort:?}"),
        other => panic!("{other:?}"),
    }
    assert!(wattle_auditor::audit_robustness(&free, &control).is_ok_and(|states| states < 10));
}

#[test]
fn agrees_with_explicit() {
    let (mut proved, mut broken, mut open) = (0, 0, 0);
    for (seed, shape) in [
        (1, random::Shape::plain(2, 5)),
        (2, random::Shape::plain(3, 3).atomic()),
        (3, random::Shape::plain(2, 4).locks()),
    ] {
        let mut rng = SmallRng::seed_from_u64(seed);
        for i in 0..400 {
            let mut instance = random::program(&mut rng, shape).instance().unwrap();
            let register = |t, r| Expr::Atom(Fact::Register(ThreadId(t), RegisterId(r)));
            let equals = |a, v| Expr::binary(Op2::Eq, a, Expr::Const(v));
            let target = Expr::binary(
                Op2::And,
                equals(register(0, i % 2), i64::from(i) % 3),
                equals(register(1, (i / 2) % 2), i64::from(i / 3) % 3),
            );
            instance.questions = vec![wattle_model::instance::Question {
                kind: PropertyKind::Never,
                target,
                only_final: i % 5 == 0,
                span: Span::NONE,
            }];
            let task = Task {
                instance: &instance,
                model: MemoryModel::Tso,
                question: Some(0),
                deadlock: false,
            };
            let control = Control::unlimited();
            let truth = match Explicit::default().run(&task, &control) {
                Answer::Reached { .. } => true,
                Answer::Unreachable { .. } => false,
                other => panic!("{other:?}"),
            };
            if Robust::default().accepts(&task).is_err() {
                open += 1;
                continue;
            }
            match Robust::default().run(&task, &control) {
                Answer::Reached { trace, .. } => {
                    assert!(truth);
                    trace.check(&task).unwrap();
                    broken += 1;
                }
                Answer::Unreachable { certificate, .. } => {
                    assert!(!truth);
                    audit(&task, &certificate, &control).unwrap();
                    proved += 1;
                }
                _ => open += 1,
            }
        }
    }
    println!("{proved} proved, {broken} broken, {open} left open");
    assert!(proved > 100 && broken > 100);
}

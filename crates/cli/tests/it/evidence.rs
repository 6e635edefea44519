//! Evidence that was damaged is refused, and traces are as short as they can be.

use std::sync::atomic::AtomicBool;
use wattle::reference::Reference;
use wattle::{Language, MemoryModel};
use wattle_auditor::write_down;
use wattle_auditor::{AuditError, AuditPolicy, audit, judge};
use wattle_evidence::certificate::{Corrupt, Explored, Shortened};
use wattle_evidence::minimise::cost;
use wattle_evidence::{
    Answer, Certificate, ClosedStates, Control, End, Engine, Progress, Stop, Task, Trace,
    Unchecked, Verdict, minimise,
};
use wattle_memory::Event;
use wattle_model::{CellId, Instance, LocationId, StepId, ThreadId};

fn instance(text: &str) -> Instance {
    let parsed = wattle::parse(Language::Wtl, text);
    let program = parsed.into_result().unwrap_or_else(|e| panic!("{e:#?}"));
    program.instance().unwrap_or_else(|e| panic!("{e}"))
}

fn task(instance: &Instance, model: MemoryModel) -> Task<'_> {
    Task {
        instance,
        model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    }
}

const MP: &str = "shared data, ready;
thread writer { data = 1; fence store; ready = 1; }
thread reader { local r, d; r = ready; d = data; }
finally !(reader.r == 1 && reader.d == 0);
";

const SB: &str = "shared x, y;
thread p { local a; x = 1; a = y; }
thread q { local b; y = 1; b = x; }
finally !(p.a == 0 && q.b == 0);
";

fn proof(task: &Task<'_>) -> ClosedStates {
    match Reference.run(task, &Control::unlimited()) {
        Answer::Unreachable {
            certificate: Certificate::ClosedStates(set),
            ..
        } => set,
        other => panic!("{other:?}"),
    }
}

/// An audit that is stopped says nothing about the proof; one that finds it wrong does.
#[test]
fn an_unfinished_audit_keeps_the_verdict() {
    // Enough states that their audit polls.
    let instance = instance(
        "shared x: 0..9999; thread p { loop { atomic { if x < 9999 { x = x + 1; } } } } never x < 0;",
    );
    let task = task(&instance, MemoryModel::Sc);
    let answer = Answer::Unreachable {
        certificate: Certificate::ClosedStates(proof(&task)),
        effort: Progress::default(),
    };
    let stop = AtomicBool::new(true);
    let flags = [&stop];
    let stopped = Control::unlimited().with_cancel(&flags);
    for (policy, control, unchecked) in [
        (AuditPolicy::Always, Control::unlimited(), None),
        (
            AuditPolicy::Always,
            stopped,
            Some(Unchecked::Stopped(Stop::Cancelled)),
        ),
        (
            AuditPolicy::Never,
            Control::unlimited(),
            Some(Unchecked::Off),
        ),
    ] {
        let judged = judge(&task, "fake", answer.clone(), policy, &control);
        let judged = judged.unwrap_or_else(|u| panic!("{u}"));
        assert!(
            matches!(judged.verdict, Verdict::Holds { .. }),
            "{judged:?}"
        );
        assert_eq!(judged.unchecked, unchecked);
    }
}

fn rows(set: &ClosedStates) -> Vec<Vec<i64>> {
    let mut rows = Vec::new();
    let read: Result<(), Corrupt> = set.for_each_row(|r| {
        rows.push(r.to_vec());
        Ok(())
    });
    assert_eq!(read, Ok(()));
    rows
}

fn set_of<'r>(model: MemoryModel, rows: impl IntoIterator<Item = &'r Vec<i64>>) -> Certificate {
    let mut set = ClosedStates::new(model);
    rows.into_iter().for_each(|r| set.push(r));
    Certificate::ClosedStates(set.finish())
}

#[test]
fn a_proof_without_one_of_its_states_is_none() {
    let instance = instance(MP);
    for model in MemoryModel::ALL {
        let task = task(&instance, model);
        let rows = rows(&proof(&task));
        let control = Control::unlimited();
        assert!(audit(&task, &set_of(model, &rows), &control).is_ok());
        for missing in 0..rows.len() {
            let others = rows.iter().enumerate().filter(|(i, _)| *i != missing);
            let damaged = set_of(model, others.map(|(_, r)| r));
            let told = audit(&task, &damaged, &control);
            assert!(
                matches!(
                    told,
                    Err(AuditError::MissesInitial | AuditError::NotClosed { .. })
                ),
                "{model}: {told:?}"
            );
        }
    }
}

#[test]
fn a_set_with_a_bad_state_proves_nothing() {
    let instance = instance(SB);
    let sc = task(&instance, MemoryModel::Sc);
    let rows = rows(&proof(&sc));
    // The last state of a TSO run, where all is drained, is a state of SC too: the bad one.
    let tso = task(&instance, MemoryModel::Tso);
    let Answer::Reached { trace, .. } = Reference.run(&tso, &Control::unlimited()) else {
        panic!("SB is possible on TSO");
    };
    let states = trace.check(&tso).expect("it replays");
    let last = states.last().expect("it has states");
    let mut bad: Vec<i64> = last.locations.iter().map(|l| i64::from(l.0)).collect();
    bad.extend(last.registers.iter().flatten());
    bad.extend(&last.memory);
    bad.push(0);
    let damaged = set_of(MemoryModel::Sc, rows.iter().chain([&bad]));
    let told = audit(&sc, &damaged, &Control::unlimited());
    assert!(matches!(told, Err(AuditError::Bad { .. })), "{told:?}");
}

/// The states that have to be in a certificate, with what is taken at once.
fn shortened(task: &Task<'_>) -> ClosedStates {
    let explored = Certificate::Explored(Explored::new(task.model, 1));
    match write_down(task, &explored, &Control::unlimited()) {
        Certificate::ClosedStates(set) => set,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_shortened_proof_is_smaller_and_needs_all_of_it() {
    let instance = instance(MP);
    for model in MemoryModel::ALL {
        let task = task(&instance, model);
        let set = shortened(&task);
        let all = rows(&set);
        assert!(set.len() < proof(&task).len(), "{model}");
        let control = Control::unlimited();
        let of = |rows: &[Vec<i64>]| {
            let mut less = ClosedStates::new(model);
            less.shortened = set.shortened.clone();
            rows.iter().for_each(|r| less.push(r));
            Certificate::ClosedStates(less.finish())
        };
        assert!(audit(&task, &of(&all), &control).is_ok());
        for missing in 0..all.len() {
            let mut less = all.clone();
            less.remove(missing);
            let told = audit(&task, &of(&less), &control);
            assert!(
                matches!(
                    told,
                    Err(AuditError::MissesInitial | AuditError::NotClosed { .. })
                ),
                "{model}: {told:?}"
            );
        }
    }
}

#[test]
fn what_others_may_notice_is_not_taken_at_once() {
    // Whoever may load early never sees the store.
    let text = "shared x, y;
        thread p { x = 1; y = 1; loop { } }
        thread q { local r; r = x; }
        finally q.r != 1;";
    let instance = instance(text);
    let (p, q) = (&instance.threads[0], &instance.threads[1]);
    for model in MemoryModel::ALL {
        let task = task(&instance, model);
        let claim = |local: Vec<Vec<LocationId>>, private: Vec<Vec<CellId>>| {
            let mut set = ClosedStates::new(model);
            set.shortened = Shortened { local, private };
            let told = audit(
                &task,
                &Certificate::ClosedStates(set.finish()),
                &Control::unlimited(),
            );
            matches!(told, Err(AuditError::NotLocal(_)))
        };
        let x = CellId(0);
        assert!(
            claim(vec![vec![], vec![q.entry]], vec![vec![]; 2]),
            "a load"
        );
        assert!(claim(vec![vec![]; 2], vec![vec![x], vec![]]), "a store");
        let far = LocationId::new(q.locations.len());
        assert!(claim(vec![vec![], vec![far]], vec![vec![]; 2]), "nowhere");
        assert!(claim(vec![vec![]; 2], vec![vec![CellId(9)], vec![]]));
        assert!(claim(vec![vec![p.entry]], vec![vec![]]), "too few threads");
        // Everything that stays where it is, or goes round: the thread would never be done.
        let all = (0..p.locations.len()).map(LocationId::new);
        assert!(
            claim(vec![all.collect(), vec![]], vec![vec![]; 2]),
            "a cycle"
        );
        let deadlock = Task {
            deadlock: true,
            ..task
        };
        let mut set = ClosedStates::new(model);
        set.shortened.local = vec![vec![], vec![q.entry]];
        set.shortened.private = vec![vec![]; 2];
        let set = Certificate::ClosedStates(set.finish());
        let told = audit(&deadlock, &set, &Control::unlimited());
        assert!(matches!(told, Err(AuditError::NotLocal(_))), "{told:?}");
    }
}

#[test]
fn exploring_finds_what_a_claim_to_have_explored_hides() {
    let instance = instance(SB);
    for (model, fine) in [
        (MemoryModel::Sc, true),
        (MemoryModel::Tso, false),
        (MemoryModel::Pso, false),
    ] {
        let task = task(&instance, model);
        let explored = Certificate::Explored(Explored::new(model, 1));
        let told = audit(&task, &explored, &Control::unlimited());
        match fine {
            true => assert!(told.is_ok(), "{told:?}"),
            false => assert!(matches!(told, Err(AuditError::Bad { .. })), "{told:?}"),
        }
    }
}

#[test]
fn rows_that_are_no_states_are_told() {
    let instance = instance(MP);
    let task = task(&instance, MemoryModel::Tso);
    let good = rows(&proof(&task));
    let control = Control::unlimited();
    for i in 0..good[0].len() {
        for odd in [-1, 1 << 40, i64::MIN] {
            let mut row = good[0].clone();
            row[i] = odd;
            let told = audit(&task, &set_of(MemoryModel::Tso, [&row]), &control);
            assert!(told.is_err(), "{row:?}");
        }
        let short = good[0][..i].to_vec();
        let told = audit(&task, &set_of(MemoryModel::Tso, [&short]), &control);
        assert!(matches!(told, Err(AuditError::Corrupt(_))), "{told:?}");
    }
    let told = audit(&task, &set_of(MemoryModel::Pso, &good), &control);
    assert_eq!(told, Err(AuditError::WrongModel(MemoryModel::Pso)));
}

#[test]
fn detours_are_taken_out() {
    let text = "shared x, y;
thread p { local a; x = 1; a = y; }
thread q { local b; while b == 0 { b = 0; choose { b = 1; } or { skip; } } y = 1; b = x; }
finally !(p.a == 0 && q.b == 0);
";
    let instance = instance(text);
    let task = task(&instance, MemoryModel::Tso);
    let Answer::Reached { trace, .. } = Reference.run(&task, &Control::unlimited()) else {
        panic!("SB is possible on TSO");
    };
    let best = minimise(&task, &trace, &Control::unlimited());
    assert!(best.check(&task).is_ok());
    // Breadth-first search finds a shortest one; only its order can be better.
    assert_eq!(cost(&task, &best).0, trace.events.len());
    assert!(cost(&task, &best) <= cost(&task, &trace));
    assert!(cost(&task, &best).1 <= 2, "{best:?}");
}

#[test]
fn traces_that_show_nothing_are_refused() {
    let instance = instance(SB);
    let tso = task(&instance, MemoryModel::Tso);
    let Answer::Reached { trace, .. } = Reference.run(&tso, &Control::unlimited()) else {
        panic!("SB is possible on TSO");
    };
    assert!(trace.check(&tso).is_ok());
    let broken = |change: &dyn Fn(&mut Trace)| {
        let mut t = trace.clone();
        change(&mut t);
        assert!(t.check(&tso).is_err(), "{t:?}");
    };
    for i in 0..trace.events.len() {
        broken(&|t| {
            t.events.remove(i);
        });
    }
    broken(&|t| t.end = End::Deadlock);
    broken(&|t| t.start.memory[0] = 1);
    broken(&|t| {
        t.start.registers.pop();
    });
    broken(&|t| {
        t.events.push(Event::Step {
            thread: ThreadId(9),
            step: StepId(99),
            value: None,
        });
    });
    assert!(trace.check(&task(&instance, MemoryModel::Sc)).is_err());
}

//! Locks with levels, right and wrong in many ways: what `levels` proves, no instance breaks, every state of a few
//! threads is stood for, and a forged certificate is refused.

use wattle::plan;
use wattle::{MemoryModel, Options};
use wattle_auditor::{Solvers, audit_open, levels};
use wattle_evidence::certificate::levels::{Against, Holds, Levels};
use wattle_evidence::{AnyNumber, Certificate, Control, OpenTask, Proof, Task, Verdict};
use wattle_model::{Counts, LocationId, Program};
use wattle_random::{Profile, filter_locks, source};

const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

fn program(text: &str) -> Program {
    let program = wattle_syntax::wtl::parse(text).program;
    program.unwrap_or_else(|| panic!("{text}"))
}

fn asked(program: &Program, model: MemoryModel) -> OpenTask<'_> {
    OpenTask {
        of: AnyNumber::Program(program),
        model,
        question: Some(0),
        deadlock: false,
    }
}

fn options(engine: &str) -> Options {
    Options {
        engine: Some(engine.into()),
        ..Options::default()
    }
}

/// The certificate of what `levels` says of it, audited; none if it says nothing. What small instances have
/// against it is asked on the way.
fn proved(program: &Program, model: MemoryModel, text: &str) -> Option<Levels> {
    let control = Control::unlimited();
    let outcome = plan::run(&asked(program, model), &options("levels"), &control);
    let outcome = outcome.unwrap_or_else(|e| panic!("{model} {e:?}\n{text}"));
    assert!(
        outcome.warnings.is_empty(),
        "{:?}\n{text}",
        outcome.warnings
    );
    match outcome.judged.verdict {
        Verdict::Holds {
            proof: Proof::Certificate(Certificate::Levels(levels)),
            ..
        } => Some(levels),
        Verdict::Undecided { .. } => None,
        other => panic!("{model} {other:?}\n{text}"),
    }
}

/// Whether three threads break it.
fn broken(program: &Program, model: MemoryModel) -> bool {
    (2..=3).any(|n| {
        let instance = program.instantiate(&Counts([("p".to_string(), n)].into()));
        let task = Task {
            instance: &instance.expect("an instance"),
            model,
            question: Some(0),
            deadlock: false,
        };
        let control = Control::unlimited().with_budget(Some(2_000_000));
        let outcome = plan::run(&task, &options("explicit"), &control).expect("sound");
        matches!(outcome.judged.verdict, Verdict::Violated { .. })
    })
}

#[test]
fn what_is_proved_is_so() {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..24 {
        let text = source(seed, Profile::Levels).text;
        let program = program(&text);
        let model = MODELS[seed as usize % 3];
        match proved(&program, model, &text) {
            Some(_) => {
                assert!(!broken(&program, model), "{model}\n{text}");
                right += 1;
            }
            None => wrong += 1,
        }
    }
    assert!(right > 0 && wrong > 0, "{right} {wrong}");
}

/// Every state of three threads looks, from any two of them and any level, like something in the set: its first ones here.
#[test]
fn states_are_stood_for() {
    let [numbers, threads] = filter_locks();
    for (model, text) in MODELS.into_iter().zip([&numbers, &threads, &numbers]) {
        let program = program(text);
        let certificate = proved(&program, model, text).expect("it is right");
        let instance = |n| program.instantiate(&Counts([("p".to_string(), n)].into()));
        let instances = [1, 2, 3].map(|n| instance(n).expect("an instance"));
        let control = Control::unlimited();
        let outside = levels::outside(&program, &certificate, &instances, (20_000, 2), &control);
        assert_eq!(outside, Ok(None), "{model}");
        // A claim about memory that is wrong from the start is noticed.
        let other = text.replace("p = none", "p = self");
        let other = [1, 2].map(|n| {
            let other = self::program(&other);
            let instance = other.instantiate(&Counts([("p".to_string(), n)].into()));
            instance.expect("an instance")
        });
        let outside = levels::outside(&program, &certificate, &other, (200, 2), &control);
        assert!(matches!(outside, Ok(Some(_))), "{model} {outside:?}");
    }
}

#[test]
fn forged_certificates_are_refused() {
    let texts = filter_locks();
    let own = Solvers::own();
    let control = Control::unlimited();
    for lock in &texts {
        let right = program(lock);
        let task = asked(&right, MemoryModel::Tso);
        let certificate = proved(&right, MemoryModel::Tso, lock).expect("it is right");
        let audit = |task: &OpenTask<'_>, c: &Levels| {
            audit_open(&own, task, &Certificate::Levels(c.clone()), None, &control)
        };
        audit(&task, &certificate).expect("it is audited");
        let forgeries: [fn(&mut Levels); 13] = [
            |c| c.model = MemoryModel::Sc,
            |c| c.skips = [true, true],
            |c| c.reached.clear(),
            |c| c.passed.clear(),
            |c| {
                c.passed.clear();
                c.reached.clear();
            },
            |c| c.reached.retain(|(_, a)| *a != Against::At),
            |c| c.passed = c.reached.clone(),
            |c| c.passed.push((LocationId(0), Against::Below)),
            |c| c.level = wattle_model::RegisterId(0),
            |c| c.behind = wattle_model::RegionId(0),
            |c| c.registers.fill(Holds::Data),
            |c| c.known.fill(false),
            |c| c.regions.truncate(1),
        ];
        for (f, forge) in forgeries.iter().enumerate() {
            let mut forged = certificate.clone();
            forge(&mut forged);
            assert!(audit(&task, &forged).is_err(), "{f}\n{lock}");
        }
        // One level too few, one fence too few, who stays behind says so too late; and two more are asked for.
        for (what, with) in [
            ("l = 1;", "l = 2;"),
            ("while l < count(p) {", "while l < count(p) - 1 {"),
            (
                "if l == count(p) - 1 { break; } l",
                "if self == l { break; } l",
            ),
            ("fence; q", "q"),
            ("victim[l] = self;", ""),
            ("if level[q] < l { break; }", "if level[q] <= l { break; }"),
            ("never p[i]@cs && p[j]@cs", "never p[i]@cs"),
        ] {
            if lock.contains(what) {
                let wrong = program(&lock.replace(what, with));
                let wrong = asked(&wrong, MemoryModel::Tso);
                assert!(audit(&wrong, &certificate).is_err(), "{what}");
            }
        }
    }
}

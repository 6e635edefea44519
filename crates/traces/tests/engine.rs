//! The engine against the explicit one on random programs with properties: the same verdicts; every proof
//! passes its audit, and none does after it has been tampered with.

use std::sync::atomic::{AtomicU64, Ordering};
use wattle_auditor::{AuditError, audit};
use wattle_evidence::certificate::Runs;
use wattle_evidence::{Answer, Certificate, Control, Engine, Pace, Progress, Reason, Stop, Task};
use wattle_memory::MemoryModel;
use wattle_model::Program;
use wattle_random::{Rng, Shape, trial};
use wattle_search::Explicit;
use wattle_traces::Traces;

/// So many polls and no more: some programs have very many traces.
struct Few(AtomicU64);

impl Pace for Few {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 {
            Err(Stop::Cancelled)
        } else {
            Ok(())
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[derive(Debug, Default)]
struct Tally {
    reached: u64,
    unreachable: u64,
    undecided: u64,
    refused: u64,
    forged: u64,
}

fn tasks<'i>(instance: &'i wattle_model::Instance) -> Vec<Task<'i>> {
    let mut tasks = Vec::new();
    for model in MemoryModel::ALL {
        for question in (0..instance.questions.len()).map(Some).chain([None]) {
            for deadlock in [false, true] {
                tasks.push(Task {
                    instance,
                    model,
                    question,
                    deadlock: deadlock && question.is_none(),
                });
            }
        }
    }
    tasks.dedup_by_key(|t| (t.model, t.question, t.deadlock));
    tasks
}

fn compare(program: &Program, tally: &mut Tally) -> Option<String> {
    let instance = program.instance().ok()?;
    for task in tasks(&instance) {
        let say = |what: String| {
            let (model, q, d) = (task.model, task.question, task.deadlock);
            Some(format!("{model}, question {q:?}, deadlock {d}: {what}"))
        };
        if Traces.accepts(&task).is_err() {
            tally.refused += 1;
            continue;
        }
        let few = Few(AtomicU64::new(4));
        let ours = Traces.run(&task, &Control::unlimited().with_pace(&few));
        let theirs = Explicit::default().run(&task, &Control::unlimited());
        match (&ours, &theirs) {
            (
                Answer::Undecided {
                    reason: Reason::Other(why),
                    ..
                },
                _,
            ) if why.contains("lost") => {
                return say(why.clone());
            }
            (Answer::Undecided { .. }, _) => tally.undecided += 1,
            (Answer::Reached { trace, .. }, Answer::Reached { .. }) => {
                tally.reached += 1;
                if let Err(why) = trace.check(&task) {
                    return say(format!("the run does not replay: {why} {:?}", trace.end));
                }
            }
            (Answer::Unreachable { certificate, .. }, Answer::Unreachable { .. }) => {
                tally.unreachable += 1;
                if let Err(why) = audit(&task, certificate, &Control::unlimited()) {
                    return say(format!("the audit: {why}"));
                }
            }
            (ours, theirs) => {
                let short = |a: &Answer| format!("{a:?}").chars().take(300).collect::<String>();
                return say(format!("{} against {}", short(ours), short(theirs)));
            }
        }
    }
    None
}

#[test]
fn the_same_verdicts() {
    let shape = Shape::default();
    let (_, tally) = trial(&shape, 250, 7001, |p, _, t: &mut Tally| compare(p, t));
    println!("{tally:?}");
}

#[test]
fn the_same_verdicts_with_faults_and_without_locks() {
    let shape = Shape {
        faults: true,
        locks: false,
        ..Shape::default()
    };
    let (_, tally) = trial(&shape, 250, 170_001, |p, _, t: &mut Tally| compare(p, t));
    println!("{tally:?}");
}

/// Lock regions that are atomic blocks in all but name.
#[test]
fn the_same_verdicts_with_regions_as_blocks() {
    let shape = Shape {
        locks: true,
        atomics: false,
        arrays: false,
        any: false,
        ..Shape::default()
    };
    let mut regions = 0;
    let (_, tally) = trial(&shape, 250, 52_001, |p, _, t: &mut Tally| {
        let instance = p.instance().ok()?;
        let questions = instance.questions.iter().map(Some).chain([None]);
        let blocks = questions.filter(|q| instance.with_regions_as_blocks(*q).is_some());
        regions += blocks.count();
        compare(p, t)
    });
    println!("{tally:?}, {regions} with regions as blocks");
    assert!(regions > 50);
}

/// A run: how many moves it has in common with the one before, and its own.
type Run = (u64, Vec<(u64, u64)>);

fn number(bytes: &mut std::slice::Iter<'_, u8>) -> u64 {
    let (mut n, mut shift) = (0, 0);
    for b in bytes.by_ref() {
        n |= u64::from(b & 0x7f) << shift;
        shift += 7;
        if b & 0x80 == 0 {
            break;
        }
    }
    n
}

fn read(runs: &Runs) -> Vec<Run> {
    let mut bytes = runs.bytes.iter();
    let mut all = Vec::new();
    for _ in 0..runs.count {
        let common = number(&mut bytes);
        let moves = (0..number(&mut bytes)).map(|_| {
            let label = number(&mut bytes);
            let choice = if label % 2 == 1 {
                number(&mut bytes)
            } else {
                0
            };
            (label / 2, choice)
        });
        let moves = moves.collect();
        all.push((common, moves));
    }
    all
}

/// The runs in full, and back.
fn full(runs: &[Run]) -> Vec<Vec<(u64, u64)>> {
    let mut all: Vec<Vec<(u64, u64)>> = Vec::new();
    for (common, moves) in runs {
        let mut run = all.last().cloned().unwrap_or_default();
        run.truncate(*common as usize);
        run.extend(moves);
        all.push(run);
    }
    all
}

fn write(full: &[Vec<(u64, u64)>]) -> Runs {
    fn put(bytes: &mut Vec<u8>, mut n: u64) {
        while n >= 0x80 {
            bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        bytes.push(n as u8);
    }
    let mut bytes = Vec::new();
    let mut last: &[(u64, u64)] = &[];
    for run in full {
        let common = run.iter().zip(last).take_while(|(a, b)| a == b).count();
        put(&mut bytes, common as u64);
        put(&mut bytes, (run.len() - common) as u64);
        for (process, choice) in &run[common..] {
            put(&mut bytes, process * 2 + u64::from(*choice > 0));
            if *choice > 0 {
                put(&mut bytes, *choice);
            }
        }
        last = run;
    }
    let count = full.len() as u64;
    Runs { count, bytes }
}

/// Forged certificates: a run left out, cut short, with a move more, another, or two exchanged.
fn forge(program: &Program, n: u64, tally: &mut Tally) -> Option<String> {
    let instance = program.instance().ok()?;
    let mut rng = Rng::new(n);
    for model in MemoryModel::ALL {
        let task = Task {
            instance: &instance,
            model,
            question: None,
            deadlock: false,
        };
        let few = Few(AtomicU64::new(2));
        let control = Control::unlimited().with_pace(&few);
        if Traces.accepts(&task).is_err() {
            continue;
        }
        let Answer::Unreachable {
            certificate: Certificate::Traces(proof),
            ..
        } = Traces.run(&task, &control)
        else {
            continue;
        };
        for _ in 0..3 {
            let mut forged = proof.clone();
            let at = rng.below(forged.starts.len());
            let mut runs = full(&read(&forged.starts[at]));
            if runs.len() < 2 {
                continue;
            }
            let r = rng.below(runs.len());
            let len = runs[r].len();
            match rng.below(4) {
                0 | 1 => {
                    runs.remove(r);
                }
                2 => {
                    runs[r].truncate(rng.below(len.max(1)));
                }
                _ => {
                    let k = rng.below(len.max(1));
                    runs[r][k].0 = rng.below(2 * instance.threads.len()) as u64;
                }
            }
            let before = full(&read(&proof.starts[at]));
            if runs == before {
                continue;
            }
            forged.starts[at] = write(&runs);
            let certificate = Certificate::Traces(forged);
            match audit(&task, &certificate, &Control::unlimited()) {
                Err(AuditError::Stopped(_)) => return Some("stopped".into()),
                Err(_) => tally.forged += 1,
                Ok(_) => {
                    return Some(format!(
                        "{model}: forged and accepted\n{before:?}\n{runs:?}"
                    ));
                }
            }
        }
    }
    None
}

#[test]
fn forged_certificates_are_refused() {
    let shape = Shape {
        properties: false,
        ..Shape::default()
    };
    let (_, tally) = trial(&shape, 250, 30_001, |p, n, t: &mut Tally| forge(p, n, t));
    println!("{tally:?}");
    assert!(tally.forged > 500, "{tally:?}");
}

/// A proof about the program's question of this number, if traces have one.
fn proved(
    instance: &wattle_model::Instance,
    model: MemoryModel,
    question: usize,
) -> Option<wattle_evidence::certificate::Traces> {
    let task = Task {
        instance,
        model,
        question: Some(question),
        deadlock: false,
    };
    match Traces.run(&task, &Control::unlimited()) {
        Answer::Unreachable {
            certificate: Certificate::Traces(proof),
            ..
        } => Some(proof),
        _ => None,
    }
}

/// Nobody waits but in loops: of the runs none can be left out, though who waits to the end is in no race.
#[test]
fn no_run_of_threads_that_wait_in_loops_can_be_left_out() {
    let mut refused = 0;
    for text in [
        "shared x: 0..2; thread p { await x == 1; end: skip; } thread q { x = 1; x = 0; } never x == 2;",
        "shared x: 0..2, y: 0..2; thread p { await x == 1; y = 1; } thread q { x = 1; x = 2; }
         thread r { await x == 2; y = 2; } never x == 1 && y == 2 && y == 1;",
        "shared x: 0..2, y: 0..2; thread p { local r: 0..2; again: r = x; if r != 1 { goto again; } y = 1; }
         thread q { x = 1; x = 0; await y == 1; } never x == 2;",
    ] {
        let parsed = wattle_syntax::wtl::parse(text);
        let program = parsed.program.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let instance = program.instance().expect("an instance");
        for model in MemoryModel::ALL {
            let proof = proved(&instance, model, 0).unwrap_or_else(|| panic!("no proof on {model}: {text}"));
            let task = Task {
                instance: &instance,
                model,
                question: Some(0),
                deadlock: false,
            };
            let taken = |p: &wattle_evidence::certificate::Traces| {
                audit(&task, &Certificate::Traces(p.clone()), &Control::unlimited()).is_ok()
            };
            assert!(taken(&proof), "{model}: {text}");
            let runs = full(&read(&proof.starts[0]));
            assert!(runs.len() > 1, "{model}: {text}");
            for r in 0..runs.len() {
                let mut fewer = proof.clone();
                let kept = runs.iter().enumerate().filter(|(i, _)| *i != r);
                fewer.starts[0] = write(&kept.map(|(_, run)| run.clone()).collect::<Vec<_>>());
                assert!(!taken(&fewer), "{model} without {r}: {text}");
                fewer.starts[0] = write(&runs[r..=r]);
                assert!(!taken(&fewer), "{model}, {r} alone: {text}");
                refused += 2;
            }
        }
    }
    assert!(refused > 30, "{refused}");
}

/// A loop whose rounds the question sees does not only wait: a proof that leaves them out is about another question.
#[test]
fn rounds_that_the_question_sees_are_not_left_out() {
    let text = "shared x: 0..2; thread p { local r: 0..2 = 2; again: r = x; if r != 1 { goto again; } end: skip; }
        thread q { x = 1; } never x == 2; never p.r == 0; never p.r == 0 && x == 1;";
    let program = wattle_syntax::wtl::parse(text).program.expect("it parses");
    let instance = program.instance().expect("an instance");
    for model in MemoryModel::ALL {
        let proof = proved(&instance, model, 0).expect("nobody stores 2");
        for question in 0..3 {
            let task = Task {
                instance: &instance,
                model,
                question: Some(question),
                deadlock: false,
            };
            let proof = Certificate::Traces(proof.clone());
            let taken = audit(&task, &proof, &Control::unlimited());
            assert_eq!(
                taken.is_ok(),
                question == 0,
                "{model} {question}: {taken:?}"
            );
        }
    }
}

/// Threads that never want the same cell have one trace, whatever the lock.
#[test]
fn regions_of_different_cells_do_not_mind_each_other() {
    let thread = |t: usize| {
        format!(
            "thread t{t}\ninitial q0\nfinal never\ntransition q0 q1 lock\ntransition q1 q2 read r {t}\n\
             transition q2 q3 check == r 0\ntransition q3 q4 write 1 {t}\ntransition q4 done unlock\n\
             transition q2 q5 check != r 0\ntransition q5 done unlock\ntransition done never check == r 7\nend\n"
        )
    };
    let text: String = (0..6).map(thread).collect();
    let program = wattle_syntax::trencher::parse(&text)
        .program
        .expect("a program");
    let instance = program.instance().expect("an instance");
    for model in MemoryModel::ALL {
        let task = Task {
            instance: &instance,
            model,
            question: Some(0),
            deadlock: false,
        };
        let answer = Traces.run(&task, &Control::unlimited());
        let Answer::Unreachable {
            certificate,
            effort,
        } = answer
        else {
            panic!("{model}: {answer:?}");
        };
        assert_eq!(effort.states, 1, "{model}");
        audit(&task, &certificate, &Control::unlimited()).expect("it proves");
    }
}

//! Cartesian vectors against the search that leaves nothing out: the same final states, the same verdicts, proofs that
//! pass their audit, on random programs (with loops too) and on all examples, under all models.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Engine, Pace, Progress, Reason, Stop, Task};
use wattle_memory::MemoryModel;
use wattle_memory::compiled::Observed;
use wattle_model::{CellId, Instance, Program, RegisterId, ThreadId};
use wattle_random::{Loops, Shape, trial};
use wattle_search::{Explicit, Options, Reduce};
use wattle_traces::Cartesian;

/// So many polls and no more: buffers here have no end.
struct Few(AtomicU64);

impl Few {
    fn new(polls: u64) -> Self {
        Few(AtomicU64::new(polls))
    }
}

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
    finals: u64,
    faults: u64,
    reached: u64,
    unreachable: u64,
    undecided: u64,
    refused: u64,
    /// States stored by vectors, and by the search that leaves nothing out.
    ours: u64,
    theirs: u64,
}

fn everything(instance: &Instance) -> Vec<Observed> {
    let cells = (0..instance.cells.len()).map(|c| Observed::Cell(CellId::new(c)));
    let registers = instance.threads.iter().enumerate().flat_map(|(t, thread)| {
        (0..thread.registers.len())
            .map(move |r| Observed::Register(ThreadId::new(t), RegisterId::new(r)))
    });
    cells.chain(registers).collect()
}

fn nothing_left_out() -> Explicit {
    let options = Options {
        symmetry: false,
        ..Options::default().reduced(Reduce::None)
    };
    Explicit { options }
}

fn finals_differ(instance: &Instance, tally: &mut Tally) -> Option<String> {
    let observed = everything(instance);
    for model in MemoryModel::ALL {
        let few = Few::new(40);
        let control = Control::unlimited().with_pace(&few);
        let none = Reduce::None.reductions();
        let theirs = wattle_search::final_states_with(instance, model, &observed, none, &control);
        let few = Few::new(40);
        let control = Control::unlimited().with_pace(&few);
        let ours = wattle_traces::final_states_by_vectors(instance, model, &observed, &control);
        match (theirs, ours) {
            (_, Err(wattle_traces::NoFinals::Undecided(Reason::Other(why))))
                if why.contains("lost") =>
            {
                return Some(format!("{model}: {why}"));
            }
            (_, Err(wattle_traces::NoFinals::Undecided(Reason::Refused(_)))) => tally.refused += 1,
            (_, Err(wattle_traces::NoFinals::Undecided(_)))
            | (Err(wattle_search::NoFinals::Undecided(_)), _) => tally.undecided += 1,
            (Ok(a), _) if a.cut != wattle_search::rounds::Cut::Nothing => tally.undecided += 1,
            (Ok(a), Ok(b)) => {
                tally.finals += 1;
                tally.ours += b.effort.states;
                tally.theirs += a.effort.states;
                let (a, b): (BTreeSet<_>, BTreeSet<_>) = (a.states, b.states);
                if a != b {
                    let missing: Vec<_> = a.difference(&b).collect();
                    let extra: Vec<_> = b.difference(&a).collect();
                    return Some(format!("{model}: missing {missing:?}, extra {extra:?}"));
                }
            }
            (Err(wattle_search::NoFinals::Fault(_)), Err(wattle_traces::NoFinals::Fault(_))) => {
                tally.faults += 1;
            }
            (a, b) => return Some(format!("{model}: {a:?} against {b:?}")),
        }
    }
    None
}

fn verdicts_differ(instance: &Instance, polls: u64, tally: &mut Tally) -> Option<String> {
    for model in MemoryModel::ALL {
        for question in (0..instance.questions.len()).map(Some).chain([None]) {
            let task = Task {
                instance,
                model,
                question,
                deadlock: false,
            };
            let say = |what: String| Some(format!("{model}, question {question:?}: {what}"));
            if Cartesian.accepts(&task).is_err() {
                tally.refused += 1;
                continue;
            }
            let few = Few::new(polls);
            let ours = Cartesian.run(&task, &Control::unlimited().with_pace(&few));
            let few = Few::new(4 * polls);
            let theirs = nothing_left_out().run(&task, &Control::unlimited().with_pace(&few));
            match (&ours, &theirs) {
                (
                    Answer::Undecided {
                        reason: Reason::Other(why),
                        ..
                    },
                    _,
                ) if why.contains("lost") => return say(why.clone()),
                (Answer::Undecided { .. }, _) | (_, Answer::Undecided { .. }) => {
                    tally.undecided += 1;
                }
                (
                    Answer::Reached { trace, .. },
                    Answer::Reached { .. } | Answer::Bounded { .. },
                ) => {
                    tally.reached += 1;
                    if let Err(why) = trace.check(&task) {
                        return say(format!("the run does not replay: {why} {:?}", trace.end));
                    }
                }
                (
                    Answer::Unreachable { certificate, .. },
                    Answer::Unreachable { .. } | Answer::Bounded { .. },
                ) => {
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
    }
    None
}

fn both_differ(program: &Program, tally: &mut Tally) -> Option<String> {
    let instance = program.instance().ok()?;
    finals_differ(&instance, tally).or_else(|| verdicts_differ(&instance, 10, tally))
}

#[test]
fn random_programs() {
    let shape = Shape::default();
    let (programs, tally) = trial(&shape, 150, 301_001, |p, _, t: &mut Tally| {
        both_differ(p, t)
    });
    println!("{tally:?}");
    assert!(tally.finals > programs, "{tally:?}");
    assert!(tally.ours < tally.theirs, "{tally:?}");
}

#[test]
fn random_programs_with_loops() {
    let shape = Shape {
        loops: Loops::Fenced,
        locks: false,
        ..Shape::default()
    };
    let (programs, tally) = trial(&shape, 150, 302_001, |p, _, t: &mut Tally| {
        both_differ(p, t)
    });
    println!("{tally:?}");
    assert!(tally.finals > programs / 2, "{tally:?}");
}

#[test]
fn random_programs_with_faults() {
    let shape = Shape {
        faults: true,
        ..Shape::default()
    };
    let (_, tally) = trial(&shape, 200, 303_001, |p, _, t: &mut Tally| {
        both_differ(p, t)
    });
    println!("{tally:?}");
    assert!(tally.faults > 0, "{tally:?}");
}

#[test]
fn all_examples() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut tally = Tally::default();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "wtl"))
        .collect();
    files.sort();
    assert!(files.len() > 50);
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a text");
        let program = wattle_syntax::wtl::parse(&text).program;
        let Some(instance) = program.and_then(|p| p.instance().ok()) else {
            continue;
        };
        let differs = verdicts_differ(&instance, 1, &mut tally);
        assert!(differs.is_none(), "{}: {differs:?}", path.display());
    }
    println!("{tally:?}");
    assert!(tally.reached > 20 && tally.unreachable > 20, "{tally:?}");
}

/// calin-2016, Figure 4.5: two threads that count apart and look at each other's number at the end.
#[test]
fn two_that_count_apart() {
    let count = "x = x + 1; ".repeat(6);
    let text = format!(
        "shared x: 0..9, y: 0..9; thread p {{ local r: 0..9; {count} r = y; }} \
         thread q {{ local r: 0..9; {} r = x; }}",
        count.replace('x', "y")
    );
    let program = wattle_syntax::wtl::parse(&text).program;
    let instance = program.and_then(|p| p.instance().ok()).expect("a program");
    let observed = everything(&instance);
    let (sc, control) = (MemoryModel::Sc, Control::unlimited());
    let found = wattle_traces::final_states_by_vectors(&instance, sc, &observed, &control);
    let found = found.expect("final states");
    let reductions = Reduce::None.reductions();
    let all = wattle_search::final_states_with(&instance, sc, &observed, reductions, &control);
    let all = all.expect("final states");
    assert_eq!(found.states, all.states);
    assert!(
        found.effort.states * 4 < all.effort.states,
        "{} of {}",
        found.effort.states,
        all.effort.states
    );
}

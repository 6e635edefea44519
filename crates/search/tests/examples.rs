//! Every reduction against none, on all examples and under all models: the same verdicts, deadlocks and final states.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use wattle_evidence::{Answer, Control, Engine, Pace, Progress, Stop, Task};
use wattle_memory::MemoryModel;
use wattle_model::{CellId, Instance, RegisterId, ThreadId};
use wattle_search::rounds::Cut;
use wattle_search::{Explicit, NoFinals, Observed, Options, Reduce, final_states_with};
use wattle_syntax::Language;

/// So many polls and no more: without reductions some examples have very many states, or no end of them.
struct Few(AtomicU64);

/// For the search that leaves nothing out; the others begin anew now and then.
const FEW: u64 = 6;

impl Few {
    fn new(polls: u64) -> Self {
        Few(AtomicU64::new(polls))
    }
}

impl Pace for Few {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        match left {
            0 => Err(Stop::Cancelled),
            _ => Ok(()),
        }
    }

    fn is_over(&self) -> bool {
        false
    }
}

#[derive(Debug, Default)]
struct Tally {
    programs: u64,
    reached: u64,
    unreachable: u64,
    open: u64,
    finals: u64,
    faults: u64,
}

/// What is the same whatever is left out: what an answer says. None if it says nothing.
fn said(answer: &Answer) -> Option<bool> {
    match answer {
        Answer::Reached { .. } => Some(true),
        Answer::Unreachable { .. } => Some(false),
        Answer::Bounded { .. } | Answer::Undecided { .. } => None,
    }
}

fn verdicts(name: &str, instance: &Instance, tally: &mut Tally) {
    let questions = (0..instance.questions.len()).map(|q| (Some(q), false));
    for (question, deadlock) in questions.chain([(None, true)]) {
        for model in MemoryModel::ALL {
            let task = Task {
                instance,
                model,
                question,
                deadlock,
            };
            let ask = |polls: u64, reduce: Reduce, symmetry: bool| {
                let options = Options {
                    symmetry,
                    ..Options::default().reduced(reduce)
                };
                let few = Few::new(polls);
                Explicit { options }.run(&task, &Control::unlimited().with_pace(&few))
            };
            let Some(whole) = said(&ask(FEW, Reduce::None, false)) else {
                tally.open += 1;
                continue;
            };
            match whole {
                true => tally.reached += 1,
                false => tally.unreachable += 1,
            }
            for reduce in Reduce::ALL {
                for symmetry in [false, true] {
                    let answer = ask(8 * FEW, reduce, symmetry);
                    let what = format!("{name} {model} {question:?} {reduce:?} {symmetry}");
                    assert_eq!(said(&answer), Some(whole), "{what}: {answer:?}");
                    if let Answer::Reached { trace, .. } = &answer {
                        assert!(trace.check(&task).is_ok(), "{what}: {:?}", trace.end);
                    }
                }
            }
        }
    }
}

fn finals(name: &str, instance: &Instance, tally: &mut Tally) {
    let cells = (0..instance.cells.len()).map(|c| Observed::Cell(CellId::new(c)));
    let registers = instance.threads.iter().enumerate().flat_map(|(t, thread)| {
        (0..thread.registers.len())
            .map(move |r| Observed::Register(ThreadId::new(t), RegisterId::new(r)))
    });
    let observed: Vec<Observed> = cells.chain(registers).collect();
    for model in MemoryModel::ALL {
        let ask = |polls: u64, reduce: Reduce| {
            let few = Few::new(polls);
            let control = Control::unlimited().with_pace(&few);
            match final_states_with(instance, model, &observed, reduce.reductions(), &control) {
                Ok(found) if found.cut == Cut::Nothing => Some(Some(found.states)),
                Err(NoFinals::Fault(_)) => Some(None),
                Ok(_) | Err(NoFinals::Undecided(_)) => None,
            }
        };
        let Some(whole) = ask(FEW, Reduce::None) else {
            tally.open += 1;
            continue;
        };
        match whole {
            Some(_) => tally.finals += 1,
            None => tally.faults += 1,
        }
        for reduce in Reduce::ALL {
            assert_eq!(
                ask(8 * FEW, reduce),
                Some(whole.clone()),
                "{name} {model} {reduce:?}"
            );
        }
    }
}

fn compare(folder: &Path, tally: &mut Tally) {
    let entries = std::fs::read_dir(folder).expect("the examples");
    let mut paths: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            compare(&path, tally);
            continue;
        }
        let extension = path.extension().and_then(|e| e.to_str());
        let Some(language) = extension.and_then(Language::from_extension) else {
            continue;
        };
        let text = std::fs::read_to_string(&path).expect("a text");
        let program = wattle_syntax::parse(language, &text).program;
        // Any number of threads, or no program.
        let Some(instance) = program.and_then(|p| p.instance().ok()) else {
            continue;
        };
        tally.programs += 1;
        let name = path.display().to_string();
        verdicts(&name, &instance, tally);
        finals(&name, &instance, tally);
    }
}

#[test]
fn no_reduction_changes_what_is_said_of_an_example() {
    let mut tally = Tally::default();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    compare(Path::new(folder), &mut tally);
    println!("{tally:?}");
    assert!(tally.programs > 100, "{tally:?}");
    assert!(tally.reached > 100 && tally.unreachable > 100, "{tally:?}");
    assert!(tally.finals > 100, "{tally:?}");
}

//! The reduced program under SC does what the original does with bounded buffers: compared with the
//! reference machine on random programs. And it is a valid program that reads back.

use std::collections::BTreeSet;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_extrapolate::reduction::reduce;
use wattle_memory::MemoryModel;
use wattle_memory::content::AtMostK;
use wattle_memory::layout::{Layout, Pso, Tso};
use wattle_memory::reference::{Machine, Outcome, evaluate};
use wattle_model::Instance;
use wattle_model::instance::Question;
use wattle_random::{Loops, Shape};
use wattle_search::Explicit;

fn shape(n: u64) -> Shape {
    Shape {
        threads: 2,
        statements: 3,
        registers: 2,
        greatest: 2,
        faults: n.is_multiple_of(4),
        loops: match n % 3 {
            0 => Loops::Any,
            1 => Loops::Fenced,
            _ => Loops::None,
        },
        ..Shape::default()
    }
}

/// States to look at before giving up on a program.
const MOST: usize = 4_000;

/// What bounded buffers allow: whether the first question's target (or a fault that it minds) is reached,
/// whether a buffer was full, and whether there was a fault; `None` if there are too many states.
fn bounded<L: Layout>(instance: &Instance, k: usize) -> Option<(bool, bool, bool)> {
    let machine = Machine::<L, AtMostK>::new(instance, k).ok()?;
    let question = instance.questions.first();
    let mut seen = BTreeSet::new();
    let mut work = Vec::new();
    for start in machine.starts().ok()? {
        work.push(machine.initial(&start));
    }
    let (mut bad, mut full, mut fault) = (false, false, false);
    while let Some(state) = work.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        if seen.len() > MOST {
            return None;
        }
        if let Some(q) = question
            && machine.inside_atomic(&state).is_none()
            && (!q.only_final || machine.is_final(&state))
        {
            match evaluate(&state, &q.target) {
                Ok(v) => bad |= v != 0,
                Err(_) => return None,
            }
        }
        for event in machine.events(&state) {
            match machine.apply(&state, &event) {
                Outcome::Next(next) => work.push(next),
                Outcome::Fault(_) => {
                    fault = true;
                    bad |= question.is_none_or(Question::minds_faults);
                }
                Outcome::Full(_) => full = true,
            }
        }
    }
    Some((bad, full, fault))
}

/// Whether the question of the reduced program is reached under SC; `None` if it is not decided.
fn reached(instance: &Instance, question: Option<usize>) -> Option<bool> {
    let task = Task {
        instance,
        model: MemoryModel::Sc,
        question,
        deadlock: false,
    };
    let control = Control::unlimited().with_memory(Some(64 << 20));
    match Explicit::default().run(&task, &control) {
        Answer::Reached { .. } => Some(true),
        Answer::Unreachable { .. } => Some(false),
        _ => None,
    }
}

#[test]
fn the_reduced_program_is_the_bounded_original() {
    let mut compared = [0; 2];
    let mut overflowed = 0;
    for n in 0..600u64 {
        let program = wattle_random::program(7_000_003 + n, &shape(n));
        let Ok(instance) = program.instance() else {
            continue;
        };
        for (m, model) in [MemoryModel::Tso, MemoryModel::Pso].into_iter().enumerate() {
            let k = 1 + (n % 2) as usize;
            let Ok(reduced) = reduce(&program, &instance, model, k) else {
                continue;
            };
            let text = wattle_model::print::to_wtl(&reduced);
            let what = || {
                let original = wattle_model::print::to_wtl(&program);
                format!("program {n}, {model}, k = {k}\n{original}\n{text}")
            };
            let parsed = wattle_syntax::wtl::parse(&text).program;
            let parsed = parsed.unwrap_or_else(|| panic!("does not parse: {}", what()));
            assert_eq!(
                parsed.without_spans(),
                reduced.without_spans(),
                "{}",
                what()
            );
            let theirs = match model {
                MemoryModel::Tso => bounded::<Tso>(&instance, k),
                _ => bounded::<Pso>(&instance, k),
            };
            let Some((bad, full, fault)) = theirs else {
                continue;
            };
            let after = parsed.instance().unwrap();
            let questions = instance.questions.len();
            let first = (questions > 0).then_some(0);
            let Some(mine) = reached(&after, first) else {
                continue;
            };
            assert_eq!(mine, bad, "{}", what());
            compared[m] += 1;
            // A fault may come before the overflow is seen.
            if after.questions.len() > questions && !bad && !fault {
                assert_eq!(reached(&after, Some(questions)), Some(full), "{}", what());
                overflowed += u64::from(full);
            } else {
                assert!(bad || fault || !full, "{}", what());
            }
        }
    }
    println!("compared {compared:?}, {overflowed} with overflow");
    assert!(
        compared.iter().all(|n| *n > 150) && overflowed > 10,
        "{compared:?} {overflowed}"
    );
}

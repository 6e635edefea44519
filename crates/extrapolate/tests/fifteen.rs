//! The fifteen programs of dan-2013 (`.wtl` and `.bit`) and abdulla-2012: their fence sets are minimal,
//! and with small ranges both engines agree with the engines for finite data.

mod limited;
mod support;

use limited::limited;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{decided, question};
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_extrapolate::Extrapolate;
use wattle_memory::MemoryModel::{self, Pso, Sc, Tso};
use wattle_model::Instance;
use wattle_model::graph::Action;
use wattle_predicates::Cegar;
use wattle_search::Explicit;
use wattle_wsts::Exact;

/// Every program with the fences that TSO needs and with those that PSO needs.
const PROGRAMS: [(&str, &str); 22] = [
    ("dan/dekker-fenced.wtl", "dan/dekker-fenced.wtl"),
    ("dan/peterson-fenced.wtl", "dan/peterson-pso.wtl"),
    ("dan/alternating-bit.wtl", "dan/alternating-bit.wtl"),
    ("dan/szymanski-fenced.wtl", "dan/szymanski-fenced.wtl"),
    ("dan/queue.wtl", "dan/queue-pso.wtl"),
    ("dan/bakery-fenced.wtl", "dan/bakery-pso.wtl"),
    ("dan/ticket.wtl", "dan/ticket.wtl"),
    ("bitchaku/dekker.bit", "bitchaku/dekker.bit"),
    ("bitchaku/peterson.bit", "bitchaku/peterson-pso.bit"),
    ("bitchaku/abp.bit", "bitchaku/abp.bit"),
    ("bitchaku/szymanski.bit", "bitchaku/szymanski.bit"),
    ("bitchaku/queue.bit", "bitchaku/queue-pso.bit"),
    ("bitchaku/bakery.bit", "bitchaku/bakery-pso.bit"),
    ("bitchaku/ticket.bit", "bitchaku/ticket.bit"),
    ("abdulla/burns-fenced.wtl", "abdulla/burns-fenced.wtl"),
    (
        "abdulla/dekker-simple-fenced.wtl",
        "abdulla/dekker-simple-fenced.wtl",
    ),
    ("abdulla/dekker-fenced.wtl", "abdulla/dekker-fenced.wtl"),
    ("abdulla/dijkstra-fenced.wtl", "abdulla/dijkstra-fenced.wtl"),
    ("abdulla/bakery-fenced.wtl", "abdulla/bakery-fenced.wtl"),
    (
        "abdulla/lamport-fast-fenced.wtl",
        "abdulla/lamport-fast-pso.wtl",
    ),
    ("abdulla/peterson-fenced.wtl", "abdulla/peterson-pso.wtl"),
    ("abdulla/ticket.wtl", "abdulla/ticket.wtl"),
];

fn example(name: &str) -> Instance {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(root.join(name)).expect("an example");
    let program = match name.ends_with(".bit") {
        true => wattle_syntax::bitchaku::parse(&text).program,
        false => wattle_syntax::wtl::parse(&text).program,
    };
    let program = program.expect("a program");
    program.instance().expect("an instance")
}

/// Every fence of every thread: the set is minimal if without it a run goes wrong. The run is found by
/// the short concrete hunt of `cegar` and replayed.
#[test]
fn one_fence_less_is_violated() {
    let mut removed = 0;
    for (tso, pso) in PROGRAMS {
        for (name, model) in [(tso, Tso), (pso, Pso)] {
            let whole = example(name);
            for t in 0..whole.threads.len() {
                for s in 0..whole.threads[t].steps.len() {
                    if !matches!(whole.threads[t].steps[s].action, Action::Fence(_)) {
                        continue;
                    }
                    let mut less = whole.clone();
                    less.threads[t].steps[s].action = Action::Skip;
                    let what = || format!("{name} without step {s} of thread {t}, {model}");
                    let task = question(&less, model);
                    let answer = Cegar::default().run(&task, &Control::unlimited());
                    assert_eq!(decided(&task, &answer, &what), Some(true), "{}", what());
                    removed += 1;
                }
            }
        }
    }
    println!("{removed} fences removed");
    assert!(removed > 80, "{removed}");
}

/// Without being told predicates: those of the proof under SC are found, and the proofs under TSO and
/// PSO come from them.
#[test]
fn predicates_are_found_under_sc_and_carry_over() {
    let fifteen = PROGRAMS.iter().filter(|(tso, _)| tso.ends_with(".wtl"));
    let mut proved = 0;
    for (tso, pso) in fifteen {
        for (name, model) in [(tso, Sc), (tso, Tso), (pso, Pso)] {
            let mut instance = example(name);
            instance.predicates.clear();
            let task = question(&instance, model);
            let what = || format!("{name}, {model}");
            let answer = Extrapolate::default().run(&task, &Control::unlimited());
            assert_eq!(decided(&task, &answer, &what), Some(false), "{}", what());
            proved += 1;
        }
    }
    assert_eq!(proved, 45);
}

/// What the engines for finite data say, if they come to an end.
fn finite(instance: &Instance, model: MemoryModel) -> Option<bool> {
    let task = question(instance, model);
    let control = Control::unlimited().with_memory(Some(64 << 20));
    let said = |answer: Answer| match answer {
        Answer::Reached { .. } => Some(true),
        Answer::Unreachable { .. } => Some(false),
        _ => None,
    };
    let explicit = said(Explicit::default().run(&task, &control));
    let exact = || (model == Tso).then(|| said(Exact.run(&task, &control)));
    explicit.or_else(|| exact().flatten())
}

/// The engine's answer within so many polls: the same on every machine.
fn briefly(engine: &dyn Engine, most: u64, task: &Task<'_>) -> Answer {
    let (polls, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let sink = |_: &'static str, _| {
        if polls.fetch_add(1, Ordering::Relaxed) > most {
            enough.store(true, Ordering::Relaxed);
        }
    };
    let flags = [&enough];
    let control = Control::unlimited().with_sink(&sink).with_cancel(&flags);
    engine.run(task, &control)
}

#[test]
fn with_small_ranges_the_engines_agree() {
    let cegar = Cegar {
        hunt: 0,
        ..Cegar::default()
    };
    let extrapolate = Extrapolate::default();
    let engines: [(&dyn Engine, u64); 2] = [(&cegar, 4_000), (&extrapolate, 3_000)];
    let (mut compared, mut open) = ([0, 0], Vec::new());
    for (tso, pso) in PROGRAMS {
        for (name, model) in [(tso, Sc), (tso, Tso), (pso, Pso)] {
            let instance = limited(example(name));
            let Some(expected) = finite(&instance, model) else {
                open.push(format!("{name} {model}: not decided for finite data"));
                continue;
            };
            for (n, (engine, most)) in engines.iter().enumerate() {
                let task = question(&instance, model);
                let what = || format!("{name} with small ranges, {model}, {}", engine.name());
                match decided(&task, &briefly(*engine, *most, &task), &what) {
                    Some(found) => assert_eq!(found, expected, "{}", what()),
                    None => {
                        open.push(what());
                        continue;
                    }
                }
                compared[n] += 1;
            }
        }
    }
    println!("{compared:?} compared; open: {open:#?}");
    assert_eq!(compared, [66, 66], "{open:#?}");
}

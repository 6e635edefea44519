//! Atomic blocks that wait, and loops that do nothing but wait: a move can be shut out, not only overtaken.

use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_memory::compiled::Observed;
use wattle_model::{CellId, Instance, RegisterId, ThreadId};
use wattle_random::Rng;
use wattle_search::{Explicit, Options, Reduce};
use wattle_traces::{Cartesian, Traces};

fn statement(rng: &mut Rng, cells: usize) -> String {
    let mut cell = || ["x", "y"][rng.below(cells)];
    let (x, y) = (cell(), cell());
    let (a, b) = (rng.below(3), rng.below(3));
    match rng.below(11) {
        0 | 1 => format!("{x} = {a};"),
        2 => format!("r = {x};"),
        3 => format!("s = {x};"),
        4 | 5 => format!("atomic {{ r = {x}; assume r == {a}; }}"),
        6 => format!("atomic {{ r = {x}; assume r != {a}; {x} = {b}; }}"),
        7 => format!("atomic {{ r = {x}; assume r == {a}; {y} = {b}; }}"),
        8 => format!("atomic buffered {{ r = {x}; assume r == {a}; {y} = {b}; }}"),
        9 => format!("r = swap({x}, {a});"),
        _ => format!("s = cas({x}, {a}, {b}); fence;"),
    }
}

fn program(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let cells = 1 + rng.below(2);
    let mut text = String::from("shared x: 0..2, y: 0..2;\n");
    for p in 0..2 + rng.below(2) {
        let n = 1 + rng.below(3);
        let body: Vec<String> = (0..n).map(|_| statement(&mut rng, cells)).collect();
        let body = body.join(" ");
        text += &format!("thread p{p} {{ local r: 0..2, s: 0..2; {body} }}\n");
    }
    text
}

fn everything(instance: &Instance) -> Vec<Observed> {
    let cells = (0..instance.cells.len()).map(|c| Observed::Cell(CellId::new(c)));
    let registers = instance.threads.iter().enumerate().flat_map(|(t, thread)| {
        (0..thread.registers.len())
            .map(move |r| Observed::Register(ThreadId::new(t), RegisterId::new(r)))
    });
    cells.chain(registers).collect()
}

/// The final states by traces, which must be those of the explicit search; and how many runs it took.
fn compare(text: &str) -> u64 {
    let parsed = wattle_syntax::wtl::parse(text);
    let Some(instance) = parsed.program.and_then(|p| p.instance().ok()) else {
        panic!("not read: {:?}\n{text}", parsed.diagnostics);
    };
    let observed = everything(&instance);
    let control = Control::unlimited();
    let mut runs = 0;
    for model in MemoryModel::ALL {
        let ours = wattle_traces::final_states(&instance, model, &observed, &control);
        let theirs = wattle_search::final_states(&instance, model, &observed, &control);
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(ours.states, theirs.states, "{model}\n{text}");
                runs += ours.work.runs;
            }
            (ours, theirs) => panic!("{model}: {ours:?} {theirs:?}\n{text}"),
        }
    }
    runs
}

#[test]
fn whoever_waits_may_have_been_shut_out() {
    // Only one gets in; the other is blocked for good and in no race.
    let lock = "atomic { r = x; assume r == 0; x = 1; }";
    let enter = |p: &str| format!("thread {p} {{ local r: 0..2; {lock} }}\n");
    let two = format!("shared x: 0..2;\n{}{}", enter("p"), enter("q"));
    assert!(compare(&two) >= 6);
    // What shuts it is not next to what opens it.
    let between = "thread q { local s: 0..2; s = fetch_add(x, 1); x = 0; }\n";
    compare(&format!("shared x: 0..2;\n{}{between}", enter("p")));
}

#[test]
fn random_programs_that_wait() {
    let runs: u64 = (0..600).map(|seed| compare(&program(seed))).sum();
    println!("{runs} runs");
    assert!(runs > 1800);
}

/// A statement beside which threads wait for a value.
fn waiting_statement(rng: &mut Rng) -> String {
    let mut cell = || ["x", "y"][rng.below(2)];
    let (x, y) = (cell(), cell());
    let (a, b) = (rng.below(3), rng.below(3));
    match rng.below(8) {
        0 | 1 => format!("{x} = {a};"),
        2 => format!("r = {y};"),
        3 | 4 => format!("await {x} == {a};"),
        5 => format!("await {x} != {a};"),
        // The register is what the loop leaves behind.
        6 => format!("again{x}{a}{b}: r = {x}; if r != {a} {{ goto again{x}{a}{b}; }}"),
        _ => format!("s = cas({x}, {a}, {b}); fence;"),
    }
}

fn waiting_program(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = String::from("shared x: 0..2, y: 0..2;\n");
    for p in 0..2 + rng.below(2) {
        let mut body: Vec<String> = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let statement = waiting_statement(&mut rng);
            // A label once.
            if !body.contains(&statement) || !statement.contains("goto") {
                body.push(statement);
            }
        }
        let body = body.join(" ");
        text += &format!("thread p{p} {{ local r: 0..2, s: 0..2; {body} end: skip; }}\n");
    }
    let (a, b) = (rng.below(3), rng.below(3));
    text += &match rng.below(5) {
        0 => format!("never x == {a} && y == {b};\n"),
        1 => format!("never p0@end && p1@end && x == {a};\n"),
        2 => format!("never p0.r == {a} && p1@end;\n"),
        3 => format!("finally x == {a} || p1.r == {b};\n"),
        _ => format!("never p0@end && y == {b};\n"),
    };
    text
}

/// Whether all say the same about the program's questions; how many were answered by traces.
fn verdicts(text: &str) -> u64 {
    let parsed = wattle_syntax::wtl::parse(text);
    let Some(instance) = parsed.program.and_then(|p| p.instance().ok()) else {
        panic!("not read: {:?}\n{text}", parsed.diagnostics);
    };
    let control = Control::unlimited();
    let options = Options {
        symmetry: false,
        ..Options::default().reduced(Reduce::None)
    };
    let mut answered = 0;
    for model in MemoryModel::ALL {
        for (question, deadlock) in [(Some(0), false), (None, true)] {
            let task = Task {
                instance: &instance,
                model,
                question,
                deadlock,
            };
            let theirs = Explicit { options }.run(&task, &control);
            for engine in [&Traces as &dyn Engine, &Cartesian] {
                if engine.accepts(&task).is_err() {
                    continue;
                }
                let name = engine.name();
                match (engine.run(&task, &control), &theirs) {
                    // The question sees the loop, which then is one that does not end.
                    (Answer::Undecided { .. }, _) => continue,
                    (Answer::Unreachable { certificate, .. }, Answer::Unreachable { .. }) => {
                        let audited = audit(&task, &certificate, &control);
                        assert!(audited.is_ok(), "{name} {model}: {audited:?}\n{text}");
                    }
                    (Answer::Reached { trace, .. }, Answer::Reached { .. }) => {
                        let replayed = trace.check(&task);
                        assert!(replayed.is_ok(), "{name} {model}: {:?}\n{text}", trace.end);
                    }
                    (ours, theirs) => {
                        let what = (question, deadlock);
                        panic!("{name} {model} {what:?}: {ours:?} against {theirs:?}\n{text}");
                    }
                }
                answered += 1;
            }
        }
    }
    answered
}

#[test]
fn loops_that_wait_are_like_blocks_that_wait() {
    let spin = "thread p { local r: 0..2; x = 1; await y == 1; r = x; }\n\
                thread q { local r: 0..2; await x == 1; x = 2; y = 1; }\n";
    let runs = compare(&format!("shared x: 0..2, y: 0..2;\n{spin}"));
    assert!(runs < 20, "{runs}");
}

#[test]
fn who_is_served_by_a_pending_store_minds_no_other_write() {
    // Both loads before the drain, and the drain before the compare-and-swap, is a trace of its own.
    let text = "shared x: 0..2, y: 0..2;\n\
                thread p0 { local s: 0..2; s = cas(x, 0, 2); fence; end: skip; }\n\
                thread p1 { local r: 0..2; x = 2; await x == 2; await x != 0; end: skip; }\n\
                never p0@end && y == 2;\n";
    compare(text);
    // Under each model at least by traces.
    assert!(verdicts(text) >= 3);
}

#[test]
fn random_programs_with_loops_that_wait() {
    // `WATTLE_FUZZ=2000` tries as many programs more.
    let more = std::env::var("WATTLE_FUZZ").ok();
    let more = more.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let (mut runs, mut answered) = (0, 0);
    for seed in 0..400 + more {
        let text = waiting_program(70_000 + seed);
        runs += compare(&text);
        answered += verdicts(&text);
    }
    println!("{runs} runs, {answered} answers");
    assert!(answered > 1000, "{answered}");
}

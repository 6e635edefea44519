//! Atomic blocks that wait: a move can be shut out, not only overtaken.

use wattle_evidence::Control;
use wattle_memory::MemoryModel;
use wattle_memory::compiled::Observed;
use wattle_model::{CellId, Instance, RegisterId, ThreadId};
use wattle_random::Rng;

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

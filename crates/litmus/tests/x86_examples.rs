//! The x86 examples with few threads, by the reference machine: what they expect for any number of
//! threads must hold for two and three.

use std::collections::BTreeSet;
use std::path::PathBuf;
use wattle_memory::reference::{Machine, Outcome, evaluate, starts};
use wattle_memory::{Exact, Layout, Pso, Sc, Start, Tso};
use wattle_model::instance::Initial;
use wattle_model::{Count, Counts, Instance};

/// Where there are too many to list: what nobody has set is the same small number everywhere.
fn few_starts(instance: &Instance) -> Vec<Start> {
    let mut all = Vec::new();
    for v in 0..128 {
        let mut some = instance.clone();
        let cells = some.cells.iter_mut().map(|c| &mut c.init);
        let registers = some.threads.iter_mut().flat_map(|t| &mut t.registers);
        for init in cells.chain(registers.map(|r| &mut r.init)) {
            if matches!(init, Initial::Any) {
                *init = Initial::Value(v);
            }
        }
        all.extend(starts(&some).expect("one start"));
    }
    all
}

/// Whether the property is violated; `None` if there are too many states to say.
fn violated<L: Layout>(instance: &Instance, limit: usize) -> Option<bool>
where
    L::Buffer<Exact>: Clone + Ord,
{
    let machine = Machine::<L, Exact>::new(instance, ()).expect("a machine");
    let starts = machine.starts().unwrap_or_else(|_| few_starts(instance));
    let mut work: std::collections::VecDeque<_> =
        starts.iter().map(|s| machine.initial(s)).collect();
    let mut seen: BTreeSet<_> = work.iter().cloned().collect();
    while let Some(state) = work.pop_front() {
        if machine.inside_atomic(&state).is_none() {
            for q in &instance.questions {
                if evaluate(&state, &q.target).expect("a value") != 0 {
                    return Some(true);
                }
            }
        }
        for event in machine.events(&state) {
            match machine.apply(&state, &event) {
                Outcome::Next(next) => {
                    if seen.insert(next.clone()) {
                        work.push_back(next);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        if seen.len() > limit {
            return None;
        }
    }
    Some(false)
}

#[test]
fn few_threads_agree() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/x86");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the examples")
        .map(|f| f.expect("a file").path())
        .filter(|p| p.extension().is_some_and(|e| e == "asm"))
        .collect();
    files.sort();
    let mut wrong = Vec::new();
    for file in &files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_string();
        let text = std::fs::read_to_string(file).expect("a file");
        let parsed = wattle_syntax::x86::parse(&text);
        let shown = parsed.render(&name, &text);
        let program = parsed.program.unwrap_or_else(|| panic!("{shown}"));
        let expected: Vec<(&str, &str)> = text
            .lines()
            .filter_map(|l| l.strip_prefix("; expect: "))
            .flat_map(|l| l.split(", ").filter_map(|e| e.split_once(' ')))
            .collect();
        assert!(!expected.is_empty(), "{name} expects nothing");
        for (model, answer) in expected {
            let mut found = false;
            for threads in [2, 3] {
                let any = program.families.iter().filter(|f| f.count == Count::Any);
                let counts = Counts(any.map(|f| (f.name.clone(), threads)).collect());
                let instance = program.instantiate(&counts).expect("an instance");
                let answer = match model {
                    "sc" => violated::<Sc>(&instance, 200_000),
                    "pso" => violated::<Pso>(&instance, 200_000),
                    _ => violated::<Tso>(&instance, 200_000),
                };
                println!("{name} {model} {threads} threads: {answer:?}");
                found |= answer == Some(true);
            }
            if found != answer.starts_with("violated") {
                wrong.push(format!("{name}: {model} should be {answer}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

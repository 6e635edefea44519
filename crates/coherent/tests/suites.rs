//! Verdicts of the suites, by abstract buffers: each violation replayed, each proof audited.

use std::path::{Path, PathBuf};
use wattle_auditor::audit;
use wattle_coherent::Coherent;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_model::Instance;

/// The verdict with at most so much memory by the engine's own account, which is the same on every
/// machine.
fn verdict(instance: &Instance, model: MemoryModel, engine: Coherent, memory: u64) -> &'static str {
    let mut worst = "holds";
    for question in 0..instance.questions.len() {
        let task = Task {
            instance,
            model,
            question: Some(question),
            deadlock: false,
        };
        let control = Control::unlimited().with_memory(Some(memory));
        match engine.run(&task, &control) {
            Answer::Reached { trace, .. } => {
                trace.check(&task).expect("the trace replays");
                return "violated";
            }
            Answer::Unreachable {
                certificate,
                effort,
            } => {
                println!("  closed after {} states", effort.states);
                if effort.states < 5_000 {
                    audit(&task, &certificate, &Control::unlimited()).expect("the proof audits");
                }
            }
            other => {
                println!("  {other:?}");
                worst = "undecided";
            }
        }
    }
    worst
}

fn suite(name: &str) -> Option<(PathBuf, Vec<Vec<String>>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/suites")
        .join(name);
    let Ok(table) = std::fs::read_to_string(root.join("expected.csv")) else {
        println!("skipped: the suite {name} is not here");
        return None;
    };
    let rows = table
        .lines()
        .map(|l| l.split(',').map(str::to_string).collect());
    Some((root, rows.collect()))
}

/// Compares a column of the table, skipping what is blank there and what the budget leaves open.
fn compare(name: &str, column: &str, model: MemoryModel, engine: Coherent, least: usize) {
    let Some((root, rows)) = suite(name) else {
        return;
    };
    let column = rows[0]
        .iter()
        .position(|c| c == column)
        .expect("the column");
    let mut decided = 0;
    for row in &rows[1..] {
        let expected = row[column].as_str();
        if expected.is_empty() {
            continue;
        }
        let text = std::fs::read_to_string(root.join(&row[0])).expect("the file");
        let parsed = match row[0].ends_with(".rmm") {
            true => wattle_syntax::rmm::parse(&text),
            false => wattle_syntax::trencher::parse(&text),
        };
        let instance = parsed
            .program
            .expect("parses")
            .instance()
            .expect("instance");
        println!("{} {model}", row[0]);
        let got = verdict(&instance, model, engine, 256 << 20);
        if got != "undecided" {
            assert_eq!(got, expected, "{} under {model}", row[0]);
            decided += 1;
        }
    }
    println!("{name} {model} {engine:?}: {decided} decided");
    assert!(decided >= least, "only {decided} decided");
}

#[test]
fn trencher_tso() {
    compare(
        "trencher/reach",
        "tso",
        MemoryModel::Tso,
        Coherent::OldestK,
        20,
    );
}

#[test]
fn trencher_tso_newest() {
    compare(
        "trencher/reach",
        "tso",
        MemoryModel::Tso,
        Coherent::NewestK,
        20,
    );
}

#[test]
fn memorax_tso() {
    compare("memorax", "tso", MemoryModel::Tso, Coherent::OldestK, 6);
}

#[test]
fn memorax_pso() {
    compare("memorax", "pso", MemoryModel::Pso, Coherent::OldestK, 4);
}

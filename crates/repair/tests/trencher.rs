//! The trencher suite: how many fences each goal needs.

use std::path::{Path, PathBuf};
use wattle_evidence::Control;
use wattle_memory::MemoryModel;
use wattle_model::instance::Counts;
use wattle_repair::{Costs, Outcome, Query, Robust, repair};
use wattle_robust::Goal;

fn suite() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites/trencher");
    if !root.is_dir() {
        println!("skipped: the trencher suite is not here");
        return None;
    }
    Some(root)
}

/// Splits a line of comma-separated values; quotes protect commas.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => {
                let last = out.len() - 1;
                out[last].push(c);
            }
        }
    }
    out
}

#[test]
fn number_of_fences() {
    let Some(root) = suite() else { return };
    let table = std::fs::read_to_string(root.join("expected.csv")).unwrap();
    let mut wrong = Vec::new();
    for line in table.lines().skip(1) {
        let row = fields(line);
        let text = std::fs::read_to_string(root.join(&row[0])).unwrap();
        let program = wattle_syntax::trencher::parse(&text).into_result().unwrap();
        for (goal, expected) in [(Goal::Robustness, &row[2]), (Goal::Triangular, &row[5])] {
            let query = Query {
                program: &program,
                counts: Counts::default(),
                model: MemoryModel::Tso,
                costs: Costs::default(),
                all: false,
            };
            let control = Control::unlimited().with_memory(Some(100 << 20));
            let begin = std::time::Instant::now();
            let answer = match repair(&query, &Robust(goal), &control).unwrap() {
                Outcome::Fixed { fixes, checks, .. } => {
                    assert!(fixes[0].needed.iter().all(|n| n.without.is_some()));
                    let sites = fixes[0].sites.iter().map(|s| format!("{s:?}"));
                    println!("  {checks} checks: {}", sites.collect::<Vec<_>>().join(" "));
                    fixes[0].sites.len().to_string()
                }
                other => format!("{other:?}"),
            };
            println!(
                "{} {goal:?}: {answer} (expected {expected}) {:?}",
                row[0],
                begin.elapsed()
            );
            if !expected.is_empty() && answer != *expected {
                wrong.push(format!(
                    "{} {goal:?}: {answer} instead of {expected}",
                    row[0]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

//! The trencher suite: how many fences each goal needs.

use wattle_evidence::Control;
use wattle_memory::MemoryModel;
use wattle_model::instance::Counts;
use wattle_random::{rows, suite};
use wattle_repair::{Costs, Outcome, Query, Robust, repair};
use wattle_robust::Goal;

#[test]
fn number_of_fences() {
    let Some(root) = suite("trencher") else {
        return;
    };
    let mut wrong = Vec::new();
    for row in rows(&root.join("expected.csv")) {
        let text = std::fs::read_to_string(root.join(&row[0])).unwrap();
        let program = wattle_syntax::trencher::parse(&text).into_result().unwrap();
        for (goal, expected) in [(Goal::Robustness, &row[2]), (Goal::Triangular, &row[5])] {
            let query = Query {
                program: &program,
                counts: Counts::default(),
                model: MemoryModel::Tso,
                costs: Costs::default(),
                all: false,
                gaps: &[],
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

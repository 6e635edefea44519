//! The trencher suite: robust yes/no and triangular-race-free yes/no on every file.

use wattle_evidence::Control;
use wattle_memory::MemoryModel;
use wattle_random::{rows, suite};
use wattle_robust::{Finding, Goal, Options, search};

#[test]
fn robust_and_triangular() {
    let Some(root) = suite("trencher") else {
        return;
    };
    let mut wrong = Vec::new();
    for row in rows(&root.join("expected.csv")) {
        let text = std::fs::read_to_string(root.join(&row[0])).unwrap();
        let program = wattle_syntax::trencher::parse(&text).into_result().unwrap();
        let instance = program.instance().unwrap();
        for (goal, expected) in [(Goal::Robustness, &row[1]), (Goal::Triangular, &row[4])] {
            let options = Options::new(goal, MemoryModel::Tso);
            let control = Control::unlimited().with_memory(Some(200 << 20));
            let begin = std::time::Instant::now();
            let found = search(&instance, options, &control);
            let (answer, effort) = match &found {
                Finding::Free { effort } => ("yes", effort),
                Finding::Found { effort, .. } => ("no", effort),
                Finding::Undecided { effort, .. } => ("undecided", effort),
            };
            println!(
                "{} {goal:?}: {answer} (expected {expected:?}), {} states, {:?}",
                row[0],
                effort.states,
                begin.elapsed()
            );
            if !expected.is_empty() && answer != expected {
                wrong.push(format!("{} {goal:?}: {answer}", row[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

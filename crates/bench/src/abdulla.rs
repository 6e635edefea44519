//! abdulla-2012, Table 1: how many fences each thread needs, found and proved by `cegar` alone,
//! without given predicates; the paper's numbers beside ours, and PSO, which the paper leaves open.
//!
//! The paper's seconds are of a 2.27 GHz laptop: compare orders of magnitude. Another count than
//! expected is a failure.

use std::time::Instant;
use wattle::Options;
use wattle::fences::{FenceOptions, Goal, fences};
use wattle_evidence::Control;
use wattle_memory::MemoryModel;
use wattle_repair::{Costs, Outcome};

/// Name, text, fences per thread under TSO (the paper's too) and PSO, the paper's seconds.
const ROWS: [(&str, &str, [usize; 2], f64); 8] = [
    (
        "Burns",
        include_str!("../../../examples/abdulla/burns.wtl"),
        [1, 1],
        0.02,
    ),
    (
        "Simple Dekker",
        include_str!("../../../examples/abdulla/dekker-simple.wtl"),
        [1, 1],
        0.04,
    ),
    (
        "Full Dekker",
        include_str!("../../../examples/abdulla/dekker.wtl"),
        [1, 1],
        0.06,
    ),
    (
        "Dijkstra",
        include_str!("../../../examples/abdulla/dijkstra.wtl"),
        [1, 1],
        0.35,
    ),
    (
        "Lamport bakery",
        include_str!("../../../examples/abdulla/bakery.wtl"),
        [2, 2],
        154.0,
    ),
    (
        "Lamport fast",
        include_str!("../../../examples/abdulla/lamport-fast.wtl"),
        [2, 3],
        2.0,
    ),
    (
        "Peterson",
        include_str!("../../../examples/abdulla/peterson.wtl"),
        [1, 2],
        2.0,
    ),
    (
        "Linux ticket lock",
        include_str!("../../../examples/abdulla/ticket.wtl"),
        [0, 0],
        2.0,
    ),
];

/// Gives the table line by line; says whether every count is the expected one.
pub fn run(line: &mut dyn FnMut(&str)) -> bool {
    line(
        "program            fences per thread:  paper  TSO  PSO   seconds:  paper     TSO     PSO",
    );
    let (mut all, mut total) = (true, [0.0; 3]);
    for (name, text, expected, paper) in ROWS {
        let wanted = expected[0];
        let found = [MemoryModel::Tso, MemoryModel::Pso].map(|model| {
            let begin = Instant::now();
            (per_thread(text, model), begin.elapsed().as_secs_f64())
        });
        all &= found.map(|(n, _)| n) == expected.map(Some);
        let [tso, pso] = found.map(|(n, s)| (n.map_or("?".into(), |n| n.to_string()), s));
        for (sum, seconds) in total.iter_mut().zip([paper, tso.1, pso.1]) {
            *sum += seconds;
        }
        line(&format!(
            "{name:<38} {wanted:>6} {:>4} {:>4} {paper:>16.2} {:>7.2} {:>7.2}",
            tso.0, pso.0, tso.1, pso.1
        ));
    }
    let [paper, tso, pso] = total;
    line(&format!("in all{paper:>65.2} {tso:>7.2} {pso:>7.2}"));
    all
}

/// The most fences any family of threads gets in a cheapest set; nothing if that is not decided.
pub fn per_thread(text: &str, model: MemoryModel) -> Option<usize> {
    let program = wattle_syntax::wtl::parse(text).program?;
    let wanted = FenceOptions {
        model,
        goal: Goal::Safety,
        costs: Costs::default(),
        all: false,
    };
    let options = Options {
        engine: Some("cegar".into()),
        explain: false,
        ..Options::default()
    };
    match fences(&program, &wanted, &options, &Control::unlimited()).map(|r| r.outcome) {
        Ok(Outcome::Fixed { fixes, .. }) => {
            let sites = &fixes.first()?.sites;
            let families = sites.iter().map(|s| s.family);
            let count = |f| sites.iter().filter(|s| s.family == f).count();
            Some(families.map(count).max().unwrap_or(0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_count_is_the_papers() {
        let mut lines = Vec::new();
        assert!(super::run(&mut |l| lines.push(l.to_string())), "{lines:#?}");
        assert_eq!(lines.len(), 10);
    }
}

//! abdulla-2012, Table 1: how many fences each thread needs, found and proved by `cegar` alone,
//! without given predicates; the paper's numbers beside ours, and PSO, which the paper leaves open.
//!
//! The paper's seconds are of a 2.27 GHz laptop: compare orders of magnitude. Another count than
//! expected is a failure. `auto` are the seconds of the plan for TSO, which is not bound to predicates.
//! Predicates are those of the proof of the fenced program under TSO; the paper counts parameterised
//! ones, which stand for one of each thread, in the largest refinement step.

use crate::sink::Sink;
use serde_json::json;
use wattle::fences::{FenceOptions, fences};
use wattle::resources::processor_time;
use wattle::{Language, Options};
use wattle_evidence::{Answer, Certificate, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_predicates::Cegar;
use wattle_repair::Outcome;

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../examples/abdulla/", $name, ".wtl"))
    };
}

/// Name, text, the text with its fences, fences per thread under TSO (the paper's too) and PSO, the
/// paper's predicates and seconds.
type Row = (&'static str, [&'static str; 2], [usize; 2], u32, f64);

const ROWS: [Row; 8] = [
    (
        "Burns",
        [example!("burns"), example!("burns-fenced")],
        [1, 1],
        1,
        0.02,
    ),
    (
        "Simple Dekker",
        [example!("dekker-simple"), example!("dekker-simple-fenced")],
        [1, 1],
        1,
        0.04,
    ),
    (
        "Full Dekker",
        [example!("dekker"), example!("dekker-fenced")],
        [1, 1],
        1,
        0.06,
    ),
    (
        "Dijkstra",
        [example!("dijkstra"), example!("dijkstra-fenced")],
        [1, 1],
        4,
        0.35,
    ),
    (
        "Lamport bakery",
        [example!("bakery"), example!("bakery-fenced")],
        [2, 2],
        17,
        154.0,
    ),
    (
        "Lamport fast",
        [example!("lamport-fast"), example!("lamport-fast-fenced")],
        [2, 3],
        4,
        2.0,
    ),
    (
        "Peterson",
        [example!("peterson"), example!("peterson-fenced")],
        [1, 2],
        6,
        2.0,
    ),
    (
        "Linux ticket lock",
        [example!("ticket"), example!("ticket")],
        [0, 0],
        2,
        2.0,
    ),
];

/// Gives the table line by line; says whether every count is the expected one.
pub fn run(out: &mut Sink<'_>) -> bool {
    out.line(
        "program            fences per thread:  paper  TSO  PSO   predicates:  paper  TSO   seconds:  paper     TSO     PSO    auto",
    );
    let (mut all, mut total) = (true, [0.0; 4]);
    for (name, [text, fenced], expected, listed, paper) in ROWS {
        let wanted = expected[0];
        let timed = |model, engine| {
            let begin = processor_time();
            let count = per_thread(text, model, engine);
            let took = processor_time().saturating_sub(begin);
            (count, took.as_secs_f64())
        };
        let cegar = [MemoryModel::Tso, MemoryModel::Pso].map(|model| timed(model, Some("cegar")));
        let auto = timed(MemoryModel::Tso, None);
        let predicates = predicates(fenced);
        all &= cegar.map(|(n, _)| n) == expected.map(Some) && auto.0 == Some(wanted);
        let value = json!({
            "suite": "abdulla", "file": name, "fences": { "tso": cegar[0].0, "pso": cegar[1].0 },
            "expected": { "tso": expected[0], "pso": expected[1] },
            "processor_seconds": { "tso": cegar[0].1, "pso": cegar[1].1, "auto": auto.1 },
            "paper_seconds": paper, "predicates": predicates, "paper_predicates": listed,
        });
        let shown = |n: Option<usize>| n.map_or("?".into(), |n| n.to_string());
        let [tso, pso] = cegar.map(|(n, s)| (shown(n), s));
        for (sum, seconds) in total.iter_mut().zip([paper, tso.1, pso.1, auto.1]) {
            *sum += seconds;
        }
        out.row(
            &format!(
                "{name:<38} {wanted:>6} {:>4} {:>4} {listed:>19} {:>4} {paper:>16.2} {:>7.2} {:>7.2} {:>7.2}",
                tso.0,
                pso.0,
                shown(predicates),
                tso.1,
                pso.1,
                auto.1
            ),
            value,
        );
    }
    let [paper, tso, pso, auto] = total;
    out.line(&format!(
        "in all{paper:>90.2} {tso:>7.2} {pso:>7.2} {auto:>7.2}"
    ));
    all
}

/// How many predicates a proof of the program under TSO needs.
fn predicates(text: &str) -> Option<usize> {
    let instance = wattle_syntax::wtl::parse(text).program?.instance().ok()?;
    let task = Task {
        instance: &instance,
        model: MemoryModel::Tso,
        question: Some(0),
        deadlock: false,
    };
    match Cegar::default().run(&task, &Control::unlimited()) {
        Answer::Unreachable {
            certificate: Certificate::Inductive(proof),
            ..
        } => Some(proof.predicates.len()),
        _ => None,
    }
}

/// The most fences any family of threads gets in a cheapest set; nothing if that is not decided.
pub fn per_thread(text: &str, model: MemoryModel, engine: Option<&str>) -> Option<usize> {
    let program = wattle_syntax::wtl::parse(text).program?;
    let wanted = FenceOptions::new(model).in_text(Language::Wtl, text);
    let options = Options {
        engine: engine.map(str::to_string),
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
        let mut keep = |l: &str, _| lines.push(l.to_string());
        let fine = super::run(&mut crate::Sink::new(&mut keep));
        assert!(fine, "{lines:#?}");
        assert_eq!(lines.len(), 10);
    }
}

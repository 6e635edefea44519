//! The seven programs of dan-2013 beside Tables 1 and 2 of that paper.
//!
//! The programs carry the fences they need for the memory model; predicates are found, not given. SC
//! is the traditional abstraction, PE predicate and CE cube extrapolation; where the first SC proof
//! does not carry over, it is strengthened and tried again, and the row is about the program that was
//! proved, `all s` and `all calls` about everything on the way to it: programs that did not do, and
//! those that showed which predicates can be left out. (Calls that find predicates are not counted, as
//! they are not in the paper, where predicates are given.) The paper's buffers have one entry; ours have as many as the
//! program can fill. Positions and buffer lengths are no predicates here, as they are in the paper.
//! Its seconds are from another machine.

use std::fmt::Write;
use std::time::{Duration, Instant};
use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Task};
use wattle_extrapolate::engine::Stage;
use wattle_extrapolate::{Extrapolate, Method};
use wattle_memory::MemoryModel::{self, Pso, Sc, Tso};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../examples/bitchaku/", $name, ".bit"))
    };
}

/// Name, the program fenced for TSO, the program fenced for PSO.
const PROGRAMS: [(&str, &str, &str); 7] = [
    ("Dekker", example!("dekker"), example!("dekker")),
    ("Peterson", example!("peterson"), example!("peterson-pso")),
    ("ABP", example!("abp"), example!("abp")),
    ("Szymanski", example!("szymanski"), example!("szymanski")),
    ("Queue", example!("queue"), example!("queue-pso")),
    ("Bakery", example!("bakery"), example!("bakery-pso")),
    ("Ticket", example!("ticket"), example!("ticket")),
];

/// The paper's row: predicates, thousands of solver calls, seconds to build, cubes, thousands of
/// states, megabytes, seconds to check. A dash is what it does not have, T/O ten hours.
type Row = (&'static str, MemoryModel, Method, [&'static str; 7]);

const PAPER: [Row; 27] = [
    (
        "Dekker",
        Sc,
        Method::None,
        ["7", "0.7", "0.1", "0", "14", "6", "1"],
    ),
    (
        "Dekker",
        Pso,
        Method::Predicates,
        ["20", "26", "6", "0", "80", "31", "5"],
    ),
    (
        "Dekker",
        Tso,
        Method::Predicates,
        ["18", "22", "5", "0", "45", "20", "3"],
    ),
    (
        "Peterson",
        Sc,
        Method::None,
        ["7", "0.6", "0.1", "2", "7", "3", "1"],
    ),
    (
        "Peterson",
        Pso,
        Method::Predicates,
        ["20", "15", "3", "2", "31", "13", "3"],
    ),
    (
        "Peterson",
        Tso,
        Method::Predicates,
        ["18", "13", "3", "2", "25", "11", "2"],
    ),
    (
        "ABP",
        Sc,
        Method::None,
        ["8", "2", "0.5", "5", "0.6", "1", "0.6"],
    ),
    (
        "ABP",
        Pso,
        Method::Predicates,
        ["15", "20", "4", "5", "2", "3", "1"],
    ),
    (
        "ABP",
        Tso,
        Method::Predicates,
        ["17", "23", "5", "5", "2", "3", "1"],
    ),
    (
        "Szymanski",
        Sc,
        Method::None,
        ["20", "16", "3.3", "1", "12", "6", "2"],
    ),
    (
        "Szymanski",
        Pso,
        Method::Predicates,
        ["35", "152", "33", "1", "61", "30", "4"],
    ),
    (
        "Szymanski",
        Tso,
        Method::Predicates,
        ["37", "165", "35", "1", "61", "31", "5"],
    ),
    (
        "Queue",
        Sc,
        Method::None,
        ["7", "20", "5", "50", "1", "2", "1"],
    ),
    (
        "Queue",
        Pso,
        Method::Predicates,
        ["15", "5747", "1475", "412", "1", "4", "1"],
    ),
    (
        "Queue",
        Pso,
        Method::Cubes,
        ["99", "98", "17", "99", "11", "6", "2"],
    ),
    (
        "Queue",
        Tso,
        Method::Predicates,
        ["16", "11133", "2778", "412", "12", "4", "1"],
    ),
    (
        "Queue",
        Tso,
        Method::Cubes,
        ["99", "163", "31", "99", "12", "7", "2"],
    ),
    (
        "Bakery",
        Sc,
        Method::None,
        ["15", "1552", "355", "161", "20", "-", "-"],
    ),
    (
        "Bakery",
        Pso,
        Method::Predicates,
        ["38", "-", "T/O", "-", "-", "-", "-"],
    ),
    (
        "Bakery",
        Pso,
        Method::Cubes,
        ["422", "9018", "1773", "381", "979", "375", "104"],
    ),
    (
        "Bakery",
        Tso,
        Method::Predicates,
        ["36", "-", "T/O", "-", "-", "-", "-"],
    ),
    (
        "Bakery",
        Tso,
        Method::Cubes,
        ["422", "7048", "1386", "383", "730", "285", "121"],
    ),
    (
        "Ticket",
        Sc,
        Method::None,
        ["11", "218", "51", "134", "2", "-", "-"],
    ),
    (
        "Ticket",
        Pso,
        Method::Predicates,
        ["56", "-", "T/O", "-", "-", "-", "-"],
    ),
    (
        "Ticket",
        Pso,
        Method::Cubes,
        ["622", "15644", "2163", "380", "193", "123", "40"],
    ),
    (
        "Ticket",
        Tso,
        Method::Predicates,
        ["48", "-", "T/O", "-", "-", "-", "-"],
    ),
    (
        "Ticket",
        Tso,
        Method::Cubes,
        ["622", "6941", "1518", "582", "71", "67", "545"],
    ),
];

/// No measurement takes longer.
const LIMIT: Duration = Duration::from_secs(300);

const HEAD: &str = "program   model method   preds implications  calls  build s cubes size  states    MB check s   all s   all calls answer   | paper: preds calls(K) build s cubes states(K) MB check s";

/// Gives the table line by line, as it is measured; says whether every program was proved.
pub fn run(line: &mut dyn FnMut(&str)) -> bool {
    let mut all = true;
    line(HEAD);
    for (name, tso, pso) in PROGRAMS {
        for (model, text) in [(Sc, tso), (Tso, tso), (Pso, pso)] {
            for (method, shown) in [
                (Method::None, "trad"),
                (Method::Predicates, "PE"),
                (Method::Cubes, "CE"),
            ] {
                if (model == Sc) != (method == Method::None) {
                    continue;
                }
                let paper = PAPER
                    .iter()
                    .find(|(n, m, how, _)| (*n, *m, *how) == (name, model, method))
                    .map_or(["-"; 7], |row| row.3);
                let shown = row(name, text, model, (method, shown), &paper);
                all &= shown.contains(" holds ");
                line(&shown);
            }
        }
    }
    all
}

fn row(
    name: &str,
    text: &str,
    model: MemoryModel,
    (method, shown): (Method, &str),
    paper: &[&str; 7],
) -> String {
    let program = wattle_syntax::bitchaku::parse(text).program;
    let Some(instance) = program.and_then(|p| p.instance().ok()) else {
        return format!("{name}: no instance");
    };
    let task = Task {
        instance: &instance,
        model,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    };
    let engine = Extrapolate {
        method,
        fall_back: false,
        ..Extrapolate::default()
    };
    let control = Control::unlimited().with_timeout(Some(LIMIT));
    let started = Instant::now();
    let (answer, stages) = engine.explain(&task, &control);
    let all = started.elapsed().as_secs_f64();
    let said = match &answer {
        Answer::Unreachable { certificate, .. } => match audit(&task, certificate, &control) {
            Ok(_) => "holds".to_string(),
            Err(e) => format!("the proof does not check: {e}"),
        },
        Answer::Reached { .. } => "violated".into(),
        Answer::Bounded { .. } => "bounded".into(),
        Answer::Undecided { .. } => "undecided".into(),
    };
    let mut out = format!("{name:<9} {:<5} {shown:<6}", model.to_string());
    if let Some(s) = stages.last() {
        measured(s, &mut out);
    }
    let calls = stages.last().map_or(0, |s| s.calls);
    let _ = write!(out, " {all:>7.2} {calls:>11} {said:<8} |");
    for column in paper {
        let _ = write!(out, " {column:>7}");
    }
    out
}

fn measured(s: &Stage, out: &mut String) {
    let (b, c) = (&s.built, &s.checked);
    let _ = write!(
        out,
        " {:>7} {:>12} {:>6} {:>8.3} {:>5} {:>4} {:>7} {:>5.1} {:>7.3}",
        b.predicates,
        b.implications,
        b.solver_calls,
        b.time.as_secs_f64(),
        b.cubes,
        b.largest,
        c.states,
        c.memory as f64 / 1e6,
        c.time.as_secs_f64(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_paper_has_a_program() {
        for (name, ..) in PAPER {
            assert!(PROGRAMS.iter().any(|(n, ..)| *n == name), "{name}");
        }
        let row = row(
            "Ticket",
            example!("ticket"),
            Tso,
            (Method::Cubes, "CE"),
            &["-"; 7],
        );
        assert!(row.contains(" holds "), "{row}");
    }
}

//! The seven programs of dan-2013 beside Tables 1 and 2 of that paper, in two parts.
//!
//! *Pure*: the paper's method and nothing else. Predicates are given: the alternating bit protocol has those the paper
//! prints; it prints no others, so there those that our proof under SC needs are given. They are
//! extrapolated once, with a fixed k (the first of 1, 2, 3 with which no run fills a buffer), one
//! boolean program is built and checked, and nothing is refined. `no proof` is a program that these
//! predicates do not prove. Calls are those beyond what was asked while predicates were found: the answers are kept.
//!
//! *Ours*: the engine as it is.
//! The programs carry the fences they need for the memory model; predicates are found, not given. SC
//! is the traditional abstraction, PE predicate and CE cube extrapolation; where the first SC proof
//! does not carry over, it is strengthened and tried again, and the row is about the program that was
//! proved, `all s` and `all calls` about everything on the way to it: programs that did not do, and
//! those that showed which predicates can be left out. (Calls that find predicates are not counted, as
//! they are not in the paper, where predicates are given.) The paper's buffers have one entry; ours have as many as the
//! program can fill. Positions and buffer lengths are no predicates here, as they are in the paper.
//! Its seconds are from another machine.

use crate::sink::Sink;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;
use wattle::resources::processor_time;
use wattle_auditor::audit;
use wattle_evidence::{Answer, Control, Reason, Task};
use wattle_extrapolate::engine::Stage;
use wattle_extrapolate::{Extrapolate, Method, PureOutcome};
use wattle_memory::MemoryModel::{self, Pso, Sc, Tso};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../examples/bitchaku/", $name, ".bit"))
    };
}

/// Name, the program fenced for TSO, the program fenced for PSO.
pub(crate) const PROGRAMS: [(&str, &str, &str); 7] = [
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

const HEAD: &str = "program   model method   preds implications  calls  build s cubes size  states    MB check s   all s   all calls answer";
/// The paper's numbers stand below ours.
const PAPER_HEAD: &str = "                 paper   preds              calls  build s cubes       states    MB check s   (calls and states in thousands)";

const PURE: &str = "program   model method  k given input preds input cubes   calls  build s cubes size  states    MB check s answer   | paper: preds input cubes calls(K) build s cubes size states(K) MB check s";

/// The predicates the paper prints.
const GIVEN: [(&str, &str); 1] = [(
    "ABP",
    "predicate(Msg = 0); predicate(Ack = 0); predicate(lSSt(0) = 0); predicate(lAck(0) = 0);
     predicate(lMsg(1) = 0); predicate(lRSt(1) = 0); predicate(lRCnt(1) = lSCnt(0));
     predicate(lRCnt(1) + 1 = lSCnt(0));",
)];

/// The paper's cube size by program, and the cubes that cube extrapolation begins with.
const SIZES: [(&str, &str, &str); 7] = [
    ("Dekker", "1", "-"),
    ("Peterson", "2", "-"),
    ("ABP", "2", "-"),
    ("Szymanski", "2", "-"),
    ("Queue", "4", "99"),
    ("Bakery", "4", "422"),
    ("Ticket", "4", "622"),
];

/// No buffer is made longer than that; Szymanski's processes fill four entries.
const MOST_ENTRIES: usize = 5;

/// The paper's method alone, line by line.
fn pure(out: &mut Sink<'_>) {
    out.line(PURE);
    for (name, tso, pso) in PROGRAMS {
        for (model, text) in [(Sc, tso), (Tso, tso), (Pso, pso)] {
            for (method, shown) in [
                (Method::None, "trad"),
                (Method::Predicates, "PE"),
                (Method::Cubes, "CE"),
            ] {
                if (model == Sc) == (method == Method::None) {
                    let (line, value) = pure_row(name, text, model, (method, shown));
                    out.row(&line, value);
                }
            }
        }
    }
}

fn paper(name: &str, model: MemoryModel, method: Method) -> [&'static str; 7] {
    let row = PAPER.iter();
    let mut row = row.filter(|(n, m, how, _)| (*n, *m, *how) == (name, model, method));
    row.next().map_or(["-"; 7], |row| row.3)
}

fn pure_row(
    name: &str,
    text: &str,
    model: MemoryModel,
    (method, shown): (Method, &str),
) -> (String, Value) {
    let given = GIVEN.iter().find(|(n, _)| *n == name);
    let text = match given {
        Some((_, predicates)) => format!("{text}\n{predicates}\n"),
        None => text.to_string(),
    };
    let program = wattle_syntax::bitchaku::parse(&text).program;
    let Some(instance) = program.and_then(|p| p.instance().ok()) else {
        return (format!("{name}: no instance"), Value::Null);
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
    let mut k = 1;
    let found = loop {
        let control = Control::unlimited().with_timeout(Some(LIMIT));
        match engine.pure(&task, k, &control) {
            Ok(found) if found.outcome == PureOutcome::Overflow && k < MOST_ENTRIES => k += 1,
            found => break found,
        }
    };
    let from = if given.is_some() { "paper" } else { "found" };
    let mut out = format!(
        "{name:<9} {:<5} {shown:<6} {k:>2} {from}",
        model.to_string()
    );
    let mut value = json!({
        "suite": "cupex", "part": "pure", "file": name, "model": model.to_string(),
        "method": shown, "k": k, "predicates_from": from,
    });
    match found {
        Ok(found) => {
            let said = match found.outcome {
                PureOutcome::Proved => "holds",
                PureOutcome::Imprecise => "no proof",
                PureOutcome::Overflow => "overflow",
                PureOutcome::Violated => "violated",
            };
            let (b, c) = (&found.relaxed.built, &found.relaxed.checked);
            let _ = write!(
                out,
                " {:>11} {:>11} {:>7} {:>8.3} {:>5} {:>4} {:>7} {:>5.1} {:>7.3} {:<8}",
                b.predicates,
                b.given_cubes,
                b.solver_calls,
                b.time.as_secs_f64(),
                b.cubes,
                b.largest,
                c.states,
                c.memory as f64 / 1e6,
                c.time.as_secs_f64(),
                said
            );
            value["answer"] = json!(said);
            value["input_predicates"] = json!(b.predicates);
            value["input_cubes"] = json!(b.given_cubes);
            value["solver_calls"] = json!(b.solver_calls);
            value["cubes"] = json!(b.cubes);
            value["cube_size"] = json!(b.largest);
            value["states"] = json!(c.states);
        }
        Err(Reason::Stopped { .. }) => {
            out.push_str(" T/O");
            value["answer"] = json!("out of time");
        }
        Err(reason) => {
            let _ = write!(out, " {reason}");
            value["answer"] = json!(reason.to_string());
        }
    }
    let [predicates, calls, build, cubes, states, memory, check] = paper(name, model, method);
    let sizes = SIZES.iter().find(|(n, ..)| *n == name);
    let (size, input) = sizes.map_or(("-", "-"), |(_, size, input)| (*size, *input));
    let input = if method == Method::Cubes { input } else { "-" };
    let _ = write!(out, " |");
    for column in [
        predicates, input, calls, build, cubes, size, states, memory, check,
    ] {
        let _ = write!(out, " {column:>7}");
    }
    (out, value)
}

/// Gives the table line by line, as it is measured; says whether every program was proved.
pub fn run(out: &mut Sink<'_>) -> bool {
    pure(out);
    out.line("");
    let mut all = true;
    out.line(HEAD);
    out.line(PAPER_HEAD);
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
                let paper = paper(name, model, method);
                let (ours, mut value) = row(name, text, model, (method, shown));
                all &= value["answer"] == "holds";
                let [preds, calls, build, cubes, states, memory, check] = paper;
                value["paper"] = json!({
                    "predicates": preds, "thousand_calls": calls, "build_seconds": build,
                    "cubes": cubes, "thousand_states": states, "megabytes": memory,
                    "check_seconds": check,
                });
                out.row(&ours, value);
                out.line(&format!(
                    "{:<22} {preds:>7} {calls:>19} {build:>8} {cubes:>5} {states:>12} {memory:>5} {check:>7}",
                    ""
                ));
            }
        }
    }
    out.line("");
    all & crate::one_entry::run(out)
}

fn row(
    name: &str,
    text: &str,
    model: MemoryModel,
    (method, shown): (Method, &str),
) -> (String, Value) {
    let program = wattle_syntax::bitchaku::parse(text).program;
    let Some(instance) = program.and_then(|p| p.instance().ok()) else {
        return (
            format!("{name}: no instance"),
            json!({ "suite": "cupex", "file": name }),
        );
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
    let started = processor_time();
    let (answer, stages) = engine.explain(&task, &control);
    let all = processor_time().saturating_sub(started).as_secs_f64();
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
    let _ = write!(out, " {all:>7.2} {calls:>11} {said}");
    let stage = stages.last().map(|s| {
        let (b, c) = (&s.built, &s.checked);
        json!({
            "predicates": b.predicates, "implications": b.implications, "calls": b.solver_calls,
            "build_seconds": b.time.as_secs_f64(), "cubes": b.cubes, "largest": b.largest,
            "states": c.states, "bytes": c.memory, "check_seconds": c.time.as_secs_f64(),
        })
    });
    let value = json!({
        "suite": "cupex", "file": name, "model": model, "method": shown, "answer": said,
        "processor_seconds": all, "all_calls": calls, "proved": stage,
    });
    (out, value)
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
        let row = row("Ticket", example!("ticket"), Tso, (Method::Cubes, "CE"));
        assert_eq!(row.1["answer"], "holds", "{}", row.0);
    }

    /// The paper's predicates prove the alternating bit protocol by its own method.
    #[test]
    fn the_printed_predicates_prove_the_protocol() {
        for model in [Tso, Pso] {
            let row = pure_row("ABP", example!("abp"), model, (Method::Predicates, "PE"));
            assert_eq!(row.1["answer"], "holds", "{}", row.0);
            assert_eq!(row.1["predicates_from"], "paper", "{}", row.0);
        }
    }
}

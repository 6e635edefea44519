//! How many states (or traces) there are with one thread more, with each reduction, beside the growth that peers
//! were measured to have. The last reduction is what `wattle litmus` does: traces and persistent sets take turns, and
//! independent parts are looked at apart.
//!
//! The peers' figures are ratios of their own times or executions, recorded on another machine: herd 7,
//! Nidhugg with `--tso`, GenMC 0.10 with `--tso`.

use crate::sink::Sink;
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;
use wattle::resources::processor_time;
use wattle_evidence::Control;
use wattle_litmus::{Answer, NoAnswer, answer, answer_by_traces, answer_with};
use wattle_memory::MemoryModel;
use wattle_search::Reduce;
use wattle_syntax::litmus::{ParsedLitmus, parse_test};

/// No measurement takes longer, or more memory.
const LIMIT: Duration = Duration::from_secs(10);
const MEMORY: u64 = 2 << 30;

type Find = fn(&ParsedLitmus, &Control<'_>) -> Result<Answer, NoAnswer>;

/// Who finds the final states under TSO, and what is counted.
const REDUCTIONS: [(&str, Find); 3] = [
    ("local", |test, control| {
        answer_with(test, MemoryModel::Tso, Reduce::Local, control)
    }),
    ("traces", |test, control| {
        answer_by_traces(test, MemoryModel::Tso, control)
    }),
    ("all", |test, control| {
        answer(test, MemoryModel::Tso, control)
    }),
];

struct Family {
    name: &'static str,
    text: fn(usize) -> String,
    sizes: [usize; 4],
    peers: &'static str,
}

const FAMILIES: [Family; 3] = [
    Family {
        name: "SB ring",
        text: ring,
        sizes: [6, 8, 10, 12],
        peers: "herd 2.3, Nidhugg 2.2, GenMC 2.0",
    },
    Family {
        name: "MP pairs",
        text: pairs,
        sizes: [3, 4, 5, 6],
        peers: "herd 5, Nidhugg 3, GenMC 3.0",
    },
    Family {
        name: "writers",
        text: writers,
        sizes: [4, 6, 8, 10],
        peers: "GenMC 9 to 10",
    },
];

/// A litmus test of so many threads, by what each does.
fn test(name: &str, columns: &[Vec<String>], exists: &str) -> String {
    let mut out = format!("X86 {name}\n{{ }}\n");
    let row = |cells: Vec<String>| format!(" {} ;\n", cells.join(" | "));
    let _ = write!(
        out,
        "{}",
        row((0..columns.len()).map(|i| format!("P{i}")).collect())
    );
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    for i in 0..rows {
        let cell = |c: &Vec<String>| c.get(i).cloned().unwrap_or_default();
        let _ = write!(out, "{}", row(columns.iter().map(cell).collect()));
    }
    let _ = writeln!(out, "exists ({exists})");
    out
}

fn ring(n: usize) -> String {
    let thread = |i: usize| {
        let store = format!("MOV [x{i}],$1");
        vec![store, format!("MOV EAX,[x{}]", (i + 1) % n)]
    };
    let columns: Vec<Vec<String>> = (0..n).map(thread).collect();
    let all: Vec<String> = (0..n).map(|i| format!("{i}:EAX=0")).collect();
    test("ring", &columns, &all.join(" /\\ "))
}

fn pairs(n: usize) -> String {
    let pair = |i: usize| {
        let writer = vec![format!("MOV [x{i}],$1"), format!("MOV [y{i}],$1")];
        let reader = vec![format!("MOV EAX,[y{i}]"), format!("MOV EBX,[x{i}]")];
        [writer, reader]
    };
    let columns: Vec<Vec<String>> = (0..n).flat_map(pair).collect();
    let seen = |i: usize| format!("{0}:EAX=1 /\\ {0}:EBX=0", 2 * i + 1);
    let all: Vec<String> = (0..n).map(seen).collect();
    test("pairs", &columns, &all.join(" /\\ "))
}

fn writers(n: usize) -> String {
    let columns: Vec<Vec<String>> = (0..n)
        .map(|i| vec![format!("MOV [x],${}", i + 1)])
        .collect();
    test("writers", &columns, "x=1")
}

/// Gives the table line by line, as it is measured.
pub fn run(out: &mut Sink<'_>) {
    out.line(
        "family     reduction    size   states    seconds   growth per thread or pair   peers",
    );
    for family in &FAMILIES {
        for (reduction, find) in REDUCTIONS {
            let mut before: Option<(usize, u64)> = None;
            for size in family.sizes {
                let parsed = parse_test(&(family.text)(size));
                let control = Control::unlimited().with_timeout(Some(LIMIT));
                let control = control.with_memory(Some(MEMORY));
                let start = processor_time();
                let found = find(&parsed, &control);
                let seconds = processor_time().saturating_sub(start).as_secs_f64();
                let name = family.name;
                let Ok(found) = found else {
                    out.line(&format!("{name:10} {reduction:11} {size:5}   no answer"));
                    break;
                };
                let states = found.effort.states;
                let growth = before.map_or(String::new(), |(smaller, fewer)| {
                    let ratio = states as f64 / fewer.max(1) as f64;
                    format!("{:.1}", ratio.powf(1.0 / (size - smaller) as f64))
                });
                let peers = family.peers;
                out.row(
                    &format!(
                        "{name:10} {reduction:11} {size:5} {states:8} {seconds:10.3}   {growth:25}   {peers}"
                    ),
                    json!({
                        "suite": "growth", "file": name, "reduction": reduction, "size": size,
                        "states": states, "processor_seconds": seconds,
                    }),
                );
                before = Some((size, states));
                // The next one would take several times as long.
                if seconds > 2.0 {
                    break;
                }
            }
        }
    }
}

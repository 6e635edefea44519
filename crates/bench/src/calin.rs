//! calin-2016, chapter 5: the thesis's tables and graphs with our columns beside its own.
//!
//! The thesis's numbers are milliseconds of processor time of Trencher on machines of 2010 to 2015: compare
//! orders of magnitude. Of its graphs only what the text says in numbers is here. Programs come from the
//! suites (`trencher` and `trencher/reach`) and from `wattle gen`; ours are milliseconds of processor time.

use crate::cbmc::{self, CbmcAnswer};
use crate::sink::Sink;
use crate::tso::{LIMIT, fence_count, milliseconds, program, robust, timed, verdict};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wattle::fences::Goal;
use wattle::generate::Family;
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_model::Program;
use wattle_robust::Goal as Want;
use wattle_search::{Explicit, Options, Order, Reduce};
use wattle_traces::{Cartesian, Traces};

/// Gives the tables line by line, as they are measured.
pub fn run(suites: &Path, out: &mut Sink<'_>) {
    out.line(
        "Figs. 5.1 and 5.5: reachability under TSO, ms (thesis: Trencher, then with Spin for SC)",
    );
    out.line("program                  T    answer     ours    Trencher   with Spin in all");
    for row in &REACHED {
        reached(suites, row, out);
    }
    family_tables(out);
    beside_cbmc(suites, out);
    out.line("");
    out.line("Fig. 5.9: fences for robustness, ms (thesis: depth first, breadth first)");
    out.line("program                  T    answer     ours   depth first   breadth first");
    for row in &FENCED {
        fenced(suites, row, out);
    }
    searches(suites, out);
    indexer(out);
    reductions(suites, out);
}

/// A program of the thesis: its name, our file, its threads, and numbers in milliseconds.
struct Row {
    name: &'static str,
    file: &'static str,
    threads: u32,
    theirs: [u32; 2],
}

const fn row(name: &'static str, file: &'static str, threads: u32, theirs: [u32; 2]) -> Row {
    Row {
        name,
        file,
        threads,
        theirs,
    }
}

/// Fig. 5.1: processor time of Trencher; of the runs with Spin, compiling and running in all.
const REACHED: [Row; 7] = [
    row(
        "Parker (non-robust)",
        "reach/trenchres__parker.txt",
        2,
        [8, 132 + 1987 + 10],
    ),
    row(
        "Peterson (non-robust)",
        "reach/trenchres__peterson.txt",
        2,
        [21, 788 + 9861 + 100],
    ),
    row(
        "Dekker (non-robust)",
        "reach/trenchres__dekker.txt",
        2,
        [171, 2270 + 38413 + 670],
    ),
    row(
        "Lamport (non-robust)",
        "reach/trenchres__lamport.txt",
        3,
        [1839, 4358 + 22297 + 330],
    ),
    row("MCS lock", "mcs-lock.txt", 4, [127, 454 + 4498 + 20]),
    row(
        "CLH lock",
        "reach/trenchres__clh-lock.txt",
        3,
        [10, 452 + 12083 + 90],
    ),
    row(
        "Lock-free stack",
        "reach/trenchres__lock-free-stack.txt",
        4,
        [9, 38 + 475],
    ),
];

const MCS: Row = row("MCS lock", "mcs-lock.txt", 2, [41, 46]);
const CILK_WRONG: Row = row(
    "Cilk WSQ (incorrect use)",
    "cilk-the-wsq-wrongdoing.txt",
    5,
    [103_267, 126_098],
);
const CILK: Row = row("Cilk WSQ (correct use)", "cilk-the-wsq.txt", 3, [35, 23]);

/// Fig. 5.9: processor time depth first and breadth first.
const FENCED: [Row; 11] = [
    row("Dekker (not fenced)", "dekker.txt", 2, [431, 489]),
    row("Dekker (fenced)", "dekker-correct.txt", 2, [0, 1]),
    row("Peterson (not fenced)", "peterson.txt", 2, [168, 161]),
    row("Peterson (fenced)", "peterson-correct.txt", 2, [1, 0]),
    row(
        "Lamport (not fenced)",
        "lamport-fast-mutex-alg1.txt",
        3,
        [12572, 14916],
    ),
    row(
        "Lamport (fenced)",
        "reach/final-added__lamport-fast-mutex-alg1-correct.txt",
        3,
        [2, 1],
    ),
    row("CLH lock", "clh-lock.txt", 3, [94, 103]),
    MCS,
    CILK_WRONG,
    CILK,
    row(
        "Lock-free stack",
        "reach/trenchres__lock-free-stack.txt",
        4,
        [0, 0],
    ),
];

fn find(suites: &Path, row: &Row, out: &mut Sink<'_>) -> Option<Program> {
    let path: PathBuf = suites.join("trencher").join(row.file);
    let found = program(&path);
    if found.is_none() {
        out.line(&format!(
            "{:<24} {:<4} not measured: {} is not here (--suites DIR)",
            row.name, row.threads, row.file
        ));
    }
    found
}

fn reached(suites: &Path, row: &Row, out: &mut Sink<'_>) {
    let Some(program) = find(suites, row, out) else {
        return;
    };
    // What says nothing of a state to be reached is asked whether it is robust.
    let (answer, ours) = match program.properties.is_empty() {
        true => timed(|| format!("robust {}", robust(&program, Want::Robustness))),
        false => timed(|| verdict(&program)),
    };
    let [trencher, spin] = row.theirs;
    out.row(
        &format!(
            "{:<24} {:<4} {answer:<10} {:>5} {trencher:>10} {spin:>18}",
            row.name,
            row.threads,
            milliseconds(ours)
        ),
        compared(row, "reachability", &answer, ours),
    );
}

/// What a row says, for programs.
fn compared(row: &Row, task: &str, answer: &str, ours: std::time::Duration) -> Value {
    json!({
        "suite": "calin", "file": row.name, "threads": row.threads, "task": task, "answer": answer,
        "processor_seconds": ours.as_secs_f64(), "thesis_milliseconds": row.theirs,
    })
}

fn fenced(suites: &Path, row: &Row, out: &mut Sink<'_>) {
    let Some(program) = find(suites, row, out) else {
        return;
    };
    let (answer, ours) = timed(|| fence_count(&program, Goal::Robustness));
    let [deep, broad] = row.theirs;
    out.row(
        &format!(
            "{:<24} {:<4} {answer:<10} {:>5} {deep:>13} {broad:>15}",
            row.name,
            row.threads,
            milliseconds(ours)
        ),
        compared(row, "robustness fences", &answer, ours),
    );
}

/// Figs. 5.6, 5.7 and 5.8: families of growing size, with what the text says of the graphs.
fn family_tables(out: &mut Sink<'_>) {
    let tables: [(&str, Family, &[u32], &str); 3] = [
        (
            "Fig. 5.6: Lamport's fast mutex with N threads",
            Family::Lamport,
            &[2, 3, 4, 5],
            "Trencher and Memorax run out of memory (8 GB) at 5",
        ),
        (
            "Fig. 5.7: Dekker with N branches",
            Family::Branching,
            &[10, 20, 30, 40, 50],
            "Memorax takes about 90,000 at 50; Trencher is exponential too, less steep",
        ),
        (
            "Fig. 5.8: Dekker with a loop of N stores",
            Family::Unwinding,
            &[5, 10, 15, 20],
            "CBMC takes about 510,000 at 20; Trencher needs three SC queries at each N",
        ),
    ];
    for (title, family, sizes, theirs) in tables {
        out.line("");
        out.line(&format!("{title}, reachability under TSO, ms ({theirs})"));
        out.line("N     answer        ours");
        for n in sizes {
            let text = family.program(*n);
            let Some(program) = wattle_syntax::trencher::parse(&text).program else {
                continue;
            };
            let (answer, ours) = timed(|| verdict(&program));
            out.row(
                &format!("{n:<5} {answer:<10} {:>7}", milliseconds(ours)),
                json!({
                    "suite": "calin", "file": title, "size": n, "answer": answer,
                    "processor_seconds": ours.as_secs_f64(),
                }),
            );
        }
    }
}

/// Figs. 5.5, 5.6 and 5.8 beside CBMC, in the same run.
fn beside_cbmc(suites: &Path, out: &mut Sink<'_>) {
    out.line("");
    let Some(version) = cbmc::version() else {
        out.line(
            "Figs. 5.5, 5.6 and 5.8 beside CBMC: not measured, `cbmc` is not on the search path",
        );
        return;
    };
    out.line(&format!(
        "Figs. 5.5, 5.6 and 5.8 beside CBMC {version}, reachability under TSO, ms (CBMC's are elapsed, of all it was asked)"
    ));
    out.line("program                  ours     CBMC   loops unrolled");
    for row in REACHED.iter().filter(|r| r.name.ends_with("(non-robust)")) {
        if let Some(program) = find(suites, row, out) {
            against_cbmc(row.name, &program, out);
        }
    }
    let families: [(&str, Family, &[u32]); 2] = [
        ("Lamport", Family::Lamport, &[2, 3, 4]),
        ("loop of stores", Family::Unwinding, &[5, 10, 15, 20]),
    ];
    for (name, family, sizes) in families {
        for n in sizes {
            let parsed = wattle_syntax::trencher::parse(&family.program(*n));
            if let Some(program) = parsed.program {
                against_cbmc(&format!("{name}, N = {n}"), &program, out);
            }
        }
    }
}

fn against_cbmc(name: &str, program: &Program, out: &mut Sink<'_>) {
    let (answer, ours) = timed(|| verdict(program));
    let Ok(instance) = program.instance() else {
        return;
    };
    let (theirs, unrolled) = match cbmc::ask(&instance) {
        CbmcAnswer::Fails(n, took) => (milliseconds(took), n.to_string()),
        CbmcAnswer::Passes(n) => ("nothing found".into(), n.to_string()),
        CbmcAnswer::TooLong(n) => ("more than 60,000".into(), n.to_string()),
        CbmcAnswer::Not => ("not written in C".into(), "-".into()),
    };
    out.row(
        &format!(
            "{name:<24} {:>4} {theirs:>8} {unrolled:>16}",
            milliseconds(ours)
        ),
        json!({
            "suite": "calin", "file": name, "task": "beside CBMC", "answer": answer,
            "processor_seconds": ours.as_secs_f64(), "cbmc_milliseconds": theirs,
            "unrolled": unrolled,
        }),
    );
}

/// The first question of a program under SC by one engine: states or runs, and processor time in milliseconds.
fn asked(program: &Program, engine: &dyn Engine) -> String {
    let Ok(instance) = program.instance() else {
        return "-".into();
    };
    let task = Task {
        instance: &instance,
        model: MemoryModel::Sc,
        question: (!instance.questions.is_empty()).then_some(0),
        deadlock: false,
    };
    if engine.accepts(&task).is_err() {
        return "refused".into();
    }
    let control = Control::unlimited().with_timeout(Some(LIMIT));
    let mut effort = 0;
    let (decided, took) = timed(|| {
        let answer = engine.run(&task, &control);
        effort = answer.effort().states;
        match answer {
            Answer::Unreachable { .. } | Answer::Reached { .. } => String::new(),
            Answer::Bounded { .. } | Answer::Undecided { .. } => "undecided ".into(),
        }
    });
    format!("{decided}{effort} / {}", milliseconds(took))
}

fn explicit(order: Order, local_first: bool, live_registers: bool) -> Explicit {
    let options = Options::default().reduced(Reduce::Local);
    Explicit {
        options: Options {
            order,
            chaining: local_first,
            dead_registers: live_registers,
            symmetry: false,
            ..options
        },
    }
}

/// Those of Fig. 5.9 that take Trencher more than ten milliseconds. The last three do not say what is to be reached: all
/// their states are gone through.
const SLOW: [Row; 8] = [
    row("Dekker", "reach/trenchres__dekker.txt", 2, [431, 489]),
    row("Peterson", "reach/trenchres__peterson.txt", 2, [168, 161]),
    row("Lamport", "reach/trenchres__lamport.txt", 3, [12572, 14916]),
    row("CLH lock", "reach/trenchres__clh-lock.txt", 3, [94, 103]),
    row(
        "Lock-free stack",
        "reach/trenchres__lock-free-stack.txt",
        4,
        [0, 0],
    ),
    MCS,
    CILK_WRONG,
    CILK,
];

/// Fig. 5.11: orders of search, live variables and local steps first, each on and off.
fn searches(suites: &Path, out: &mut Sink<'_>) {
    out.line("");
    out.line("Fig. 5.11: SC reachability, states / ms: neither, live registers, local first, both");
    out.line("(thesis, a graph: depth first is mostly faster, and no combination is best on all of these)");
    for row in &SLOW {
        let Some(program) = find(suites, row, out) else {
            continue;
        };
        for (name, order) in [
            ("depth first", Order::DepthFirst),
            ("breadth first", Order::BreadthFirst),
        ] {
            let settings = [(false, false), (false, true), (true, false), (true, true)];
            let cells =
                settings.map(|(local, live)| asked(&program, &explicit(order, local, live)));
            let [none, live, local, both] = cells;
            out.row(
                &format!(
                    "{:<24} {name:<14} {none:>14} {live:>14} {local:>14} {both:>14}",
                    row.name
                ),
                json!({
                    "suite": "calin", "file": row.name, "order": name, "neither": none,
                    "live_registers": live, "local_first": local, "both": both,
                }),
            );
        }
    }
}

/// Fig. 5.13: the Indexer, with the bus lock of the thesis and with one compare-and-swap a try.
fn indexer(out: &mut Sink<'_>) {
    out.line("");
    out.line("Fig. 5.13: Indexer with N threads under SC, states or traces / ms");
    out.line(
        "(thesis: local first grows exponentially from the start, dynamic reduction stays flat)",
    );
    out.line("N     with          local first        persistent        cartesian       traces");
    for n in [1, 2, 4, 8, 11, 13] {
        let lock = wattle_syntax::trencher::parse(&Family::Indexer.program(n)).program;
        let cas = wattle_syntax::wtl::parse(&Family::IndexerCas.program(n)).program;
        for (with, program) in [("bus lock", lock), ("cas", cas)] {
            let Some(program) = program else {
                continue;
            };
            let [local, persistent] = [Reduce::Local, Reduce::Persistent].map(|reduce| {
                let options = Options::default().reduced(reduce);
                asked(&program, &Explicit { options })
            });
            let cartesian = asked(&program, &Cartesian);
            let traces = asked(&program, &Traces);
            out.row(
                &format!("{n:<5} {with:<9} {local:>15} {persistent:>17} {cartesian:>16} {traces:>12}"),
                json!({
                    "suite": "calin", "file": "Indexer", "size": n, "with": with,
                    "local_first": local, "persistent": persistent, "cartesian": cartesian, "traces": traces,
                }),
            );
        }
    }
}

/// Fig. 5.14: local steps first beside dynamic reduction.
fn reductions(suites: &Path, out: &mut Sink<'_>) {
    out.line("");
    out.line(
        "Fig. 5.14: SC reachability, states or traces / ms (thesis: local first is faster on all of these)",
    );
    out.line(
        "program                    local first     with live registers    persistent      cartesian     traces",
    );
    for row in &SLOW {
        let Some(program) = find(suites, row, out) else {
            continue;
        };
        let local = asked(&program, &explicit(Order::DepthFirst, true, false));
        let live = asked(&program, &explicit(Order::DepthFirst, true, true));
        let persistent = asked(&program, &Explicit::default());
        let cartesian = asked(&program, &Cartesian);
        let traces = asked(&program, &Traces);
        out.row(
            &format!(
                "{:<24} {local:>14} {live:>22} {persistent:>14} {cartesian:>14} {traces:>10}",
                row.name
            ),
            json!({
                "suite": "calin", "file": row.name, "local_first": local, "live_registers": live,
                "persistent": persistent, "cartesian": cartesian, "traces": traces,
            }),
        );
    }
}

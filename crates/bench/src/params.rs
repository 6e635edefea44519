//! Any number of threads: conchon-2017's ten case studies beside the paper's seconds, and the suites
//! of array-based systems beside the seconds of the peer recorded with them. Proofs are audited within
//! our seconds.

use super::tso::{Total, cell, column, table};
use crate::sink::Sink;
use std::path::Path;
use std::time::Duration;
use wattle::input::{self, Subject};
use wattle::resources::processor_time;
use wattle::{Checked, Options, Run, Verdict, check};
use wattle_memory::MemoryModel;

/// No measurement takes longer.
const LIMIT: Duration = Duration::from_secs(20);

/// The table of section 5: the program, what the paper says of it, its seconds.
const STUDIES: [(&str, &str, &str); 10] = [
    ("naive_mutex_deadlock.asm", "violated", "0.38"),
    ("naive_mutex.asm", "violated", "0.38"),
    ("mutex_xchg_split.asm", "violated", "0.07"),
    ("mutex_xchg.asm", "holds", "0.08"),
    ("mutex_cmpxchg_no_lock.asm", "violated", "0.12"),
    ("mutex_cmpxchg.asm", "holds", "0.47"),
    ("spinlock_no_lock.asm", "violated", "0.06"),
    ("spinlock.asm", "holds", "0.30"),
    ("sense_barrier.asm", "holds", "0.27"),
    ("sense_barrier_again.asm", "holds", "97"),
];

/// Gives the tables line by line. `suites` holds the folders `cubicle-w` and `cubicle-sc`, `examples`
/// the folder `x86`.
pub fn run(suites: &Path, examples: &Path, out: &mut Sink<'_>) {
    out.line(
        "suite     file                                      task                 answer      ours s   peer s",
    );
    let mut total = Total::default();
    for (file, expected, seconds) in STUDIES {
        let path = examples.join("x86").join(file);
        measure(
            &mut total,
            out,
            ("conchon", file, &path),
            (MemoryModel::Tso, expected),
            seconds,
        );
    }
    total.report("conchon", out);
    let columns = [
        ("cubicle-w", "tso", MemoryModel::Tso, "peer_cpu_seconds"),
        (
            "cubicle-sc",
            "sc",
            MemoryModel::Sc,
            "peer_cpu_seconds_with_brab",
        ),
    ];
    for (suite, name, model, peer) in columns {
        let folder = suites.join(suite);
        let rows = table(&folder.join("expected.csv"));
        let (file, verdict) = (column(&rows, "file"), column(&rows, name));
        let peer = column(&rows, peer);
        let mut total = Total::default();
        for row in rows.iter().skip(1) {
            let file = cell(row, file);
            let what = (suite, file, &*folder.join(file));
            measure(
                &mut total,
                out,
                what,
                (model, cell(row, verdict)),
                cell(row, peer),
            );
        }
        total.report(suite, out);
    }
}

fn measure(
    total: &mut Total,
    out: &mut Sink<'_>,
    (suite, name, path): (&str, &str, &Path),
    (model, expected): (MemoryModel, &str),
    peer: &str,
) {
    let Ok(mut source) = input::read(&path.to_string_lossy(), None) else {
        return;
    };
    let Ok((subject, _)) = input::parse(&mut source) else {
        return;
    };
    let options = Options {
        models: vec![model],
        timeout: Some(LIMIT),
        // The peers' integers are mathematical.
        assume_no_wrap: true,
        explain: false,
        ..Options::default()
    };
    let started = processor_time();
    let checked = match &subject {
        Subject::Program(program) => check(program, &options).ok(),
        Subject::System(system) => Some(wattle::check::system(system, &options, &Run::default())),
    };
    let took = processor_time().saturating_sub(started);
    let answer = checked.map_or("no answer", |c| verdict(&c));
    let answer = match expected.is_empty() || answer == expected {
        true => answer.to_string(),
        false => format!("{answer}!"),
    };
    let task = format!("any number, {model}");
    total.row(out, (suite, name, &task), (answer, took), peer);
}

/// `holds` only with an audit.
fn verdict(checked: &Checked) -> &'static str {
    let mut verdict = "holds";
    for result in &checked.results {
        let this = match result {
            Ok(f) => match f.judged.verdict {
                Verdict::Holds { .. } if f.judged.unchecked.is_none() => "holds",
                Verdict::Holds { .. } => "unaudited",
                Verdict::Violated { .. } => "violated",
                Verdict::HoldsIf { .. } => "holds if",
                Verdict::Bounded { .. } | Verdict::Undecided { .. } => "undecided",
            },
            Err(_) => "unsound",
        };
        if verdict == "holds" || this == "violated" {
            verdict = this;
        }
    }
    verdict
}

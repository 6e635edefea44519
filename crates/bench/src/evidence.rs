//! What evidence costs: every answer with its audit beside the same without, in processor time and
//! memory, each a process of its own.
//!
//! Time is that of the child process, known in steps of 10 ms, so what is short is run several times
//! over. A row counts against the limits if it takes longer than [`SHORT`]; the median is of all rows.

use crate::sink::Sink;
use serde_json::json;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use wattle::{input, resources};

/// What takes less is not held against anyone.
const SHORT: Duration = Duration::from_millis(50);
/// What an audited answer may cost, times the search: in time, in memory, and in time at the median.
const TIME: f64 = 3.0;
const MEMORY: f64 = 2.0;
const MEDIAN: f64 = 1.5;
/// Memory that a process has whatever it does.
const FLOOR: u64 = 16 << 20;
/// Runs are repeated until they have taken this long together, or so often.
const ENOUGH: Duration = Duration::from_millis(100);
const REPEATED: u32 = 8;
const LIMIT: &str = "20s";

const ASKED: [&[&str]; 5] = [
    &["check", "--model", "sc"],
    &["check", "--model", "tso"],
    &["check", "--model", "pso"],
    &["robust"],
    &["fences", "--goal", "robustness"],
];

/// Gives the table line by line; says whether every row and the median keep to the limits. Unless
/// `all` rows are wanted only those over [`SHORT`] are shown.
pub fn run(examples: &Path, suites: &Path, all: bool, out: &mut Sink<'_>) -> bool {
    let mut names = vec![examples.display().to_string()];
    for suite in ["scale", "trencher", "memorax"] {
        let folder = suites.join(suite);
        match folder.is_dir() {
            true => names.push(folder.display().to_string()),
            false => out.line(&format!("{} is not there: skipped", folder.display())),
        }
    }
    let (files, _) = input::expand(&names);
    out.line(HEAD);
    let mut rows: Vec<Row> = Vec::new();
    for file in &files {
        for asked in ASKED {
            let Some(row) = Row::measured(file, asked) else {
                continue;
            };
            if all || row.counts() {
                out.row(&row.to_string(), row.value());
            }
            rows.push(row);
        }
    }
    let mut ratios: Vec<f64> = rows.iter().map(Row::time).collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
    let over = rows.iter().filter(|r| r.is_over()).count();
    out.line(&format!(
        "{} answers, {} over {} ms; {over} of these over {TIME} times the search or {MEMORY} times its memory; \
         the median is {median:.2} times the search (at most {MEDIAN})",
        rows.len(),
        rows.iter().filter(|r| r.counts()).count(),
        SHORT.as_millis(),
    ));
    over == 0 && median <= MEDIAN
}

const HEAD: &str = "file                              asked                     search s  audited s  times  search MB  audited MB  times";

struct Row {
    file: String,
    asked: String,
    search: Used,
    audited: Used,
}

#[derive(Clone, Copy)]
struct Used {
    time: Duration,
    memory: u64,
}

impl Row {
    /// None if there is no answer without an audit: then there is nothing to compare.
    fn measured(file: &str, asked: &[&str]) -> Option<Row> {
        let search = used(file, asked, &["--no-audit"])?;
        let audited = used(file, asked, &[])?;
        let name = Path::new(file).file_name()?.to_string_lossy().into_owned();
        Some(Row {
            file: name,
            asked: asked.join(" "),
            search,
            audited,
        })
    }

    fn time(&self) -> f64 {
        let floor = Duration::from_millis(1).as_secs_f64();
        self.audited.time.as_secs_f64().max(floor) / self.search.time.as_secs_f64().max(floor)
    }

    fn memory(&self) -> f64 {
        self.audited.memory.max(FLOOR) as f64 / self.search.memory.max(FLOOR) as f64
    }

    fn value(&self) -> serde_json::Value {
        let used =
            |u: &Used| json!({ "processor_seconds": u.time.as_secs_f64(), "bytes": u.memory });
        json!({
            "suite": "evidence", "file": self.file, "asked": self.asked,
            "search": used(&self.search), "audited": used(&self.audited), "over": self.is_over(),
        })
    }

    fn counts(&self) -> bool {
        self.audited.time > SHORT
    }

    fn is_over(&self) -> bool {
        self.counts() && (self.time() > TIME || self.memory() > MEMORY)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{:33} {:25} {:8.3}  {:9.3}  {:5.2}  {:9.1}  {:10.1}  {:5.2}{}",
            self.file,
            self.asked,
            self.search.time.as_secs_f64(),
            self.audited.time.as_secs_f64(),
            self.time(),
            megabytes(self.search.memory),
            megabytes(self.audited.memory),
            self.memory(),
            if self.is_over() { "  over" } else { "" }
        )
    }
}

/// Runs this program on the file; none if it is no question for it, or has no answer.
fn used(file: &str, asked: &[&str], more: &[&str]) -> Option<Used> {
    let program = std::env::current_exe().ok()?;
    let before = resources::processor_time_of_children();
    let (mut times, mut memory) = (0, 0);
    loop {
        let mut command = Command::new(&program);
        command.args(asked).args(more);
        command.args(["--timeout", LIMIT, "--json", file]);
        let output = command.stderr(Stdio::null()).output().ok()?;
        // An answer: it is so, or it is not.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return None;
        }
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        memory = peak(&told).max(memory);
        times += 1;
        let took = resources::processor_time_of_children().saturating_sub(before);
        if took >= ENOUGH || times == REPEATED {
            let time = took / times;
            return Some(Used { time, memory });
        }
    }
}

/// The largest `peak_memory_bytes` anywhere in it.
fn peak(told: &serde_json::Value) -> u64 {
    match told {
        serde_json::Value::Object(fields) => {
            let of = |(name, value): (&String, &serde_json::Value)| match name.as_str() {
                "peak_memory_bytes" => value.as_u64().unwrap_or(0),
                _ => peak(value),
            };
            fields.iter().map(of).max().unwrap_or(0)
        }
        serde_json::Value::Array(all) => all.iter().map(peak).max().unwrap_or(0),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_held_to_the_limits() {
        let used = |ms: u64, mb: u64| Used {
            time: Duration::from_millis(ms),
            memory: mb << 20,
        };
        let row = |search, audited| Row {
            file: "f".into(),
            asked: "check".into(),
            search,
            audited,
        };
        assert!(!row(used(1, 10), used(40, 20)).is_over(), "short");
        assert!(row(used(20, 20), used(70, 20)).is_over(), "slow");
        assert!(!row(used(30, 20), used(70, 39)).is_over());
        assert!(row(used(30, 20), used(70, 41)).is_over(), "large");
        let told = serde_json::json!({"a": [{"peak_memory_bytes": 3}, {"peak_memory_bytes": 7}]});
        assert_eq!(peak(&told), 7);
    }
}

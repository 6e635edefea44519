//! Robustness, reachability and repair beside the peers' seconds recorded with the suites, and
//! families of growing size.
//!
//! The peers' seconds were measured on another machine of the same kind: compare orders of
//! magnitude. A blank or a word in their column means that they gave no answer there.

use crate::sink::Sink;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use wattle::fences::{FenceOptions, Goal, fences};
use wattle::generate::Family;
use wattle::resources::processor_time;
use wattle::{Options, Verdict, check};
use wattle_auditor::AuditPolicy;
use wattle_evidence::Control;
use wattle_memory::MemoryModel;
use wattle_model::Program;
use wattle_repair::Outcome;
use wattle_robust::{Finding, search};

/// No measurement takes longer.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// Gives the tables line by line, as they are measured. `suites` holds the folders `trencher` and
/// `memorax`.
pub fn run(suites: &Path, out: &mut Sink<'_>) {
    let mut total = Total::default();
    out.line(
        "suite     file                                      task                 answer      ours s   peer s",
    );
    trencher(suites, &mut total, out);
    reach(suites, &mut total, out);
    total.report("trencher", out);
    let mut total = Total::default();
    memorax(suites, &mut total, out);
    total.report("memorax", out);
    families(out);
}

/// Sums over the measurements for which the peer has a time.
#[derive(Default)]
pub(super) struct Total {
    ours: f64,
    peer: f64,
    /// Measurements for which the peer has a time.
    compared: usize,
    slower: Vec<String>,
}

impl Total {
    pub(super) fn row(
        &mut self,
        out: &mut Sink<'_>,
        (suite, file, task): (&str, &str, &str),
        (answer, ours): (String, Duration),
        peer: &str,
    ) {
        let ours = ours.as_secs_f64();
        if let Ok(peer) = peer.parse::<f64>() {
            self.compared += 1;
            self.ours += ours;
            self.peer += peer;
            if peer > 0.1 && ours > peer {
                self.slower.push(format!("{file} ({task})"));
            }
        }
        let theirs = peer.parse::<f64>().ok();
        out.row(
            &format!("{suite:<9} {file:<41} {task:<20} {answer:<10} {ours:>8.3} {peer:>8}"),
            json!({
                "suite": suite, "file": file, "task": task, "answer": answer,
                "processor_seconds": ours, "peer_processor_seconds": theirs,
            }),
        );
    }

    pub(super) fn report(&self, suite: &str, out: &mut Sink<'_>) {
        if self.compared == 0 {
            out.line(&format!(
                "{suite}: nothing was compared: the suite is not here (--suites DIR)"
            ));
            return;
        }
        let ratio = self.ours / self.peer.max(1e-9);
        out.row(
            &format!(
                "{suite}: {:.2} s of processor time in all, the peer {:.2} s; ratio {ratio:.3}",
                self.ours, self.peer
            ),
            json!({
                "suite": suite, "task": "in all", "compared": self.compared,
                "processor_seconds": self.ours, "peer_processor_seconds": self.peer, "ratio": ratio,
            }),
        );
        for file in &self.slower {
            out.line(&format!("{suite}: slower than the peer on {file}"));
        }
    }
}

/// A table of comma-separated values with quotes; empty if it is not there.
pub(super) fn table(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().map(|row| {
        let mut cells = vec![String::new()];
        let mut quoted = false;
        for c in row.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => {
                    if let Some(cell) = cells.last_mut() {
                        cell.push(c);
                    }
                }
            }
        }
        cells
    });
    rows.collect()
}

pub(super) fn column(rows: &[Vec<String>], name: &str) -> Option<usize> {
    rows.first()?.iter().position(|c| c == name)
}

pub(super) fn cell(row: &[String], column: Option<usize>) -> &str {
    column.and_then(|c| row.get(c)).map_or("", String::as_str)
}

/// Parses with the suite's language; files that do not parse are left out of the table.
pub(super) fn program(path: &Path) -> Option<Program> {
    let text = std::fs::read_to_string(path).ok()?;
    match path.extension()?.to_str()? {
        "rmm" => wattle_syntax::rmm::parse(&text).program,
        _ => wattle_syntax::trencher::parse(&text).program,
    }
}

fn control() -> Control<'static> {
    Control::unlimited().with_timeout(Some(LIMIT))
}

fn options() -> Options {
    Options {
        timeout: Some(LIMIT),
        explain: false,
        ..Options::default()
    }
}

/// Processor time, as the peers' seconds are.
pub(super) fn timed(task: impl FnOnce() -> String) -> (String, Duration) {
    let begin = processor_time();
    let answer = task();
    (answer, processor_time().saturating_sub(begin))
}

/// Rounded, for a table.
pub(super) fn milliseconds(took: Duration) -> String {
    format!("{:.0}", took.as_secs_f64() * 1e3)
}

pub(super) fn robust(program: &Program, goal: wattle_robust::Goal) -> String {
    let Ok(instance) = program.instance() else {
        return "refused".into();
    };
    let options = wattle_robust::Options::new(goal, MemoryModel::Tso);
    match search(&instance, options, &control()) {
        Finding::Free { .. } => "yes".into(),
        Finding::Found { .. } => "no".into(),
        Finding::Undecided { .. } => "undecided".into(),
    }
}

pub(super) fn fence_count(program: &Program, goal: Goal) -> String {
    let wanted = FenceOptions {
        goal,
        ..FenceOptions::new(MemoryModel::Tso)
    };
    // The peers re-check nothing; proofs of safety are audited here all the same.
    let options = Options {
        audit: match goal {
            Goal::Safety => AuditPolicy::Always,
            Goal::Robustness | Goal::Triangular => AuditPolicy::Never,
        },
        ..options()
    };
    match fences(program, &wanted, &options, &control()).map(|r| r.outcome) {
        Ok(Outcome::Fixed { fixes, .. }) => fixes
            .first()
            .map_or("none".into(), |f| format!("{} fences", f.sites.len())),
        Ok(Outcome::BrokenUnderSc(_)) => "SC broken".into(),
        Ok(Outcome::Impossible(_)) => "impossible".into(),
        Ok(Outcome::UpTo { .. } | Outcome::Undecided { .. }) => "undecided".into(),
        Err(_) => "error".into(),
    }
}

pub(super) fn verdict(program: &Program) -> String {
    let Ok(checked) = check(program, &options()) else {
        return "refused".into();
    };
    let mut worst = "holds";
    for finding in checked.findings() {
        match finding.judged.verdict {
            Verdict::Holds { .. } => {}
            Verdict::Violated { .. } => return "violated".into(),
            Verdict::HoldsIf { .. } | Verdict::Bounded { .. } | Verdict::Undecided { .. } => {
                worst = "undecided";
            }
        }
    }
    worst.into()
}

fn trencher(suites: &Path, total: &mut Total, out: &mut Sink<'_>) {
    use wattle_robust::Goal as Want;
    let folder = suites.join("trencher");
    let rows = table(&folder.join("expected.csv"));
    // The peer's seconds, and its answer: without one the seconds are those of giving up.
    let tasks = [
        ("peer_cpu_robust", "robust"),
        ("peer_cpu_robust_fences", "robustness_fences"),
        ("peer_cpu_triangular", "triangular_race_free"),
        ("peer_cpu_triangular_fences", "triangular_fences"),
    ];
    for row in rows.iter().skip(1) {
        let Some(program) = program(&folder.join(&row[0])) else {
            continue;
        };
        for (i, (seconds, answer)) in tasks.iter().enumerate() {
            let (task, measured) = match i {
                0 => ("robust", timed(|| robust(&program, Want::Robustness))),
                1 => (
                    "robustness fences",
                    timed(|| fence_count(&program, Goal::Robustness)),
                ),
                2 => ("triangular", timed(|| robust(&program, Want::Triangular))),
                _ => (
                    "triangular fences",
                    timed(|| fence_count(&program, Goal::Triangular)),
                ),
            };
            let peer = match cell(row, column(&rows, answer)) {
                "" => "none",
                _ => cell(row, column(&rows, seconds)),
            };
            total.row(out, ("trencher", &row[0], task), measured, peer);
        }
    }
}

fn reach(suites: &Path, total: &mut Total, out: &mut Sink<'_>) {
    let folder = suites.join("trencher/reach");
    let rows = table(&folder.join("expected.csv"));
    for row in rows.iter().skip(1) {
        if let Some(program) = program(&folder.join(&row[0])) {
            let peer = cell(row, column(&rows, "peer_cpu_seconds"));
            let measured = timed(|| verdict(&program));
            total.row(out, ("reach", &row[0], "reachability"), measured, peer);
        }
    }
}

fn memorax(suites: &Path, total: &mut Total, out: &mut Sink<'_>) {
    let folder = suites.join("memorax");
    let rows = table(&folder.join("expected.csv"));
    for row in rows.iter().skip(1) {
        let finite = cell(row, column(&rows, "data")) == "finite";
        let Some(program) = program(&folder.join(&row[0])).filter(|_| finite) else {
            continue;
        };
        let peer = cell(row, column(&rows, "peer_cpu_reach"));
        let measured = timed(|| verdict(&program));
        total.row(out, ("memorax", &row[0], "reachability"), measured, peer);
        let peer = cell(row, column(&rows, "peer_cpu_fences"));
        let measured = timed(|| fence_count(&program, Goal::Safety));
        total.row(out, ("memorax", &row[0], "safety fences"), measured, peer);
    }
}

/// Growth with N: the ratio to the size before, and the power of N that would grow so. Powers that do
/// not rise with N are growth that is polynomial.
fn families(out: &mut Sink<'_>) {
    out.line("family     N    answer     ours s   times   as N to the");
    let sizes: [(Family, &[u32]); 4] = [
        (Family::Lamport, &[2, 3, 4, 5]),
        (Family::Branching, &[25, 50, 100]),
        (Family::Unwinding, &[10, 20, 40]),
        (Family::Indexer, &[4, 8, 11]),
    ];
    for (family, sizes) in sizes {
        let mut before: Option<(u32, f64)> = None;
        for n in sizes {
            let Some(program) = wattle_syntax::trencher::parse(&family.program(*n)).program else {
                continue;
            };
            let (answer, ours) = timed(|| verdict(&program));
            let ours = ours.as_secs_f64();
            let growth = before.map_or(String::new(), |(m, b)| {
                let times = ours / b.max(1e-6);
                let power = times.ln() / (f64::from(*n) / f64::from(m)).ln();
                format!("{times:>5.1}   {power:.1}")
            });
            out.row(
                &format!(
                    "{:<10} {n:<4} {answer:<10} {ours:>7.3}   {growth}",
                    family.name()
                ),
                json!({
                    "suite": "families", "file": family.name(), "size": n, "answer": answer,
                    "processor_seconds": ours,
                }),
            );
            before = Some((*n, ours));
        }
    }
}

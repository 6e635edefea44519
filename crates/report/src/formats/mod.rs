//! What other programs show: code scanning (SARIF), test reports (JUnit), annotations of a change on
//! GitHub. All of them are made of the objects that `--json` prints.

pub mod github;
pub mod junit;
pub mod sarif;

use crate::json::{FileReport, ResultReport};

/// The results of a file, one for each property and memory model.
fn results(report: &FileReport) -> &[ResultReport] {
    match report.results.is_empty() {
        true => std::slice::from_ref(&report.worst),
        false => &report.results,
    }
}

/// Whether the file could not be checked at all.
fn is_broken(report: &FileReport) -> bool {
    results(report).iter().all(|r| r.verdict.is_none())
}

/// What is looked for, in words.
fn property(result: &ResultReport) -> &str {
    result
        .property
        .as_deref()
        .unwrap_or("assertions and faults")
}

/// The line a violation is shown at: where its last step is, or its property.
fn line(result: &ResultReport) -> Option<u32> {
    let trace = result.trace.iter().flatten();
    let last = trace.rev().find_map(|e| e.line);
    match result.violation.as_ref().map(|v| v.kind) {
        Some("property") | None => result.line.or(last),
        Some(_) => last.or(result.line),
    }
}

/// The closing words: what overtook what, and the fence that stops it.
fn advice(result: &ResultReport) -> Option<String> {
    let fence = result.fences.iter().flatten().next()?;
    Some(format!("a {} {}", fence.place.as_deref()?, fence.why))
}

/// The verdict, the property and the advice in one paragraph.
fn message(result: &ResultReport) -> String {
    let headline = result.headline.clone();
    let mut text = headline.or(result.reason.clone()).unwrap_or_default();
    text.push_str(&format!(": {}", property(result)));
    if let Some(advice) = advice(result) {
        text.push_str(&format!("; {advice}"));
    }
    text
}

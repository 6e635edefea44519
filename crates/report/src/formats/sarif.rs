//! SARIF 2.1.0, for code scanning. A violation is a result of level `error` with its run as a code
//! flow; what was not decided is a `warning`; what holds is of kind `pass`; an error in a text is a
//! result of the rule `input`.

use super::{is_broken, line, message, results};
use crate::json::{DiagnosticReport, EventReport, FileReport, ResultReport, VERSION};
use serde_json::{Value, json};

/// The rules, in the order that `ruleIndex` counts.
const RULES: [(&str, &str); 4] = [
    ("property", "A property is violated by a run of the program"),
    (
        "fault",
        "A run ends in a fault, a failed assertion or a deadlock",
    ),
    ("undecided", "The property was neither proved nor violated"),
    ("input", "The program could not be read"),
];

/// The whole log, pretty-printed.
pub fn log(files: &[FileReport]) -> String {
    let rule = |(id, text): &(&str, &str)| json!({ "id": id, "name": id, "shortDescription": { "text": text } });
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "wattle",
                "version": VERSION,
                "rules": RULES.iter().map(rule).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": files.iter().flat_map(of_file).collect::<Vec<_>>(),
        }],
    });
    serde_json::to_string_pretty(&log).unwrap_or_default() + "\n"
}

fn of_file(file: &FileReport) -> Vec<Value> {
    let mut all: Vec<Value> = (file.diagnostics.iter())
        .map(|d| diagnostic(file, d))
        .collect();
    if is_broken(file) {
        if all.is_empty() {
            let reason = file.worst.reason.clone().unwrap_or_default();
            all.push(result(
                "input",
                "error",
                "fail",
                &reason,
                location(file, None, None),
            ));
        }
        return all;
    }
    all.extend(results(file).iter().map(|r| verdict(file, r)));
    all
}

fn diagnostic(file: &FileReport, d: &DiagnosticReport) -> Value {
    let line = d.line.and_then(|l| u32::try_from(l).ok());
    let place = location(file, line, d.column);
    result("input", d.severity, "fail", &d.sentence(), place)
}

fn verdict(file: &FileReport, r: &ResultReport) -> Value {
    let place = location(file, line(r), None);
    let text = message(r);
    match r.verdict {
        Some("holds") => result("property", "none", "pass", &text, place),
        Some("violated") => {
            let rule = match r.violation.as_ref().map(|v| v.kind) {
                Some("property") | None => "property",
                Some(_) => "fault",
            };
            let mut value = result(rule, "error", "fail", &text, place);
            if let Some(trace) = r.trace.as_ref().filter(|t| !t.is_empty()) {
                let steps: Vec<Value> = trace.iter().map(|e| step(file, e)).collect();
                value["codeFlows"] = json!([{ "threadFlows": [{ "locations": steps }] }]);
            }
            value
        }
        _ => result("undecided", "warning", "fail", &text, place),
    }
}

fn result(rule: &str, level: &str, kind: &str, text: &str, place: Value) -> Value {
    let index = RULES.iter().position(|(id, _)| *id == rule);
    json!({
        "ruleId": rule,
        "ruleIndex": index,
        "level": level,
        "kind": kind,
        "message": { "text": text },
        "locations": [place],
    })
}

fn step(file: &FileReport, event: &EventReport) -> Value {
    let mut place = location(file, event.line, None);
    place["message"] = json!({ "text": format!("{}: {}", event.thread, event.text) });
    json!({ "location": place })
}

fn location(file: &FileReport, line: Option<u32>, column: Option<usize>) -> Value {
    let mut place = json!({ "artifactLocation": { "uri": uri(&file.file) } });
    if let Some(line) = line {
        place["region"] = json!({ "startLine": line });
        if let Some(column) = column {
            place["region"]["startColumn"] = column.into();
        }
    }
    json!({ "physicalLocation": place })
}

/// A path as a relative reference, or as a `file:` address if it is absolute.
fn uri(path: &str) -> String {
    let mut out = String::from(if path.starts_with('/') { "file://" } else { "" });
    for b in path.bytes() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'+' => {
                out.push(char::from(b));
            }
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_addresses() {
        assert_eq!(uri("a b/größe.wtl"), "a%20b/gr%C3%B6%C3%9Fe.wtl");
        assert_eq!(uri("/x.wtl"), "file:///x.wtl");
    }
}

//! JUnit's XML, as test reports of most continuous integrations read it: a suite for each file, a case
//! for each property and memory model. A violation is a failure; what was not decided and a file that
//! could not be read are errors. The schema is `schema/junit.xsd`.

use super::{is_broken, message, property, results};
use crate::json::FileReport;
use std::fmt::Write;

/// One case of a suite.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub seconds: f64,
    pub outcome: Outcome,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    Passed,
    /// Message and details.
    Failed(String, String),
    Error(String, String),
}

/// A file.
#[derive(Clone, Debug)]
pub struct Suite {
    pub name: String,
    pub cases: Vec<Case>,
}

/// The suite of a file that was checked; `details` are the words under the verdicts.
pub fn suite(file: &FileReport, details: &[String]) -> Suite {
    let text = |i: usize| details.get(i).cloned().unwrap_or_default();
    let mut cases = Vec::new();
    if is_broken(file) {
        let reason = file.worst.reason.clone().unwrap_or_default();
        cases.push(Case {
            name: "the program can be read".into(),
            seconds: 0.0,
            outcome: Outcome::Error(reason, file.errors.join("\n")),
        });
    } else {
        for (i, r) in results(file).iter().enumerate() {
            let model = r.model.map_or(String::new(), |m| format!("{m}: "));
            cases.push(Case {
                name: format!("{model}{}", property(r)),
                seconds: r.seconds,
                outcome: match r.verdict {
                    Some("holds") => Outcome::Passed,
                    Some("violated") => Outcome::Failed(message(r), text(i)),
                    _ => Outcome::Error(message(r), text(i)),
                },
            });
        }
    }
    Suite {
        name: file.file.clone(),
        cases,
    }
}

/// The whole document.
pub fn document(suites: &[Suite]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: Vec<&Case> = suites.iter().flat_map(|s| &s.cases).collect();
    let _ = writeln!(out, "<testsuites name=\"wattle\" {}>", totals(&all));
    for suite in suites {
        let cases: Vec<&Case> = suite.cases.iter().collect();
        let name = escape(&suite.name);
        let _ = writeln!(out, "  <testsuite name=\"{name}\" {}>", totals(&cases));
        for case in &suite.cases {
            let _ = write!(
                out,
                "    <testcase name=\"{}\" classname=\"{name}\" time=\"{:.3}\"",
                escape(&case.name),
                case.seconds
            );
            let (word, message, details) = match &case.outcome {
                Outcome::Passed => {
                    out.push_str("/>\n");
                    continue;
                }
                Outcome::Failed(message, details) => ("failure", message, details),
                Outcome::Error(message, details) => ("error", message, details),
            };
            let (message, details) = (escape(message), escape(details));
            let _ = writeln!(
                out,
                ">\n      <{word} message=\"{message}\">{details}</{word}>\n    </testcase>"
            );
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn totals(cases: &[&Case]) -> String {
    let count = |wanted: fn(&Outcome) -> bool| cases.iter().filter(|c| wanted(&c.outcome)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{:.3}\"",
        cases.len(),
        count(|o| matches!(o, Outcome::Failed(..))),
        count(|o| matches!(o, Outcome::Error(..))),
        cases.iter().map(|c| c.seconds).sum::<f64>()
    )
}

/// Text that cannot become markup; XML has no place for most control characters.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

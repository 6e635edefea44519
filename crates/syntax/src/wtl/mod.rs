//! The Wattle language (`.wtl`); its reference is `docs/language.md`.
//!
//! Text → tokens → tree → model. Each stage goes on after an error, so that all errors of a file
//! are reported together; the model is made only if there were none.

mod ast;
mod lower;
mod parser;
#[cfg(test)]
mod tests;

use crate::{Diagnostic, Parsed, Severity};
use wattle_model::{Span, validate};

/// Parses a program.
pub fn parse(text: &str) -> Parsed {
    let mut report = Collector::default();
    if u32::try_from(text.len()).is_err() {
        report.push(Diagnostic::error(
            Span::NONE,
            "the file is larger than 4 GB",
        ));
        return report.finish(None);
    }
    let file = parser::parse(text, &mut report);
    if file.incomplete {
        // Every use of a name that was lost would be one more, misleading error.
        return report.finish(None);
    }
    let program = lower::lower(&file, &mut report);
    if report.errors > 0 {
        return report.finish(None);
    }
    let program = program.canonical();
    for broken in validate(&program) {
        report.push(Diagnostic::error(broken.span, broken.message));
    }
    report.finish(Some(program))
}

/// Diagnostics of one file. Past a hundred errors the rest are only counted: nobody reads them, and
/// a hostile file could make millions.
#[derive(Default)]
struct Collector {
    list: Vec<Diagnostic>,
    errors: usize,
}

const MAX_DIAGNOSTICS: usize = 100;

impl Collector {
    fn push(&mut self, d: Diagnostic) {
        self.errors += usize::from(d.severity == Severity::Error);
        if !self.full() {
            self.list.push(d);
        }
    }

    /// Adds a hint to the latest diagnostic, unless it has one.
    fn hint_last(&mut self, hint: &str) {
        if let Some(d) = self.list.last_mut() {
            d.hint.get_or_insert_with(|| hint.to_string());
        }
    }

    /// Whether further diagnostics are only counted; hints need not be worked out then.
    fn full(&self) -> bool {
        self.list.len() >= MAX_DIAGNOSTICS
    }

    fn finish(mut self, program: Option<wattle_model::Program>) -> Parsed {
        self.list
            .sort_by_key(|d| (d.span.start, d.span.end, d.severity));
        if self.errors > self.list.len() {
            let more = self.errors - self.list.len();
            self.list.push(Diagnostic::error(
                Span::NONE,
                format!("{more} more errors are not shown"),
            ));
        }
        Parsed {
            program: program.filter(|_| self.errors == 0),
            diagnostics: self.list,
        }
    }
}

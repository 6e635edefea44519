//! The messages about one file.

use crate::{Diagnostic, Parsed, Severity};
use wattle_model::Span;

/// Diagnostics of one file. Past a hundred errors the rest are only counted: nobody reads them, and
/// a hostile file could make millions.
#[derive(Default)]
pub(super) struct Collector {
    pub(super) list: Vec<Diagnostic>,
    pub(super) errors: usize,
}

const MAX_DIAGNOSTICS: usize = 100;

impl Collector {
    pub(super) fn push(&mut self, d: Diagnostic) {
        self.errors += usize::from(d.severity == Severity::Error);
        if !self.full() {
            self.list.push(d);
        }
    }

    /// Whether further diagnostics are only counted; hints need not be worked out then.
    pub(super) fn full(&self) -> bool {
        self.list.len() >= MAX_DIAGNOSTICS
    }

    pub(super) fn finish(mut self, program: Option<wattle_model::Program>) -> Parsed {
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

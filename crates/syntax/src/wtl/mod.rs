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
use wattle_model::program::Action;
use wattle_model::{Expr, Local, RegionId, RegisterId, Span, validate};

/// What a program says of compiled code. Its calls are holes in the graphs: see [`as_hole`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Files, as they are named in the text.
    pub objects: Vec<(String, Span)>,
    /// Regions that are memory of the code.
    pub memory: Vec<Memory>,
    pub calls: Vec<Call>,
    /// Functions the files lack that do nothing to memory; true if any number comes back.
    pub skipped: Vec<(String, bool)>,
}

/// `shared l: object(8);`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// A place holder: its type is settled when the code is known, its initial values are bytes.
    pub region: RegionId,
    pub size: Size,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    Bytes(u64),
    /// Of a structure with this name.
    Struct(String),
}

/// `r = call f(&l, &n[self], 3);`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub function: String,
    pub function_span: Span,
    pub arguments: Vec<Expr<Local>>,
    pub result: Option<RegisterId>,
    pub span: Span,
}

const HOLE: &str = "\u{0}call ";

/// A step that stands for a call.
fn hole(number: usize) -> Action {
    Action::Assert {
        condition: Expr::TRUE,
        message: Some(format!("{HOLE}{number}")),
    }
}

/// The number of the call a step stands for.
pub fn as_hole(action: &Action) -> Option<usize> {
    match action {
        Action::Assert {
            message: Some(m), ..
        } => m.strip_prefix(HOLE)?.parse().ok(),
        _ => None,
    }
}

/// A program with what it says of compiled code. With calls it is not yet one: neither canonical nor
/// validated.
pub struct Linked {
    pub parsed: Parsed,
    pub link: Link,
}

/// Parses a program. One that calls compiled code is an error here: nobody reads files for it.
pub fn parse(text: &str) -> Parsed {
    let Linked { mut parsed, link } = parse_linked(text);
    if let (Some((_, span)), Some(_)) = (link.objects.first(), &parsed.program) {
        let d = Diagnostic::error(*span, "object files are not read here");
        parsed.diagnostics.push(d);
        parsed.program = None;
    }
    parsed
}

/// Parses a program that may call compiled code.
pub fn parse_linked(text: &str) -> Linked {
    let mut link = Link::default();
    let parsed = parse_into(text, &mut link);
    Linked { parsed, link }
}

fn parse_into(text: &str, link: &mut Link) -> Parsed {
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
    let (program, found) = lower::lower(&file, &mut report);
    if report.errors > 0 {
        return report.finish(None);
    }
    *link = found;
    if !link.objects.is_empty() {
        return report.finish(Some(program));
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

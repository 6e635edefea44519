//! The Wattle language (`.wtl`); its reference is `docs/language.md`.
//!
//! Text → tokens → tree → model. Each stage goes on after an error, so that all errors of a file
//! are reported together; the model is made only if there were none.

mod ast;
mod collector;
mod gaps;
mod link;
mod lower;
mod parser;
mod spelled;
#[cfg(test)]
mod tests;

pub(crate) use gaps::gaps;
pub use link::{Call, Link, Memory, Size, as_hole};

use crate::{Diagnostic, Parsed};
use collector::Collector;
use wattle_model::{Span, validate};

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
    let (program, found, _) = lower::lower(&file, &mut report);
    if report.errors > 0 {
        return report.finish(None);
    }
    if let Err(place) = spelled::spells(&file, text) {
        report.push(mistaken(place, "what was read is not what stands here"));
        return report.finish(None);
    }
    *link = found;
    if !link.objects.is_empty() {
        return report.finish(Some(program));
    }
    let canonical = program.canonical();
    if !canonical.renumbers(&program) {
        report.push(mistaken(
            Span::NONE,
            "with other numbers this is another program",
        ));
    }
    for broken in validate(&canonical) {
        report.push(Diagnostic::error(broken.span, broken.message));
    }
    report.finish(Some(canonical))
}

fn mistaken(place: Span, message: &str) -> Diagnostic {
    let hint = "this is a bug in Wattle; please report it with the file";
    Diagnostic::error(place, message).hint(hint)
}

//! Litmus tests of the herd tools for `X86` and `X86_64`.
//!
//! Supported and refused constructs are listed in `docs/languages/litmus.md`. The grammar follows
//! herd's: initial state, columns of code, `locations`, `filter`, condition. Locations that nothing
//! declares start with 0.

mod build;
mod code;
mod condition;
mod header;
mod init;
mod items;
mod lexis;
mod meaning;
mod names;
mod resolve;
mod show;
mod syntax;
#[cfg(test)]
mod tests;
mod values;

pub use syntax::Quantifier;

use crate::Parsed;
use crate::diagnostics::Diagnostic;
use crate::flow::conclude;
use crate::tokens::{Cursor, MAX_ERRORS, Scanner, note};
use wattle_model::{Condition, Expr, Observation, Program};

/// A test as far as it could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedLitmus {
    /// From the header; empty if there is none.
    pub name: String,
    /// Both are present if and only if no diagnostic is an error.
    pub program: Option<Program>,
    pub test: Option<LitmusTest>,
    pub diagnostics: Vec<Diagnostic>,
}

/// The question a test asks about final states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LitmusTest {
    pub quantifier: Quantifier,
    /// What is looked at. The first [`shown`](Self::shown) make up a final state as it is
    /// printed; the others only matter to the filter.
    pub items: Vec<Observed>,
    pub shown: usize,
    /// The condition, over positions in `items`.
    pub proposition: Expr<usize>,
    /// Only final states that satisfy it count; over positions in `items`.
    pub item_filter: Option<Expr<usize>>,
    /// The same two over the program.
    pub condition: Condition,
    pub filter: Option<Condition>,
    /// Quantifier and condition as herd prints them.
    pub text: String,
    /// Numbers that are addresses, with the location's name.
    pub addresses: Vec<(i64, String)>,
}

/// A register or location that a test looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// `0:EAX` or `[x]`.
    pub name: String,
    pub value: Expr<Observation>,
}

/// Reads a test; its condition is the program's property.
pub fn parse(text: &str) -> Parsed {
    let parsed = parse_test(text);
    Parsed {
        program: parsed.program,
        diagnostics: parsed.diagnostics,
    }
}

/// Reads a test with what `wattle litmus` needs.
pub fn parse_test(text: &str) -> ParsedLitmus {
    let mut diagnostics = Vec::new();
    let mut scanner = Scanner::new(&lexis::LEXIS, text);
    let Some(header) = header::header(&mut scanner, &mut diagnostics) else {
        return ParsedLitmus {
            diagnostics,
            ..ParsedLitmus::default()
        };
    };
    let mut cursor = Cursor::new(scanner.tokens(&mut |d| note(&mut diagnostics, d)));
    let init = init::init(&mut cursor, &mut diagnostics);
    let columns = code::code(&mut cursor, &mut diagnostics);
    let question = condition::question(&mut cursor, &mut diagnostics);
    let built = build::build(&header, &init, &columns, &question, &mut diagnostics);
    // Errors survive the cut.
    diagnostics.sort_by_key(|d| (d.severity, d.span.start));
    diagnostics.truncate(MAX_ERRORS);
    diagnostics.sort_by_key(|d| (d.span.start, d.severity));
    let (program, test) = built.unzip();
    let concluded = conclude(program, diagnostics);
    ParsedLitmus {
        name: header.name,
        test: test.filter(|_| concluded.program.is_some()),
        program: concluded.program,
        diagnostics: concluded.diagnostics,
    }
}

//! x86 programs in the sections of conchon-2017 appendix A (`.asm`): shared and thread data, code
//! before the threads start, the code of any number of threads, and what must never be reached.
//!
//! Supported and refused constructs are listed in `docs/languages/x86.md`. Counters
//! (`! as counter`) are cells of exact integers on which only a few operations exist: `:= 0`,
//! `:= N`, `± 1`, comparison with 0 and N.

mod build;
mod code;
mod data;
mod init;
mod property;
mod sections;
#[cfg(test)]
mod tests;
mod views;

use crate::flow::conclude;
use crate::tokens::{self, Cursor, Kind, Lexis, MAX_ERRORS, note, word};
use crate::x86_core::{Result, parse_number};
use crate::{Diagnostic, Parsed};

const LEXIS: Lexis = Lexis {
    symbols: &[
        "&&", "||", "<>", "<=", ">=", "==", "!=", "<", ">", "=", "[", "]", ",", ":", "+", "-", "!",
        "(", ")", "*", "?",
    ],
    line_comment: Some(";"),
    comments: &[],
    marks: &[('$', name_length)],
    quotes: &[],
    escapes: false,
    number: |text| word(text, |c| c.is_ascii_digit(), |c| c.is_ascii_alphanumeric()),
    name: name_length,
};

fn name_length(text: &str) -> usize {
    let begins = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.');
    word(text, begins, |c| begins(c) || c.is_ascii_digit())
}

/// A number with an optional sign, if one starts here.
fn number(c: &mut Cursor<'_>) -> Result<Option<i64>> {
    let negative = c.at("-") && c.ahead(1).kind == Kind::Number;
    if negative {
        c.take();
    }
    let t = c.peek();
    if t.kind != Kind::Number {
        return Ok(None);
    }
    c.take();
    match parse_number(t.text) {
        Some(n) if negative => Ok(Some(n.wrapping_neg())),
        Some(n) => Ok(Some(n)),
        None => Err(Diagnostic::error(t.span, "this is not a number")
            .hint("numbers are written `10`, `0x1F` or `1Fh` and fit into 64 bits")),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Registers and variables hold any integer instead of wrapping at their size.
    pub mathematical: bool,
}

/// Reads a program with wrap-around numbers.
pub fn parse(text: &str) -> Parsed {
    parse_with(text, ParseOptions::default())
}

pub fn parse_with(text: &str, options: ParseOptions) -> Parsed {
    let mut strange = Vec::new();
    let tokens = LEXIS.tokens(text, &mut |d| note(&mut strange, d));
    let lines = tokens::lines(&tokens);
    let mut diagnostics = Vec::new();
    let blocks = sections::sections(lines, &mut diagnostics);
    let program = if blocks.is_empty() && !diagnostics.is_empty() {
        // Another language: its characters need no messages of their own.
        None
    } else {
        diagnostics.extend(strange);
        build::build(&blocks, options, &mut diagnostics)
    };
    // Errors survive the cut.
    diagnostics.sort_by_key(|d| (d.severity, d.span.start));
    diagnostics.truncate(MAX_ERRORS);
    diagnostics.sort_by_key(|d| (d.span.start, d.severity));
    conclude(program, diagnostics)
}

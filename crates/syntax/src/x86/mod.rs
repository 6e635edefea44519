//! x86 programs in the sections of conchon-2017 appendix A (`.asm`): shared and thread data, code
//! before the threads start, the code of any number of threads, and what must never be reached.
//!
//! Supported and refused constructs are listed in `docs/languages/x86.md`. Counters
//! (`! as counter`) are cells of exact integers on which only a few operations exist: `:= 0`,
//! `:= N`, `± 1`, comparison with 0 and N.

mod build;
mod code;
mod cursor;
mod data;
mod init;
mod property;
mod sections;
#[cfg(test)]
mod tests;
mod token;

use crate::Parsed;
use crate::flow::conclude;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// Registers and variables hold any integer instead of wrapping at their size.
    pub mathematical: bool,
}

/// Reads a program with wrap-around numbers.
pub fn parse(text: &str) -> Parsed {
    parse_with(text, ParseOptions::default())
}

/// More diagnostics than this help nobody.
const MAX_DIAGNOSTICS: usize = 100;

pub fn parse_with(text: &str, options: ParseOptions) -> Parsed {
    let mut strange = Vec::new();
    let lines = token::lines(text, &mut strange);
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
    diagnostics.truncate(MAX_DIAGNOSTICS);
    diagnostics.sort_by_key(|d| (d.span.start, d.severity));
    conclude(program, diagnostics)
}

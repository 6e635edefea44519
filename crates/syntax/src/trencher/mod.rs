//! The input language of the robustness checker Trencher (calin-2016, chapter 5): threads as
//! automata over one flat memory, expressions in prefix notation, addresses computed.
//!
//! A file is read line by line: a transition is one line, so one bad line costs one message and
//! nothing else. Memory becomes one array; how long it must be is inferred ([`addresses`]), because
//! the language has no declarations. Every control state is a label.

mod addresses;
mod build;
mod read;
#[cfg(test)]
mod tests;

use crate::Parsed;
use crate::flow::conclude;

/// Reads a program; a `final` state in some thread makes the property "never all of them at once".
pub fn parse(text: &str) -> Parsed {
    let mut diagnostics = Vec::new();
    let file = read::file(text, &mut diagnostics);
    let program = diagnostics
        .is_empty()
        .then(|| build::program(&file, &mut diagnostics));
    conclude(program, diagnostics)
}

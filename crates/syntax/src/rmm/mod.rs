//! The language of Memorax (`.rmm`): processes with registers over global and per-process data,
//! blocking reads, `cas`, `locked` blocks, and forbidden tuples of labels.
//!
//! Three things are not obvious, and follow the tool whose language it is:
//!
//! - `x[k]` is the `x` of the `k`-th *other* process; `x[my]` is one's own.
//! - `[e]` addresses the *global* data in order of declaration; other values of `e` block.
//! - A domain is no assertion: a step that would give a variable or register a value outside its
//!   domain cannot be taken. It becomes an `assume` in front of the step where ranges do not show it
//!   to be superfluous, so no run of the model ever leaves a domain.

mod ast;
mod lower;
mod macros;
mod read;
mod scope;
#[cfg(test)]
mod tests;

use crate::Parsed;
use crate::flow::conclude;

pub fn parse(text: &str) -> Parsed {
    let (file, mut diagnostics) = read::file(text);
    let program = lower::program(&file, &mut diagnostics);
    conclude(program, diagnostics)
}

//! The language BITCHAKU (printz-2015 §3, `.bit`): integers only, explicit `store` and `load`,
//! numbered labels, and one assertion over the shared variables and the processes' positions.
//!
//! Where the paper is silent or wrong:
//!
//! - `fence` waits until the buffer is empty (§3.11 says it discards the buffer).
//! - `flush` does nothing: stores reach memory by themselves, at any time.
//! - `pc(i) = l` is true while process `i` stands at its label `l`. A local variable of a process
//!   can be named in the same way, `x(i)`: the invariant of the alternating bit protocol needs it.
//! - `begin_atomic … end_atomic` and `assume` appear in the paper's own output, so they are read too.
//!   A section keeps its stores buffered (dan-2013, Semantics 1 and 2).

mod ast;
mod kinds;
mod lower;
mod read;
#[cfg(test)]
mod tests;

use crate::Parsed;
use crate::flow::conclude;

pub fn parse(text: &str) -> Parsed {
    let (file, mut diagnostics) = read::file(text);
    let program = lower::program(&file, &mut diagnostics);
    conclude(program, diagnostics)
}

//! The language IMP (calin-2016 Fig. 2.1, `.imp`): processes of labelled statements over shared
//! variables only.
//!
//! Every variable is shared, so every variable in an expression is a load: they are copied left to
//! right, one step each, and the expression is evaluated on the copies (the load-and-check reading
//! of conditions and the bottom half of Fig. 2.8; a variable that occurs twice is copied once). The
//! graph is that of Fig. 2.4: `skip` and conditions without variables cost no step, the locations
//! around them are one, with all their labels. A condition is true if its value is 1.
//!
//! The thesis states properties beside the program. Here they stand after the processes, as
//! `never P0@5 and P1@11;`, `always EXPR;`, or `assert(leads(EXPR, EXPR));` and the like. `fence;` is read as well, so that a repaired program
//! can be written down.

mod ast;
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

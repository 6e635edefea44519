//! Boolean programs (`.bp`), as predicate abstraction prints them (printz-2015 §5.5, `wattle show --as
//! boolean-program`).
//!
//! Every variable is a truth value. `choose(a, b)` is true where `a` is, else false where `b` is, else
//! either; `*` is either. Statements are run one at a time, whatever the memory model: what touches a
//! shared variable outside of a section is a section of its own. `abort` is a failed assertion. Runs
//! begin where the assumptions of `init` hold.

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

//! The Cubicle-W language (`.cub`): text to [`ArraySystem`].
//!
//! Supported: `type`, `var`, `array` (up to three indices), `const`, `weak`, `number_procs`, `init`,
//! `invariant`, `unsafe`, `predicate`, transitions with guards, all connectives and quantifiers (see
//! [`plain`]), case updates, `.` and `?` for any value, `p @ X` and the older `read(p, X)`, `fence()` and
//! the older `fence(p)`, thread constants `#1`. The acting thread is the bracketed parameter, or the
//! first one in older files.
//!
//! The body of a quantifier reaches as far right as it can, and nothing in that of `forall_other` is
//! demanded when there is no other thread; a `fence()` in it belongs to the transition all the same.
//! Reals with a fraction are all multiplied by their common denominator, which no comparison sees.

mod names;
mod parse;
mod plain;
mod resolve;
mod tree;

#[cfg(test)]
mod tests;

use crate::Diagnostic;
use crate::diagnostics::Severity;
use wattle_model::array::ArraySystem;

/// The system, if there is no error; and every error and warning, in order of place.
#[derive(Clone, Debug)]
pub struct ParsedSystem {
    pub system: Option<ArraySystem>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses and type-checks a whole file.
pub fn parse(text: &str) -> ParsedSystem {
    let (tree, mut diagnostics) = parse::parse(text);
    let system = resolve::resolve(&tree, &mut diagnostics);
    diagnostics.sort_by_key(|d| d.span);
    diagnostics.dedup();
    let broken = diagnostics.iter().any(|d| d.severity == Severity::Error);
    ParsedSystem {
        system: (!broken).then_some(system),
        diagnostics,
    }
}

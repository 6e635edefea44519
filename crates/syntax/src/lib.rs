//! Text to model. One folder per language; each offers `parse(text) -> Parsed`. Parsers never panic
//! and report every error of a file at once.

pub mod cubicle;
pub mod diagnostics;

pub use diagnostics::{Diagnostic, Severity};

//! The engine `traces`.

/// One run for each trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traces;

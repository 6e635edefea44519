//! Explicit-state exploration over the compiled machine.

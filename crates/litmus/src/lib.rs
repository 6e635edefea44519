//! Final states of litmus tests: what they are under a memory model, and herd's summary of them.

mod summary;

pub use summary::{Observation, Summary};

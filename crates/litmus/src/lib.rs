//! Final states of litmus tests: what they are under a memory model, and herd's summary of them.
//!
//! ```
//! use wattle_evidence::Control;
//! use wattle_litmus::{Observation, answer};
//! use wattle_memory::MemoryModel;
//!
//! let text = "X86 SB\n{ }\n P0 | P1 ;\n MOV [x],1 | MOV [y],1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)";
//! let test = wattle_syntax::litmus::parse_test(text);
//! let found = answer(&test, MemoryModel::Tso, &Control::unlimited())?;
//! assert_eq!(found.summary.states.len(), 4);
//! assert_eq!(found.summary.observation(), Observation::Sometimes);
//! # Ok::<(), wattle_litmus::NoAnswer>(())
//! ```

#![deny(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants
)]

mod answer;
mod either;
mod parts;
mod summary;

pub use answer::{
    Answer, NoAnswer, answer, answer_by_traces, answer_by_vectors, answer_with, observed_facts,
};
pub use either::{by_traces, by_vectors, final_states};
pub use summary::{Observation, Summary};

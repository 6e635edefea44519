//! Predicate abstraction under relaxed memory.
//!
//! [`reduce`] turns an instance under SC, TSO or PSO into a transition system over integers that
//! runs under SC: buffers become variables (dan-2013 §3, App. A.4). [`Cegar`] proves or breaks that
//! system with predicates it finds itself from interpolants; it treats unbounded integers.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

pub mod cegar;
pub mod facts;
pub mod reduce;

pub use cegar::Cegar;
pub use facts::Facts;

//! Predicate and cube extrapolation (dan-2013, printz-2015): the proof of a program under SC, lifted
//! to TSO and PSO.
//!
//! [`reduction`] writes a program with its buffers as variables. [`Extrapolate`] is the engine: it
//! proves the program under SC by predicate abstraction, lifts the predicates ([`lift`]) and the cubes
//! of that proof to buffered values, builds the boolean program ([`boolean`]) and checks it
//! ([`check`]).

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

pub mod boolean;
mod certify;
pub mod check;
pub mod cube;
pub mod engine;
pub mod known;
pub mod lift;
mod print;
pub mod reduction;
mod relaxed;
mod sc;
pub mod search;
pub mod sites;
mod step;
pub mod vocabulary;

pub use engine::{Extrapolate, Method, Pure, PureOutcome};

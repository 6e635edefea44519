//! Any number of threads: backward reachability over cubes with weak memory.
//!
//! The input is an array-based system ([`wattle_model::array::ArraySystem`]); [`check`](check::check)
//! decides whether a bad state can be reached for any number of threads under SC, TSO or PSO.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

pub mod build;
pub mod certificate;
pub mod check;
pub mod compile;
pub mod concrete;
pub mod cover;
pub mod cube;
pub mod display;
pub mod drain;
pub mod engine;
pub mod forward;
pub mod guess;
pub mod initial;
pub mod lin;
pub mod lower;
pub mod machine;
pub mod meets;
pub mod memory;
pub mod pairs;
pub mod pre;
pub mod sample;
pub mod search;
pub mod slot;
pub mod small;
pub mod symmetry;
pub mod view;
mod work;

pub use check::{Options, Outcome, Proof, check};
pub use concrete::{Run, replays};
pub use engine::{NAME, Params};
pub use search::Effort;
pub use small::small_worlds;

//! Backward coverability over well-structured systems: TSO with load buffers (the `exact` engine)
//! and TSO with multiset buffers (the `multiset` engine).
//!
//! Both run on threads unfolded to finite automata ([`wattle_memory::automaton`]) and share one
//! backward search ([`backward`]): from the bad configurations through minimal predecessors, with
//! minimal bases, until an initial configuration is covered or nothing new appears.

#![deny(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants
)]

pub mod backward;
pub mod dual;
pub mod local;
pub mod multiset;
mod parts;
mod pending;
mod start;
pub mod targets;

pub use dual::{Exact, crowd};
pub use multiset::Multiset;

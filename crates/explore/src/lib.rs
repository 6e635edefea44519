//! A program, step by step and by hand: what can happen next, what it does to buffers and memory.
//!
//! A [`Walk`] is a program under a memory model with a way through it; a way is a list of choices among
//! what the reference machine offers. [`Scene`] is everything there is to see at its end, for a person
//! ([`terminal`]) or a page ([`server`]). [`page::of_run`] is one file with the whole of a run in it.

#![deny(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants
)]

pub mod page;
pub mod server;
pub mod terminal;
pub mod view;
pub mod walk;

pub use view::Scene;
pub use walk::{Subject, Walk, Way};

//! Robustness, triangular races and lazy TSO reachability.
//!
//! A program is *robust* if every run under TSO (or PSO) has the same happens-before relation as
//! some SC run (calin-2016, 2.3.3). [`attack`] decides that by one search over SC runs extended
//! with an attack; [`wattle_evidence::happens_before`] re-checks what it finds on a concrete run.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

pub mod attack;
pub mod engine;
pub mod extend;
pub mod lazy;

pub use attack::{Attack, Finding, Goal, Options, search};
pub use engine::Robust;
pub use lazy::{Lazy, Oracle};

//! The auditor: re-checks certificates with the rules of a step (and, for formulas, the solver). It shares no code with any
//! engine: one file per kind of certificate. And the judge, which turns an engine's answer into a verdict once it is checked.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

mod automata;
mod bad;
mod closed_states;
mod coherent;
mod components;
pub mod counting;
mod cubes;
mod error;
mod explored;
mod facts;
mod fixed;
mod inductive;
mod judge;
pub mod levels;
mod live;
mod load_buffers;
pub mod meaning;
mod multisets;
mod open;
mod parts;
mod readers;
mod returning;
mod robust;
mod solvers;
mod space;
mod symbols;
mod traces;
pub mod translation;
mod tuples;
mod views;
mod write_down;

pub use counting::audit_counting;
pub use error::AuditError;
pub use fixed::{audit, audit_with};
pub use judge::{AuditPolicy, after_audit, after_validation, judge, judge_live, judge_open};
pub use live::audit_live;
pub use load_buffers::audit_crowd;
pub use open::{audit_open, audit_system};
pub use returning::audit_for_ever;
pub use solvers::Solvers;
pub use space::attack::audit_robustness;
pub use write_down::write_down;

use open::model_of;

/// What an audit that went well has looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// States, cubes or formulas that were checked.
    pub checked: u64,
}

//! The adversary: random programs over every construct of the language, decided by every engine under
//! every memory model and compared with brute force.
//!
//! [`brute`] is the judge and the only one whose word counts: it lists the states of the reference
//! machine. [`ask`] puts the questions to an engine, [`trial`] compares the answers, [`table`] counts
//! for each construct, engine and model how often a verdict was compared, [`neighbour`]
//! shows the auditor proofs of other programs. [`campaign`] does it many
//! times, can be interrupted and resumed, and shrinks what it finds.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

pub mod ask;
pub mod brute;
pub mod campaign;
pub mod neighbour;
pub mod table;
pub mod trial;

//! The adversary: random programs over every construct of the language, decided by every engine under
//! every memory model and compared with brute force.
//!
//! [`brute`] is the judge and the only one whose word counts: it lists the states of the reference
//! machine. [`ask`] puts the questions to an engine, [`trial`] compares the answers, [`table`] counts
//! for each construct, engine and model how often a verdict was compared. [`campaign`] does it many
//! times, can be interrupted and resumed, and shrinks what it finds.

pub mod ask;
pub mod brute;
pub mod campaign;
pub mod table;
pub mod trial;

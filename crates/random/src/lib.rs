//! Random small programs for cross-checking parsers, machines and engines, a shrinker for those that
//! fail a check, and a [`trial`] of many;
//! and the way to the [`suite`]s of programs from elsewhere.
//!
//! [`program`] makes programs that are worth running: small values, few cells, a bounded state space
//! if asked for. [`wild`] makes programs worth printing and parsing: any graph, any expression, any
//! name. Both are valid and canonical, and depend on nothing but the seed and the shape. [`mutate`]
//! breaks texts for parsers to survive.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

mod constructs;
mod gallery;
mod mutate;
mod program;
mod property;
mod rng;
mod shrink;
mod source;
mod suites;
mod trial;
mod wild;

pub use constructs::{CONSTRUCTS, SUGAR, constructs, question_constructs};
pub use gallery::{GALLERY, GALLERY_FORMS, gallery};
pub use mutate::mutate;
pub use program::{Loops, Shape, program};
pub use rng::Rng;
pub use shrink::shrink;
pub use source::{Profile, Source, filter_locks, source};
pub use suites::{rows, suite};
pub use trial::{setting, trial};
pub use wild::wild;

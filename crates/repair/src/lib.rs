//! Which fences and locks: implicit hitting sets over any engine.
//!
//! A violating run that SC forbids is stopped by a fence at any location where some thread goes from
//! a pending store to an access that overtakes it; every repair must stop every such run. So: take a
//! cheapest set of fences that stops all runs seen so far, check the program with it, learn from the
//! run that is left, and go on ([`mod@repair`]). What comes out is optimal; going on without the sets
//! already found gives all minimal ones. Where the number of threads is open, small instances give the
//! runs, and what they leave is decided by a proof for any number ([`Checker::beyond`]).

#![deny(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants
)]

pub mod clause;
mod depth;
pub mod existing;
pub mod hitting;
pub mod insert;
pub mod repair;
pub mod site;
pub mod unit;

pub use existing::{Existing, existing};
pub use hitting::Costs;
pub use insert::{Fenced, fenced};
pub use repair::{
    Beyond, Check, Checker, Fix, Judged, Needed, Outcome, Query, Robust, Run, Violation, judge,
    repair,
};
pub use site::{Opening, PlaceId, Places, Site, SiteKind};

//! Which fences: implicit hitting sets over any engine.
//!
//! A violating run that SC forbids is stopped by a fence at any location where some thread goes from
//! a pending store to an access that overtakes it; every repair must stop every such run. So: take a
//! cheapest set of fences that stops all runs seen so far, check the program with it, learn from the
//! run that is left, and go on ([`mod@repair`]). What comes out is optimal; going on without the sets
//! already found gives all minimal ones.

pub mod clause;
pub mod hitting;
pub mod insert;
pub mod repair;
pub mod site;

pub use hitting::Costs;
pub use insert::{Fenced, fenced};
pub use repair::{Check, Checker, Fix, Needed, Outcome, Query, Robust, Violation, repair};
pub use site::{Site, SiteKind};

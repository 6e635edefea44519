//! Explicit-state exploration over the compiled machine.
//!
//! [`store`] remembers states, [`explore`] is the search, [`rounds`] begins it anew where fields or
//! buffers were too small, [`path`] rebuilds runs, [`question`] asks about a task. On these stand the
//! engine [`Explicit`] and [`final_states`].

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

mod batch;
pub mod bench;
mod births;
mod checkpoint;
mod clock;
mod crew;
mod deadlock;
mod expand;
pub mod explicit;
pub mod explore;
pub mod finals;
pub mod graph;
pub mod hosts;
mod index;
mod pairs;
mod path;
pub mod question;
pub mod rounds;
mod row;
pub mod store;
mod tree;
mod walk;

pub use checkpoint::{Keep, Kept};
pub use explicit::{Explicit, KeptExplicit, Options, Reduce, SharedExplicit};
pub use explore::Order;
pub use finals::{FinalStates, NoFinals, final_states, final_states_with};
pub use wattle_memory::compiled::{Observed, Reductions};

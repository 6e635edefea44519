//! One run for each Mazurkiewicz trace: dynamic partial order reduction that is optimal, under SC, TSO
//! and PSO.
//!
//! [`program`] says which steps others may notice, [`moves`] what one move of a thread or a buffer is
//! and what it touches, [`order`] keeps what happened before what in the run at hand, [`wakeup`] the
//! runs still to come, and [`explore`] is the search. On these stand the engine [`Traces`] and
//! [`final_states`]. The engine [`Cartesian`] makes the same moves, and stores states ([`cartesian`]).

#![deny(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants
)]

mod cartesian;
mod engine;
mod explore;
mod finals;
mod footprint;
mod moves;
mod order;
mod program;
mod regions;
mod wakeup;

pub use engine::{Cartesian, Traces};
pub use explore::Work;
pub use finals::{FinalSearch, Finals, NoFinals, final_states, final_states_by_vectors, prepare};
pub use program::Program;

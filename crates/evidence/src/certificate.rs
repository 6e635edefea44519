//! Why a target cannot be reached, in a form the auditor can check. Each kind of certificate has a
//! file of its own here and a checker of its own in the auditor.

mod as_base64;
mod closed_states;
mod coherent;
pub mod components;
pub mod counting;
pub mod cubes;
mod described;
mod encoding;
mod explored;
mod inductive;
pub mod levels;
mod load_buffers;
mod multisets;
mod parts;
mod readers;
pub mod returning;
mod robust;
mod traces;
pub mod views;

pub use closed_states::{ClosedStates, Corrupt, Shortened};
pub use coherent::Coherent;
pub use components::Components;
pub use counting::Counting;
pub use cubes::Cubes;
pub use encoding::{Coded, Decoded};
pub use explored::{Explored, Unreached};
pub use inductive::{
    Blur, Comparison, ControlState, Inductive, Invariant, Part, PendingStores, Predicate, Quantity,
    View,
};
pub use levels::Levels;
pub use load_buffers::{
    LoadBufferConfig, LoadBufferMessage, LoadBufferThread, LoadBuffers, LocalState,
};
pub use multisets::{BagOf, MultisetConfig, Multisets};
pub use parts::{IndependentPart, Parts};
pub use readers::Readers;
pub use returning::{Returning, Returns};
pub use robust::Robust;
pub use traces::{Runs, Traces};
pub use views::Views;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Certificate {
    /// A set of states that contains the initial ones and is closed under every event.
    ClosedStates(ClosedStates),
    /// All states were seen, and not written down.
    Explored(Explored),
    /// Abstract buffers with which nothing bad is reachable.
    Coherent(Coherent),
    /// A basis of the configurations with load buffers that lead to a bad state under TSO.
    LoadBuffers(LoadBuffers),
    /// A basis of the configurations with multiset buffers that lead to a bad state.
    Multisets(Multisets),
    /// Cubes over threads, for any number of them.
    Cubes(Cubes),
    /// Views of two threads, for any number of them.
    Views(Views),
    /// How many threads are where, for any number of them.
    Counting(Counting),
    /// Levels on each of which a thread stays behind, for any number of them.
    Levels(Levels),
    /// A proof about a few threads that only read, for any number of them.
    Readers(Readers),
    /// Numbers for the states of all runs, by which every fair run ends among harmless ones.
    Components(Components),
    /// Numbers by which every run under memory fairness returns for ever to where an automaton accepts it.
    Returning(Returning),
    /// The program is robust, so SC answers for TSO.
    Robust(Robust),
    /// Runs, closed under reversing races.
    Traces(Traces),
    /// Parts that have nothing to do with each other, each with a proof of its own.
    Parts(Parts),
    /// A formula per control state that no event leads out of.
    Inductive(Inductive),
}

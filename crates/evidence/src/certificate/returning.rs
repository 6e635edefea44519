//! Why runs are read by an automaton, if memory fairness is taken for granted.
//!
//! A run is *memory fair* if (1) for some k it has at most k pending stores again and again, and (2) whatever sequence of moves is
//! possible in a state that it comes back to for ever, it takes from there again and again.
//!
//! The *automaton* accepts only runs that satisfy its formula. An *observer* is a set of pairs of one of its states and the
//! acceptance sets met since the last *return*; it reads a run state by state, by all edges at once. At an *anchor*
//! (a state with empty buffers; any state, if threads hold locks) the observer may return: only the pairs that have met all sets
//! are kept, and begin to meet them anew. Where it does is written down.
//!
//! *Claim.* Let every anchor that can be reached, with the observer it is reached with, have a way to a return. Then every memory fair
//! run is accepted.
//!
//! *Proof.* By (1) some state with at most k stores comes back for ever, there being finitely many. From it the stores can all reach
//! memory, so by (2) an anchor s comes back for ever, with finitely many observers O1, …, On. Go from s with O1 to a return; O2 has
//! by then come to an anchor, possibly through returns of its own: go on from there to a return, and so on. This is one
//! sequence of moves from s on which each of the observers returns, and by (2) it is taken for ever. So the run returns for ever.
//! Every pair kept at a return has been reached, through all acceptance sets, from one kept at the return before:
//! these are infinitely many choices of finitely many pairs, so (König) an infinite way of the automaton goes through all returns. It meets
//! every acceptance set for ever, and the run is accepted. ∎
//!
//! What can be reached is gone through with buffers that forget, so it may be more than is reachable; the ways to returns are real.
//! They are not written down but measured: a *node* is a state of the real machine (outside atomic blocks, zero in dead registers) with an
//! observer and a number, and from every node one move leads to a return or to a node with a smaller number.

use super::as_base64;
use super::closed_states::ClosedStates;
use super::components::Automaton;
use serde::{Deserialize, Serialize};
use wattle_memory::{Keeps, MemoryModel};

/// A proof that a demand holds under memory fairness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returning {
    pub model: MemoryModel,
    /// For each of the task's [obligations](crate::LiveTask::obligations).
    pub parts: Vec<Returns>,
}

/// A proof that all runs from some states satisfy one formula.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returns {
    /// Which of the task's obligations it is about.
    pub obligation: usize,
    /// What buffers remember where everything is gone through.
    pub keeps: Keeps,
    pub k: usize,
    /// Of the formula, or of its negation where a run is shown to break it for ever.
    pub automaton: Automaton,
    /// Sorted pairs of a state of the automaton and the sets met, as bits.
    pub observers: Vec<Vec<(u32, u64)>>,
    /// The states of nodes; the model is theirs.
    pub states: ClosedStates,
    /// For every state in order: how many nodes; for each its observer, and its number times two, plus one if the
    /// observer returns when it is what a return would keep.
    #[serde(with = "as_base64")]
    pub nodes: Vec<u8>,
}

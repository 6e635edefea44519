//! Robustness as one search over SC runs (calin-2016 Theorem 10, Fig. 3.4; the search itself is not
//! in the thesis).
//!
//! A run has three phases.
//!
//! 1. *Before*: everybody runs under SC. At any store of any thread t (to a cell `s`) an attack may
//!    start: the store goes to a private map instead of memory.
//! 2. *Delaying*: the attacker t goes on with its stores kept in the map and its loads served by the
//!    map first; it may not take a step that waits for an empty buffer. The others still run under
//!    SC. At a load of a cell `l` outside the map it may *commit*.
//! 3. *Committed*: t is frozen. Cells carry marks none < read < written, starting with `l` = read;
//!    threads carry the flag "after the load". Another thread may touch a cell only if it is flagged
//!    or the access conflicts with a mark; it is then flagged and raises the mark. An admitted
//!    access of `s` is an attack: load → … → access → drain of `s` ↔ store → load.
//!
//! What the thesis leaves out:
//!
//! - **Atomic blocks and lock regions** are *units*: while a thread is inside, nobody else loads and
//!   nobody else's store reaches memory. What others may still do (compute, put stores into their
//!   buffers) needs nothing of the unit and can be done before it begins, so the thread inside runs
//!   alone. A unit is after the load as a whole or not at all: its accesses are collected and admitted
//!   when one of them conflicts (the unit is *in debt* until then). No attack starts inside: the
//!   attacker would have to drain before anybody else had an access.
//! - An access **inside an atomic block** completes the attack only if the block can be left: a block
//!   that gets stuck was never entered. States inside a lock region are seen by everybody, there the
//!   run may end.
//! - **Faults** end the run. So a faulting load completes an attack or is of no use; whatever it reads,
//!   what came before is an SC run if there is no attack, and SC has the fault too.
//! - **PSO**: the attacker may also put a later store of another cell into memory at once, or commit
//!   with one; a store fence ends that.
//!
//! A **triangular race** is the beginning of an attack: the attacker's load overtakes its delayed
//! store and the very next event is another thread's store to the cell loaded. Every attack begins
//! so; a program without such races is robust. (The race is looked for with the store delayed. With
//! the store already in memory, as an SC run has it, programs would be blamed whose threads write
//! the loaded cell only once they have seen the store; the MCS lock is one.)

mod local;
mod plan;
mod run;
mod state;
mod steps;
mod witness;

pub use run::{Attacks, Finding, search, search_many};
pub use witness::{Attack, Crossing, Edge, EdgeKind};

use wattle_memory::MemoryModel;

/// What a program should be free of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Goal {
    /// Runs whose happens-before relation no SC run has.
    Robustness,
    /// Triangular races: a sufficient condition for robustness that is cheaper to keep.
    Triangular,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub goal: Goal,
    /// [`MemoryModel::Tso`] or [`MemoryModel::Pso`]; under SC every program is robust.
    pub model: MemoryModel,
}

impl Options {
    pub fn new(goal: Goal, model: MemoryModel) -> Self {
        Options { goal, model }
    }
}

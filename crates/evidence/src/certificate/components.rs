//! Why no fair run breaks a demand: every way through the program and an automaton ends among states
//! that are harmless.
//!
//! The *automaton* reads runs that break the formula ([`Automaton`]); for progress it has one state
//! and reads everything. *Nodes* are pairs of a state of the program, outside atomic blocks and with
//! zero in dead registers, and one of the automaton. A run that breaks the demand is an infinite
//! way through nodes that meets every acceptance set for ever; for progress, one that stays in a trap
//! for ever.
//!
//! For each trap (for a formula there is one, which is everywhere) every node in it has *numbers*. The
//! first never grows along an edge inside the trap, so that a run which stays there ends in one component: the nodes
//! with one first number. Why it is [`Harmless`] is written down for each. Where a mover is named that
//! may move in some states of a component and never does inside it, a strongly fair run is in those states
//! only finitely often: the other nodes have a second number, which again never grows along an edge
//! between them, and so on.
//!
//! Not every state need be there. *Local* steps run at once after the move before them, so states between
//! have no nodes. And a state may name *processes* (threads, or threads' buffers) whose moves are enough
//! there: only what these lead to need have nodes. When both is allowed the auditor finds out from the program.

use super::as_base64;
use super::closed_states::{ClosedStates, Corrupt};
use crate::live::{Fairness, Mover};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Components {
    pub fairness: Fairness,
    pub automaton: Automaton,
    /// The states; the model is theirs.
    pub states: ClosedStates,
    /// How many numbers there are.
    pub count: u32,
    /// Why numbers are harmless. The others are of components without an edge from them to themselves.
    #[serde(with = "pairs")]
    pub components: BTreeMap<u32, Harmless>,
    /// For every state in order: how many processes are enough (none: everybody is needed) and these; how many
    /// nodes; for each its state of the automaton and, for every trap it is in, how many
    /// numbers and these. A process is twice its thread's number, and one more for the buffer.
    #[serde(with = "as_base64")]
    pub nodes: Vec<u8>,
}

/// Why a component has no run that matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Harmless {
    /// No edge inside is in this acceptance set.
    Misses(u32),
    /// This mover can move in every state of it and never does inside.
    Idle(Mover),
    /// This mover never moves inside. The states where it can are left out; the others have a next
    /// number.
    Without(Mover),
}

/// An automaton whose states are sets of formulas that still have to hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Automaton {
    /// The negated formula and all its parts, negations inside.
    pub parts: Vec<Part>,
    /// Which part is the whole.
    pub root: u32,
    /// The parts that have an acceptance set: untils. An edge is in it if the until is not put off.
    pub untils: Vec<u32>,
    pub states: Vec<Obligations>,
    pub initial: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    True,
    False,
    /// The condition with this number is true, or it is false.
    Literal(u32, bool),
    And(u32, u32),
    Or(u32, u32),
    Until(u32, u32),
    Release(u32, u32),
}

/// A state of the automaton.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obligations {
    /// Sorted numbers of parts: all of them have to hold from now on.
    pub parts: Vec<u32>,
    pub edges: Vec<Edge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// What has to be true now: conditions and their truth, sorted.
    pub now: Vec<(u32, bool)>,
    pub target: u32,
    /// Sorted numbers of acceptance sets (places in `untils`) the edge is in.
    pub accepting: Vec<u32>,
}

impl Automaton {
    /// Reads everything.
    pub fn trivial() -> Self {
        Automaton {
            parts: vec![Part::True],
            root: 0,
            untils: Vec::new(),
            states: vec![Obligations {
                parts: Vec::new(),
                edges: vec![Edge {
                    now: Vec::new(),
                    target: 0,
                    accepting: Vec::new(),
                }],
            }],
            initial: 0,
        }
    }
}

/// A map with numbers for keys, as a list of pairs: JSON has no such maps.
mod pairs {
    use super::Harmless;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::collections::BTreeMap;

    pub fn serialize<S: Serializer>(
        map: &BTreeMap<u32, Harmless>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<u32, Harmless>, D::Error> {
        let pairs = Vec::<(u32, Harmless)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

/// Writes numbers for [`Components::nodes`].
pub fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Reads one.
pub fn take(rest: &mut &[u8]) -> Result<u32, Corrupt> {
    let mut n = 0u64;
    for shift in (0..35).step_by(7) {
        let (byte, tail) = rest.split_first().ok_or(Corrupt("its nodes end early"))?;
        *rest = tail;
        n |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(n).map_err(|_| Corrupt("a number is too long"));
        }
    }
    Err(Corrupt("a number is too long"))
}

//! A thread's local state as a configuration knows it.

use wattle_memory::automaton::{Automaton, LocalId};

/// A known local state, or one of two ways not to know it. Most bad states speak of two threads;
/// leaving the others open keeps the search small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Local {
    At(LocalId),
    /// Any local state in which the thread does not hold the lock.
    Free,
    Any,
}

impl Local {
    /// Whether every local state that `other` stands for is one of `self`'s.
    pub fn covers(self, other: Local, automaton: &Automaton) -> bool {
        match (self, other) {
            (Local::Any, _) => true,
            (Local::Free, Local::Free) => true,
            (Local::Free, Local::At(q)) => !automaton.states[q as usize].holds,
            (Local::At(p), Local::At(q)) => p == q,
            (Local::Free, Local::Any) | (Local::At(_), _) => false,
        }
    }

    pub fn contains(self, q: LocalId, automaton: &Automaton) -> bool {
        self.covers(Local::At(q), automaton)
    }

    /// The states among these in which the thread does not hold the lock, if there are any.
    pub fn without_lock(self, automaton: &Automaton) -> Option<Local> {
        match self {
            Local::At(q) if automaton.states[q as usize].holds => None,
            Local::At(q) => Some(Local::At(q)),
            Local::Free | Local::Any => Some(Local::Free),
        }
    }
}

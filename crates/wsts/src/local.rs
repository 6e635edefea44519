//! A thread's local state as a configuration knows it.

use wattle_evidence::certificate::LocalState;
use wattle_memory::automaton::{Automata, Automaton, LocalId};
use wattle_model::CellId;

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

    /// As certificates write it.
    pub fn certified(self, automaton: &Automaton) -> LocalState {
        match self {
            Local::At(q) => {
                let state = &automaton.states[q as usize];
                LocalState::At {
                    location: state.location,
                    registers: state.registers.clone(),
                    holds: state.holds,
                    fault: state.fault.clone(),
                }
            }
            Local::Free => LocalState::WithoutLock,
            Local::Any => LocalState::Any,
        }
    }
}

/// Nobody but `t` holds the lock; what is left open is narrowed. `false` if somebody does.
pub fn others_without_lock(automata: &Automata, locals: &mut [Local], t: usize) -> bool {
    for (u, local) in locals.iter_mut().enumerate() {
        if u != t {
            match local.without_lock(&automata.threads[u]) {
                Some(narrowed) => *local = narrowed,
                None => return false,
            }
        }
    }
    true
}

/// Makes a constraint ask for the value; `false` if it asks for another.
pub fn agree(known: &mut Option<i64>, value: i64) -> bool {
    known.replace(value).is_none_or(|k| k == value)
}

/// Makes the memory after an atomic block the one before it; `false` if the block cannot have left
/// it so.
pub fn found(
    memory: &mut [Option<i64>],
    reads: &[(CellId, i64)],
    writes: &[(CellId, i64)],
) -> bool {
    let written = (writes.iter()).all(|(c, v)| agree(&mut memory[c.index()], *v));
    writes.iter().for_each(|(c, _)| memory[c.index()] = None);
    written && reads.iter().all(|(c, v)| agree(&mut memory[c.index()], *v))
}

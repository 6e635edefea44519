//! A thread's local state as a configuration knows it.

use wattle_evidence::certificate::LocalState;
use wattle_memory::automaton::{Automata, Automaton, LocalId};

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

/// Which threads are left open, two bits a thread; past 32 threads patterns may be shared, which
/// costs time, not soundness.
pub fn pattern(locals: &[Local]) -> u64 {
    let bits = locals.iter().map(|l| match l {
        Local::At(_) => 0u64,
        Local::Free => 1,
        Local::Any => 2,
    });
    let bits = bits.take(32).enumerate();
    bits.fold(0, |all, (i, b)| all | (b << (2 * i)))
}

/// The locals as a more general configuration of this pattern would have them.
pub fn generalise(automata: &Automata, locals: &[Local], pattern: u64) -> Option<Vec<Local>> {
    let mut general = locals.to_vec();
    for (i, l) in general.iter_mut().enumerate().take(32) {
        let wanted = match (pattern >> (2 * i)) & 3 {
            0 if matches!(l, Local::At(_)) => continue,
            0 => return None,
            1 => Local::Free,
            _ => Local::Any,
        };
        if !wanted.covers(*l, &automata.threads[i]) {
            return None;
        }
        *l = wanted;
    }
    Some(general)
}

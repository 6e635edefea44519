//! What may be pending where, and which edges matter to a thread that is left open.

use crate::local::Local;
use wattle_memory::automaton::{Act, Automata, Automaton, LocalId};
use wattle_model::CellId;

/// Per thread: the cells it may have pending stores of.
pub struct Pending {
    /// Per local state.
    at: Vec<Vec<Vec<CellId>>>,
    /// In some local state.
    anywhere: Vec<Vec<CellId>>,
}

impl Pending {
    pub fn new(automata: &Automata) -> Self {
        let cells = automata.values.len();
        let at: Vec<_> = (automata.threads.iter())
            .map(|a| per_state(a, cells))
            .collect();
        let anywhere = at.iter().map(|states| {
            let mut all: Vec<CellId> = states.iter().flatten().copied().collect();
            all.sort_unstable();
            all.dedup();
            all
        });
        Pending {
            anywhere: anywhere.collect(),
            at,
        }
    }

    /// Whether a thread can only ever have stores to one cell pending at a time.
    pub fn one_cell_at_a_time(&self) -> bool {
        self.at.iter().flatten().all(|cells| cells.len() <= 1)
    }

    pub fn cells(&self, t: usize, local: Local) -> &[CellId] {
        match local {
            Local::At(q) => &self.at[t][q as usize],
            Local::Free | Local::Any => &self.anywhere[t],
        }
    }
}

/// Per local state: the cells stored to since the last fence or atomic block, on some path.
fn per_state(automaton: &Automaton, cells: usize) -> Vec<Vec<CellId>> {
    let mut may = vec![vec![false; cells]; automaton.states.len()];
    let mut work: Vec<LocalId> = (0..automaton.states.len() as LocalId).collect();
    while let Some(q) = work.pop() {
        for edge in automaton.edges_from(q) {
            let from = may[q as usize].clone();
            let to = &mut may[edge.target as usize];
            let mut changed = false;
            let mut add = |c: usize| {
                changed |= !to[c];
                to[c] = true;
            };
            match &edge.act {
                Act::Fence | Act::Atomic { .. } | Act::Lock | Act::Unlock => {}
                act @ (Act::Local | Act::Load(..) | Act::Store(..) | Act::StoreFence) => {
                    (0..cells).filter(|c| from[*c]).for_each(&mut add);
                    if let Act::Store(c, _) = act {
                        add(c.index());
                    }
                }
            }
            if changed {
                work.push(edge.target);
            }
        }
    }
    let list = may.into_iter().map(|row| {
        let owned = row.into_iter().enumerate().filter(|(_, m)| *m);
        owned.map(|(c, _)| CellId::new(c)).collect()
    });
    list.collect()
}

/// Edges that lead to something new although the local state they lead to is left open: those that
/// change memory, a buffer, or who holds the lock.
pub fn matters_when_open(automaton: &Automaton) -> Vec<u32> {
    let all = automaton.edges.iter().enumerate();
    let matter = all.filter(|(_, e)| match &e.act {
        Act::Store(..) | Act::Unlock => true,
        Act::Atomic { writes, .. } => !writes.is_empty(),
        Act::Local | Act::Load(..) | Act::StoreFence | Act::Fence | Act::Lock => false,
    });
    matter.map(|(i, _)| i as u32).collect()
}

//! What a certificate gives: read, and not yet believed.

use super::{AuditError, Nodes, poll};
use crate::space::enough::{Enough, Set};
use rustc_hash::FxHashMap;
use wattle_evidence::certificate::components::take;
use wattle_evidence::certificate::{Corrupt, Decoded};
use wattle_evidence::control::Control;

#[derive(Default)]
pub struct Given {
    /// States with zero in dead registers.
    pub rows: Vec<Box<[i64]>>,
    /// For each by states of the automaton.
    pub nodes: Vec<FxHashMap<u32, Node>>,
    /// Whose moves are enough, state by state; none if everybody is needed.
    pub parts: Vec<Option<Set>>,
    pub memory: u64,
}

/// A pair of a state and one of the automaton.
pub struct Node {
    /// Trap by trap; empty outside the trap.
    pub numbers: Vec<Vec<u32>>,
}

impl Given {
    pub fn read<L: Decoded>(
        of: &Nodes<'_, '_, L>,
        control: &Control<'_>,
    ) -> Result<Self, AuditError> {
        let certificate = of.certificate;
        let mut rest = certificate.nodes.as_slice();
        let mut given = Given::default();
        certificate.states.for_each_row(|row| {
            let state = L::decode(of.task.instance, row)?;
            let row = of.row_of(&state);
            given.memory += 64 + 16 * row.len() as u64;
            let held = of.held(&state);
            given
                .parts
                .push(part(&mut rest, of.task.instance.threads.len())?);
            let mut here = FxHashMap::default();
            for _ in 0..take(&mut rest)? {
                let q = take(&mut rest)?;
                if q as usize >= certificate.automaton.states.len() {
                    return Err(Corrupt("a node names no state of the automaton").into());
                }
                let mut numbers = Vec::new();
                for held in &held {
                    let count = if *held { take(&mut rest)? } else { 0 };
                    let mine = (0..count).map(|_| take(&mut rest));
                    let mine = mine.collect::<Result<Vec<u32>, Corrupt>>()?;
                    if mine.iter().any(|n| *n >= certificate.count) {
                        return Err(Corrupt("a number means nothing").into());
                    }
                    numbers.push(mine);
                }
                here.insert(q, Node { numbers });
            }
            given.nodes.push(here);
            given.rows.push(row);
            poll(given.rows.len(), given.memory, control)
        })?;
        match rest.is_empty() {
            true => Ok(given),
            false => Err(Corrupt("there are nodes of no state").into()),
        }
    }
}

fn part(rest: &mut &[u8], threads: usize) -> Result<Option<Set>, Corrupt> {
    let count = take(rest)?;
    if count == 0 {
        return Ok(None);
    }
    let mut set = Set::default();
    for _ in 0..count {
        let process = take(rest)? as usize;
        let t = process / 2;
        if t >= threads || t >= Enough::MOST_THREADS {
            return Err(Corrupt("a process is none"));
        }
        set.put(t, process % 2 == 1);
    }
    Ok(Some(set))
}

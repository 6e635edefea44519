//! Which configurations a basis covers.
//!
//! A configuration can only be covered by one that lists some of its threads, by role and local
//! state. The basis is kept in a tree along what its configurations list, in order, so that a look
//! follows only lists that are part of the one looked for.

#[cfg(test)]
mod tests;
use super::super::automata::Automata;
use std::collections::BTreeMap;
use wattle_evidence::certificate::{
    LoadBufferConfig, LoadBufferMessage, LoadBufferThread, LoadBuffers, LocalState,
};
use wattle_model::{CellId, Roles, ThreadId};

type Name<'c> = (ThreadId, &'c LocalState);

#[derive(Default)]
struct Branch<'c> {
    further: BTreeMap<usize, usize>,
    here: Vec<&'c LoadBufferConfig>,
}

pub struct Cover<'c> {
    names: BTreeMap<Name<'c>, usize>,
    branches: Vec<Branch<'c>>,
    /// By role: whether it can hold the lock at all, and whether any number may play it.
    may_hold: BTreeMap<ThreadId, (bool, bool)>,
}

impl<'c> Cover<'c> {
    pub fn new(certificate: &'c LoadBuffers, automata: &Automata, roles: &Roles) -> Self {
        let holders = roles.all().map(|r| {
            let holds = automata.threads[r].states.iter().any(|q| q.holds);
            (ThreadId::new(r), (holds, roles.is_open(r)))
        });
        let mut cover = Cover {
            names: BTreeMap::new(),
            branches: vec![Branch::default()],
            may_hold: holders.collect(),
        };
        for config in &certificate.basis {
            let mut list = Vec::new();
            for thread in &config.threads {
                let next = cover.names.len();
                list.push(*cover.names.entry(name(thread)).or_insert(next));
            }
            list.sort_unstable();
            let mut at = 0;
            for n in list {
                let next = cover.branches.len();
                at = *cover.branches[at].further.entry(n).or_insert(next);
                if at == next {
                    cover.branches.push(Branch::default());
                }
            }
            cover.branches[at].here.push(config);
        }
        cover
    }

    pub fn covers(&self, special: &LoadBufferConfig) -> bool {
        let mut list: Vec<usize> = (special.threads.iter())
            .filter_map(|t| self.names.get(&name(t)).copied())
            .collect();
        list.sort_unstable();
        let mut left = vec![(0, 0)];
        while let Some((at, from)) = left.pop() {
            let branch = &self.branches[at];
            if branch.here.iter().any(|c| self.is_covered(c, special)) {
                return true;
            }
            let mut tried = None;
            for (i, n) in list.iter().enumerate().skip(from) {
                if tried != Some(n)
                    && let Some(next) = branch.further.get(n)
                {
                    left.push((*next, i + 1));
                }
                tried = Some(n);
            }
        }
        false
    }

    fn is_covered(&self, general: &LoadBufferConfig, special: &LoadBufferConfig) -> bool {
        general.after_snapshot == special.after_snapshot
            && (general.memory.iter().zip(&special.memory)).all(|(a, b)| a.is_none() || a == b)
            && (!general.others_unlocked || self.others_unlocked(general, special))
            && embeds(&general.threads, &special.threads)
    }

    /// Whether nobody in `special` but those that `general` lists can hold the lock. Of those listed
    /// at most one does, and a listed holder can only stand for one in the same local state.
    fn others_unlocked(&self, general: &LoadBufferConfig, special: &LoadBufferConfig) -> bool {
        let listed = |role: &ThreadId| special.threads.iter().any(|t| t.role == *role);
        let free = special.others_unlocked
            || (self.may_hold.iter()).all(|(role, (holds, open))| !holds || !open && listed(role));
        free && holders(special) <= holders(general)
    }
}

fn name(thread: &LoadBufferThread) -> Name<'_> {
    (thread.role, &thread.local)
}

fn holders(config: &LoadBufferConfig) -> usize {
    let holds = |t: &&LoadBufferThread| matches!(t.local, LocalState::At { holds: true, .. });
    config.threads.iter().filter(holds).count()
}

/// Whether every thread of `general` has one of its own in `special`: tries all assignments, a
/// thread at a time.
fn embeds(general: &[LoadBufferThread], special: &[LoadBufferThread]) -> bool {
    let fits = |a: &LoadBufferThread, b: &LoadBufferThread| {
        name(a) == name(b) && buffer_covers(&a.buffer, &b.buffer)
    };
    // Where thread `i` of `general` is, for those assigned so far.
    let mut assigned: Vec<usize> = Vec::new();
    let mut from = 0;
    loop {
        let Some(thread) = general.get(assigned.len()) else {
            return true;
        };
        let free = |j: &usize| !assigned.contains(j) && fits(thread, &special[*j]);
        match (from..special.len()).find(free) {
            Some(j) => {
                assigned.push(j);
                from = 0;
            }
            None => match assigned.pop() {
                Some(j) => from = j + 1,
                None => return false,
            },
        }
    }
}

/// Splits both buffers at their own messages: those must agree, and the pieces between them must be
/// subwords.
fn buffer_covers(general: &[LoadBufferMessage], special: &[LoadBufferMessage]) -> bool {
    let (own_a, pieces_a) = split(general);
    let (own_b, pieces_b) = split(special);
    let agree = |(a, b): (&Own, &Own)| a.0 == b.0 && (a.1.is_none() || a.1 == b.1);
    own_a.len() == own_b.len()
        && own_a.iter().zip(&own_b).all(agree)
        && pieces_a
            .iter()
            .zip(&pieces_b)
            .all(|(a, b)| is_subword(a, b))
}

type Own = (CellId, Option<i64>);
type Sent = (CellId, i64);

fn split(buffer: &[LoadBufferMessage]) -> (Vec<Own>, Vec<Vec<Sent>>) {
    let (mut own, mut pieces) = (Vec::new(), vec![Vec::new()]);
    for message in buffer {
        match *message {
            LoadBufferMessage::Own { cell, value } => {
                own.push((cell, value));
                pieces.push(Vec::new());
            }
            LoadBufferMessage::Sent { cell, value } => {
                if let Some(piece) = pieces.last_mut() {
                    piece.push((cell, value));
                }
            }
        }
    }
    (own, pieces)
}

fn is_subword(a: &[Sent], b: &[Sent]) -> bool {
    let mut rest = b.iter();
    a.iter().all(|wanted| rest.any(|have| have == wanted))
}

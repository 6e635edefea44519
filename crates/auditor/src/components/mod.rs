//! Component certificates, checked on the reference machine's own moves.
//!
//! **The automaton** reads every run that breaks the formula ([`follows`]). **The nodes** contain the initial ones,
//! and whatever an edge of the automaton and a move of the program leads to, but for what [`reduced`] allows
//! to leave out. **The numbers** are as [`Components`] says. "Can move" is asked of the reference
//! machine in the state itself. An infinite run that breaks the demand stays in one trap from some time on; its
//! first numbers there cannot fall for ever, so it ends in one component; a component that misses an
//! acceptance set, or keeps a mover from moving that always can, has no such run; and where a mover
//! never moves, its second numbers go on in the same way.

mod follows;
mod given;
mod numbers;
mod reduced;

use super::space::local::{forget, registers_alive};
use super::{AuditError, Audited};
use crate::live::other;
use follows::follows;
use given::Given;
use numbers::{Step, is_numbered};
use reduced::{Arrival, Reduced, process};
use rustc_hash::FxHashMap;
use wattle_evidence::certificate::components::{Components, Edge, Harmless};
use wattle_evidence::certificate::{Corrupt, Decoded};
use wattle_evidence::control::{Control, Progress};
use wattle_evidence::live::big::Big;
use wattle_evidence::live::{Fairness, LiveTask, MOST_MOVERS, Trap, loop_in_block};
use wattle_memory::reference::{State, evaluate};
use wattle_memory::{Exact, MemoryModel, Pso, Sc, Tso};
use wattle_model::instance::Fact;
use wattle_model::{Expr, ThreadId};

pub fn audit_components(
    task: &LiveTask<'_>,
    certificate: &Components,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    if certificate.states.model != task.model {
        return Err(AuditError::WrongModel(certificate.states.model));
    }
    if certificate.fairness != task.fairness || task.fairness == Fairness::Memory {
        return Err(other("it is about another fairness"));
    }
    if loop_in_block(task.instance).is_some() {
        return Err(other("a loop inside an atomic block"));
    }
    follows(task, &certificate.automaton)?;
    let sets = certificate.automaton.untils.len();
    let missed = |c: &Harmless| matches!(c, Harmless::Misses(k) if *k as usize >= sets);
    if certificate.components.values().any(missed) {
        return Err(Corrupt("a component misses a set that there is not").into());
    }
    match task.model {
        MemoryModel::Sc => nodes::<Sc>(task, certificate, control),
        MemoryModel::Tso => nodes::<Tso>(task, certificate, control),
        MemoryModel::Pso => nodes::<Pso>(task, certificate, control),
    }
}

fn poll(states: usize, memory: u64, control: &Control<'_>) -> Result<(), AuditError> {
    if (states as u64).is_multiple_of(POLL) {
        let progress = Progress {
            states: states as u64,
            memory,
            ..Progress::default()
        };
        control.poll("audit", progress)?;
    }
    Ok(())
}

/// States between two polls.
const POLL: u64 = 1 << 10;

fn nodes<L: Decoded>(
    task: &LiveTask<'_>,
    certificate: &Components,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let refused = |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
    let big = Big::<L>::new(task.instance).map_err(refused)?;
    if big.movers().len() > MOST_MOVERS {
        return Err(other("too many threads and buffers"));
    }
    let atoms = task.atoms();
    let alive = registers_alive(task.instance, &atoms, false);
    let set = Nodes {
        task,
        certificate,
        big,
        traps: task.traps(),
        atoms,
        alive,
        given: Given::default(),
        index: FxHashMap::default(),
    };
    set.audit(control)
}

/// The nodes of a certificate.
struct Nodes<'a, 'i, L: Decoded> {
    task: &'a LiveTask<'i>,
    certificate: &'a Components,
    big: Big<'i, L>,
    traps: Vec<Trap>,
    atoms: Vec<&'i Expr<Fact>>,
    /// Per thread, location and register: what it holds may be read.
    alive: Vec<Vec<Vec<bool>>>,
    /// What was read, whatever that is: the audit is about this.
    given: Given,
    index: FxHashMap<Box<[i64]>, u32>,
}

type StateOf<L> = State<<L as wattle_memory::Layout>::Buffer<Exact>>;

impl<L: Decoded> Nodes<'_, '_, L> {
    /// A state with zero in dead registers.
    fn row_of(&self, state: &StateOf<L>) -> Box<[i64]> {
        let mut state = state.clone();
        forget(&mut state, &self.alive);
        let mut row = Vec::new();
        L::encode(&state, &mut row);
        row.into_boxed_slice()
    }

    fn find(&self, state: &StateOf<L>) -> Option<u32> {
        self.index.get(&self.row_of(state)).copied()
    }

    /// Which traps a state is in; a formula's is everywhere.
    fn held(&self, state: &StateOf<L>) -> Vec<bool> {
        match self.task.formula() {
            Some(_) => vec![true],
            None => {
                let traps = self.traps.iter();
                traps.map(|t| t.holds(&state.locations)).collect()
            }
        }
    }

    fn audit(mut self, control: &Control<'_>) -> Result<Audited, AuditError> {
        self.given = Given::read(&self, control)?;
        let rows = self.given.rows.iter().cloned();
        self.index = rows.zip(0..).collect();
        if self.index.len() != self.given.rows.len() {
            return Err(Corrupt("a state is there twice").into());
        }
        let mut reduced = Reduced::new(self.task);
        let refused = |r: wattle_memory::reference::Refusal| AuditError::Refused(r.to_string());
        for start in self.big.machine.starts().map_err(refused)? {
            let initial = self.big.machine.initial(&start);
            let found = reduced.begin(&self.big, initial, &|s| self.find(s))?;
            let there = found.and_then(|i| self.given.nodes.get(i as usize));
            let first = self.certificate.automaton.initial;
            if !there.is_some_and(|nodes| nodes.contains_key(&first)) {
                return Err(AuditError::MissesInitial);
            }
        }
        for i in 0..self.given.rows.len() {
            poll(i, self.given.memory, control)?;
            self.state(i, &mut reduced)?;
        }
        Ok(Audited {
            checked: self.given.rows.len() as u64,
        })
    }

    /// All that is to be said about the nodes of one state.
    fn state(&self, i: usize, reduced: &mut Reduced<'_>) -> Result<(), AuditError> {
        let (task, a) = (self.task, &self.certificate.automaton);
        let state = L::decode(task.instance, &self.given.rows[i])?;
        let held = self.held(&state);
        let mut nodes = self.given.nodes[i].values();
        if self.row_of(&state) != self.given.rows[i] || nodes.any(|n| n.numbers.len() != held.len())
        {
            return Err(Corrupt("a state is not what stands there").into());
        }
        if self.big.machine.inside_atomic(&state).is_some() {
            return Err(Corrupt("a state is inside an atomic block").into());
        }
        let moves = self.big.moves(&state);
        let number = i as u64;
        let moves = moves.map_err(|fault| AuditError::Fault {
            state: number,
            fault,
        })?;
        let nothing = || other(&format!("state {i}: no moves are followed"));
        if moves.discarded {
            return match self.given.parts[i] {
                None => Ok(()),
                Some(_) => Err(nothing()),
            };
        }
        let able = moves.able;
        let mut truth = Vec::new();
        for e in &self.atoms {
            let value = evaluate(&state, e).map_err(|why| AuditError::NoValue {
                state: number,
                why: why.to_string(),
            })?;
            truth.push(value != 0);
        }
        let applies = |edge: &&Edge| {
            let mut now = edge.now.iter();
            now.all(|(l, positive)| truth.get(*l as usize) == Some(positive))
        };
        let mut automaton = self.given.nodes[i]
            .keys()
            .map(|q| &a.states[*q as usize].edges);
        // Where nothing can move the state is repeated. What the moves lead to matters only if the
        // automaton goes on.
        let goes_on = automaton.any(|edges| edges.iter().any(|e| applies(&e)));
        let part = self.given.parts[i];
        let has = |(t, drain): (ThreadId, bool)| part.is_none_or(|p| p.has(t.index(), drain));
        let mut targets: Vec<Arrival> = Vec::new();
        for m in moves.moves {
            if !goes_on || !process(&m.events).is_none_or(has) {
                continue;
            }
            let arrival = reduced.follow(&self.big, &state, m, &|s| self.find(s));
            targets.push(arrival.map_err(|fault| AuditError::Fault {
                state: number,
                fault,
            })?);
        }
        if let Some(part) = part {
            if !goes_on {
                return Err(nothing());
            }
            reduced.look::<L>(&state);
            let enough = reduced.is_enough(part, &targets);
            enough
                .map_err(|why| other(&format!("state {i}: not all moves are followed: {why}")))?;
        }
        if able == 0 {
            targets.push(Arrival::nowhere(i as u32));
        }
        for (q, node) in &self.given.nodes[i] {
            for edge in a.states[*q as usize].edges.iter().filter(applies) {
                for arrival in &targets {
                    let after = arrival.row.map(|t| &self.given.nodes[t as usize]);
                    let after = after.and_then(|nodes| nodes.get(&edge.target));
                    let after = after.ok_or(AuditError::NotClosed {
                        state: number,
                        event: "a move".into(),
                    })?;
                    let pairs = node.numbers.iter().zip(&after.numbers);
                    for (trap, (from, to)) in pairs.enumerate() {
                        let stays = self.traps.get(trap).is_none_or(|t| arrival.stays(t));
                        if from.is_empty() || to.is_empty() || !stays {
                            continue;
                        }
                        let step = Step {
                            fairness: task.fairness,
                            accepting: &edge.accepting,
                            moved: arrival.way.moved,
                            able,
                        };
                        let components = &self.certificate.components;
                        step.check(&self.big, components, from, to, i)?;
                    }
                }
            }
        }
        // Every node in a trap has a number there; what it says of the state is true of it.
        for node in self.given.nodes[i].values() {
            for (held, mine) in held.iter().zip(&node.numbers) {
                let components = &self.certificate.components;
                if *held && !is_numbered(&self.big, components, mine, able) {
                    return Err(other(&format!("state {i} lacks a number")));
                }
            }
        }
        Ok(())
    }
}

//! Each thread as an automaton: what it can do on its own, if a load may find any value that is ever stored.

mod unfolding;

use super::AuditError;
use super::facts::for_each_fact;
use std::collections::{BTreeMap, BTreeSet};
use unfolding::Unfolding;
use wattle_evidence::certificate::LocalState;
use wattle_evidence::control::{Control, Meter};
use wattle_evidence::task::Task;
use wattle_memory::Fault;
use wattle_model::instance::{Fact, Initial, Thread};
use wattle_model::{CellId, LocationId, RegisterId, Roles, ThreadId, Type};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Local {
    pub location: LocationId,
    pub registers: Vec<i64>,
    pub holds: bool,
    pub fault: Option<Fault>,
}

impl Local {
    pub fn certified(&self) -> LocalState {
        LocalState::At {
            location: self.location,
            registers: self.registers.clone(),
            holds: self.holds,
            fault: self.fault.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Nothing,
    Load(CellId, i64),
    Store(CellId, i64),
    /// Passes only with an empty buffer.
    Wait,
    Block {
        found: BTreeMap<CellId, i64>,
        left: BTreeMap<CellId, i64>,
    },
    Lock,
    Unlock,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transition {
    pub from: Local,
    pub to: Local,
    pub effect: Effect,
}

#[derive(Default)]
pub struct ThreadAutomaton {
    pub initial: BTreeSet<Local>,
    pub states: BTreeSet<Local>,
    pub transitions: BTreeSet<Transition>,
    /// By the state they lead to, as certificates name it.
    pub into: BTreeMap<LocalState, Vec<Transition>>,
    /// Cells stored to on some way to the state since the thread last had to wait for an empty
    /// buffer.
    pub pending: BTreeMap<LocalState, BTreeSet<CellId>>,
}

impl ThreadAutomaton {
    fn find_pending(&mut self, control: &Control<'_>) -> Result<(), AuditError> {
        let meter = Meter::new(control);
        let mut changed = true;
        while changed {
            changed = false;
            for tr in &self.transitions {
                meter.spend(16)?;
                let before = self.pending.get(&tr.from.certified());
                let mut after = match tr.effect {
                    Effect::Wait | Effect::Block { .. } | Effect::Lock | Effect::Unlock => continue,
                    Effect::Nothing | Effect::Load(..) | Effect::Store(..) => {
                        before.cloned().unwrap_or_default()
                    }
                };
                if let Effect::Store(cell, _) = tr.effect {
                    after.insert(cell);
                }
                let known = self.pending.entry(tr.to.certified()).or_default();
                let size = known.len();
                known.extend(after);
                changed |= known.len() > size;
            }
        }
        Ok(())
    }
}

pub struct Automata {
    pub threads: Vec<ThreadAutomaton>,
    /// Values each cell may hold.
    pub values: Vec<BTreeSet<i64>>,
    pub uses_lock: bool,
}

/// Certificates of larger programs are not audited this way.
const MAX_STATES: usize = 1 << 17;

impl Automata {
    /// Threads of one role have the same local states: the property may look at any of them.
    pub fn unfold(
        task: &Task<'_>,
        roles: &Roles,
        control: &Control<'_>,
    ) -> Result<Automata, AuditError> {
        let instance = task.instance;
        let mut values = Vec::new();
        for cell in &instance.cells {
            values.push(initial(cell.init, cell.ty)?.into_iter().collect());
        }
        let needed: Vec<_> = (instance.threads.iter().enumerate())
            .map(|(t, thread)| {
                let alike = (0..instance.threads.len()).filter(|u| roles.of(*u) == roles.of(t));
                let read = alike.flat_map(|u| registers_read(task, ThreadId::new(u)));
                needed(thread, &read.collect::<Vec<_>>())
            })
            .collect();
        // Again and again with the values found so far, until there are no new ones.
        loop {
            let before: usize = values.iter().map(BTreeSet::len).sum();
            let mut threads = Vec::new();
            for (t, needed) in needed.iter().enumerate() {
                let mut unfolding = Unfolding::new(instance, t, needed, &mut values, control);
                unfolding.run()?;
                threads.push(unfolding.found);
            }
            if values.iter().map(BTreeSet::len).sum::<usize>() == before {
                for thread in &mut threads {
                    for tr in &thread.transitions {
                        let into = thread.into.entry(tr.to.certified()).or_default();
                        into.push(tr.clone());
                    }
                    thread.find_pending(control)?;
                }
                let uses_lock = threads.iter().any(|t| t.states.iter().any(|q| q.holds));
                return Ok(Automata {
                    threads,
                    values,
                    uses_lock,
                });
            }
        }
    }

    /// Whether a configuration with these locals and this memory (where given) can be initial.
    pub fn may_start(
        &self,
        task: &Task<'_>,
        locals: &[LocalState],
        memory: &[Option<i64>],
    ) -> bool {
        let starts = locals.iter().zip(&self.threads).all(|(l, thread)| {
            let mut initial = thread.initial.iter();
            initial.any(|q| local_covers(l, &q.certified()))
        });
        starts && memory_may_start(task, memory)
    }

    /// Whether the thread can have a store of the cell pending there at all: only if some way to
    /// that local state stores to it with nothing on the way that waits for an empty buffer.
    pub fn may_be_pending(&self, local: &LocalState, t: usize, cell: CellId) -> bool {
        let pending = &self.threads[t].pending;
        match local {
            at @ LocalState::At { .. } => pending.get(at).is_some_and(|c| c.contains(&cell)),
            LocalState::WithoutLock | LocalState::Any => {
                pending.values().any(|c| c.contains(&cell))
            }
        }
    }

    /// The transitions that may lead to the local state.
    pub fn into<'a>(&'a self, t: usize, local: &'a LocalState) -> Vec<&'a Transition> {
        let thread = &self.threads[t];
        match local {
            at @ LocalState::At { .. } => thread.into.get(at).into_iter().flatten().collect(),
            open @ (LocalState::WithoutLock | LocalState::Any) => {
                let all = thread.transitions.iter();
                all.filter(|tr| local_covers(open, &tr.to.certified()))
                    .collect()
            }
        }
    }
}

/// Whether memory can look like this (where given) at the start.
pub fn memory_may_start(task: &Task<'_>, memory: &[Option<i64>]) -> bool {
    let begins = |(m, cell): (&Option<i64>, &wattle_model::instance::Cell)| {
        m.is_none_or(|v| match cell.init {
            Initial::Value(w) => v == w,
            Initial::Any => cell.ty.admit(v) == Some(v),
        })
    };
    memory.iter().zip(&task.instance.cells).all(begins)
}

fn registers_read(task: &Task<'_>, thread: ThreadId) -> Vec<RegisterId> {
    let mut registers = Vec::new();
    if let Some(question) = task.question() {
        for_each_fact(&question.target, &mut |fact| {
            if let Fact::Register(t, r) = fact
                && *t == thread
            {
                registers.push(*r);
            }
        });
    }
    registers
}

/// Per location and register: some later step, or the property, may read it. The others are put to 0.
fn needed(thread: &Thread, always: &[RegisterId]) -> Vec<Vec<bool>> {
    let mut observed = vec![false; thread.registers.len()];
    always.iter().for_each(|r| observed[r.index()] = true);
    thread.live(vec![observed; thread.locations.len()])
}

fn initial(init: Initial, ty: Type) -> Result<Vec<i64>, AuditError> {
    match init {
        Initial::Value(v) => Ok(vec![v]),
        Initial::Any => match ty.bounds() {
            Some((lo, hi)) if hi.abs_diff(lo) < 1 << 12 => Ok((lo..=hi).collect()),
            _ => Err(AuditError::Refused("too many initial values".into())),
        },
    }
}

/// How a local state is left open: 0 not at all, 1 without the lock, 2 altogether.
pub fn openness(local: &LocalState) -> u8 {
    match local {
        LocalState::At { .. } => 0,
        LocalState::WithoutLock => 1,
        LocalState::Any => 2,
    }
}

pub fn local_covers(general: &LocalState, special: &LocalState) -> bool {
    match (general, special) {
        (LocalState::Any, _) | (LocalState::WithoutLock, LocalState::WithoutLock) => true,
        (LocalState::WithoutLock, LocalState::At { holds, .. }) => !holds,
        (a, b) => a == b,
    }
}

/// The locals with those left open that `open` says; `None` if that would not cover them.
pub fn widen(locals: &[LocalState], open: &[u8]) -> Option<Vec<LocalState>> {
    let widened = locals.iter().zip(open).map(|(local, open)| {
        let wide = match open {
            0 => local.clone(),
            1 => LocalState::WithoutLock,
            _ => LocalState::Any,
        };
        local_covers(&wide, local).then_some(wide)
    });
    widened.collect()
}

/// Leaves out that a thread other than `t` holds the lock; `false` if one does.
pub fn nobody_else_holds(locals: &mut [LocalState], t: usize) -> bool {
    for (u, local) in locals.iter_mut().enumerate() {
        match local {
            _ if u == t => {}
            LocalState::At { holds: true, .. } => return false,
            LocalState::Any => *local = LocalState::WithoutLock,
            LocalState::At { .. } | LocalState::WithoutLock => {}
        }
    }
    true
}

/// Makes a constraint on memory ask for this value; `false` if it asks for another.
pub fn require(memory: &mut [Option<i64>], cell: CellId, value: i64) -> bool {
    let known = &mut memory[cell.index()];
    let agrees = known.is_none_or(|k| k == value);
    *known = Some(value);
    agrees
}

//! Checks that a program is robust against TSO, by a plain search for attacks (calin-2016 Theorem 10,
//! Fig. 3.4) on the reference machine of SC, and that SC does not reach the target.
//!
//! No reductions: sets of states and nothing else. An atomic block or a lock region is a unit: while a
//! thread is inside, nobody else loads or writes, so the thread runs alone (steps on registers and
//! stores into buffers need nothing of it and can come before), and the unit counts as touched as a
//! whole once one of its accesses comes after the attacker's load. Inside an atomic block an attack is
//! complete only where the block ends: a block that gets stuck was never entered. A fault ends the run.

use super::{AuditError, Audited, Solvers, audit_with};
use crate::certificate::Robust;
use crate::control::{Control, Progress};
use crate::task::Task;
use std::collections::{BTreeMap, BTreeSet};
use wattle_memory::reference::{Machine, Outcome, State};
use wattle_memory::{Event, Exact, FaultKind, MemoryModel, Sc};
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact};
use wattle_model::{CellId, Fence, Instance, RegisterId, ThreadId};

pub(super) fn audit_robust(
    solvers: &Solvers,
    task: &Task<'_>,
    certificate: &Robust,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let other = |why: &str| Err(AuditError::Other(why.to_string()));
    if task.model != MemoryModel::Tso {
        return Err(AuditError::WrongModel(MemoryModel::Tso));
    }
    if task.deadlock {
        return other("robustness says nothing about deadlocks");
    }
    if let Some(q) = task.question()
        && !q.only_final
    {
        let mut memory = false;
        q.target.for_each_atom(&mut |f| {
            memory |= matches!(f, Fact::Cell(_) | Fact::CellAt { .. });
        });
        if memory {
            return other("robustness says nothing about memory while stores are pending");
        }
    }
    if !(task.instance).waiting_for_the_lock_is_unseen(task.question()) {
        return other("robustness says nothing of states in which stores wait for the lock");
    }
    let under_sc = Task {
        model: MemoryModel::Sc,
        ..*task
    };
    let mut audited = audit_with(solvers, &under_sc, &certificate.under_sc, control)?;
    audited.checked += audit_robustness(task.instance, control)?;
    Ok(audited)
}

/// Whether the program is robust against TSO, whatever its properties; gives the states seen.
pub fn audit_robustness(instance: &Instance, control: &Control<'_>) -> Result<u64, AuditError> {
    if (instance.threads.iter()).any(|t| t.buffered_section().is_some()) {
        let why = "an atomic section that keeps its stores buffered";
        return Err(AuditError::Refused(why.into()));
    }
    let machine =
        Machine::<Sc, Exact>::new(instance, ()).map_err(|e| AuditError::Refused(e.to_string()))?;
    Search { machine }.run(control)
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Read,
    Written,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Before,
    /// The attacker's stores, newest value per cell; the first one was to `delayed`.
    Delaying {
        attacker: ThreadId,
        delayed: CellId,
        private: BTreeMap<CellId, i64>,
    },
    /// `debt`: the unit somebody is in has yet to show that it comes after the load.
    Committed {
        attacker: ThreadId,
        delayed: CellId,
        marks: BTreeMap<CellId, Mark>,
        after: BTreeSet<ThreadId>,
        debt: bool,
    },
    /// All that is missing is the end of the atomic block that this thread is in.
    Leaving(ThreadId),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Config {
    phase: Phase,
    /// What the unit in debt has touched.
    unit: BTreeMap<CellId, Mark>,
    state: State<()>,
}

struct Search<'i> {
    machine: Machine<'i, Sc, Exact>,
}

enum Next {
    Go(Box<Config>),
    Attack,
}

impl Search<'_> {
    fn run(&self, control: &Control<'_>) -> Result<u64, AuditError> {
        let starts = self.machine.starts();
        let starts = starts.map_err(|e| AuditError::Refused(e.to_string()))?;
        let mut seen = BTreeSet::new();
        let mut work = Vec::new();
        let push = |config: Config, seen: &mut BTreeSet<Config>, work: &mut Vec<Config>| {
            if seen.insert(config.clone()) {
                work.push(config);
            }
        };
        for start in &starts {
            let config = Config {
                phase: Phase::Before,
                unit: BTreeMap::new(),
                state: self.machine.initial(start),
            };
            push(config, &mut seen, &mut work);
        }
        let instance = self.machine.instance;
        // A configuration, in both lists; the lists' own nodes double that.
        let registers: usize = instance.threads.iter().map(|t| t.registers.len() + 8).sum();
        let size = 512 + 16 * (instance.cells.len() + registers) as u64;
        let mut looked = 0u64;
        while let Some(config) = work.pop() {
            looked += 1;
            if looked.is_multiple_of(256) {
                let progress = Progress {
                    states: seen.len() as u64,
                    frontier: work.len() as u64,
                    memory: (seen.len() + work.len()) as u64 * size,
                };
                control.poll("audit", progress)?;
            }
            for next in self.successors(&config)? {
                match next {
                    Next::Go(next) => push(*next, &mut seen, &mut work),
                    Next::Attack => {
                        return Err(AuditError::NotRobust);
                    }
                }
            }
        }
        Ok(seen.len() as u64)
    }

    fn successors(&self, config: &Config) -> Result<Vec<Next>, AuditError> {
        let mut out = Vec::new();
        for t in self.machine.instance.thread_ids() {
            // Whoever holds the lock runs alone, as the machine has it inside atomic blocks.
            if config.state.holder.is_some_and(|h| h != t) {
                continue;
            }
            match &config.phase {
                Phase::Delaying { attacker, .. } if *attacker == t => {
                    self.attacker(config, t, &mut out)?;
                }
                Phase::Committed { attacker, .. } if *attacker == t => {}
                Phase::Leaving(alone) if *alone != t => {}
                phase => {
                    for event in self.events(&config.state, t) {
                        self.step(config, t, &event, &mut out)?;
                    }
                    if *phase == Phase::Before && config.state.holder.is_none() {
                        self.start(config, t, &mut out)?;
                    }
                }
            }
        }
        Ok(out)
    }

    /// Whether the thread is inside an atomic block or a lock region.
    fn inside(&self, state: &State<()>, t: ThreadId) -> bool {
        state.holder == Some(t) || self.atomic(state, t)
    }

    fn atomic(&self, state: &State<()>, t: ThreadId) -> bool {
        self.machine.instance.thread(t).atomic[state.locations[t.index()].index()]
    }

    fn events(&self, state: &State<()>, t: ThreadId) -> Vec<Event> {
        let events = self.machine.events(state).into_iter();
        events.filter(|e| e.thread() == t).collect()
    }

    /// A step of a thread that runs under SC.
    fn step(
        &self,
        config: &Config,
        t: ThreadId,
        event: &Event,
        out: &mut Vec<Next>,
    ) -> Result<(), AuditError> {
        let action = self.action(event);
        let mut next = config.clone();
        let mut faulty = false;
        match self.machine.apply(&config.state, event) {
            Outcome::Next(state) => next.state = state,
            Outcome::Fault(fault) => match (fault.kind, action) {
                (FaultKind::MachineOverflow, _) => {
                    return Err(AuditError::Other("overflow of the machine".into()));
                }
                // The access happens, and is the run's last event.
                (FaultKind::ValueOutOfRange { .. }, Action::Load { .. }) => faulty = true,
                _ => return Ok(()),
            },
            Outcome::Full(_) => return Ok(()),
        }
        let (was, is) = (self.inside(&config.state, t), self.inside(&next.state, t));
        if let Action::Load { place, .. } | Action::Store { place, .. } = action {
            let access = match action {
                Action::Load { .. } => Mark::Read,
                _ => Mark::Written,
            };
            let Some(cell) = address(&config.state, t, place) else {
                return Ok(());
            };
            match admit(&mut next, t, cell, access, was) {
                Admitted::Attack if self.atomic(&config.state, t) => {
                    next.phase = Phase::Leaving(t);
                    next.unit.clear();
                }
                Admitted::Attack => {
                    out.push(Next::Attack);
                    return Ok(());
                }
                Admitted::No => return Ok(()),
                Admitted::Yes => {}
            }
        }
        if faulty {
            return Ok(());
        }
        match (was, is, &mut next.phase) {
            (false, true, Phase::Committed { after, debt, .. }) => *debt = !after.contains(&t),
            // A unit that is not after the load has no place here.
            (true, false, Phase::Committed { debt: true, .. }) => return Ok(()),
            _ => {}
        }
        if matches!(next.phase, Phase::Leaving(_)) && !self.atomic(&next.state, t) {
            out.push(Next::Attack);
        } else {
            out.push(Next::Go(Box::new(next)));
        }
        Ok(())
    }

    /// The state as the attacker sees it: its own stores first.
    fn view(&self, config: &Config) -> State<()> {
        let mut view = config.state.clone();
        if let Phase::Delaying { private, .. } = &config.phase {
            for (c, v) in private {
                view.memory[c.index()] = *v;
            }
        }
        view
    }

    /// A store of a thread begins an attack.
    fn start(&self, config: &Config, t: ThreadId, out: &mut Vec<Next>) -> Result<(), AuditError> {
        if self.atomic(&config.state, t) {
            return Ok(());
        }
        for event in self.events(&config.state, t) {
            let Action::Store { place, .. } = self.action(&event) else {
                continue;
            };
            let stored = self.machine.apply(&config.state, &event);
            let (Some(cell), Outcome::Next(after)) = (address(&config.state, t, place), stored)
            else {
                continue;
            };
            let mut next = config.clone();
            next.state.locations = after.locations;
            next.phase = Phase::Delaying {
                attacker: t,
                delayed: cell,
                private: BTreeMap::from([(cell, after.memory[cell.index()])]),
            };
            out.push(Next::Go(Box::new(next)));
        }
        Ok(())
    }

    fn attacker(
        &self,
        config: &Config,
        t: ThreadId,
        out: &mut Vec<Next>,
    ) -> Result<(), AuditError> {
        let Phase::Delaying {
            delayed, private, ..
        } = &config.phase
        else {
            return Ok(());
        };
        let view = self.view(config);
        for event in self.events(&view, t) {
            let action = self.action(&event);
            if matches!(
                action,
                Action::Fence(Fence::Full) | Action::AtomicBegin(_) | Action::Lock | Action::Unlock
            ) {
                continue;
            }
            let after = match self.machine.apply(&view, &event) {
                Outcome::Next(after) => after,
                Outcome::Fault(f) if f.kind == FaultKind::MachineOverflow => {
                    return Err(AuditError::Other("overflow of the machine".into()));
                }
                Outcome::Fault(_) | Outcome::Full(_) => continue,
            };
            if let Action::Load { place, .. } = action
                && let Some(cell) = address(&view, t, place)
                && !private.contains_key(&cell)
            {
                let mut next = config.clone();
                // The attacker is frozen: forget where it is.
                let thread = self.machine.instance.thread(t);
                next.state.locations[t.index()] = thread.entry;
                next.state.registers[t.index()].fill(0);
                next.phase = Phase::Committed {
                    attacker: t,
                    delayed: *delayed,
                    marks: BTreeMap::from([(cell, Mark::Read)]),
                    after: BTreeSet::new(),
                    debt: false,
                };
                out.push(Next::Go(Box::new(next)));
            }
            let mut next = config.clone();
            next.state.locations = after.locations.clone();
            next.state.registers = after.registers.clone();
            if let (Action::Store { place, .. }, Phase::Delaying { private, .. }) =
                (action, &mut next.phase)
                && let Some(cell) = address(&view, t, place)
            {
                private.insert(cell, after.memory[cell.index()]);
            }
            out.push(Next::Go(Box::new(next)));
        }
        Ok(())
    }

    /// What the event's step does.
    fn action(&self, event: &Event) -> &Action<RegisterId, Address> {
        match event {
            Event::Step { thread, step, .. } => {
                &self.machine.instance.thread(*thread).step(*step).action
            }
            // There are no drains under SC.
            Event::Drain { .. } => &Action::Skip,
        }
    }
}

enum Admitted {
    No,
    Yes,
    Attack,
}

/// Whether the access may happen where it does, and what it leaves behind.
fn admit(next: &mut Config, t: ThreadId, cell: CellId, access: Mark, inside: bool) -> Admitted {
    let raise = |marks: &mut BTreeMap<CellId, Mark>, cell: CellId, access: Mark| {
        let mark = marks.entry(cell).or_insert(access);
        *mark = (*mark).max(access);
    };
    let Phase::Committed {
        delayed,
        marks,
        after,
        debt,
        ..
    } = &mut next.phase
    else {
        return Admitted::Yes;
    };
    if !after.contains(&t) {
        let conflict = match marks.get(&cell) {
            Some(Mark::Written) => true,
            Some(Mark::Read) => access == Mark::Written,
            None => false,
        };
        if conflict {
            after.insert(t);
            *debt = false;
            let touched = std::mem::take(&mut next.unit);
            if touched.contains_key(delayed) {
                return Admitted::Attack;
            }
            for (c, m) in touched {
                raise(marks, c, m);
            }
        } else if inside && *debt {
            raise(&mut next.unit, cell, access);
            return Admitted::Yes;
        } else {
            return Admitted::No;
        }
    }
    if cell == *delayed {
        return Admitted::Attack;
    }
    raise(marks, cell, access);
    Admitted::Yes
}

fn address(state: &State<()>, thread: ThreadId, place: &Address) -> Option<CellId> {
    match place {
        Address::Cell(c) => Some(*c),
        Address::Computed {
            base,
            length,
            index,
        } => {
            let registers = &state.registers[thread.index()];
            let index = index.eval(&|r: &RegisterId| registers[r.index()]).ok()?;
            let inside = u32::try_from(index).ok().filter(|i| i < length)?;
            Some(CellId(base.0 + inside))
        }
    }
}

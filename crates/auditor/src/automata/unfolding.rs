//! The local states of a thread, by the rules of the reference machine.
//!
//! The machine is that of SC, with a memory in which a load finds what it may: what a step loads and stores is read
//! off, and whether its store waits in a buffer is for the caller to say. Buffers are empty, which they have to
//! be where a step waits for that.

use super::{Effect, Local, MAX_STATES, ThreadAutomaton, Transition, initial};
use crate::AuditError;
use crate::space::accessed::accessed;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::control::{Control, Progress};
use wattle_memory::reference::{Machine, State};
use wattle_memory::rules::Stuck;
use wattle_memory::{Bounds, Exact, Fault, FaultKind, Sc};
use wattle_model::graph::{Action, Section};
use wattle_model::instance::Thread;
use wattle_model::{CellId, Fence, Instance, LocationId, Numbers, StepId, ThreadId};

pub struct Unfolding<'u> {
    t: usize,
    thread: &'u Thread,
    machine: Machine<'u, Sc, Exact>,
    /// Other threads are anywhere, and memory is anything.
    state: State<()>,
    needed: &'u [Vec<bool>],
    values: &'u mut Vec<BTreeSet<i64>>,
    pub found: ThreadAutomaton,
    control: &'u Control<'u>,
}

/// Registers, and whether the thread holds the lock, after a step; or why it is a fault.
type After = Result<(Vec<i64>, bool), FaultKind>;

/// What a step may do: what comes of it, and what it found in a cell or left there.
struct Way {
    after: After,
    loaded: Option<(CellId, i64)>,
    stored: Option<(CellId, i64)>,
}

impl<'u> Unfolding<'u> {
    pub fn new(
        instance: &'u Instance,
        t: usize,
        needed: &'u [Vec<bool>],
        values: &'u mut Vec<BTreeSet<i64>>,
        control: &'u Control<'u>,
    ) -> Self {
        let (threads, cells) = (instance.threads.len(), instance.cells.len());
        let bounds = vec![Bounds::uniform((), cells); threads];
        Unfolding {
            t,
            thread: &instance.threads[t],
            machine: Machine::without_choices(instance, bounds),
            state: State {
                locations: instance.threads.iter().map(|t| t.entry).collect(),
                registers: vec![Vec::new(); threads],
                memory: vec![0; cells],
                buffers: vec![(); threads],
                holder: None,
            },
            needed,
            values,
            found: ThreadAutomaton::default(),
            control,
        }
    }

    pub fn run(&mut self) -> Result<(), AuditError> {
        let mut starts = vec![Vec::new()];
        for r in &self.thread.registers {
            let mut longer = Vec::new();
            for start in &starts {
                if longer.len() > MAX_STATES {
                    return Err(AuditError::Refused("too many initial values".into()));
                }
                for v in initial(r.init, r.ty)? {
                    let mut start: Vec<i64> = start.clone();
                    start.push(v);
                    longer.push(start);
                }
            }
            starts = longer;
        }
        let entry = self.thread.entry;
        let starts = starts
            .into_iter()
            .map(|r| self.local(entry, r, false, None));
        self.found.initial = starts.collect();
        let mut work: Vec<Local> = self.found.initial.iter().cloned().collect();
        while let Some(at) = work.pop() {
            if !self.found.states.insert(at.clone()) || at.fault.is_some() {
                continue;
            }
            if self.found.states.len() > MAX_STATES {
                return Err(AuditError::Refused("the threads' data is too large".into()));
            }
            self.control.poll("audit", Progress::default())?;
            for &s in self.thread.outgoing(at.location) {
                for transition in self.step(&at, s)? {
                    work.push(transition.to.clone());
                    self.found.transitions.insert(transition);
                }
            }
        }
        Ok(())
    }

    fn local(
        &self,
        location: LocationId,
        mut registers: Vec<i64>,
        holds: bool,
        fault: Option<Fault>,
    ) -> Local {
        for (r, v) in registers.iter_mut().enumerate() {
            if !self.needed[location.index()][r] || fault.is_some() {
                *v = 0;
            }
        }
        Local {
            location,
            registers,
            holds,
            fault,
        }
    }

    fn go(&self, from: &Local, s: StepId, after: After, effect: Effect) -> Transition {
        let to = match after {
            Ok((registers, holds)) => {
                self.local(self.thread.step(s).target, registers, holds, None)
            }
            Err(kind) => {
                let thread = ThreadId::new(self.t);
                let fault = Fault {
                    thread,
                    step: s,
                    kind,
                };
                self.local(
                    from.location,
                    from.registers.clone(),
                    from.holds,
                    Some(fault),
                )
            }
        };
        let from = from.clone();
        Transition { from, to, effect }
    }

    /// Everything that a step may do. A load finds what is known of its cell, or else any value of it.
    fn ways(
        &mut self,
        (registers, holds): (&[i64], bool),
        s: StepId,
        known: impl Fn(&CellId) -> Option<i64>,
    ) -> Result<Vec<Way>, AuditError> {
        let (t, action) = (ThreadId::new(self.t), &self.thread.step(s).action);
        let choices: Vec<Option<i64>> = match action.chosen() {
            None => vec![None],
            Some((register, range)) => {
                let ty = self.thread.registers[register.index()].ty;
                match range.or(ty.bounds()) {
                    Some((lo, hi)) if hi.abs_diff(lo) < 1 << 16 => (lo..=hi).map(Some).collect(),
                    _ => return Err(AuditError::Refused("too many values to choose".into())),
                }
            }
        };
        let cell = accessed(self.thread, s, registers).map(CellId::new);
        let load = cell.filter(|_| action.loaded().is_some());
        let found: Vec<i64> = match &load {
            None => vec![0],
            Some(c) => match known(c) {
                Some(v) => vec![v],
                None => self.values[c.index()].iter().copied().collect(),
            },
        };
        self.state.locations[self.t] = self.thread.step(s).source;
        self.state.registers[self.t] = registers.to_vec();
        self.state.holder = holds.then_some(t);
        let mut ways = Vec::new();
        for v in found {
            if let Some(c) = cell {
                self.state.memory[c.index()] = v;
            }
            if !self.machine.enabled(&mut Numbers, &self.state, t, s) {
                continue;
            }
            for chosen in &choices {
                let next = self.machine.take(&mut Numbers, &self.state, t, s, *chosen);
                let (after, stored) = match next {
                    Ok(mut next) => {
                        let registers = std::mem::take(&mut next.registers[self.t]);
                        let left = cell.filter(|_| load.is_none());
                        let left = left.map(|c| (c, next.memory[c.index()]));
                        (Ok((registers, next.holder.is_some())), left)
                    }
                    Err(Stuck::Fault(kind)) => (Err(kind), None),
                    Err(Stuck::Full) => return Err(AuditError::Other("a full buffer".into())),
                    Err(Stuck::Refused(never)) => match never {},
                };
                ways.push(Way {
                    after,
                    loaded: load.map(|c| (c, v)),
                    stored,
                });
            }
        }
        Ok(ways)
    }

    fn step(&mut self, at: &Local, s: StepId) -> Result<Vec<Transition>, AuditError> {
        let otherwise = match &self.thread.step(s).action {
            Action::AtomicBegin(Section::Buffered) => {
                let why = "an atomic section that keeps its stores buffered";
                return Err(AuditError::Refused(why.into()));
            }
            Action::AtomicBegin(Section::Drained) => return self.block(at, s),
            Action::Fence(Fence::Full) => Effect::Wait,
            Action::Lock => Effect::Lock,
            Action::Unlock => Effect::Unlock,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(Fence::Store)
            | Action::AtomicEnd => Effect::Nothing,
        };
        let mut out = Vec::new();
        for way in self.ways((&at.registers, at.holds), s, |_| None)? {
            let effect = match (way.loaded, way.stored) {
                (Some((c, v)), _) => Effect::Load(c, v),
                (None, Some((c, v))) => {
                    self.values[c.index()].insert(v);
                    Effect::Store(c, v)
                }
                (None, None) => otherwise.clone(),
            };
            out.push(self.go(at, s, way.after, effect));
        }
        Ok(out)
    }

    /// Every path through an atomic block.
    fn block(&mut self, from: &Local, begin: StepId) -> Result<Vec<Transition>, AuditError> {
        type Memory = BTreeMap<CellId, i64>;
        let mut out = Vec::new();
        let mut seen: BTreeSet<(LocationId, Vec<i64>, Memory, Memory)> = BTreeSet::new();
        let start = self.thread.step(begin).target;
        let mut work = vec![(start, from.registers.clone(), Memory::new(), Memory::new())];
        while let Some(point) = work.pop() {
            if !seen.insert(point.clone()) {
                continue;
            }
            if seen.len() > MAX_STATES {
                return Err(AuditError::Refused("an atomic block is too large".into()));
            }
            let (location, registers, found, left) = point;
            for &s in self.thread.outgoing(location) {
                let action = &self.thread.step(s).action;
                if let Action::Lock | Action::Unlock | Action::AtomicBegin(_) = action {
                    return Err(AuditError::Refused("a lock inside an atomic block".into()));
                }
                let end = *action == Action::AtomicEnd;
                let known = |c: &CellId| left.get(c).or(found.get(c)).copied();
                for way in self.ways((&registers, from.holds), s, known)? {
                    let (mut found, mut left) = (found.clone(), left.clone());
                    if let Some((c, v)) = way.loaded.filter(|(c, _)| !left.contains_key(c)) {
                        found.insert(c, v);
                    }
                    left.extend(way.stored);
                    match way.after {
                        Ok((registers, _)) if !end => {
                            work.push((self.thread.step(s).target, registers, found, left));
                        }
                        after => {
                            if after.is_ok() {
                                for (c, v) in &left {
                                    self.values[c.index()].insert(*v);
                                }
                            }
                            let effect = Effect::Block { found, left };
                            out.push(self.go(from, s, after, effect));
                        }
                    }
                }
            }
        }
        Ok(out)
    }
}

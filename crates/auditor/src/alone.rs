//! What each thread can do on its own, if a load may find any value that is ever stored.

use super::AuditError;
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::LocalState;
use wattle_evidence::control::{Control, Meter, Progress};
use wattle_evidence::task::Task;
use wattle_memory::{Fault, FaultKind};
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Fact, Initial, Thread};
use wattle_model::{
    CellId, Expr, Fence, Instance, LocationId, RegisterId, Roles, StepId, ThreadId, Type,
};

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
pub struct ThreadAlone {
    pub initial: BTreeSet<Local>,
    pub states: BTreeSet<Local>,
    pub transitions: BTreeSet<Transition>,
    /// By the state they lead to, as certificates name it.
    pub into: BTreeMap<LocalState, Vec<Transition>>,
    /// Cells stored to on some way to the state since the thread last had to wait for an empty
    /// buffer.
    pub pending: BTreeMap<LocalState, BTreeSet<CellId>>,
}

impl ThreadAlone {
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

pub struct Alone {
    pub threads: Vec<ThreadAlone>,
    /// Values each cell may hold.
    pub values: Vec<BTreeSet<i64>>,
    pub uses_lock: bool,
}

/// Certificates of larger programs are not audited this way.
const MAX_STATES: usize = 1 << 17;

impl Alone {
    /// Threads of one role have the same local states: the property may look at any of them.
    pub fn unfold(
        task: &Task<'_>,
        roles: &Roles,
        control: &Control<'_>,
    ) -> Result<Alone, AuditError> {
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
            for (t, thread) in instance.threads.iter().enumerate() {
                let mut unfolding = Unfolding {
                    instance,
                    t,
                    thread,
                    needed: &needed[t],
                    values: &mut values,
                    found: ThreadAlone::default(),
                    control,
                };
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
                return Ok(Alone {
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

    /// The cells a condition may read.
    pub fn cells_read(&self, e: &Expr<Fact>) -> Vec<usize> {
        let mut cells = BTreeSet::new();
        read_by(e, &mut |fact| match fact {
            Fact::Cell(c) => {
                cells.insert(c.index());
            }
            Fact::CellAt { base, length, .. } => {
                cells.extend((base.0..base.0 + length).map(|c| c as usize));
            }
            Fact::Register(..) | Fact::At(..) => {}
        });
        cells.into_iter().collect()
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

/// The threads a condition looks at.
pub fn threads_seen(e: &Expr<Fact>) -> BTreeSet<ThreadId> {
    let mut threads = BTreeSet::new();
    read_by(e, &mut |fact| {
        if let Fact::Register(t, _) | Fact::At(t, _) = fact {
            threads.insert(*t);
        }
    });
    threads
}

fn read_by(e: &Expr<Fact>, visit: &mut dyn FnMut(&Fact)) {
    e.for_each_atom(&mut |fact| {
        visit(fact);
        if let Fact::CellAt { index, .. } = fact {
            read_by(index, visit);
        }
    });
}

fn registers_read(task: &Task<'_>, thread: ThreadId) -> Vec<RegisterId> {
    let mut registers = Vec::new();
    if let Some(question) = task.question() {
        read_by(&question.target, &mut |fact| {
            if let Fact::Register(t, r) = fact
                && *t == thread
            {
                registers.push(*r);
            }
        });
    }
    registers
}

/// Per location: the registers some later step, or the property, may read. The others are put to 0.
fn needed(thread: &Thread, always: &[RegisterId]) -> Vec<BTreeSet<RegisterId>> {
    let always: BTreeSet<RegisterId> = always.iter().copied().collect();
    let mut needed = vec![always.clone(); thread.locations.len()];
    loop {
        let before: usize = needed.iter().map(BTreeSet::len).sum();
        for step in &thread.steps {
            let mut here = needed[step.target.index()].clone();
            if let Some(register) = step.action.written() {
                here.remove(&register);
            }
            step.action.for_each_read(&mut |r| {
                here.insert(r);
            });
            here.extend(&always);
            needed[step.source.index()].extend(here);
        }
        if needed.iter().map(BTreeSet::len).sum::<usize>() == before {
            return needed;
        }
    }
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

struct Unfolding<'u> {
    instance: &'u Instance,
    t: usize,
    thread: &'u Thread,
    needed: &'u [BTreeSet<RegisterId>],
    values: &'u mut Vec<BTreeSet<i64>>,
    found: ThreadAlone,
    control: &'u Control<'u>,
}

/// What one step does to registers, or why it does not.
type After = Result<Vec<i64>, FaultKind>;

impl Unfolding<'_> {
    fn run(&mut self) -> Result<(), AuditError> {
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
            let needed = self.needed[location.index()].contains(&RegisterId::new(r));
            if !needed || fault.is_some() {
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

    fn go(&self, from: &Local, s: StepId, after: After, holds: bool, effect: Effect) -> Transition {
        let to = match after {
            Ok(registers) => self.local(self.thread.step(s).target, registers, holds, None),
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

    fn step(&mut self, at: &Local, s: StepId) -> Result<Vec<Transition>, AuditError> {
        let registers = &at.registers;
        let same = || Ok(registers.clone());
        let one = |after, effect| vec![self.go(at, s, after, at.holds, effect)];
        Ok(match &self.thread.step(s).action {
            Action::AtomicBegin(Section::Buffered) => {
                let why = "an atomic section that keeps its stores buffered";
                return Err(AuditError::Refused(why.into()));
            }
            Action::AtomicBegin(Section::Drained) => self.block(at, s)?,
            Action::Fence(Fence::Full) => one(same(), Effect::Wait),
            Action::Fence(Fence::Store) => one(same(), Effect::Nothing),
            Action::Lock if !at.holds => vec![self.go(at, s, same(), true, Effect::Lock)],
            Action::Unlock if at.holds => vec![self.go(at, s, same(), false, Effect::Unlock)],
            Action::Lock | Action::Unlock => Vec::new(),
            Action::Load { register, place } => match cell(registers, place) {
                Err(kind) => one(Err(kind), Effect::Nothing),
                Ok(c) => {
                    let values = self.values[c.index()].iter();
                    let loads = values.map(|v| {
                        let after = self.assign(registers, *register, *v);
                        self.go(at, s, after, at.holds, Effect::Load(c, *v))
                    });
                    loads.collect()
                }
            },
            Action::Store { place, value } => {
                let stored = self.stored(registers, place, value);
                match stored {
                    Err(kind) => one(Err(kind), Effect::Nothing),
                    Ok((c, v)) => {
                        let stores = one(same(), Effect::Store(c, v));
                        self.values[c.index()].insert(v);
                        stores
                    }
                }
            }
            action @ (Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::AtomicEnd) => {
                let ways = self.quiet(registers, action)?.into_iter();
                let ways = ways.map(|after| self.go(at, s, after, at.holds, Effect::Nothing));
                ways.collect()
            }
        })
    }

    /// Steps that touch only registers.
    fn quiet<P>(
        &self,
        registers: &[i64],
        action: &Action<RegisterId, P>,
    ) -> Result<Vec<After>, AuditError> {
        let same = || Ok(registers.to_vec());
        Ok(match action {
            Action::Assign { register, value } => {
                let v = value_of(registers, value);
                vec![v.and_then(|v| self.assign(registers, *register, v))]
            }
            Action::Havoc { register, range } => {
                let ty = self.thread.registers[register.index()].ty;
                match range.or(ty.bounds()) {
                    Some((lo, hi)) if hi.abs_diff(lo) < 1 << 16 => (lo..=hi)
                        .map(|v| self.assign(registers, *register, v))
                        .collect(),
                    _ => return Err(AuditError::Refused("too many values to choose".into())),
                }
            }
            Action::Assume(e) => match value_of(registers, e) {
                Ok(0) => Vec::new(),
                Ok(_) => vec![same()],
                Err(kind) => vec![Err(kind)],
            },
            Action::Assert { condition, message } => match value_of(registers, condition) {
                Ok(0) => vec![Err(FaultKind::Assertion {
                    message: message.clone(),
                })],
                Ok(_) => vec![same()],
                Err(kind) => vec![Err(kind)],
            },
            Action::Skip | Action::Fence(_) | Action::AtomicBegin(_) | Action::AtomicEnd => {
                vec![same()]
            }
            Action::Load { .. } | Action::Store { .. } | Action::Lock | Action::Unlock => {
                let why = "a memory step is taken for a local one";
                return Err(AuditError::Other(why.into()));
            }
        })
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
                // Each way on: registers or fault, what was found, what is left.
                let mut ways: Vec<(After, Memory, Memory)> = Vec::new();
                let same = |after: After| (after, found.clone(), left.clone());
                match &self.thread.step(s).action {
                    Action::Load { register, place } => match cell(&registers, place) {
                        Err(kind) => ways.push(same(Err(kind))),
                        Ok(c) => match left.get(&c).or(found.get(&c)) {
                            Some(v) => ways.push(same(self.assign(&registers, *register, *v))),
                            None => {
                                for v in &self.values[c.index()] {
                                    let mut found = found.clone();
                                    found.insert(c, *v);
                                    let after = self.assign(&registers, *register, *v);
                                    ways.push((after, found, left.clone()));
                                }
                            }
                        },
                    },
                    Action::Store { place, value } => match self.stored(&registers, place, value) {
                        Err(kind) => ways.push(same(Err(kind))),
                        Ok((c, v)) => {
                            let mut left = left.clone();
                            left.insert(c, v);
                            ways.push((Ok(registers.clone()), found.clone(), left));
                        }
                    },
                    Action::Lock | Action::Unlock | Action::AtomicBegin(_) => {
                        return Err(AuditError::Refused("a lock inside an atomic block".into()));
                    }
                    Action::AtomicEnd | Action::Fence(_) => {
                        ways.push(same(Ok(registers.clone())));
                    }
                    action @ (Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }) => {
                        for after in self.quiet(&registers, action)? {
                            ways.push(same(after));
                        }
                    }
                }
                let end = matches!(self.thread.step(s).action, Action::AtomicEnd);
                for (after, found, left) in ways {
                    match after {
                        Ok(registers) if !end => {
                            work.push((self.thread.step(s).target, registers, found, left));
                        }
                        after => {
                            if after.is_ok() {
                                for (c, v) in &left {
                                    self.values[c.index()].insert(*v);
                                }
                            }
                            let effect = Effect::Block { found, left };
                            out.push(self.go(from, s, after, from.holds, effect));
                        }
                    }
                }
            }
        }
        Ok(out)
    }

    fn stored(
        &self,
        registers: &[i64],
        place: &Address,
        value: &Expr<RegisterId>,
    ) -> Result<(CellId, i64), FaultKind> {
        let c = cell(registers, place)?;
        let v = value_of(registers, value)?;
        Ok((c, put(self.instance.cell(c).ty, v)?))
    }

    fn assign(&self, registers: &[i64], r: RegisterId, v: i64) -> After {
        let mut after = registers.to_vec();
        after[r.index()] = put(self.thread.registers[r.index()].ty, v)?;
        Ok(after)
    }
}

fn put(ty: Type, value: i64) -> Result<i64, FaultKind> {
    let (lo, hi) = ty.bounds().unwrap_or((i64::MIN, i64::MAX));
    ty.admit(value)
        .ok_or(FaultKind::ValueOutOfRange { value, lo, hi })
}

fn value_of(registers: &[i64], e: &Expr<RegisterId>) -> Result<i64, FaultKind> {
    Ok(e.eval(&|r: &RegisterId| registers[r.index()])?)
}

fn cell(registers: &[i64], place: &Address) -> Result<CellId, FaultKind> {
    match place {
        Address::Cell(c) => Ok(*c),
        Address::Computed {
            base,
            length,
            index,
        } => {
            let index = value_of(registers, index)?;
            match u32::try_from(index) {
                Ok(i) if i < *length => Ok(CellId(base.0 + i)),
                _ => Err(FaultKind::IndexOutOfRange {
                    index,
                    length: *length,
                }),
            }
        }
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

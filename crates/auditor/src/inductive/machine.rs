//! The rules of the reference machine, run on the control states of a certificate over symbols.

use super::super::AuditError;
use super::super::symbols::{NotLinear, Path, Symbols, Value};
use super::buffer::{Buffer, Keep, Keeping, PerThread};
use super::ranges::Ranges;
use super::views::{Moment, among};
use std::collections::{BTreeMap, BTreeSet};
use wattle_evidence::certificate::{ControlState, Corrupt, Predicate, Quantity};
use wattle_logic::{Formula, Int, Term, Var, and, divides, eq, ge, le};
use wattle_memory::reference::{self, evaluate_in};
use wattle_memory::rules::Stuck;
use wattle_memory::{Bounds, Content, FaultKind, MemoryModel};
use wattle_model::graph::Action;
use wattle_model::instance::Fact;
use wattle_model::{CellId, Expr, Instance, StepId, ThreadId, Type};

pub type State<'k> = reference::State<Buffer<'k>, Value>;

/// What an event leads to, and when.
pub struct Way<'k> {
    pub what: String,
    pub when: Vec<Formula>,
    /// `None` is a fault.
    pub to: Option<State<'k>>,
    /// The step whose fault is a value outside its range.
    pub outside: Option<StepId>,
    /// Whatever is known of the state holds of each of these, if there are any: other readings of its
    /// views.
    pub readings: Vec<State<'k>>,
}

pub struct Machine<'i, 'k, const MODEL: usize> {
    pub instance: &'i Instance,
    rules: reference::Machine<'i, PerThread<MODEL>, Buffer<'k>>,
    keepings: Vec<Keeping<'k>>,
    pub ranges: Ranges,
    symbols: Symbols,
    /// The cells of the views of threads whose buffers are known by views.
    views: BTreeMap<ThreadId, Vec<CellId>>,
}

/// Views of more buffers than this are not read together.
const TOGETHER: usize = 3;

impl From<NotLinear> for AuditError {
    fn from(NotLinear(why): NotLinear) -> Self {
        AuditError::Refused(why)
    }
}

impl<'i, 'k, const MODEL: usize> Machine<'i, 'k, MODEL> {
    pub fn new(
        instance: &'i Instance,
        keeps: &'k [Option<Keep>],
        ranges: &[(Quantity, Option<i64>, Option<i64>)],
    ) -> Result<Self, AuditError> {
        Machine::with_views(instance, keeps, ranges, BTreeMap::new())
    }

    /// With the cells of the views of the threads whose buffers are known so.
    pub fn with_views(
        instance: &'i Instance,
        keeps: &'k [Option<Keep>],
        ranges: &[(Quantity, Option<i64>, Option<i64>)],
        views: BTreeMap<ThreadId, Vec<CellId>>,
    ) -> Result<Self, AuditError> {
        let model = MemoryModel::ALL[MODEL];
        let keep = |(t, keep): (usize, &'k Option<Keep>)| Keeping {
            model,
            keep: keep.as_ref(),
            viewed: views.contains_key(&ThreadId::new(t)),
        };
        let keepings: Vec<Keeping<'k>> = keeps.iter().enumerate().map(keep).collect();
        let cells = instance.cells.len();
        let bounds = keepings.iter().map(|k| Bounds::uniform(*k, cells));
        let bounds = bounds.collect();
        Ok(Machine {
            instance,
            rules: reference::Machine::without_choices(instance, bounds),
            keepings,
            ranges: Ranges::new(instance, ranges)?,
            symbols: Symbols::default(),
            views,
        })
    }

    /// A variable for something outside of states.
    pub fn fresh(&mut self) -> Var {
        self.symbols.fresh()
    }

    /// The control state with a variable for everything, and what the types say about them.
    pub fn any(&mut self, control: &ControlState) -> Result<(State<'k>, Vec<Formula>), AuditError> {
        let instance = self.instance;
        let corrupt = || AuditError::Corrupt(Corrupt("a control state does not fit the program"));
        let threads = &instance.threads;
        let located = control.locations.iter().zip(threads);
        if control.locations.len() != threads.len()
            || control.buffers.len() != threads.len()
            || control.holder.is_some_and(|h| h.index() >= threads.len())
            || located
                .into_iter()
                .any(|(l, t)| l.index() >= t.locations.len())
        {
            return Err(corrupt());
        }
        self.symbols.forget();
        let mut variable = |ty: Type| Value::from(self.symbols.between(ty.bounds()));
        let memory = instance.cells.iter().map(|c| variable(c.ty)).collect();
        let mut registers = Vec::new();
        for t in threads {
            registers.push(t.registers.iter().map(|r| variable(r.ty)).collect());
        }
        let mut buffers = Vec::new();
        for (t, (pending, keeping)) in control.buffers.iter().zip(&self.keepings).enumerate() {
            let mut values = Vec::new();
            for (_, cell) in &pending.entries {
                let ty = instance.cells.get(cell.index()).ok_or_else(corrupt)?.ty;
                values.push(variable(ty));
            }
            let mut buffer = Buffer::read(pending, *keeping, values).ok_or_else(corrupt)?;
            if let Some(views) = &mut buffer.views {
                for map in views.maps_mut() {
                    for c in &self.views[&ThreadId::new(t)] {
                        map.insert(*c, variable(instance.cell(*c).ty));
                    }
                }
            }
            if keeping.model == MemoryModel::Sc && (keeping.viewed || !buffer.is_empty()) {
                return Err(corrupt());
            }
            buffers.push(buffer);
        }
        let state = State {
            locations: control.locations.clone(),
            registers,
            memory,
            buffers,
            holder: control.holder,
        };
        Ok((state, self.symbols.facts().to_vec()))
    }

    /// Everything that the thread can do in the state.
    pub fn ways_of(&mut self, state: &State<'k>, t: ThreadId) -> Result<Vec<Way<'k>>, AuditError> {
        let mut ways = Vec::new();
        if !self.rules.may_act(state, t) {
            return Ok(ways);
        }
        for &s in self.instance.thread(t).outgoing(state.locations[t.index()]) {
            if self.views.is_empty() {
                self.step(state, t, s, &mut ways)?;
                continue;
            }
            for moment in self.moments(t, s) {
                let before = self.at(state, t, moment.clone());
                let readings = self.loading(&before, t, s);
                let first = ways.len();
                self.step(&before, t, s, &mut ways)?;
                for way in &mut ways[first..] {
                    way.readings.clone_from(&readings);
                    if let Some(to) = &mut way.to
                        && let Some(views) = &mut to.buffers[t.index()].views
                    {
                        if moment == Moment::Empty {
                            views.are_memory(&to.memory);
                        }
                        views.moment = Moment::Any;
                    }
                }
            }
        }
        self.drains(state, t, &mut ways)?;
        Ok(ways)
    }

    /// The state in the moment of the thread.
    fn at(&self, state: &State<'k>, t: ThreadId, moment: Moment) -> State<'k> {
        let mut state = state.clone();
        if let Some(views) = &mut state.buffers[t.index()].views {
            *views = views.at(moment, &state.memory);
        }
        state
    }

    /// In which moments of its thread's views the step must be looked at.
    fn moments(&self, t: ThreadId, s: StepId) -> Vec<Moment> {
        let Some(cells) = self.views.get(&t) else {
            return vec![Moment::Any];
        };
        let thread = self.instance.thread(t);
        let step = thread.step(s);
        // Inside a drained block the buffer is empty and stores write memory.
        if thread.direct[step.source.index()] {
            return vec![Moment::Empty];
        }
        match &step.action {
            Action::Store { .. } => {
                let groups = self.groups(cells);
                let upper = groups.iter().cloned().map(Moment::UpperIsNewest);
                let both = groups.iter().cloned().map(Moment::BothAreNewest);
                [Moment::Any].into_iter().chain(upper).chain(both).collect()
            }
            Action::Fence(_) | Action::AtomicBegin(_) | Action::Lock | Action::Unlock => {
                vec![Moment::Any, Moment::Empty]
            }
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::AtomicEnd => vec![Moment::Any],
        }
    }

    /// The cells whose stores are in one order.
    fn groups(&self, cells: &[CellId]) -> Vec<Vec<CellId>> {
        match MemoryModel::ALL[MODEL] {
            MemoryModel::Pso => cells.iter().map(|c| vec![*c]).collect(),
            MemoryModel::Sc | MemoryModel::Tso => vec![cells.to_vec()],
        }
    }

    /// The readings for a step that may load from memory.
    fn loading(&self, state: &State<'k>, t: ThreadId, s: StepId) -> Vec<State<'k>> {
        let loaded = match &self.instance.thread(t).step(s).action {
            Action::Load { place, .. } => among(place),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => Vec::new(),
        };
        let others = self.views.iter().filter(|(u, _)| **u != t);
        self.readings(state, others, &loaded)
    }

    /// The state, and with memory as the lower view of buffers that store to the cells.
    fn readings<'v>(
        &self,
        state: &State<'k>,
        views: impl Iterator<Item = (&'v ThreadId, &'v Vec<CellId>)>,
        loaded: &[CellId],
    ) -> Vec<State<'k>> {
        let mut read = Vec::new();
        for (u, cells) in views {
            let groups = self.groups(cells).into_iter();
            let groups = groups.filter(|g| g.iter().any(|c| loaded.contains(c)));
            read.extend(groups.map(|g| (*u, g)));
        }
        let together = read.len() <= TOGETHER;
        let mut readings = vec![state.clone()];
        for (u, group) in read {
            let from = match together {
                true => readings.clone(),
                false => vec![state.clone()],
            };
            for mut reading in from {
                let Some(views) = reading.buffers[u.index()].views.clone() else {
                    continue;
                };
                for upper_is_lower in [false, true] {
                    let memory = views.of_memory(&group, upper_is_lower, &state.memory);
                    reading.buffers[u.index()].views = Some(memory);
                    readings.push(reading.clone());
                }
            }
        }
        readings
    }

    /// The readings of the state under which a target speaks of memory; only states where all buffers
    /// are empty, if that is asked for.
    pub fn looking(
        &self,
        state: &State<'k>,
        target: &Expr<Fact>,
        only_final: bool,
    ) -> Vec<State<'k>> {
        if only_final {
            return vec![self.emptied(state)];
        }
        let mut cells = BTreeSet::new();
        target.for_each_atom(&mut |fact| match fact {
            Fact::Cell(c) => {
                cells.insert(*c);
            }
            Fact::CellAt { base, length, .. } => {
                cells.extend((base.0..base.0 + length).map(CellId));
            }
            Fact::Register(..) | Fact::At(..) => {}
        });
        let cells: Vec<CellId> = cells.into_iter().collect();
        self.readings(state, self.views.iter(), &cells)
    }

    /// The state with every buffer that is known by views empty.
    pub fn emptied(&self, state: &State<'k>) -> State<'k> {
        let threads = self.views.keys();
        threads.fold(state.clone(), |state, t| self.at(&state, *t, Moment::Empty))
    }

    /// Whether a buffer is known by views.
    pub fn has_views(&self) -> bool {
        !self.views.is_empty()
    }

    /// Whether a view is of the cell.
    pub fn is_viewed(&self, cell: CellId) -> bool {
        self.views.values().any(|cells| cells.contains(&cell))
    }

    fn step(
        &mut self,
        state: &State<'k>,
        t: ThreadId,
        s: StepId,
        ways: &mut Vec<Way<'k>>,
    ) -> Result<(), AuditError> {
        let thread = self.instance.thread(t);
        let choice = match &thread.step(s).action {
            Action::Havoc { register, range } => {
                let ty = thread.registers[register.index()].ty;
                let why = || AuditError::Refused("a choice among infinitely many values".into());
                Some(range.or(ty.bounds()).ok_or_else(why)?)
            }
            Action::Skip
            | Action::Assign { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => None,
        };
        let rules = &self.rules;
        let paths = self.symbols.explore(|d| {
            let chosen = choice.map(|bounds| Value::from(d.between(Some(bounds))));
            let enabled = rules.enabled(d, state, t, s);
            enabled.then(|| match rules.take(d, state, t, s, chosen) {
                Ok(to) => Ok(numbers(d, to)),
                Err(stuck) => Err(stuck),
            })
        })?;
        for Path { when, then } in paths {
            let outside = match &then {
                Some(Err(Stuck::Fault(FaultKind::ValueOutOfRange { .. }))) => Some(s),
                _ => None,
            };
            let to = match then {
                None => continue,
                Some(Ok(to)) => Some(to),
                Some(Err(Stuck::Fault(FaultKind::MachineOverflow) | Stuck::Full)) => {
                    return Err(AuditError::Refused("a constant is too large".into()));
                }
                Some(Err(Stuck::Fault(_))) => None,
                Some(Err(Stuck::Refused(why))) => return Err(why.into()),
            };
            let what = format!("step {s} of {}", thread.name);
            ways.push(Way {
                what,
                when,
                to,
                outside,
                readings: Vec::new(),
            });
        }
        Ok(())
    }

    fn drains(
        &mut self,
        state: &State<'k>,
        t: ThreadId,
        ways: &mut Vec<Way<'k>>,
    ) -> Result<(), AuditError> {
        for drain in self.rules.drains(state, t) {
            let cell = drain.entry.0;
            let ty = self.instance.cell(cell).ty;
            let (rules, ranges) = (&self.rules, &self.ranges);
            let paths = self.symbols.explore(|d| {
                let to = rules.drain(d, state, t, &drain);
                let to = numbers(d, to);
                // Whatever is pending was an entry when it was stored, let through by the cell's
                // type and shown to lie in its range.
                let value = number(&to.memory[cell.index()])?.clone();
                d.know(admitted(ty, &value));
                d.know(ranges.of_cell(cell, &value));
                Ok::<_, AuditError>(to)
            })?;
            for Path { when, then } in paths {
                let what = format!("a drain of {}", self.instance.thread(t).name);
                let to = Some(then?);
                let outside = None;
                ways.push(Way {
                    what,
                    when,
                    to,
                    outside,
                    readings: Vec::new(),
                });
            }
        }
        Ok(())
    }

    /// When the target is true in the state, or has no value.
    pub fn target(
        &mut self,
        state: &State<'k>,
        target: &Expr<Fact>,
    ) -> Result<Vec<Vec<Formula>>, AuditError> {
        let paths = self.symbols.explore(|d| {
            let value: Result<Value, Stuck<Value, NotLinear>> = evaluate_in(d, state, target);
            value.map(|v| d.formula(&v))
        })?;
        let mut bad = Vec::new();
        for Path { mut when, then } in paths {
            match then {
                Ok(holds) => when.push(holds),
                Err(Stuck::Refused(why)) => return Err(why.into()),
                Err(Stuck::Fault(_) | Stuck::Full) => {}
            }
            bad.push(when);
        }
        Ok(bad)
    }

    /// Nobody is inside an atomic block, and with `only_final` all have ended.
    pub fn looked_at(&self, state: &State<'k>, only_final: bool) -> bool {
        self.rules.inside_atomic(state).is_none() && (!only_final || self.rules.is_final(state))
    }

    /// The predicate in the state.
    pub fn predicate(&self, state: &State<'_>, p: &Predicate) -> Result<Formula, AuditError> {
        use wattle_evidence::certificate::Comparison;
        let corrupt = || AuditError::Corrupt(Corrupt("a predicate speaks of nothing in the state"));
        let mut sum = Term::constant(p.constant);
        for (k, quantity) in &p.sum {
            let term = match quantity {
                Quantity::Register(t, r) => {
                    let of_thread = state.registers.get(t.index()).ok_or_else(corrupt)?;
                    of_thread.get(r.index()).cloned()
                }
                Quantity::Cell(c) => state.memory.get(c.index()).cloned(),
                Quantity::Entry(t, i) => {
                    let buffer = state.buffers.get(t.index()).ok_or_else(corrupt)?;
                    let entries = buffer.listed();
                    entries.get(*i as usize).map(|(_, _, v)| (*v).clone())
                }
                Quantity::View(t, which, c) => {
                    let buffer = state.buffers.get(t.index()).ok_or_else(corrupt)?;
                    let views = buffer.views.as_ref().ok_or_else(corrupt)?;
                    views.get(*which, *c).cloned()
                }
            };
            let term = term.ok_or_else(corrupt)?;
            sum = sum + number(&term)?.scaled(&Int::from(*k));
        }
        Ok(match p.is {
            Comparison::AtMostZero => le(sum, 0),
            Comparison::Zero => eq(sum, 0),
            Comparison::MultipleOf(m) if m > 1 => divides(m, sum),
            Comparison::MultipleOf(_) => return Err(corrupt()),
        })
    }
}

/// The finite part of the state, as certificates list it.
pub fn control(state: &State<'_>) -> ControlState {
    ControlState {
        locations: state.locations.clone(),
        buffers: state.buffers.iter().map(Buffer::written).collect(),
        holder: state.holder,
    }
}

/// The term of a value; states hold numbers.
pub fn number(value: &Value) -> Result<&Term, AuditError> {
    match value {
        Value::Number(t) => Ok(t),
        Value::Truth(_) | Value::OneOf(..) => {
            Err(AuditError::Other("a value in a state is no number".into()))
        }
    }
}

/// What the type says of a value it let through.
fn admitted(ty: Type, value: &Term) -> Formula {
    match ty.bounds() {
        Some((lo, hi)) => and([ge(value.clone(), lo), le(value.clone(), hi)]),
        None => Formula::True,
    }
}

/// The state with numbers only.
fn numbers<'k>(d: &mut Symbols, mut state: State<'k>) -> State<'k> {
    let registers = state.registers.iter_mut().flatten();
    for value in registers.chain(&mut state.memory) {
        *value = Value::Number(d.term(value.clone()));
    }
    for buffer in &mut state.buffers {
        buffer.for_each(&mut |v| *v = Value::Number(d.term(v.clone())));
    }
    state
}

//! The rules of the reference machine, run on the control states of a certificate over symbols.

use super::super::AuditError;
use super::super::symbols::{NotLinear, Path, Symbols, Value};
use super::ranges::Ranges;
use wattle_evidence::certificate::{
    Comparison, ControlState, Corrupt, PendingStores, Predicate, Quantity, View,
};
use wattle_logic::{Formula, Int, Term, Var, and, divides, eq, ge, le};
use wattle_memory::reference::{self, evaluate_in};
use wattle_memory::rules::Stuck;
use wattle_memory::{Bounds, Content, FaultKind, Layout};
use wattle_model::instance::Fact;
use wattle_model::{CellId, Expr, Instance, StepId, ThreadId, Type};

pub type State<B> = reference::State<B, Value>;

/// A thread's pending stores, as certificates list them.
pub trait Pending: Clone {
    /// How they are kept.
    type Bound: Copy;

    /// What the certificate lists, with these values; `None` if the listing is not the one and only
    /// listing of a buffer.
    fn read(listed: &PendingStores, bound: Self::Bound, values: Vec<Value>) -> Option<Self>;

    /// As certificates list it.
    fn written(&self) -> PendingStores;

    /// The entries in the order certificates list them, each with its epoch.
    fn listed(&self) -> Vec<(u32, CellId, &Value)>;

    /// Every value that is pending, or may be.
    fn for_each(&mut self, change: &mut dyn FnMut(&mut Value));

    /// The same with their cells.
    fn values(&self) -> Vec<(CellId, &Value)> {
        let listed = self.listed().into_iter();
        listed.map(|(_, c, v)| (c, v)).collect()
    }

    /// A view of memory, of a buffer that is known by views.
    fn view(&self, _: View, _: CellId) -> Option<&Value> {
        None
    }
}

/// What an event leads to, and when.
pub struct Way<B> {
    pub what: String,
    pub when: Vec<Formula>,
    /// `None` is a fault.
    pub to: Option<State<B>>,
    /// The step whose fault is a value outside its range.
    pub outside: Option<StepId>,
    /// Whatever is known of the state holds of each of these, if there are any: other readings of its
    /// views.
    pub readings: Vec<State<B>>,
}

/// What an audit asks of a machine over symbols.
pub trait Runs {
    type Buffer: Pending;

    fn ranges(&self) -> &Ranges;

    /// The control state with a variable for everything, and what the types say about them.
    fn any(&mut self, control: &ControlState) -> Result<Any<Self::Buffer>, AuditError>;

    /// Everything that the thread can do in the state.
    fn ways_of(
        &mut self,
        state: &State<Self::Buffer>,
        t: ThreadId,
    ) -> Result<Vec<Way<Self::Buffer>>, AuditError>;

    /// When the target is true in the state, or has no value.
    fn target(
        &mut self,
        state: &State<Self::Buffer>,
        target: &Expr<Fact>,
    ) -> Result<Vec<Vec<Formula>>, AuditError>;

    /// Nobody is inside an atomic block, and with `only_final` all have ended.
    fn looked_at(&self, state: &State<Self::Buffer>, only_final: bool) -> bool;

    /// Where buffers are known by views: the readings of the state under which a target speaks of memory.
    fn looking(
        &self,
        _: &State<Self::Buffer>,
        _: &Expr<Fact>,
        _only_final: bool,
    ) -> Vec<State<Self::Buffer>> {
        Vec::new()
    }

    /// The state with every buffer that is known by views empty.
    fn emptied(&self, state: State<Self::Buffer>) -> State<Self::Buffer> {
        state
    }

    /// Whether a view is of the cell.
    fn is_viewed(&self, _: CellId) -> bool {
        false
    }
}

/// A state, and what is known of its variables.
pub type Any<B> = (State<B>, Vec<Formula>);

pub struct Machine<'i, L: Layout, C: Content<Value = Value>> {
    pub instance: &'i Instance,
    pub(super) rules: reference::Machine<'i, L, C>,
    bounds: Vec<C::Bound>,
    ranges: Ranges,
    pub(super) symbols: Symbols,
}

impl From<NotLinear> for AuditError {
    fn from(NotLinear(why): NotLinear) -> Self {
        AuditError::Refused(why)
    }
}

impl<'i, L: Layout, C: Content<Value = Value>> Machine<'i, L, C>
where
    L::Buffer<C>: Pending<Bound = C::Bound>,
{
    /// With a bound for each thread's buffer.
    pub fn new(
        instance: &'i Instance,
        bounds: Vec<C::Bound>,
        ranges: &[(Quantity, Option<i64>, Option<i64>)],
    ) -> Result<Self, AuditError> {
        let cells = instance.cells.len();
        let all = bounds.iter().map(|b| Bounds::uniform(*b, cells)).collect();
        Ok(Machine {
            instance,
            rules: reference::Machine::without_choices(instance, all),
            bounds,
            ranges: Ranges::new(instance, ranges)?,
            symbols: Symbols::default(),
        })
    }

    /// A variable for something outside of states.
    pub fn fresh(&mut self) -> Var {
        self.symbols.fresh()
    }

    pub(super) fn step(
        &mut self,
        state: &State<L::Buffer<C>>,
        t: ThreadId,
        s: StepId,
        ways: &mut Vec<Way<L::Buffer<C>>>,
    ) -> Result<(), AuditError> {
        let thread = self.instance.thread(t);
        let choice = match thread.step(s).action.chosen() {
            Some((register, range)) => {
                let ty = thread.registers[register.index()].ty;
                let why = || AuditError::Refused("a choice among infinitely many values".into());
                Some(range.or(ty.bounds()).ok_or_else(why)?)
            }
            None => None,
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
            let is_out = |k: &FaultKind<Value>| matches!(k, FaultKind::ValueOutOfRange { .. });
            let outside = matches!(&then, Some(Err(Stuck::Fault(k))) if is_out(k)).then_some(s);
            let to = match then {
                None => continue,
                Some(Ok(to)) => Some(to),
                Some(Err(Stuck::Fault(FaultKind::MachineOverflow) | Stuck::Full)) => {
                    return Err(AuditError::Refused("a constant is too large".into()));
                }
                Some(Err(Stuck::Fault(_))) => None,
                Some(Err(Stuck::Refused(why))) => return Err(why.into()),
            };
            ways.push(Way {
                what: format!("step {s} of {}", thread.name),
                when,
                to,
                outside,
                readings: Vec::new(),
            });
        }
        Ok(())
    }

    pub(super) fn drains(
        &mut self,
        state: &State<L::Buffer<C>>,
        t: ThreadId,
        ways: &mut Vec<Way<L::Buffer<C>>>,
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
                ways.push(Way {
                    what: format!("a drain of {}", self.instance.thread(t).name),
                    when,
                    to: Some(then?),
                    outside: None,
                    readings: Vec::new(),
                });
            }
        }
        Ok(())
    }
}

impl<L: Layout, C: Content<Value = Value>> Runs for Machine<'_, L, C>
where
    L::Buffer<C>: Pending<Bound = C::Bound>,
{
    type Buffer = L::Buffer<C>;

    fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    fn any(&mut self, control: &ControlState) -> Result<Any<Self::Buffer>, AuditError> {
        let instance = self.instance;
        let corrupt = || AuditError::Corrupt(Corrupt("a control state does not fit the program"));
        let threads = &instance.threads;
        let mut located = control.locations.iter().zip(threads);
        if control.locations.len() != threads.len()
            || control.buffers.len() != threads.len()
            || control.holder.is_some_and(|h| h.index() >= threads.len())
            || located.any(|(l, t)| l.index() >= t.locations.len())
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
        for (pending, bound) in control.buffers.iter().zip(&self.bounds) {
            let mut values = Vec::new();
            for (_, cell) in &pending.entries {
                let ty = instance.cells.get(cell.index()).ok_or_else(corrupt)?.ty;
                values.push(variable(ty));
            }
            buffers.push(Pending::read(pending, *bound, values).ok_or_else(corrupt)?);
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

    fn ways_of(
        &mut self,
        state: &State<Self::Buffer>,
        t: ThreadId,
    ) -> Result<Vec<Way<Self::Buffer>>, AuditError> {
        let mut ways = Vec::new();
        if self.rules.may_act(state, t) {
            for &s in self.instance.thread(t).outgoing(state.locations[t.index()]) {
                self.step(state, t, s, &mut ways)?;
            }
            self.drains(state, t, &mut ways)?;
        }
        Ok(ways)
    }

    fn target(
        &mut self,
        state: &State<Self::Buffer>,
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

    fn looked_at(&self, state: &State<Self::Buffer>, only_final: bool) -> bool {
        self.rules.inside_atomic(state).is_none() && (!only_final || self.rules.is_final(state))
    }
}

/// The predicate in the state.
pub fn predicate<B: Pending>(state: &State<B>, p: &Predicate) -> Result<Formula, AuditError> {
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
                buffer.view(*which, *c).cloned()
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

/// The finite part of the state, as certificates list it.
pub fn control<B: Pending>(state: &State<B>) -> ControlState {
    ControlState {
        locations: state.locations.clone(),
        buffers: state.buffers.iter().map(Pending::written).collect(),
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
fn numbers<B: Pending>(d: &mut Symbols, mut state: State<B>) -> State<B> {
    let registers = state.registers.iter_mut().flatten();
    for value in registers.chain(&mut state.memory) {
        *value = Value::Number(d.term(value.clone()));
    }
    for buffer in &mut state.buffers {
        buffer.for_each(&mut |v| *v = Value::Number(d.term(v.clone())));
    }
    state
}

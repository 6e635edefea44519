//! The rules of the reference machine on terms instead of numbers.
//!
//! A state holds a term for every register, cell and pending store. An event leads to states under
//! conditions; what an expression needs besides (the value of a comparison, of `?:`) is a fresh
//! variable with its definition among the conditions.

use super::super::AuditError;
use super::buffer::{Buffer, Keep};
use super::ranges::Ranges;
use crate::certificate::{ControlState, Corrupt, Inductive, Predicate, Quantity};
use wattle_logic::{Formula, Int, Term, Var, and, divides, eq, ge, le, lt, ne, not, or};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::instance::{Address, Fact};
use wattle_model::{
    CellId, Expr, Fence, Instance, LocationId, Op1, Op2, RegisterId, StepId, ThreadId, Type,
};

#[derive(Clone, Debug)]
pub struct State {
    pub locations: Vec<LocationId>,
    pub registers: Vec<Vec<Term>>,
    pub memory: Vec<Term>,
    pub buffers: Vec<Buffer>,
    pub holder: Option<ThreadId>,
}

/// What an event leads to, and when.
pub struct Way {
    pub what: String,
    pub when: Vec<Formula>,
    /// `None` is a fault.
    pub to: Option<State>,
}

pub struct Machine<'i> {
    pub instance: &'i Instance,
    pub model: MemoryModel,
    /// How the thread's buffer is kept small, if it is.
    keeps: Vec<Option<Keep>>,
    pub ranges: Ranges,
    next: u32,
}

/// Expressions this deep are refused rather than followed.
const MAX_DEPTH: usize = 256;

impl<'i> Machine<'i> {
    pub fn new(
        instance: &'i Instance,
        model: MemoryModel,
        certificate: &Inductive,
    ) -> Result<Self, AuditError> {
        let threads = instance.threads.len();
        let keeps = match &certificate.blur {
            None => vec![None; threads],
            Some(blur) => Keep::all(blur, threads, instance.cells.len())?,
        };
        Ok(Machine {
            instance,
            model,
            keeps,
            ranges: Ranges::new(instance, &certificate.ranges)?,
            next: 0,
        })
    }

    fn fresh(&mut self) -> Var {
        self.next += 1;
        Var(self.next)
    }

    /// The control state with a variable for everything, and what the types say about them.
    pub fn any(&mut self, control: &ControlState) -> Result<(State, Vec<Formula>), AuditError> {
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
        let mut known = Vec::new();
        let mut variable = |this: &mut Self, ty: Type| {
            let term = Term::from(this.fresh());
            known.push(admitted(ty, &term));
            term
        };
        let mut memory = Vec::new();
        for c in &instance.cells {
            memory.push(variable(self, c.ty));
        }
        let mut registers = Vec::new();
        for t in threads {
            let row = t.registers.iter().map(|r| variable(self, r.ty));
            registers.push(row.collect());
        }
        let mut buffers = Vec::new();
        for (pending, keep) in control.buffers.iter().zip(self.keeps.clone()) {
            let mut values = Vec::new();
            for (_, cell) in &pending.entries {
                let ty = instance.cells.get(cell.index()).ok_or_else(corrupt)?.ty;
                values.push(variable(self, ty));
            }
            let buffer = Buffer::read(self.model, pending, keep.as_ref(), values);
            let buffer = buffer.ok_or_else(corrupt)?;
            if self.model == MemoryModel::Sc && !buffer.is_empty() {
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
        Ok((state, known))
    }

    pub fn alone(&self, state: &State) -> Option<ThreadId> {
        let mut threads = self.instance.thread_ids();
        threads.find(|t| self.instance.thread(*t).atomic[state.locations[t.index()].index()])
    }

    /// Everything that can happen in the state.
    pub fn ways(&mut self, state: &State) -> Result<Vec<Way>, AuditError> {
        let mut ways = Vec::new();
        let alone = self.alone(state);
        let instance = self.instance;
        for t in instance.thread_ids() {
            if alone.is_some_and(|a| a != t) {
                continue;
            }
            for &s in instance.thread(t).outgoing(state.locations[t.index()]) {
                self.step(state, t, s, &mut ways)?;
            }
            if alone.is_none() && state.holder.is_none_or(|h| h == t) {
                let what = format!("a drain of {}", instance.thread(t).name);
                let any = Term::from(self.fresh());
                let keep = self.keeps[t.index()].as_ref();
                for drain in state.buffers[t.index()].drains(keep, &any) {
                    let mut to = state.clone();
                    let mut when = drain.when;
                    // Whatever is pending was an entry when it was stored, let through by the
                    // cell's type and shown to lie in its range.
                    when.push(admitted(instance.cell(drain.cell).ty, &drain.value));
                    when.push(self.ranges.of_cell(drain.cell, &drain.value));
                    to.memory[drain.cell.index()] = drain.value;
                    to.buffers[t.index()] = drain.rest;
                    let what = what.clone();
                    let to = Some(to);
                    ways.push(Way { what, when, to });
                }
            }
        }
        Ok(ways)
    }

    fn step(
        &mut self,
        state: &State,
        t: ThreadId,
        s: StepId,
        ways: &mut Vec<Way>,
    ) -> Result<(), AuditError> {
        let thread = self.instance.thread(t);
        let step = thread.step(s);
        let me = t.index();
        let empty = state.buffers[me].is_empty();
        let may_access = state.holder.is_none_or(|h| h == t);
        let what = format!("step {s} of {}", thread.name);
        let mut to = state.clone();
        to.locations[me] = step.target;
        let mut add = |when: Vec<Formula>, to: Option<State>| {
            let what = what.clone();
            ways.push(Way { what, when, to });
        };
        let leaf = |r: &RegisterId| Ok(state.registers[me][r.index()].clone());
        let mut when = Vec::new();
        match &step.action {
            Action::Skip | Action::AtomicEnd => add(when, Some(to)),
            Action::Fence(Fence::Store) => {
                to.buffers[me].store_fence(self.model);
                add(when, Some(to));
            }
            Action::Fence(Fence::Full) => {
                if empty {
                    add(when, Some(to));
                }
            }
            Action::AtomicBegin => {
                if empty && may_access {
                    add(when, Some(to));
                }
            }
            Action::Lock => {
                if empty && state.holder.is_none() {
                    to.holder = Some(t);
                    add(when, Some(to));
                }
            }
            Action::Unlock => {
                if empty && state.holder == Some(t) {
                    to.holder = None;
                    add(when, Some(to));
                }
            }
            Action::Assume(e) => {
                let holds = self.truth(e, &leaf, &mut when, 0)?;
                when.push(holds);
                add(when, Some(to));
            }
            Action::Assert { condition, .. } => {
                let holds = self.truth(condition, &leaf, &mut when, 0)?;
                let mut fails = when.clone();
                fails.push(not(&holds));
                add(fails, None);
                when.push(holds);
                add(when, Some(to));
            }
            Action::Assign { register, value } => {
                let value = self.value(value, &leaf, &mut when, 0)?;
                let fits = admitted(thread.registers[register.index()].ty, &value);
                to.registers[me][register.index()] = value;
                both(when, fits, to, &mut add);
            }
            Action::Havoc { register, range } => {
                let ty = thread.registers[register.index()].ty;
                let Some((lo, hi)) = range.or(ty.bounds()) else {
                    let why = "a choice among infinitely many values";
                    return Err(AuditError::Refused(why.into()));
                };
                let value = Term::from(self.fresh());
                when.push(ge(value.clone(), lo));
                when.push(le(value.clone(), hi));
                let fits = admitted(ty, &value);
                to.registers[me][register.index()] = value;
                both(when, fits, to, &mut add);
            }
            Action::Load { .. } if !may_access => {}
            Action::Load { register, place } => {
                let (cells, outside) = self.cells(place, &leaf, &mut when)?;
                add([when.clone(), vec![outside]].concat(), None);
                for (here, cell) in cells {
                    let mut to = to.clone();
                    let pending = state.buffers[me].newest(cell);
                    let value = pending.unwrap_or_else(|| state.memory[cell.index()].clone());
                    let fits = admitted(thread.registers[register.index()].ty, &value);
                    to.registers[me][register.index()] = value;
                    both([when.clone(), vec![here]].concat(), fits, to, &mut add);
                }
            }
            Action::Store { place, value } => {
                let direct = self.model == MemoryModel::Sc;
                if direct && !may_access {
                    return Ok(());
                }
                let (cells, outside) = self.cells(place, &leaf, &mut when)?;
                add([when.clone(), vec![outside]].concat(), None);
                let value = self.value(value, &leaf, &mut when, 0)?;
                for (here, cell) in cells {
                    let mut to = to.clone();
                    let fits = admitted(self.instance.cell(cell).ty, &value);
                    let when = [when.clone(), vec![here]].concat();
                    if direct || thread.atomic[step.source.index()] {
                        to.memory[cell.index()] = value.clone();
                        both(when, fits, to, &mut add);
                        continue;
                    }
                    add([when.clone(), vec![not(&fits)]].concat(), None);
                    let keep = self.keeps[me].as_ref();
                    let ways = state.buffers[me].put(self.model, keep, (cell, value.clone()));
                    for (small, buffer) in ways {
                        let mut to = to.clone();
                        to.buffers[me] = buffer;
                        let fits = vec![fits.clone()];
                        add([when.clone(), small, fits].concat(), Some(to));
                    }
                }
            }
        }
        Ok(())
    }

    /// The cells an address may mean, and when it means none.
    fn cells(
        &mut self,
        place: &Address,
        leaf: &dyn Fn(&RegisterId) -> Result<Term, AuditError>,
        when: &mut Vec<Formula>,
    ) -> Result<(Vec<(Formula, CellId)>, Formula), AuditError> {
        match place {
            Address::Cell(c) => Ok((vec![(Formula::True, *c)], Formula::False)),
            Address::Computed {
                base,
                length,
                index,
            } => {
                let index = self.value(index, leaf, when, 0)?;
                let one = |i: u32| (eq(index.clone(), i64::from(i)), CellId(base.0 + i));
                let outside = or([lt(index.clone(), 0), ge(index.clone(), i64::from(*length))]);
                Ok(((0..*length).map(one).collect(), outside))
            }
        }
    }

    /// The question's target in the state.
    pub fn target(
        &mut self,
        state: &State,
        target: &Expr<Fact>,
        when: &mut Vec<Formula>,
    ) -> Result<Formula, AuditError> {
        let leaf = |fact: &Fact| match fact {
            Fact::Cell(c) => Ok(state.memory[c.index()].clone()),
            Fact::Register(t, r) => Ok(state.registers[t.index()][r.index()].clone()),
            Fact::At(t, at) => {
                let here = at.contains(&state.locations[t.index()]);
                Ok(Term::constant(i64::from(here)))
            }
            Fact::CellAt {
                base,
                length,
                index,
            } => match index.as_const().map(u32::try_from) {
                Some(Ok(i)) if i < *length => Ok(state.memory[base.index() + i as usize].clone()),
                _ => Err(AuditError::Refused("the property computes an index".into())),
            },
        };
        self.truth(target, &leaf, when, 0)
    }

    fn truth<A>(
        &mut self,
        e: &Expr<A>,
        leaf: &dyn Fn(&A) -> Result<Term, AuditError>,
        when: &mut Vec<Formula>,
        depth: usize,
    ) -> Result<Formula, AuditError> {
        let deeper = depth + 1;
        Ok(match e {
            Expr::Unary(Op1::Not, a) => not(&self.truth(a, leaf, when, deeper)?),
            Expr::Binary(op, a, b) if matches!(op, Op2::And | Op2::Or) => {
                let a = self.truth(a, leaf, when, deeper)?;
                let b = self.truth(b, leaf, when, deeper)?;
                if *op == Op2::And {
                    and([a, b])
                } else {
                    or([a, b])
                }
            }
            Expr::Binary(op, a, b) if op.is_logical() => {
                let a = self.value(a, leaf, when, deeper)?;
                let b = self.value(b, leaf, when, deeper)?;
                match op {
                    Op2::Eq => eq(a, b),
                    Op2::Ne => ne(a, b),
                    Op2::Lt => lt(a, b),
                    Op2::Le => le(a, b),
                    Op2::Gt => lt(b, a),
                    _ => le(b, a),
                }
            }
            e => ne(self.value(e, leaf, when, deeper)?, 0),
        })
    }

    fn value<A>(
        &mut self,
        e: &Expr<A>,
        leaf: &dyn Fn(&A) -> Result<Term, AuditError>,
        when: &mut Vec<Formula>,
        depth: usize,
    ) -> Result<Term, AuditError> {
        let refused = |why: &str| AuditError::Refused(why.into());
        if depth > MAX_DEPTH {
            return Err(refused("an expression is nested too deeply"));
        }
        let deeper = depth + 1;
        Ok(match e {
            Expr::Const(c) => Term::constant(*c),
            Expr::Atom(a) => leaf(a)?,
            Expr::Unary(Op1::Neg, a) => -self.value(a, leaf, when, deeper)?,
            Expr::Unary(Op1::BitNot, a) => -self.value(a, leaf, when, deeper)? - 1,
            Expr::Unary(Op1::Wrap { .. }, _) => return Err(refused("wrap-around is not linear")),
            Expr::Binary(op, a, b) if !op.is_logical() => {
                let a = self.value(a, leaf, when, deeper)?;
                let b = self.value(b, leaf, when, deeper)?;
                match (op, a.as_constant(), b.as_constant()) {
                    (Op2::Add, ..) => a + b,
                    (Op2::Sub, ..) => a - b,
                    (Op2::Mul, Some(k), _) => b.scaled(k),
                    (Op2::Mul, _, Some(k)) => a.scaled(k),
                    (Op2::Rem, None, Some(m)) if m > &Int::ONE => self.remainder(&a, m, when),
                    (_, Some(a), Some(b)) => match (a.to_i64(), b.to_i64()) {
                        (Some(a), Some(b)) => match op.apply(a, b) {
                            Ok(v) => Term::constant(v),
                            Err(e) => return Err(AuditError::Refused(e.to_string())),
                        },
                        _ => return Err(refused("a constant is too large")),
                    },
                    _ => return Err(refused("an operator is not linear")),
                }
            }
            Expr::Ite(c, a, b) => {
                let c = self.truth(c, leaf, when, deeper)?;
                let a = self.value(a, leaf, when, deeper)?;
                let b = self.value(b, leaf, when, deeper)?;
                self.defined(&c, a, b, when)
            }
            e => {
                let c = self.truth(e, leaf, when, deeper)?;
                self.defined(&c, Term::constant(1), Term::constant(0), when)
            }
        })
    }

    /// The remainder by `m`, with the sign of the dividend: `a = m·q + r`.
    fn remainder(&mut self, a: &Term, m: &Int, when: &mut Vec<Formula>) -> Term {
        let (q, r) = (self.fresh(), self.fresh());
        when.push(eq(a.clone(), Term::monomial(m.clone(), q) + Term::from(r)));
        when.push(or([
            and([ge(a.clone(), 0), ge(r, 0), lt(r, m.clone())]),
            and([lt(a.clone(), 0), le(r, 0), lt(-Term::from(r), m.clone())]),
        ]));
        Term::from(r)
    }

    /// A variable that is `a` where `c` holds, else `b`.
    fn defined(&mut self, c: &Formula, a: Term, b: Term, when: &mut Vec<Formula>) -> Term {
        let v = self.fresh();
        when.push(or([and([c.clone(), eq(v, a)]), and([not(c), eq(v, b)])]));
        Term::from(v)
    }

    /// The predicate in the state.
    pub fn predicate(&self, state: &State, p: &Predicate) -> Result<Formula, AuditError> {
        use crate::certificate::Comparison;
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
                    let entries = buffer.entries();
                    entries.get(*i as usize).map(|(_, _, v)| (*v).clone())
                }
            };
            sum = sum + term.ok_or_else(corrupt)?.scaled(&Int::from(*k));
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
pub fn control(state: &State) -> ControlState {
    ControlState {
        locations: state.locations.clone(),
        buffers: state.buffers.iter().map(Buffer::written).collect(),
        holder: state.holder,
    }
}

pub fn admitted(ty: Type, value: &Term) -> Formula {
    match ty.bounds() {
        Some((lo, hi)) => and([ge(value.clone(), lo), le(value.clone(), hi)]),
        None => Formula::True,
    }
}

fn both(
    when: Vec<Formula>,
    fits: Formula,
    to: State,
    add: &mut dyn FnMut(Vec<Formula>, Option<State>),
) {
    add([when.clone(), vec![not(&fits)]].concat(), None);
    add([when, vec![fits]].concat(), Some(to));
}

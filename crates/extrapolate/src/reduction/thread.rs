//! One thread of the reduced program, step by step.

use super::{Cells, OVERFLOW, Unreduced, place, unique};
use wattle_model::graph::{Action, Location, Section};
use wattle_model::instance::{Address, Initial, Instance, Thread};
use wattle_model::program::{Action as Written, Register, Step};
use wattle_model::{CellId, Expr, Init, Local, LocationId, Op2, RegisterId, Span, ThreadId, Type};

pub type Value = Expr<Local>;

pub fn local(e: &Expr<RegisterId>) -> Value {
    let mapped: Result<Value, std::convert::Infallible> =
        e.substitute(&mut |r| Ok(Expr::Atom(Local::Register(*r))));
    match mapped {
        Ok(e) => e,
        Err(never) => match never {},
    }
}

pub fn read(register: RegisterId) -> Value {
    Expr::Atom(Local::Register(register))
}

pub fn binary(op: Op2, a: Value, b: impl Into<Number>) -> Value {
    Expr::binary(op, a, b.into().0)
}

/// A value, or a number as one.
pub struct Number(Value);

impl From<i64> for Number {
    fn from(n: i64) -> Self {
        Number(Expr::Const(n))
    }
}

impl From<Value> for Number {
    fn from(v: Value) -> Self {
        Number(v)
    }
}

/// The conditions joined; with none, the truth value that changes nothing.
pub fn joined(op: Op2, all: impl IntoIterator<Item = Value>) -> Value {
    let none = Expr::Const(i64::from(op == Op2::And));
    let all = all.into_iter();
    all.reduce(|a, b| Expr::binary(op, a, b)).unwrap_or(none)
}

pub struct Maker<'m> {
    pub instance: &'m Instance,
    pub original: &'m Thread,
    pub regions: &'m [Cells],
    pub registers: Vec<Register>,
    pub locations: Vec<Location>,
    pub steps: Vec<Step>,
    pub overflow: Option<RegisterId>,
    /// A register for a value on its way into a buffer, per type.
    scratch: Vec<(Type, RegisterId)>,
}

impl<'m> Maker<'m> {
    pub fn new(instance: &'m Instance, t: ThreadId, regions: &'m [Cells]) -> Self {
        let original = instance.thread(t);
        let registers = original.registers.iter().map(|r| Register {
            name: r.name.clone(),
            ty: r.ty,
            init: match r.init {
                Initial::Value(v) => Init::All(Expr::Const(v)),
                Initial::Any => Init::Any,
            },
            span: Span::NONE,
        });
        let locations = original.locations.iter().map(|l| Location {
            labels: l.labels.clone(),
            span: Span::NONE,
        });
        Maker {
            instance,
            original,
            regions,
            registers: registers.collect(),
            locations: locations.collect(),
            steps: Vec::new(),
            overflow: None,
            scratch: Vec::new(),
        }
    }

    pub fn register(&mut self, name: &str, ty: Type) -> RegisterId {
        let taken = |n: &str| self.registers.iter().any(|r| r.name == n);
        let name = unique(name, taken);
        let id = RegisterId::new(self.registers.len());
        self.registers.push(Register {
            name,
            ty,
            init: Init::default(),
            span: Span::NONE,
        });
        id
    }

    /// A location that looks like the given one.
    pub fn beside(&mut self, location: LocationId) -> LocationId {
        let id = LocationId::new(self.locations.len());
        self.locations.push(Location {
            labels: self.locations[location.index()].labels.clone(),
            span: Span::NONE,
        });
        id
    }

    pub fn step(&mut self, source: LocationId, action: Written, target: LocationId) {
        self.steps.push(Step {
            source,
            target,
            action,
            span: Span::NONE,
        });
    }

    /// One step after the other; those in between look like the source.
    pub fn steps(&mut self, source: LocationId, actions: Vec<Written>, target: LocationId) {
        let mut at = source;
        let count = actions.len();
        for (n, action) in actions.into_iter().enumerate() {
            let next = match n + 1 == count {
                true => target,
                false => self.beside(source),
            };
            self.step(at, action, next);
            at = next;
        }
    }

    /// The step as it is.
    pub fn keep(&mut self, step: &wattle_model::instance::Step) {
        let action = match &step.action {
            Action::Skip => Action::Skip,
            Action::Assign { register, value } => assign(*register, local(value)),
            Action::Havoc { register, range } => Action::Havoc {
                register: *register,
                range: *range,
            },
            Action::Assume(e) => Action::Assume(local(e)),
            Action::Assert { condition, message } => Action::Assert {
                condition: local(condition),
                message: message.clone(),
            },
            Action::Load { register, place: p } => Action::Load {
                register: *register,
                place: place(self.regions, p),
            },
            Action::Store { place: p, value } => Action::Store {
                place: place(self.regions, p),
                value: local(value),
            },
            Action::Fence(f) => Action::Fence(*f),
            Action::AtomicBegin(section) => Action::AtomicBegin(*section),
            Action::AtomicEnd => Action::AtomicEnd,
            Action::Lock => Action::Lock,
            Action::Unlock => Action::Unlock,
        };
        self.step(step.source, action, step.target);
    }

    pub fn unchanged(&mut self) {
        for step in &self.original.steps {
            self.keep(step);
        }
    }

    /// Steps that wait for an empty buffer do so by an assumption; says whether this was one.
    pub fn waits(&mut self, step: &wattle_model::instance::Step, empty: &Value) -> bool {
        let wait = Action::Assume(empty.clone());
        let (source, target) = (step.source, step.target);
        match &step.action {
            Action::Fence(wattle_model::Fence::Full) => self.step(source, wait, target),
            Action::Fence(wattle_model::Fence::Store) => self.step(source, Action::Skip, target),
            Action::AtomicBegin(Section::Buffered) => {
                self.step(source, Action::AtomicBegin(Section::Buffered), target);
            }
            Action::AtomicBegin(Section::Drained) => {
                let begin = Action::AtomicBegin(Section::Drained);
                self.steps(source, vec![begin, wait], target);
            }
            Action::Lock => self.steps(source, vec![wait, Action::Lock], target),
            Action::Unlock => self.steps(source, vec![wait, Action::Unlock], target),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::AtomicEnd => return false,
        }
        true
    }

    /// A drain is a branch wherever the thread may be found, and also inside a section that keeps its stores
    /// buffered, where nobody else comes between anyway.
    pub fn drains(&mut self, pending: &Value, drain: &[Written]) {
        for l in 0..self.original.locations.len() {
            let location = LocationId::new(l);
            let mut actions = vec![Action::Assume(pending.clone())];
            match (self.original.atomic[l], self.original.direct[l]) {
                (true, true) => continue,
                (true, false) => actions.extend_from_slice(drain),
                (false, _) => {
                    actions.push(Action::AtomicBegin(Section::Drained));
                    actions.extend_from_slice(drain);
                    actions.push(Action::AtomicEnd);
                }
            }
            self.steps(location, actions, location);
        }
    }

    /// Where no step leaves, the thread has ended when its buffer is empty too.
    pub fn ends(&mut self, empty: &Value) {
        for l in 0..self.original.locations.len() {
            let location = LocationId::new(l);
            if self.original.ended(location) {
                let end = self.beside(location);
                self.step(location, Action::Assume(empty.clone()), end);
            }
        }
    }

    /// Evaluates what is stored, and where: a fault comes here and not when the entry drains.
    pub fn evaluated(
        &mut self,
        address: &Address,
        value: &Expr<RegisterId>,
    ) -> Result<(RegisterId, Vec<Written>), Unreduced> {
        let ty = self.type_of(address)?;
        let register = match self.scratch.iter().find(|(t, _)| *t == ty) {
            Some((_, r)) => *r,
            None => {
                let r = self.register("stored", ty);
                self.scratch.push((ty, r));
                r
            }
        };
        let mut actions = vec![assign(register, local(value))];
        if let Address::Computed { length, index, .. } = address {
            let index = local(index);
            let inside = [
                binary(Op2::Ge, index.clone(), 0),
                binary(Op2::Lt, index, i64::from(*length)),
            ];
            actions.push(Action::Assert {
                condition: joined(Op2::And, inside),
                message: Some("an index outside its array".into()),
            });
        }
        Ok((register, actions))
    }

    fn type_of(&self, address: &Address) -> Result<Type, Unreduced> {
        let mut types = cells(address).map(|c| self.instance.cell(c).ty);
        let first = types.next().unwrap_or(Type::Int);
        if types.any(|t| t != first) {
            return Err(Unreduced(format!(
                "`{}` stores to an address that may mean cells of different types; give them one \
                 type, or store to a named variable",
                self.original.name
            )));
        }
        Ok(first)
    }

    /// What a store into a full buffer does. No property looks inside a section: it is left first.
    pub fn overflows(&mut self, location: LocationId, full: Value, in_section: bool) {
        let register = match self.overflow {
            Some(r) => r,
            None => {
                let r = self.register(OVERFLOW, Type::BOOL);
                self.overflow = Some(r);
                r
            }
        };
        let stop = self.beside(location);
        let set = assign(register, Expr::Const(1));
        let mut actions = vec![Action::Assume(full), set];
        actions.extend(in_section.then_some(Action::AtomicEnd));
        self.steps(location, actions, stop);
        // Not an end: nothing is final after an overflow.
        self.step(stop, Action::Skip, stop);
    }
}

/// The cells an address may mean.
pub fn cells(address: &Address) -> impl Iterator<Item = CellId> + use<> {
    let (base, length) = match address {
        Address::Cell(c) => (c.0, 1),
        Address::Computed { base, length, .. } => (base.0, *length),
    };
    (base..base + length).map(CellId)
}

pub fn assign(register: RegisterId, value: Value) -> Written {
    Action::Assign { register, value }
}

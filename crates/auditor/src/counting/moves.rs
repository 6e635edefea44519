//! What threads at a place can do, by the rules over symbols.

use super::super::AuditError;
use super::super::inductive::machine::{
    Any, Machine, Pending, Runs, State, control as control_of, number, predicate,
};
use super::super::symbols::Value;
use wattle_evidence::certificate::counting::Place;
use wattle_evidence::certificate::{ControlState, Corrupt, PendingStores, Predicate, Quantity};
use wattle_evidence::control::Control;
use wattle_logic::{Formula, Term, Var, and, ge, not};
use wattle_memory::{Exact, Layout};
use wattle_model::graph::{Action, Section};
use wattle_model::instance::{Address, Initial, Step, Thread};
use wattle_model::{CellId, CountedCrowd, Crowd, Instance, LocationId, RegisterId, ThreadId, Type};

/// An event of a thread at a place, and when it is possible.
pub struct Move {
    pub what: String,
    pub place: usize,
    pub when: Vec<Formula>,
    /// The thread's own and memory, before.
    pub own: Own,
    pub cells: Vec<Term>,
    /// `None` is a fault.
    pub landing: Option<Landing>,
}

/// What only the thread itself has.
#[derive(Clone)]
pub struct Own {
    pub registers: Vec<Term>,
    /// Of its pending stores.
    pub values: Vec<Term>,
}

/// Where a thread comes to, and memory then.
#[derive(Clone)]
pub struct Landing {
    pub role: ThreadId,
    pub location: LocationId,
    pub pending: PendingStores,
    pub own: Own,
    pub cells: Vec<Term>,
    /// The places there, and when it is the one.
    pub fits: Vec<(usize, Formula)>,
}

/// The initial states, as far as one role is concerned.
pub struct Start {
    pub when: Vec<Formula>,
    pub cells: Vec<Term>,
    /// Where threads may be at first.
    pub occupied: Vec<bool>,
    /// Whether one starts where there is no place for it.
    pub nowhere: (Vec<Formula>, Landing),
}

/// Refuses what the argument does not treat.
pub fn treated(crowd: &Crowd) -> Result<(), AuditError> {
    let refused = |why: &str| Err(AuditError::Refused(why.into()));
    let instance = &crowd.instance;
    for step in instance.threads.iter().flat_map(|t| &t.steps) {
        match step.action {
            Action::Lock | Action::Unlock => return refused("`lock` is not counted"),
            Action::AtomicBegin(Section::Buffered) => {
                return refused("an atomic section that keeps its stores buffered is not counted");
            }
            Action::AtomicBegin(Section::Drained)
            | Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicEnd => {}
        }
    }
    let cells = instance.cells.iter().map(|c| (c.ty, c.init));
    let registers = instance.threads.iter().flat_map(|t| &t.registers);
    for (ty, init) in cells.chain(registers.map(|r| (r.ty, r.init))) {
        let fits = match init {
            Initial::Value(v) => ty.admit(v) == Some(v),
            Initial::Any => true,
        };
        if matches!(ty, Type::Thread(_)) || !fits {
            return refused("an initial value outside its type");
        }
    }
    Ok(())
}

/// What wraps around in the program, and is a fault here that nobody minds.
#[derive(Default)]
pub struct Wraps {
    cells: Vec<bool>,
    registers: Vec<Vec<bool>>,
}

impl Wraps {
    pub fn of(instance: &Instance) -> Wraps {
        let wraps = |ty: &Type| matches!(ty, Type::Wrap { .. });
        let threads = instance.threads.iter();
        let of_thread = |t: &Thread| t.registers.iter().map(|r| wraps(&r.ty)).collect();
        Wraps {
            cells: instance.cells.iter().map(|c| wraps(&c.ty)).collect(),
            registers: threads.map(of_thread).collect(),
        }
    }

    /// Whether what the step writes would wrap around instead of being outside its range.
    fn by(&self, thread: usize, step: &Step) -> bool {
        let register = |r: RegisterId| {
            let of_thread = self.registers.get(thread);
            of_thread.and_then(|t| t.get(r.index())).copied()
        };
        let wraps = match &step.action {
            Action::Assign { register: r, .. }
            | Action::Havoc { register: r, .. }
            | Action::Load { register: r, .. } => register(*r),
            Action::Store { place, .. } => match place {
                Address::Cell(c) => self.cells.get(c.index()).copied(),
                // Which cell it is does not matter if all are of this kind.
                Address::Computed { base, length, .. } => {
                    let all = base.index()..base.index() + *length as usize;
                    self.cells.get(all).map(|all| all.iter().all(|w| *w))
                }
            },
            Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => None,
        };
        wraps == Some(true)
    }
}

/// An atomic block with a longer way through it is refused.
const LONGEST_BLOCK: usize = 64;

/// What is pending of a thread.
pub type Buffer<L> = <L as Layout>::Buffer<Exact<Value>>;

pub struct Symbolic<'a, L: Layout> {
    pub crowd: &'a Crowd,
    pub machine: Machine<'a, L, Exact<Value>>,
    wraps: Wraps,
    pub places: &'a [Place],
    pub counts: Vec<Var>,
    /// Registers that hold how many threads play a role.
    numbers: &'a [(usize, RegisterId, usize)],
    /// Cells that begin with how many.
    begins: &'a [(CellId, usize)],
    pub control: &'a Control<'a>,
}

pub fn corrupt() -> AuditError {
    AuditError::Corrupt(Corrupt("a place that the program does not have"))
}

impl<'a, L: Layout> Symbolic<'a, L>
where
    Buffer<L>: Pending<Bound = ()>,
{
    pub fn new(
        counted: &'a CountedCrowd,
        wraps: Wraps,
        places: &'a [Place],
        control: &'a Control<'a>,
    ) -> Result<Self, AuditError> {
        let (crowd, numbers) = (&counted.crowd, counted.numbers.as_slice());
        let instance = &crowd.instance;
        for place in places {
            let role = place.role.index();
            let thread = instance.threads.get(role).ok_or_else(corrupt)?;
            let inside = thread.atomic.get(place.location.index());
            if crowd.roles.of(role) != role || inside != Some(&false) {
                return Err(corrupt());
            }
            let own = |q: &Quantity| match q {
                Quantity::Register(t, _) | Quantity::Entry(t, _) => *t == place.role,
                Quantity::Cell(_) | Quantity::View(..) => false,
            };
            let mut spoken = place.when.iter().flat_map(|p| &p.sum);
            if !spoken.all(|(_, q)| own(q)) {
                return Err(corrupt());
            }
        }
        let bounds = vec![(); instance.threads.len()];
        let mut machine = Machine::new(instance, bounds, &[])?;
        let counts = places.iter().map(|_| machine.fresh()).collect();
        Ok(Symbolic {
            crowd,
            machine,
            wraps,
            places,
            counts,
            numbers,
            begins: &counted.cells,
            control,
        })
    }

    /// Threads at these places, the others at their entries; and what is known of them.
    pub fn state(&mut self, at: &[(usize, usize)]) -> Result<Any<Buffer<L>>, AuditError> {
        let threads = &self.crowd.instance.threads;
        let mut first = ControlState {
            locations: threads.iter().map(|t| t.entry).collect(),
            buffers: vec![PendingStores::default(); threads.len()],
            holder: None,
        };
        for (t, p) in at {
            first.locations[*t] = self.places[*p].location;
            first.buffers[*t] = self.places[*p].pending.clone();
        }
        let (mut state, mut known) = self.machine.any(&first)?;
        if control_of(&state) != first {
            return Err(corrupt());
        }
        for (t, register, role) in self.numbers {
            state.registers[*t][register.index()] = Value::Number(self.threads(*role));
        }
        for (t, p) in at {
            known.push(self.is_at(&state, *t, *p)?);
        }
        Ok((state, known))
    }

    /// How many threads play the role.
    fn threads(&self, role: usize) -> Term {
        let all = self.places.iter().zip(&self.counts);
        let there = all.filter(|(p, _)| p.role.index() == role);
        there.fold(Term::constant(0), |sum, (_, n)| sum + Term::from(*n))
    }

    /// When the place's conditions hold of the thread.
    fn fits(&self, state: &State<Buffer<L>>, t: usize, p: usize) -> Result<Formula, AuditError> {
        let of_thread = |q: &Quantity| match q {
            Quantity::Register(_, r) => Quantity::Register(ThreadId::new(t), *r),
            Quantity::Entry(_, i) => Quantity::Entry(ThreadId::new(t), *i),
            Quantity::Cell(_) | Quantity::View(..) => *q,
        };
        let mut all = Vec::new();
        for place in &self.places[p].when {
            let sum = place.sum.iter();
            let own = Predicate {
                sum: sum.map(|(k, q)| (*k, of_thread(q))).collect(),
                ..place.clone()
            };
            all.push(predicate(state, &own)?);
        }
        Ok(and(all))
    }

    /// When the place is the first that fits the thread.
    fn is_at(&self, state: &State<Buffer<L>>, t: usize, p: usize) -> Result<Formula, AuditError> {
        let here = &self.places[p];
        let mut all = vec![self.fits(state, t, p)?];
        for (q, other) in self.places[..p].iter().enumerate() {
            let same = (other.role, other.location, &other.pending)
                == (here.role, here.location, &here.pending);
            if same {
                all.push(not(&self.fits(state, t, q)?));
            }
        }
        Ok(and(all))
    }

    pub fn own(&self, state: &State<Buffer<L>>, t: usize) -> Result<Own, AuditError> {
        let mut values = Vec::new();
        for (_, _, v) in state.buffers[t].listed() {
            values.push(number(v)?.clone());
        }
        Ok(Own {
            registers: terms(&state.registers[t])?,
            values,
        })
    }

    /// For each place any thread there, with variables of its own, and what makes it be there.
    pub fn others(&mut self) -> Result<Vec<(Formula, Own)>, AuditError> {
        let mut all = Vec::new();
        for p in 0..self.places.len() {
            let t = self.places[p].role.index();
            let (state, known) = self.state(&[(t, p)])?;
            all.push((and(known), self.own(&state, t)?));
        }
        Ok(all)
    }

    fn landing(&self, state: &State<Buffer<L>>, t: usize) -> Result<Landing, AuditError> {
        let role = ThreadId::new(self.crowd.roles.of(t));
        let location = state.locations[t];
        let pending = control_of(state).buffers[t].clone();
        let mut fits = Vec::new();
        for (p, place) in self.places.iter().enumerate() {
            if (place.role, place.location, &place.pending) == (role, location, &pending) {
                fits.push((p, self.is_at(state, t, p)?));
            }
        }
        Ok(Landing {
            role,
            location,
            pending,
            own: self.own(state, t)?,
            cells: terms(&state.memory)?,
            fits,
        })
    }

    /// The initial states: one entry for each role, each with all of memory and all places.
    pub fn starts(&mut self) -> Result<Vec<Start>, AuditError> {
        let instance = &self.crowd.instance;
        let (mut state, when) = self.state(&[])?;
        let constant = |init: Initial| match init {
            Initial::Value(v) => Some(Term::constant(v)),
            Initial::Any => None,
        };
        for (value, cell) in state.memory.iter_mut().zip(&instance.cells) {
            if let Some(t) = constant(cell.init) {
                *value = Value::Number(t);
            }
        }
        for (cell, role) in self.begins {
            state.memory[cell.index()] = Value::Number(self.threads(*role));
        }
        for (values, thread) in state.registers.iter_mut().zip(&instance.threads) {
            for (value, register) in values.iter_mut().zip(&thread.registers) {
                if let Some(t) = constant(register.init) {
                    *value = Value::Number(t);
                }
            }
        }
        let mut occupied = vec![false; self.places.len()];
        let mut nowhere = Vec::new();
        let cells = terms(&state.memory)?;
        for role in self.crowd.roles.all() {
            let landing = self.landing(&state, role)?;
            for (p, fits) in &landing.fits {
                occupied[*p] |= *fits != Formula::False;
            }
            let mut query = when.clone();
            query.extend(landing.fits.first().map(|_| ge(self.threads(role), 1)));
            query.extend(landing.fits.iter().map(|(_, f)| not(f)));
            nowhere.push((query, landing));
        }
        let starts = nowhere.into_iter().map(|nowhere| Start {
            when: when.clone(),
            cells: cells.clone(),
            occupied: occupied.clone(),
            nowhere,
        });
        Ok(starts.collect())
    }

    pub fn moves(&mut self) -> Result<Vec<Move>, AuditError> {
        let mut all = Vec::new();
        for p in 0..self.places.len() {
            let t = self.places[p].role.index();
            let (state, known) = self.state(&[(t, p)])?;
            let known = and(known);
            if known == Formula::False {
                continue;
            }
            let (own, memory) = (self.own(&state, t)?, terms(&state.memory)?);
            let mut open = vec![(state, Vec::new(), 0)];
            while let Some((state, so_far, steps)) = open.pop() {
                self.control.go_on()?;
                if steps > LONGEST_BLOCK {
                    return Err(AuditError::Refused("a long atomic block".into()));
                }
                for way in self.machine.ways_of(&state, ThreadId::new(t))? {
                    let step = |s| self.crowd.instance.threads[t].step(s);
                    if way.outside.is_some_and(|s| self.wraps.by(t, step(s))) {
                        continue;
                    }
                    let mut when: Vec<Formula> = so_far.clone();
                    when.extend(way.when);
                    let all_of = and(known.conjuncts().iter().chain(&when).cloned());
                    if all_of == Formula::False {
                        continue;
                    }
                    let landing = match way.to {
                        None => None,
                        Some(to) if !self.machine.looked_at(&to, false) => {
                            open.push((to, when, steps + 1));
                            continue;
                        }
                        Some(to) => Some(self.landing(&to, t)?),
                    };
                    all.push(Move {
                        what: way.what,
                        place: p,
                        when: all_of.conjuncts().to_vec(),
                        own: own.clone(),
                        cells: memory.clone(),
                        landing,
                    });
                }
            }
        }
        Ok(all)
    }
}

pub fn terms(values: &[Value]) -> Result<Vec<Term>, AuditError> {
    values.iter().map(|v| Ok(number(v)?.clone())).collect()
}

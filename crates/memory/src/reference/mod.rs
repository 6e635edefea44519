//! The reference machine: a direct transcription of the rules, written to be read.
//!
//! A state is where every thread is, its registers, memory, every thread's buffer and who holds the
//! lock. An event is a step of a thread, by the rules of [`crate::rules`], or a **drain**: an entry of
//! a thread's buffer reaches memory, if the lock is free or the thread's.
//!
//! Steps and drains are generic in the domain of values; listing the events of a state, one for each
//! value of a choice, is for numbers.

mod acting;
mod facts;
pub mod in_place;
mod replay;

pub use facts::{evaluate, evaluate_in};
pub use in_place::InPlace;
pub use replay::{Chosen, ReplayError, Snapshot, choices_of, choose, replay};

use crate::content::{Content, Drained};
use crate::event::{Event, Start};
use crate::fault::Fault;
use crate::layout::{Bounds, Layout};
use crate::rules::{self, Stuck, StuckIn};
use acting::Acting;
use std::marker::PhantomData;
use wattle_model::graph::Action;
use wattle_model::instance::Initial;
use wattle_model::{Domain, Instance, LocationId, Numbers, StepId, ThreadId, Type};

/// A state of the reference machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State<B, V = i64> {
    pub locations: Vec<LocationId>,
    pub registers: Vec<Vec<V>>,
    pub memory: Vec<V>,
    pub buffers: Vec<B>,
    /// Who holds the lock.
    pub holder: Option<ThreadId>,
}

/// Nondeterministic choices wider than this are refused: one event per value would not end.
pub const MAX_CHOICE: u64 = 1 << 16;

/// Why the machine cannot run an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A register or cell that starts with, or is assigned, any of too many values.
    TooManyChoices { what: String },
    /// More initial states than anyone wants to list.
    TooManyStarts,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::TooManyChoices { what } => write!(
                f,
                "`{what}` may take any of more than {MAX_CHOICE} values; give it a smaller range"
            ),
            Refusal::TooManyStarts => write!(
                f,
                "there are more than {MAX_CHOICE} initial states; give `any` smaller ranges"
            ),
        }
    }
}

/// What one event leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<B> {
    Next(State<B>),
    Fault(Fault),
    /// A bounded content is full: the run cannot be followed further at this bound.
    Full(ThreadId),
}

pub struct Machine<'i, L: Layout, C: Content> {
    pub instance: &'i Instance,
    bounds: Vec<Bounds<C::Bound>>,
    layout: PhantomData<L>,
}

type Buffer<L, C> = <L as Layout>::Buffer<C>;
/// A state of the machine with this layout and content.
pub type StateOf<L, C> = State<Buffer<L, C>, <C as Content>::Value>;

impl<'i, L: Layout, C: Content> Machine<'i, L, C> {
    /// A machine with the same bound for every buffer.
    pub fn new(instance: &'i Instance, bound: C::Bound) -> Result<Self, Refusal> {
        let bounds = Bounds::uniform(bound, instance.cells.len());
        Self::with_bounds(instance, vec![bounds; instance.threads.len()])
    }

    /// A machine with bounds for each thread.
    pub fn with_bounds(
        instance: &'i Instance,
        bounds: Vec<Bounds<C::Bound>>,
    ) -> Result<Self, Refusal> {
        for thread in &instance.threads {
            for step in &thread.steps {
                if let Action::Havoc { register, range } = &step.action {
                    let register = &thread.registers[register.index()];
                    let (lo, hi) = choice(*range, register.ty, &register.name)?;
                    debug_assert!(lo <= hi);
                }
            }
        }
        Ok(Self::without_choices(instance, bounds))
    }

    /// A machine of which nobody asks for the events, so that wide choices are none of its business.
    pub fn without_choices(instance: &'i Instance, bounds: Vec<Bounds<C::Bound>>) -> Self {
        Machine {
            instance,
            bounds,
            layout: PhantomData,
        }
    }

    pub fn initial(&self, start: &Start<C::Value>) -> StateOf<L, C> {
        let threads = &self.instance.threads;
        State {
            locations: threads.iter().map(|t| t.entry).collect(),
            registers: start.registers.clone(),
            memory: start.memory.clone(),
            buffers: self.bounds.iter().map(L::empty::<C>).collect(),
            holder: None,
        }
    }

    /// The thread inside an atomic block, if there is one.
    pub fn inside_atomic(&self, state: &StateOf<L, C>) -> Option<ThreadId> {
        let mut threads = self.instance.thread_ids();
        threads.find(|t| self.instance.thread(*t).atomic[state.locations[t.index()].index()])
    }

    /// All threads have ended and all buffers are empty.
    pub fn is_final(&self, state: &StateOf<L, C>) -> bool {
        let mut threads = self.instance.thread_ids();
        threads.all(|t| {
            self.instance.thread(t).ended(state.locations[t.index()])
                && L::is_empty::<C>(&state.buffers[t.index()])
        })
    }

    /// Whether the thread may have an event: no other is inside an atomic block.
    pub fn may_act(&self, state: &StateOf<L, C>, t: ThreadId) -> bool {
        self.inside_atomic(state).is_none_or(|alone| alone == t)
    }

    /// Whether the thread, which may act and is at the step's source, can take it.
    pub fn enabled<D: Domain<Value = C::Value>>(
        &self,
        d: &mut D,
        state: &StateOf<L, C>,
        t: ThreadId,
        s: StepId,
    ) -> bool {
        let acting = Acting::<L, C, _>::new(self, t, s, state);
        rules::enabled(d, &acting, &self.instance.thread(t).step(s).action)
    }

    /// Takes an enabled step.
    pub fn take<D: Domain<Value = C::Value>>(
        &self,
        d: &mut D,
        state: &StateOf<L, C>,
        t: ThreadId,
        s: StepId,
        chosen: Option<C::Value>,
    ) -> Result<StateOf<L, C>, StuckIn<D>> {
        let mut next = state.clone();
        let step = self.instance.thread(t).step(s);
        let mut acting = Acting::<L, C, _>::new(self, t, s, &mut next);
        rules::perform(d, &mut acting, &step.action, chosen)?;
        next.locations[t.index()] = step.target;
        Ok(next)
    }

    /// The drains of the thread, which may act.
    pub fn drains(
        &self,
        state: &StateOf<L, C>,
        t: ThreadId,
    ) -> Vec<Drained<Buffer<L, C>, C::Value>> {
        match state.holder.is_none_or(|h| h == t) {
            true => L::drains::<C>(&state.buffers[t.index()]),
            false => Vec::new(),
        }
    }

    pub fn drain<D: Domain<Value = C::Value>>(
        &self,
        d: &mut D,
        state: &StateOf<L, C>,
        t: ThreadId,
        drained: &Drained<Buffer<L, C>, C::Value>,
    ) -> StateOf<L, C> {
        let mut next = state.clone();
        let (cell, value) = drained.entry.clone();
        next.memory[cell.index()] = d.settle(value);
        next.buffers[t.index()] = drained.rest.clone();
        next
    }
}

impl<L: Layout, C: Content<Value = i64>> Machine<'_, L, C> {
    /// Every initial state, in order of the values chosen.
    pub fn starts(&self) -> Result<Vec<Start>, Refusal> {
        starts(self.instance)
    }

    /// Every event enabled in the state, in a fixed order. An event whose step will turn out to be
    /// a fault is enabled too.
    pub fn events(&self, state: &State<Buffer<L, C>>) -> Vec<Event> {
        let mut events = Vec::new();
        let alone = self.inside_atomic(state);
        for t in self.instance.thread_ids() {
            if alone.is_some_and(|a| a != t) {
                continue;
            }
            let thread = self.instance.thread(t);
            for &s in thread.outgoing(state.locations[t.index()]) {
                if self.enabled(&mut Numbers, state, t, s) {
                    self.step_events(t, s, &mut events);
                }
            }
            for d in self.drains(state, t) {
                events.push(Event::Drain {
                    thread: t,
                    cell: d.entry.0,
                    value: d.entry.1,
                    keep: d.keep,
                });
            }
        }
        events
    }

    /// One event for each value that the step may choose.
    fn step_events(&self, t: ThreadId, s: StepId, events: &mut Vec<Event>) {
        let event = |value| Event::Step {
            thread: t,
            step: s,
            value,
        };
        let thread = self.instance.thread(t);
        match &thread.step(s).action {
            Action::Havoc { register, range } => {
                let register = &thread.registers[register.index()];
                if let Ok((lo, hi)) = choice(*range, register.ty, &register.name) {
                    events.extend((lo..=hi).map(|v| event(Some(v))));
                }
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
            | Action::Unlock => events.push(event(None)),
        }
    }

    /// Takes an enabled event.
    pub fn apply(&self, state: &State<Buffer<L, C>>, event: &Event) -> Outcome<Buffer<L, C>> {
        match *event {
            Event::Drain {
                thread,
                cell,
                value,
                keep,
            } => {
                let drains = L::drains::<C>(&state.buffers[thread.index()]);
                let wanted =
                    |d: &&Drained<Buffer<L, C>>| d.entry == (cell, value) && d.keep == keep;
                Outcome::Next(match drains.iter().find(wanted) {
                    Some(d) => self.drain(&mut Numbers, state, thread, d),
                    None => state.clone(),
                })
            }
            Event::Step {
                thread,
                step,
                value,
            } => match self.take(&mut Numbers, state, thread, step, value) {
                Ok(next) => Outcome::Next(next),
                Err(Stuck::Full) => Outcome::Full(thread),
                Err(Stuck::Fault(kind)) => Outcome::Fault(Fault { thread, step, kind }),
                Err(Stuck::Refused(never)) => match never {},
            },
        }
    }
}

/// The values a nondeterministic assignment may choose.
fn choice(range: Option<(i64, i64)>, ty: Type, name: &str) -> Result<(i64, i64), Refusal> {
    let too_many = || Refusal::TooManyChoices {
        what: name.to_string(),
    };
    let (lo, hi) = range.or(ty.bounds()).ok_or_else(too_many)?;
    if hi.abs_diff(lo) >= MAX_CHOICE {
        return Err(too_many());
    }
    Ok((lo, hi))
}

/// Every initial state of the instance.
pub fn starts(instance: &Instance) -> Result<Vec<Start>, Refusal> {
    let registers = instance
        .threads
        .iter()
        .enumerate()
        .flat_map(|(t, thread)| thread.registers.iter().map(move |r| (Some(t), r)));
    let registers = registers.map(|(t, r)| (t, r.init, r.ty, &r.name));
    let cells = instance.cells.iter().map(|c| (None, c.init, c.ty, &c.name));
    let empty = Start {
        memory: Vec::new(),
        registers: vec![Vec::new(); instance.threads.len()],
    };
    let mut starts = vec![empty];
    for (thread, init, ty, name) in cells.chain(registers) {
        let (lo, hi) = match init {
            Initial::Value(v) => (v, v),
            Initial::Any => choice(None, ty, name)?,
        };
        if starts.len() as u64 * (hi.abs_diff(lo) + 1) > MAX_CHOICE {
            return Err(Refusal::TooManyStarts);
        }
        let put = |start: &mut Start, v: i64| match thread {
            None => start.memory.push(v),
            Some(t) => start.registers[t].push(v),
        };
        if lo == hi {
            // Nothing to choose: no copies, there may be very many cells.
            starts.iter_mut().for_each(|start| put(start, lo));
            continue;
        }
        let mut more = Vec::new();
        for start in starts {
            for v in lo..=hi {
                let mut start = start.clone();
                put(&mut start, v);
                more.push(start);
            }
        }
        starts = more;
    }
    Ok(starts)
}

//! The machine on numbers: where runs begin, and every event of a state.

use super::{Buffer, MAX_CHOICE, Machine, Refusal, State, StateOf, evaluate_in};
use crate::content::{Content, Drained};
use crate::event::{Event, Start};
use crate::fault::{Fault, FaultKind};
use crate::layout::{Bounds, Layout, Newest};
use crate::rules::Stuck;
use std::convert::Infallible;
use wattle_model::instance::{Fact, Initial};
use wattle_model::{Expr, Instance, NoValue, Numbers, StepId, ThreadId, Type};

/// What one event leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<B> {
    Next(State<B>),
    Fault(Fault),
    /// A bounded content is full: the run cannot be followed further at this bound.
    Full(ThreadId),
}

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
                if let Some((register, range)) = step.action.chosen() {
                    let register = &thread.registers[register.index()];
                    let (lo, hi) = choice(range, register.ty, &register.name)?;
                    debug_assert!(lo <= hi);
                }
            }
        }
        Ok(Self::without_choices(instance, bounds))
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
            if alone.is_none_or(|a| a == t) {
                self.events_of(state, t, &mut events);
            }
        }
        events
    }

    /// Whether this is one of the events enabled in the state.
    pub fn can(&self, state: &State<Buffer<L, C>>, event: &Event) -> bool {
        let t = event.thread();
        if t.index() >= self.instance.threads.len() || !self.may_act(state, t) {
            return false;
        }
        let mut events = Vec::new();
        self.events_of(state, t, &mut events);
        events.contains(event)
    }

    /// The events of a thread that may act.
    fn events_of(&self, state: &State<Buffer<L, C>>, t: ThreadId, events: &mut Vec<Event>) {
        let thread = self.instance.thread(t);
        for &s in thread.outgoing(state.locations[t.index()]) {
            if self.enabled(&mut Numbers, state, t, s) {
                self.step_events(t, s, events);
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

    /// One event for each value that the step may choose.
    fn step_events(&self, t: ThreadId, s: StepId, events: &mut Vec<Event>) {
        let event = |value| Event::Step {
            thread: t,
            step: s,
            value,
        };
        let thread = self.instance.thread(t);
        match thread.step(s).action.chosen() {
            None => events.push(event(None)),
            Some((register, range)) => {
                let register = &thread.registers[register.index()];
                if let Ok((lo, hi)) = choice(range, register.ty, &register.name) {
                    events.extend((lo..=hi).map(|v| event(Some(v))));
                }
            }
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

/// The value of a condition.
pub fn evaluate<B: Newest<i64>>(state: &State<B>, e: &Expr<Fact>) -> Result<i64, FaultKind> {
    evaluate_in(&mut Numbers, state, e)
}

impl From<NoValue<Infallible>> for FaultKind {
    fn from(e: NoValue<Infallible>) -> Self {
        match e {
            NoValue::Error(e) => e.into(),
            NoValue::Refused(never) => match never {},
        }
    }
}

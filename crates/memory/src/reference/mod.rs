//! The reference machine: a direct transcription of the rules, written to be read.
//!
//! A state is where every thread is, its registers, memory, every thread's buffer and who holds the
//! lock. An event is a step of a thread, by the rules of [`crate::rules`], or a **drain**: an entry of
//! a thread's buffer reaches memory, if the lock is free or the thread's.
//!
//! Steps and drains are generic in the domain of values; listing the events of a state, one for each
//! value of a choice, is for [`numbers`].

mod acting;
mod choose;
mod facts;
pub mod in_place;
mod numbers;
mod refusal;
mod replay;

pub use choose::{Chosen, choices_of, choose};
pub use facts::evaluate_in;
pub use in_place::InPlace;
pub use numbers::{Outcome, evaluate, starts};
pub use refusal::{MAX_CHOICE, Refusal};
pub use replay::{ReplayError, Snapshot, replay};

use crate::content::{Content, Drained};
use crate::layout::{Bounds, Layout};
use crate::rules::{self, StuckIn};
use acting::Acting;
use std::marker::PhantomData;
use wattle_model::{Domain, Instance, LocationId, StepId, ThreadId};

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

pub struct Machine<'i, L: Layout, C: Content> {
    pub instance: &'i Instance,
    bounds: Vec<Bounds<C::Bound>>,
    layout: PhantomData<L>,
}

type Buffer<L, C> = <L as Layout>::Buffer<C>;
/// A state of the machine with this layout and content.
pub type StateOf<L, C> = State<Buffer<L, C>, <C as Content>::Value>;

impl<'i, L: Layout, C: Content> Machine<'i, L, C> {
    /// A machine of which nobody asks for the events, so that wide choices are none of its business.
    pub fn without_choices(instance: &'i Instance, bounds: Vec<Bounds<C::Bound>>) -> Self {
        Machine {
            instance,
            bounds,
            layout: PhantomData,
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

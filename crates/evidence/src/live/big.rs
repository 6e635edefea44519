//! Moves: from one state outside atomic blocks to the next, by the reference machine.

use super::{Mover, Set, movers};
use crate::deadlock::is_discarded;
use rustc_hash::FxHashSet;
use wattle_memory::content::Content;
use wattle_memory::reference::{Machine, Outcome, Refusal, State};
use wattle_memory::{Event, Exact, Fault, Layout};
use wattle_model::Instance;

type StateOf<L, C> = State<<L as Layout>::Buffer<C>>;

/// The reference machine, move by move; with exact buffers, unless others are named.
pub struct Big<'i, L: Layout, C: Content = Exact> {
    pub machine: Machine<'i, L, C>,
    instance: &'i Instance,
    movers: Vec<Mover>,
}

/// One step, one drain, or one atomic block from its beginning to its end.
pub struct Move<B> {
    pub events: Vec<Event>,
    pub target: State<B>,
    /// Who moved.
    pub moved: Set,
}

/// What can happen in a state outside atomic blocks.
pub struct Moves<B> {
    pub moves: Vec<Move<B>>,
    /// Who can move.
    pub able: Set,
    /// The run is none of the program's: nothing counts that happens from here.
    pub discarded: bool,
}

impl<'i, L: Layout> Big<'i, L> {
    pub fn new(instance: &'i Instance) -> Result<Self, Refusal> {
        Self::with(instance, ())
    }
}

impl<'i, L: Layout, C: Content<Value = i64>> Big<'i, L, C> {
    /// With this bound for every buffer. Contents that may be full are not meant.
    pub fn with(instance: &'i Instance, bound: C::Bound) -> Result<Self, Refusal> {
        Ok(Big {
            machine: Machine::new(instance, bound)?,
            instance,
            movers: movers(instance, L::MODEL),
        })
    }

    pub fn movers(&self) -> &[Mover] {
        &self.movers
    }

    /// Who has the event.
    pub fn mover(&self, event: &Event) -> Set {
        bit(&self.movers, event)
    }

    /// Every move from the state. A block that cannot be gone through to its end is none. Blocks are
    /// taken to end ([`super::loop_in_block`]).
    pub fn moves(&self, state: &StateOf<L, C>) -> Result<Moves<L::Buffer<C>>, Fault> {
        let mut all = Moves {
            moves: Vec::new(),
            able: 0,
            discarded: is_discarded(self.instance, state),
        };
        if all.discarded {
            return Ok(all);
        }
        let mut seen: FxHashSet<(StateOf<L, C>, Set)> = FxHashSet::default();
        let mut work: Vec<Move<L::Buffer<C>>> = Vec::new();
        let mut first: Set;
        for event in self.machine.events(state) {
            first = self.mover(&event);
            work.push(self.after(state, &[], event, 0)?);
            seen.clear();
            while let Some(m) = work.pop() {
                if self.machine.inside_atomic(&m.target).is_none() {
                    all.able |= first;
                    all.moves.push(m);
                    continue;
                }
                if !seen.insert((m.target.clone(), m.moved)) {
                    continue;
                }
                for event in self.machine.events(&m.target) {
                    work.push(self.after(&m.target, &m.events, event, m.moved)?);
                }
            }
        }
        Ok(all)
    }

    fn after(
        &self,
        state: &StateOf<L, C>,
        before: &[Event],
        event: Event,
        moved: Set,
    ) -> Result<Move<L::Buffer<C>>, Fault> {
        let mut events = before.to_vec();
        events.push(event);
        let moved = moved | self.mover(&event);
        match self.machine.apply(state, &event) {
            Outcome::Next(target) => Ok(Move {
                events,
                target,
                moved,
            }),
            Outcome::Fault(fault) => Err(fault),
            // These buffers are never full.
            Outcome::Full(_) => Ok(Move {
                events,
                target: state.clone(),
                moved,
            }),
        }
    }
}

/// Who has the event, as a set.
pub fn bit(movers: &[Mover], event: &Event) -> Set {
    let same = |m: &Mover| match (m, event) {
        (Mover::Thread(t), Event::Step { thread, .. }) => t == thread,
        (
            Mover::Buffer(t, cell),
            Event::Drain {
                thread, cell: c, ..
            },
        ) => t == thread && cell.is_none_or(|cell| cell == *c),
        (Mover::Thread(_), Event::Drain { .. }) | (Mover::Buffer(..), Event::Step { .. }) => false,
    };
    movers.iter().position(same).map_or(0, |i| 1 << i)
}

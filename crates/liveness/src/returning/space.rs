//! States of the reference machine and the moves between them, found once.

use rustc_hash::FxHashMap;
use wattle_evidence::control::{Control, Progress, Stop};
use wattle_evidence::live::big::{Big, Moves};
use wattle_memory::content::Content;
use wattle_memory::reference::{Refusal, State, evaluate};
use wattle_memory::{Bounds, Exact, Layout, NewestK, OldestK};
use wattle_model::instance::Fact;
use wattle_model::{Expr, Instance};

/// Why it goes no further.
pub enum Ran {
    Stopped(Stop),
    /// A step may be a fault.
    Fault,
    /// A buffer has grown longer than the bound.
    Long,
    Other(&'static str),
}

impl From<Stop> for Ran {
    fn from(stop: Stop) -> Self {
        Ran::Stopped(stop)
    }
}

/// A content whose buffers may be told exactly.
pub trait Known<L: Layout>: Content<Value = i64> {
    fn known(buffer: &L::Buffer<Self>) -> Option<L::Buffer<Exact>>;
    fn of(buffer: &L::Buffer<Exact>, bounds: &Bounds<Self::Bound>) -> Option<L::Buffer<Self>>;
}

impl<L: Layout> Known<L> for Exact {
    fn known(buffer: &L::Buffer<Exact>) -> Option<L::Buffer<Exact>> {
        Some(buffer.clone())
    }

    fn of(buffer: &L::Buffer<Exact>, _: &Bounds<()>) -> Option<L::Buffer<Exact>> {
        Some(buffer.clone())
    }
}

/// What forgets is known where it is empty.
fn known_empty<L: Layout, C: Content>(buffer: &L::Buffer<C>) -> Option<L::Buffer<Exact>> {
    let empty = || L::empty::<Exact>(&Bounds::uniform((), 0));
    L::is_empty::<C>(buffer).then(empty)
}

impl<L: Layout> Known<L> for OldestK {
    fn known(buffer: &L::Buffer<OldestK>) -> Option<L::Buffer<Exact>> {
        known_empty::<L, OldestK>(buffer)
    }

    fn of(buffer: &L::Buffer<Exact>, bounds: &Bounds<usize>) -> Option<L::Buffer<OldestK>> {
        L::is_empty::<Exact>(buffer).then(|| L::empty::<OldestK>(bounds))
    }
}

impl<L: Layout> Known<L> for NewestK {
    fn known(buffer: &L::Buffer<NewestK>) -> Option<L::Buffer<Exact>> {
        known_empty::<L, NewestK>(buffer)
    }

    fn of(buffer: &L::Buffer<Exact>, bounds: &Bounds<usize>) -> Option<L::Buffer<NewestK>> {
        L::is_empty::<Exact>(buffer).then(|| L::empty::<NewestK>(bounds))
    }
}

type StateOf<L, C> = State<<L as Layout>::Buffer<C>>;

/// What is known of the states of one machine; dead registers are zero.
pub struct Space<'i, L: Layout, C: Content<Value = i64>> {
    pub big: Big<'i, L, C>,
    bounds: Bounds<C::Bound>,
    /// Per thread, location and register: what it holds may be read.
    alive: Vec<Vec<Vec<bool>>>,
    pub states: Vec<StateOf<L, C>>,
    index: FxHashMap<StateOf<L, C>, u32>,
    next: Vec<Option<Box<[u32]>>>,
    /// The longest buffer of each state.
    pub longest: Vec<u8>,
    /// Buffers that grow longer than this are told.
    longest_buffer: usize,
    /// More states are not looked at.
    most_states: usize,
    work: u64,
}

/// Moves found between two polls.
const POLL: u64 = 1 << 9;

impl<'i, L: Layout, C: Content<Value = i64>> Space<'i, L, C> {
    pub fn new(
        instance: &'i Instance,
        bound: C::Bound,
        atoms: &[Expr<Fact>],
        (longest_buffer, most_states): (usize, usize),
    ) -> Result<Self, Refusal> {
        Ok(Space {
            big: Big::with(instance, bound)?,
            bounds: Bounds::uniform(bound, instance.cells.len()),
            alive: alive(instance, atoms),
            states: Vec::new(),
            index: FxHashMap::default(),
            next: Vec::new(),
            longest: Vec::new(),
            longest_buffer,
            most_states,
            work: 0,
        })
    }

    /// With zero in dead registers.
    pub fn settled(&self, mut state: StateOf<L, C>) -> StateOf<L, C> {
        let own = state.registers.iter_mut().zip(&state.locations);
        for ((registers, at), alive) in own.zip(&self.alive) {
            for (value, alive) in registers.iter_mut().zip(&alive[at.index()]) {
                *value *= i64::from(*alive);
            }
        }
        state
    }

    pub fn find(&self, state: &StateOf<L, C>) -> Option<u32> {
        self.index.get(&self.settled(state.clone())).copied()
    }

    pub fn add(&mut self, state: StateOf<L, C>) -> u32 {
        let state = self.settled(state);
        if let Some(i) = self.index.get(&state) {
            return *i;
        }
        let i = self.states.len() as u32;
        let buffers = state.buffers.iter();
        let longest = buffers.map(|b| L::entries::<C>(b).len()).max().unwrap_or(0);
        self.longest.push(longest.min(255) as u8);
        self.index.insert(state.clone(), i);
        self.states.push(state);
        self.next.push(None);
        i
    }

    /// Where the moves of a state lead; to itself, if there are none.
    pub fn next(&mut self, i: u32, control: &Control<'_>) -> Result<Box<[u32]>, Ran> {
        if let Some(next) = &self.next[i as usize] {
            return Ok(next.clone());
        }
        self.work += 1;
        if self.work.is_multiple_of(POLL) {
            control.poll(crate::NAME, self.progress())?;
        }
        if self.states.len() > self.most_states {
            return Err(Ran::Other("too many states"));
        }
        if usize::from(self.longest[i as usize]) > self.longest_buffer {
            return Err(Ran::Long);
        }
        let state = self.states[i as usize].clone();
        let moves = self.moves(&state)?.moves;
        let mut next: Vec<u32> = Vec::new();
        for m in moves {
            let to = self.add(m.target);
            if !next.contains(&to) {
                next.push(to);
            }
        }
        if next.is_empty() {
            next.push(i);
        }
        let next = next.into_boxed_slice();
        self.next[i as usize] = Some(next.clone());
        Ok(next)
    }

    pub fn moves(&self, state: &StateOf<L, C>) -> Result<Moves<L::Buffer<C>>, Ran> {
        let moves = self.big.moves(state).map_err(|_| Ran::Fault)?;
        match moves.discarded {
            true => Err(Ran::Other(
                "an assumption may be false: memory fairness would take the way into it, where no run goes on",
            )),
            false => Ok(moves),
        }
    }

    pub fn progress(&self) -> Progress {
        let state = self.states.first();
        let numbers = state.map_or(0, |s| {
            s.memory.len() + 8 * s.locations.len() + s.registers.iter().map(Vec::len).sum::<usize>()
        });
        Progress {
            states: self.states.len() as u64,
            memory: self.states.len() as u64 * (200 + 20 * numbers as u64),
            ..Progress::default()
        }
    }

    /// The truth of conditions in a state, as bits.
    pub fn truth(&self, i: u32, atoms: &[&Expr<Fact>]) -> Result<u64, Ran> {
        let mut bits = 0;
        for (k, e) in atoms.iter().enumerate() {
            let value = evaluate(&self.states[i as usize], e);
            let value = value.map_err(|_| Ran::Other("the property has no value in a state"))?;
            bits |= u64::from(value != 0) << k;
        }
        Ok(bits)
    }

    /// The state with buffers of another kind, if all are known so well.
    pub fn as_known(&self, i: u32) -> Option<StateOf<L, Exact>>
    where
        C: Known<L>,
    {
        let state = &self.states[i as usize];
        let buffers = state.buffers.iter().map(C::known);
        Some(State {
            locations: state.locations.clone(),
            registers: state.registers.clone(),
            memory: state.memory.clone(),
            buffers: buffers.collect::<Option<_>>()?,
            holder: state.holder,
        })
    }

    /// Adds a state that is known exactly, if this machine can have it.
    pub fn add_known(&mut self, state: &StateOf<L, Exact>) -> Option<u32>
    where
        C: Known<L>,
    {
        let buffers = state.buffers.iter().map(|b| C::of(b, &self.bounds));
        let state = State {
            locations: state.locations.clone(),
            registers: state.registers.clone(),
            memory: state.memory.clone(),
            buffers: buffers.collect::<Option<_>>()?,
            holder: state.holder,
        };
        Some(self.add(state))
    }
}

/// Registers that may be read later, or that a condition looks at.
fn alive(instance: &Instance, atoms: &[Expr<Fact>]) -> Vec<Vec<Vec<bool>>> {
    let threads = instance.threads.iter();
    let mut seen: Vec<Vec<bool>> = threads.map(|t| vec![false; t.registers.len()]).collect();
    for e in atoms {
        e.for_each_atom(&mut |fact| crate::certificate::see(fact, &mut seen));
    }
    let threads = instance.threads.iter().zip(&seen);
    let live = threads.map(|(t, seen)| t.live(vec![seen.clone(); t.locations.len()]));
    live.collect()
}

//! The reference machine of array-based systems for a fixed number of threads, under SC, TSO and
//! PSO: the specification, written to be read.
//!
//! A thread's buffer is a list of entries; an entry holds all weak writes of one transition. Under
//! TSO the oldest entry drains; under PSO any entry drains that shares no cell with an older one and
//! has no store fence before it. Atomic transitions need an empty buffer and write memory directly.

mod eval;
mod init;

pub use init::Candidates;

use wattle_memory::MemoryModel;
use wattle_model::array::{
    ArrayIndex, ArraySystem, CellType, FenceKind, Formula, Transition, UpdateIndex, Value,
};

/// A system with N threads under a memory model. Threads are 1..N; 0 is nobody.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    pub system: &'a ArraySystem,
    pub model: MemoryModel,
    pub threads: u8,
    base: Vec<usize>,
    size: usize,
    atomic: Vec<bool>,
    reads: Vec<bool>,
    weak: Vec<bool>,
}

/// All cells (memory for the weak ones) and each thread's buffer, oldest entry first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub values: Box<[i64]>,
    pub buffers: Vec<Vec<Entry>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    /// Cells (by position) and values.
    Writes(Vec<(usize, i64)>),
    /// A store fence (PSO only).
    Mark,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A transition with the threads of its parameters, and the values taken where any is allowed.
    Step {
        transition: usize,
        args: Vec<u8>,
        choices: Vec<i64>,
    },
    /// A thread's entry (by its place in the buffer) reaches memory.
    Drain { thread: u8, entry: usize },
}

impl<'a> Machine<'a> {
    pub fn new(system: &'a ArraySystem, model: MemoryModel, threads: u8) -> Self {
        let n = usize::from(threads);
        let mut base = Vec::new();
        let mut size = 0;
        for c in &system.cells {
            base.push(size);
            size += n.pow(u32::from(c.arity));
        }
        let transitions = system.transitions.iter();
        let cells = system.cells.iter();
        let weak = cells.flat_map(|c| std::iter::repeat_n(c.weak, n.pow(u32::from(c.arity))));
        Machine {
            system,
            model,
            threads,
            base,
            size,
            atomic: transitions.clone().map(|t| system.is_atomic(t)).collect(),
            reads: transitions.map(|t| system.reads_weak(t)).collect(),
            weak: weak.collect(),
        }
    }

    /// Whether some transition takes any number, of which only a few are tried.
    pub fn chooses(&self) -> bool {
        let updates = self.system.transitions.iter().flat_map(|t| &t.updates);
        let number = |cell| matches!(self.system.cell(cell).ty, CellType::Int | CellType::Real);
        let mut wide = updates.filter(|u| number(u.cell));
        wide.any(|u| u.branches.iter().any(|b| b.value == Value::Any))
    }

    /// How many cells a state has.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Where a cell lies in [`State::values`].
    pub fn position(&self, cell: ArrayIndex, args: &[u8]) -> usize {
        let n = usize::from(self.threads);
        let offset = args.iter().fold(0, |o, a| o * n + usize::from(*a) - 1);
        self.base[usize::from(cell)] + offset
    }

    /// The cell and threads at a position.
    pub fn cell_at(&self, position: usize) -> (ArrayIndex, Vec<u8>) {
        let cell = self.base.partition_point(|b| *b <= position) - 1;
        let mut offset = position - self.base[cell];
        let n = usize::from(self.threads);
        let arity = self.system.cells[cell].arity;
        let mut args = vec![0; usize::from(arity)];
        for a in args.iter_mut().rev() {
            *a = (offset % n) as u8 + 1;
            offset /= n;
        }
        (cell as ArrayIndex, args)
    }

    pub fn type_at(&self, position: usize) -> CellType {
        let cell = self.base.partition_point(|b| *b <= position) - 1;
        self.system.cells[cell].ty
    }

    pub fn is_weak(&self, position: usize) -> bool {
        self.weak[position]
    }

    pub fn is_atomic(&self, transition: usize) -> bool {
        self.atomic[transition]
    }

    pub fn reads_weak(&self, transition: usize) -> bool {
        self.reads[transition]
    }

    /// All transitions of one acting thread (or of none) with threads for their parameters.
    pub fn choices(&self, actor: Option<u8>, visit: &mut dyn FnMut(usize, &[u8])) {
        for (i, t) in self.system.transitions.iter().enumerate() {
            if t.actor.is_some() == actor.is_some() {
                self.choose_args(t, &mut Vec::new(), &mut |args| {
                    if t.actor.map(|a| args[usize::from(a)]) == actor {
                        visit(i, args);
                    }
                });
            }
        }
    }

    fn buffered(&self, cell: ArrayIndex) -> bool {
        self.model != MemoryModel::Sc && self.system.cell(cell).weak
    }

    /// Every step and drain possible in the state.
    pub fn successors(
        &self,
        state: &State,
        candidates: &Candidates,
        emit: &mut dyn FnMut(Event, State),
    ) {
        for (i, t) in self.system.transitions.iter().enumerate() {
            let mut args = Vec::with_capacity(t.params.len());
            self.choose_args(t, &mut args, &mut |args| {
                self.steps_of(state, i, args, candidates, emit);
            });
        }
        for event in self.drains(state) {
            if let Some(next) = self.apply(state, &event) {
                emit(event, next);
            }
        }
    }

    pub fn drains(&self, state: &State) -> Vec<Event> {
        let mut events = Vec::new();
        for (t, buffer) in state.buffers.iter().enumerate() {
            for entry in 0..buffer.len() {
                if self.may_drain(buffer, entry) {
                    events.push(Event::Drain {
                        thread: t as u8 + 1,
                        entry,
                    });
                }
            }
        }
        events
    }

    /// All choices of different threads for the parameters.
    fn choose_args(&self, t: &Transition, args: &mut Vec<u8>, visit: &mut dyn FnMut(&[u8])) {
        if args.len() == t.params.len() {
            return visit(args);
        }
        for thread in 1..=self.threads {
            if !args.contains(&thread) {
                args.push(thread);
                self.choose_args(t, args, visit);
                args.pop();
            }
        }
    }

    /// The steps of one transition with given threads, one for each choice of arbitrary values.
    pub fn steps_of(
        &self,
        state: &State,
        transition: usize,
        args: &[u8],
        candidates: &Candidates,
        emit: &mut dyn FnMut(Event, State),
    ) {
        let t = &self.system.transitions[transition];
        if !self.enabled(state, transition, args) {
            return;
        }
        let domains: Vec<Vec<i64>> = self
            .any_cells(state, t, args)
            .into_iter()
            .map(|cell| self.domain(self.system.cell(cell).ty, candidates))
            .collect();
        let mut choices: Vec<i64> = Vec::new();
        product(&domains, &mut choices, &mut |choices| {
            let event = Event::Step {
                transition,
                args: args.to_vec(),
                choices: choices.to_vec(),
            };
            if let Some(next) = self.stepped(state, transition, args, choices) {
                emit(event, next);
            }
        });
    }

    pub fn enabled(&self, state: &State, transition: usize, args: &[u8]) -> bool {
        let t = &self.system.transitions[transition];
        if self.model != MemoryModel::Sc
            && let Some(actor) = t.actor
        {
            let buffer = &state.buffers[usize::from(args[usize::from(actor)]) - 1];
            let needs_empty = self.atomic[transition] || t.fence == Some(FenceKind::Full);
            if needs_empty && !buffer.is_empty() {
                return false;
            }
        }
        let actor = t.actor.map(|a| args[usize::from(a)]);
        let mut env = args.to_vec();
        self.holds(state, &t.guard, &mut env, args.len(), actor)
    }

    /// The state after the event, or `None` if the event is impossible.
    pub fn apply(&self, state: &State, event: &Event) -> Option<State> {
        match event {
            Event::Drain { thread, entry } => {
                let t = usize::from(*thread).checked_sub(1)?;
                let buffer = state.buffers.get(t)?;
                if *entry >= buffer.len() || !self.may_drain(buffer, *entry) {
                    return None;
                }
                let mut next = state.clone();
                if let Entry::Writes(writes) = next.buffers[t].remove(*entry) {
                    writes.iter().for_each(|(p, v)| next.values[*p] = *v);
                }
                while next.buffers[t].first() == Some(&Entry::Mark) {
                    next.buffers[t].remove(0);
                }
                Some(next)
            }
            Event::Step {
                transition,
                args,
                choices,
            } => {
                let t = self.system.transitions.get(*transition)?;
                let different = args
                    .iter()
                    .enumerate()
                    .all(|(i, a)| (1..=self.threads).contains(a) && !args[..i].contains(a));
                if args.len() != t.params.len()
                    || !different
                    || !self.enabled(state, *transition, args)
                {
                    return None;
                }
                self.stepped(state, *transition, args, choices)
            }
        }
    }

    /// The state after a transition that is enabled.
    fn stepped(
        &self,
        state: &State,
        transition: usize,
        args: &[u8],
        choices: &[i64],
    ) -> Option<State> {
        let t = &self.system.transitions[transition];
        let mut choices = choices.iter().copied();
        let mut delayed = Vec::new();
        let mut next = state.clone();
        self.writes(state, t, args, &mut |cell, position, value| {
            let value = match value {
                Some(v) => v,
                None => choices.next()?,
            };
            match self.buffered(cell) && !self.atomic[transition] {
                true => delayed.push((position, value)),
                false => next.values[position] = value,
            }
            Some(())
        })?;
        if let Some(actor) = t.actor {
            let buffer = &mut next.buffers[usize::from(args[usize::from(actor)]) - 1];
            let mark = self.model == MemoryModel::Pso && t.fence == Some(FenceKind::Store);
            if mark && !buffer.is_empty() && buffer.last() != Some(&Entry::Mark) {
                buffer.push(Entry::Mark);
            }
            if !delayed.is_empty() {
                buffer.push(Entry::Writes(delayed));
            }
        }
        Some(next)
    }

    fn may_drain(&self, buffer: &[Entry], entry: usize) -> bool {
        let Entry::Writes(writes) = &buffer[entry] else {
            return false;
        };
        match self.model {
            MemoryModel::Sc | MemoryModel::Tso => entry == 0,
            MemoryModel::Pso => buffer[..entry].iter().all(|older| match older {
                Entry::Mark => false,
                Entry::Writes(w) => w.iter().all(|(p, _)| writes.iter().all(|(q, _)| p != q)),
            }),
        }
    }

    /// Every cell the transition writes, in order of updates and threads; `None` stands for any
    /// value. Gives up when the visitor does.
    fn writes(
        &self,
        state: &State,
        t: &Transition,
        args: &[u8],
        visit: &mut dyn FnMut(ArrayIndex, usize, Option<i64>) -> Option<()>,
    ) -> Option<()> {
        let actor = t.actor.map(|a| args[usize::from(a)]);
        let mut env = Vec::with_capacity(args.len() + 4);
        let mut index: Vec<u8> = Vec::with_capacity(2);
        for u in &t.updates {
            let each = u
                .index
                .iter()
                .filter(|i| matches!(i, UpdateIndex::Each(_)))
                .count();
            env.clear();
            env.extend_from_slice(args);
            env.extend(std::iter::repeat_n(1, each));
            loop {
                let mut next_each = args.len();
                index.clear();
                index.extend(u.index.iter().map(|i| match i {
                    UpdateIndex::At(t) => self.thread(*t, &env),
                    UpdateIndex::Each(_) => {
                        next_each += 1;
                        env[next_each - 1]
                    }
                }));
                let bound = env.len();
                let mut holds = |f: &Formula| self.holds(state, f, &mut env, bound, actor);
                let branch = u.branches.iter().find(|b| holds(&b.condition));
                if let Some(branch) = branch {
                    let value = match &branch.value {
                        Value::Any => None,
                        Value::Term(term) => Some(self.term(state, term, &env, actor)?),
                    };
                    visit(u.cell, self.position(u.cell, &index), value)?;
                }
                if !advance(&mut env[args.len()..], self.threads) {
                    break;
                }
            }
        }
        Some(())
    }

    fn any_cells(&self, state: &State, t: &Transition, args: &[u8]) -> Vec<ArrayIndex> {
        let mut cells = Vec::new();
        let any = |b: &wattle_model::array::Branch| b.value == Value::Any;
        if t.updates.iter().any(|u| u.branches.iter().any(any)) {
            self.writes(state, t, args, &mut |cell, _, value| {
                if value.is_none() {
                    cells.push(cell);
                }
                Some(())
            });
        }
        cells
    }

    /// The values an arbitrary choice may take; for numbers and abstract types a few of them.
    pub fn domain(&self, ty: CellType, candidates: &Candidates) -> Vec<i64> {
        match ty {
            CellType::Int | CellType::Real => candidates.numbers.clone(),
            CellType::Thread => (1..=i64::from(self.threads)).collect(),
            CellType::Bool | CellType::Declared(_) => match self.system.values(ty) {
                Some(n) => (0..i64::from(n)).collect(),
                None => vec![0, 1],
            },
        }
    }

    /// The bad condition the state satisfies, if any, with the threads that show it.
    pub fn bad(&self, state: &State) -> Option<(usize, Vec<u8>)> {
        self.some_of(state, &self.system.bad)
    }

    /// Whether the state contradicts an axiom about constants.
    pub fn excluded(&self, state: &State) -> bool {
        let axioms = self
            .system
            .assumed
            .iter()
            .filter(|q| self.system.only_constants(&q.body));
        let axioms: Vec<_> = axioms.cloned().collect();
        self.some_of(state, &axioms).is_some()
    }

    /// A condition that the file claims never to hold and that the state satisfies.
    pub fn broken_claim(&self, state: &State) -> Option<usize> {
        self.some_of(state, &self.system.assumed).map(|(i, _)| i)
    }

    fn some_of(
        &self,
        state: &State,
        list: &[wattle_model::array::Quantified],
    ) -> Option<(usize, Vec<u8>)> {
        list.iter().enumerate().find_map(|(i, q)| {
            let k = q.params.len();
            if k > usize::from(self.threads) {
                return None;
            }
            let mut env = vec![1u8; k];
            loop {
                let different = (0..k).all(|i| !env[..i].contains(&env[i]));
                if different && self.holds(state, &q.body, &mut env, k, None) {
                    return Some((i, env));
                }
                if !advance(&mut env, self.threads) {
                    return None;
                }
            }
        })
    }
}

/// The next tuple of threads in lexicographic order.
pub(crate) fn advance(tuple: &mut [u8], threads: u8) -> bool {
    for t in tuple.iter_mut().rev() {
        if *t < threads {
            *t += 1;
            return true;
        }
        *t = 1;
    }
    false
}

/// Every combination of one value from each domain.
fn product(domains: &[Vec<i64>], chosen: &mut Vec<i64>, visit: &mut dyn FnMut(&[i64])) {
    match domains.get(chosen.len()) {
        None => visit(chosen),
        Some(domain) => {
            for v in domain {
                chosen.push(*v);
                product(domains, chosen, visit);
                chosen.pop();
            }
        }
    }
}

//! The reference machine of array-based systems for a fixed number of threads, under SC, TSO and
//! PSO: the specification, written to be read.
//!
//! A thread's buffer is a list of entries; an entry holds all weak writes of one transition. Under
//! TSO the oldest entry drains; under PSO any entry drains that shares no cell with an older one and
//! has no store fence before it. Atomic transitions need an empty buffer and write memory directly.

mod ground;
mod init;

pub use ground::Step;
pub use init::Candidates;

use crate::work;
use ground::{Condition, Steps, Stored};
use std::cell::OnceCell;
use wattle_memory::MemoryModel;
use wattle_model::array::{ArrayIndex, ArraySystem, CellType, FenceKind, Quantified, Value};

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
    /// Made when they are asked for.
    steps: OnceCell<Steps>,
    bad: OnceCell<Chosen>,
    axioms: OnceCell<Chosen>,
    claims: OnceCell<Chosen>,
}

/// Conditions with threads chosen for them: which of a list, and whom.
type Chosen = Vec<(usize, Vec<u8>, Condition)>;

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

/// What leads from one state to the next.
#[derive(Clone, Copy, Debug)]
pub enum Move<'m> {
    /// With the values taken where any is allowed.
    Step(&'m Step, &'m [i64]),
    Drain {
        thread: u8,
        entry: usize,
    },
}

impl Move<'_> {
    pub fn event(self) -> Event {
        match self {
            Move::Step(step, choices) => Event::Step {
                transition: step.transition,
                args: step.args.clone(),
                choices: choices.to_vec(),
            },
            Move::Drain { thread, entry } => Event::Drain { thread, entry },
        }
    }
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
            steps: OnceCell::new(),
            bad: OnceCell::new(),
            axioms: OnceCell::new(),
            claims: OnceCell::new(),
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

    fn steps(&self) -> &Steps {
        self.steps.get_or_init(|| {
            let mut all = Vec::new();
            for (i, t) in self.system.transitions.iter().enumerate() {
                self.choose_args(t.params.len(), &mut Vec::new(), &mut |args| {
                    all.push(self.step(i, args));
                });
            }
            Steps::new(all)
        })
    }

    fn buffered(&self, cell: ArrayIndex) -> bool {
        self.model != MemoryModel::Sc && self.system.cell(cell).weak
    }

    /// Every step and drain possible in the state, which is the same again afterwards.
    pub fn successors(
        &self,
        state: &mut State,
        candidates: &Candidates,
        emit: &mut dyn FnMut(Move<'_>, &State),
    ) {
        let steps = self.steps();
        for i in steps.possible(state) {
            let step = &steps.all[i as usize];
            self.ways(state, step, candidates, &mut |choices, next| {
                emit(Move::Step(step, choices), next);
            });
        }
        for (thread, entry) in self.drains(state) {
            if let Some(next) = self.drained(state, thread, entry) {
                emit(Move::Drain { thread, entry }, &next);
            }
        }
    }

    /// The steps of one acting thread (0: of nobody) that memory does not rule out at a glance.
    pub fn steps_by(&self, actor: u8, state: &State) -> impl Iterator<Item = &Step> {
        let steps = self.steps();
        let possible = steps.possible(state).into_iter();
        let possible = possible.map(|i| &steps.all[i as usize]);
        possible.filter(move |s| s.actor == actor)
    }

    /// Which entry of whose buffer may reach memory.
    pub fn drains(&self, state: &State) -> Vec<(u8, usize)> {
        let mut out = Vec::new();
        for (t, buffer) in state.buffers.iter().enumerate() {
            let entries = (0..buffer.len()).filter(|e| self.may_drain(buffer, *e));
            out.extend(entries.map(|e| (t as u8 + 1, e)));
        }
        out
    }

    /// All choices of different threads for so many parameters.
    fn choose_args(&self, params: usize, args: &mut Vec<u8>, visit: &mut dyn FnMut(&[u8])) {
        if args.len() == params {
            return visit(args);
        }
        for thread in 1..=self.threads {
            if !args.contains(&thread) {
                args.push(thread);
                self.choose_args(params, args, visit);
                args.pop();
            }
        }
    }

    /// The ways to take a step, one for each choice of arbitrary values: the choices and what the state
    /// becomes. The state is the same again afterwards.
    pub fn ways(
        &self,
        state: &mut State,
        step: &Step,
        candidates: &Candidates,
        emit: &mut dyn FnMut(&[i64], &State),
    ) {
        work::done(work::STEP);
        if !self.enabled(state, step) {
            return;
        }
        let Some(writes) = writes(state, step) else {
            return;
        };
        let any = writes.iter().filter(|w| w.value.is_none());
        let any = any.map(|w| self.domain(self.system.cell(w.cell).ty, candidates));
        let domains: Vec<Vec<i64>> = any.collect();
        product(&domains, &mut Vec::new(), &mut |choices| {
            self.written(state, step, &writes, choices, &mut |next| {
                emit(choices, next);
            });
        });
    }

    fn enabled(&self, state: &State, step: &Step) -> bool {
        if self.model != MemoryModel::Sc
            && let Some(actor) = usize::from(step.actor).checked_sub(1)
        {
            let fence = self.system.transitions[step.transition].fence;
            let needs_empty = self.atomic[step.transition] || fence == Some(FenceKind::Full);
            if needs_empty && !state.buffers[actor].is_empty() {
                return false;
            }
        }
        step.guard.holds(state)
    }

    /// The state after the event, or `None` if the event is impossible.
    pub fn apply(&self, state: &State, event: &Event) -> Option<State> {
        match event {
            Event::Drain { thread, entry } => self.drained(state, *thread, *entry),
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
                if args.len() != t.params.len() || !different {
                    return None;
                }
                let step = self.step(*transition, args);
                if !self.enabled(state, &step) {
                    return None;
                }
                let writes = writes(state, &step)?;
                let any = writes.iter().filter(|w| w.value.is_none()).count();
                if any > choices.len() {
                    return None;
                }
                let mut out = None;
                self.written(&mut state.clone(), &step, &writes, choices, &mut |next| {
                    out = Some(next.clone());
                });
                out
            }
        }
    }

    fn drained(&self, state: &State, thread: u8, entry: usize) -> Option<State> {
        let t = usize::from(thread).checked_sub(1)?;
        let buffer = state.buffers.get(t)?;
        if entry >= buffer.len() || !self.may_drain(buffer, entry) {
            return None;
        }
        let mut next = state.clone();
        if let Entry::Writes(writes) = next.buffers[t].remove(entry) {
            writes.iter().for_each(|(p, v)| next.values[*p] = *v);
        }
        while next.buffers[t].first() == Some(&Entry::Mark) {
            next.buffers[t].remove(0);
        }
        Some(next)
    }

    /// Shows the state with what a step writes; then it is as before.
    fn written(
        &self,
        state: &mut State,
        step: &Step,
        writes: &[Write],
        choices: &[i64],
        emit: &mut dyn FnMut(&State),
    ) {
        let mut choices = choices.iter().copied();
        let mut delayed = Vec::new();
        let mut before = Vec::with_capacity(writes.len());
        for w in writes {
            let value = w.value.or_else(|| choices.next()).unwrap_or(0);
            match self.buffered(w.cell) && !self.atomic[step.transition] {
                true => delayed.push((w.position, value)),
                false => {
                    before.push((w.position, state.values[w.position]));
                    state.values[w.position] = value;
                }
            }
        }
        let actor = usize::from(step.actor).checked_sub(1);
        let entries = actor.map_or(0, |a| state.buffers[a].len());
        if let Some(actor) = actor {
            let buffer = &mut state.buffers[actor];
            let fence = self.system.transitions[step.transition].fence;
            let mark = self.model == MemoryModel::Pso && fence == Some(FenceKind::Store);
            if mark && !buffer.is_empty() && buffer.last() != Some(&Entry::Mark) {
                buffer.push(Entry::Mark);
            }
            if !delayed.is_empty() {
                buffer.push(Entry::Writes(delayed));
            }
        }
        emit(state);
        // Of two stores to one cell the first knows what was there.
        for (position, value) in before.into_iter().rev() {
            state.values[position] = value;
        }
        if let Some(actor) = actor {
            state.buffers[actor].truncate(entries);
        }
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
        let bad = || self.choices_of(&self.system.bad, &|_| true);
        some_of(state, self.bad.get_or_init(bad))
    }

    /// Whether the state contradicts an axiom about constants.
    pub fn excluded(&self, state: &State) -> bool {
        let axiom = |q: &Quantified| self.system.only_constants(&q.body);
        let axioms = || self.choices_of(&self.system.assumed, &axiom);
        some_of(state, self.axioms.get_or_init(axioms)).is_some()
    }

    /// A condition that the file claims never to hold and that the state satisfies.
    pub fn broken_claim(&self, state: &State) -> Option<usize> {
        let claims = || self.choices_of(&self.system.assumed, &|_| true);
        some_of(state, self.claims.get_or_init(claims)).map(|(i, _)| i)
    }
}

fn some_of(state: &State, list: &Chosen) -> Option<(usize, Vec<u8>)> {
    let found = list.iter().find(|(_, _, c)| c.holds(state));
    found.map(|(i, env, _)| (*i, env.clone()))
}

/// A cell that a step writes; `None` stands for any value.
struct Write {
    cell: ArrayIndex,
    position: usize,
    value: Option<i64>,
}

/// Everything an enabled step writes, in order of updates and threads; `None` if it is impossible.
fn writes(state: &State, step: &Step) -> Option<Vec<Write>> {
    let mut out = Vec::with_capacity(step.updates.len());
    for u in &step.updates {
        if let Some((_, stored)) = u.branches.iter().find(|(c, _)| c.holds(state)) {
            out.push(Write {
                cell: u.cell,
                position: u.position,
                value: match stored {
                    Stored::Any => None,
                    Stored::Value(sum) => Some(sum.value(state)?),
                    Stored::Impossible => return None,
                },
            });
        }
    }
    Some(out)
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

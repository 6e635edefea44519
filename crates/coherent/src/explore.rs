//! Breadth-first search through the abstract machine, on threads unfolded to automata.

use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use wattle_evidence::{Control, End, Progress, Stop, Task};
use wattle_memory::automaton::{Act, Automata, LocalId};
use wattle_memory::content::Content;
use wattle_memory::{Bounds, Event, Layout, Start};
use wattle_model::{CellId, ThreadId};

/// A run of the abstract machine that ends badly.
pub struct AbstractRun {
    pub start: Start,
    pub events: Vec<Event>,
    pub end: End,
}

pub enum Explored {
    /// Nothing bad is reachable.
    Closed,
    Bad(AbstractRun),
    /// The property has no value in a reachable state.
    NoValue(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<B> {
    locals: Box<[LocalId]>,
    memory: Box<[i64]>,
    buffers: Box<[B]>,
}

type Buffer<L, C> = <L as Layout>::Buffer<C>;

/// How a state was reached first: from which other, by which thread's edge or drain.
#[derive(Clone, Copy)]
enum Came {
    Start,
    Edge {
        from: u32,
        thread: u32,
        edge: u32,
    },
    Drain {
        from: u32,
        thread: u32,
        cell: CellId,
        value: i64,
        keep: bool,
    },
}

struct Explorer<'e, L: Layout, C: Content> {
    task: &'e Task<'e>,
    automata: &'e Automata,
    bounds: &'e [Bounds<C::Bound>],
    numbers: FxHashMap<State<Buffer<L, C>>, u32>,
    states: Vec<State<Buffer<L, C>>>,
    came: Vec<Came>,
    bytes: u64,
}

pub fn explore<L: Layout, C: Content>(
    name: &'static str,
    task: &Task<'_>,
    automata: &Automata,
    bounds: &[Bounds<C::Bound>],
    control: &Control<'_>,
) -> Result<(Explored, Progress), (Stop, Progress)> {
    let mut explorer = Explorer::<L, C> {
        task,
        automata,
        bounds,
        numbers: FxHashMap::default(),
        states: Vec::new(),
        came: Vec::new(),
        bytes: 0,
    };
    explorer.starts();
    let mut at = 0;
    while at < explorer.states.len() {
        let progress = explorer.progress(at);
        if at.is_multiple_of(1024) {
            control.poll(name, progress).map_err(|s| (s, progress))?;
        }
        match explorer.verdict(at) {
            Ok(None) => {}
            Ok(Some(end)) => return Ok((Explored::Bad(explorer.run_to(at, end)), progress)),
            Err(why) => return Ok((Explored::NoValue(why), progress)),
        }
        explorer.expand(at);
        at += 1;
    }
    Ok((Explored::Closed, explorer.progress(at)))
}

impl<L: Layout, C: Content> Explorer<'_, L, C> {
    fn progress(&self, at: usize) -> Progress {
        Progress {
            states: self.states.len() as u64,
            frontier: (self.states.len() - at) as u64,
            memory: self.bytes,
        }
    }

    fn starts(&mut self) {
        let mut memories: Vec<Vec<i64>> = vec![Vec::new()];
        for values in &self.automata.initial {
            memories = extend(&memories, values);
        }
        let mut locals: Vec<Vec<LocalId>> = vec![Vec::new()];
        for automaton in &self.automata.threads {
            locals = extend(&locals, &automaton.initial);
        }
        let buffers: Box<[_]> = self.bounds.iter().map(L::empty::<C>).collect();
        for memory in &memories {
            for locals in &locals {
                let state = State {
                    locals: locals.clone().into(),
                    memory: memory.clone().into(),
                    buffers: buffers.clone(),
                };
                self.add(state, Came::Start);
            }
        }
    }

    fn add(&mut self, state: State<Buffer<L, C>>, came: Came) {
        let number = self.states.len() as u32;
        if let Entry::Vacant(new) = self.numbers.entry(state) {
            self.states.push(new.key().clone());
            new.insert(number);
            self.came.push(came);
            let state = &self.states[number as usize];
            let pending: usize = state.buffers.iter().map(|b| L::entries::<C>(b).len()).sum();
            let size = size_of::<State<Buffer<L, C>>>()
                + state.locals.len() * (4 + size_of::<Buffer<L, C>>())
                + state.memory.len() * 8
                + pending * 64;
            self.bytes += 2 * size as u64 + 32;
        }
    }

    /// What is bad about a state, if anything.
    fn verdict(&self, at: usize) -> Result<Option<End>, String> {
        let state = &self.states[at];
        for (automaton, q) in self.automata.threads.iter().zip(&state.locals) {
            if let Some(fault) = &automaton.states[*q as usize].fault {
                return Ok(Some(End::Fault(fault.clone())));
            }
        }
        let Some(question) = self.task.question() else {
            return Ok(None);
        };
        if question.only_final && !self.is_final(state) {
            return Ok(None);
        }
        let memory = |c: CellId| state.memory[c.index()];
        match self
            .automata
            .evaluate(&state.locals, &memory, &question.target)
        {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(End::Target)),
            Err(kind) => Err(format!("the property has no value in some states: {kind}")),
        }
    }

    fn is_final(&self, state: &State<Buffer<L, C>>) -> bool {
        self.task.instance.thread_ids().all(|t| {
            let q = state.locals[t.index()] as usize;
            let local = &self.automata.threads[t.index()].states[q];
            self.task.instance.thread(t).ended(local.location)
                && L::is_empty::<C>(&state.buffers[t.index()])
        })
    }

    fn expand(&mut self, at: usize) {
        let state = self.states[at].clone();
        let holds = |t: usize| self.automata.threads[t].states[state.locals[t] as usize].holds;
        let holder = (0..state.locals.len()).find(|t| holds(*t));
        for t in 0..state.locals.len() {
            let may_write = holder.is_none_or(|h| h == t);
            let automaton = &self.automata.threads[t];
            for &e in &automaton.outgoing[state.locals[t] as usize] {
                let edge = &automaton.edges[e as usize];
                if let Some(mut next) = self.act(&state, t, &edge.act, holder) {
                    next.locals[t] = edge.target;
                    let came = Came::Edge {
                        from: at as u32,
                        thread: t as u32,
                        edge: e,
                    };
                    self.add(next, came);
                }
            }
            if may_write {
                for drained in L::drains::<C>(&state.buffers[t]) {
                    let (cell, value) = drained.entry;
                    let mut next = state.clone();
                    next.memory[cell.index()] = value;
                    next.buffers[t] = drained.rest;
                    let came = Came::Drain {
                        from: at as u32,
                        thread: t as u32,
                        cell,
                        value,
                        keep: drained.keep,
                    };
                    self.add(next, came);
                }
            }
        }
    }

    /// The state after the act (local states not yet moved), if it is enabled.
    fn act(
        &self,
        state: &State<Buffer<L, C>>,
        t: usize,
        act: &Act,
        holder: Option<usize>,
    ) -> Option<State<Buffer<L, C>>> {
        let empty = L::is_empty::<C>(&state.buffers[t]);
        let free = holder.is_none_or(|h| h == t);
        match act {
            Act::Local => Some(state.clone()),
            Act::Load(cell, value) => {
                let pending = L::newest::<C>(&state.buffers[t], *cell);
                let seen = pending.unwrap_or(state.memory[cell.index()]);
                (seen == *value).then(|| state.clone())
            }
            Act::Store(cell, value) => {
                let mut next = state.clone();
                let put = L::put::<C>(&mut next.buffers[t], &self.bounds[t], (*cell, *value));
                // These contents are never full, and these layouts always buffer.
                put.ok().map(|_| next)
            }
            Act::StoreFence => {
                let mut next = state.clone();
                L::store_fence::<C>(&mut next.buffers[t]);
                Some(next)
            }
            Act::Fence => empty.then(|| state.clone()),
            Act::Atomic { reads, writes } => {
                let found = reads.iter().all(|(c, v)| state.memory[c.index()] == *v);
                (empty && free && found).then(|| {
                    let mut next = state.clone();
                    for (c, v) in writes {
                        next.memory[c.index()] = *v;
                    }
                    next
                })
            }
            Act::Lock => (empty && holder.is_none()).then(|| state.clone()),
            Act::Unlock => (empty && holder == Some(t)).then(|| state.clone()),
        }
    }

    fn run_to(&self, at: usize, end: End) -> AbstractRun {
        let mut events = Vec::new();
        let mut n = at as u32;
        loop {
            match self.came[n as usize] {
                Came::Start => break,
                Came::Edge { from, thread, edge } => {
                    let automaton = &self.automata.threads[thread as usize];
                    for (step, value) in automaton.edges[edge as usize].steps.iter().rev() {
                        events.push(Event::Step {
                            thread: ThreadId(thread),
                            step: *step,
                            value: *value,
                        });
                    }
                    n = from;
                }
                Came::Drain {
                    from,
                    thread,
                    cell,
                    value,
                    keep,
                } => {
                    let thread = ThreadId(thread);
                    events.push(Event::Drain {
                        thread,
                        cell,
                        value,
                        keep,
                    });
                    n = from;
                }
            }
        }
        events.reverse();
        let first = &self.states[n as usize];
        AbstractRun {
            start: self
                .automata
                .start(self.task.instance, first.memory.to_vec(), &first.locals),
            events,
            end,
        }
    }
}

fn extend<T: Copy>(rows: &[Vec<T>], values: &[T]) -> Vec<Vec<T>> {
    let longer = rows.iter().flat_map(|row| {
        values.iter().map(move |v| {
            let mut row = row.clone();
            row.push(*v);
            row
        })
    });
    longer.collect()
}

//! Threads of finite data as finite automata over memory acts.
//!
//! A *local state* is a location with values for the live registers; an edge says what it does to
//! memory (load this value, store that one, fence, …). Each thread is unfolded on its own: a load
//! may return any value that some thread may ever store to the cell, so the automata
//! over-approximate what a thread can do *alone*; putting the acts back on a memory, engines get
//! the exact behaviour. Addresses and expressions are gone: everything an edge says is a constant.
//!
//! Unfolding stops with a [`NotFinite`] where data does not stay finite (or is too large).

mod build;
mod chain;
mod start;

pub use build::build;

use crate::fault::Fault;
use wattle_model::instance::{Fact, Question, Thread};
use wattle_model::{CellId, Expr, Instance, LocationId, StepId, ThreadId};

/// A position among an automaton's states.
pub type LocalId = u32;

/// Where a thread is on its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalState {
    pub location: LocationId,
    /// All registers; dead ones are 0.
    pub registers: Vec<i64>,
    /// The thread holds the lock.
    pub holds: bool,
    /// The last step was this fault; the thread stays here.
    pub fault: Option<Fault>,
}

/// What an edge does to memory and buffers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// Nothing.
    Local,
    /// Reads this value.
    Load(CellId, i64),
    /// A buffered store.
    Store(CellId, i64),
    StoreFence,
    Fence,
    /// A whole atomic block: it found these values in memory and left those.
    Atomic {
        reads: Vec<(CellId, i64)>,
        writes: Vec<(CellId, i64)>,
    },
    Lock,
    Unlock,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub source: LocalId,
    pub target: LocalId,
    pub act: Act,
    /// The program's steps it takes, with the values that nondeterministic ones choose.
    pub steps: Vec<(StepId, Option<i64>)>,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Automaton {
    pub states: Vec<LocalState>,
    pub initial: Vec<LocalId>,
    pub edges: Vec<Edge>,
    /// Positions in `edges`, by source and by target.
    pub outgoing: Vec<Vec<u32>>,
    pub incoming: Vec<Vec<u32>>,
}

/// All threads, and the values each cell may ever hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automata {
    pub threads: Vec<Automaton>,
    pub values: Vec<Vec<i64>>,
    /// The values each cell may start with.
    pub initial: Vec<Vec<i64>>,
}

/// The unfolding did not end within its limits: one sentence why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFinite(pub String);

/// What a question can tell apart of a thread's local states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Location sets of the `At` facts about the thread.
    pub at: Vec<Vec<LocationId>>,
    /// Registers the question reads (sorted).
    pub registers: Vec<wattle_model::RegisterId>,
}

impl Observed {
    /// Per register: whether the question reads it.
    fn reads(&self, thread: &Thread) -> Vec<bool> {
        let ids = (0..thread.registers.len()).map(wattle_model::RegisterId::new);
        ids.map(|r| self.registers.contains(&r)).collect()
    }
}

/// What the question sees of each thread, and whether it reads memory.
pub fn observed(instance: &Instance, question: Option<&Question>) -> (Vec<Observed>, bool) {
    let mut threads = vec![Observed::default(); instance.threads.len()];
    let mut memory = false;
    if let Some(q) = question {
        observe(&q.target, &mut threads, &mut memory);
    }
    for o in &mut threads {
        o.registers.sort_unstable();
        o.registers.dedup();
        o.at.sort_unstable();
        o.at.dedup();
    }
    (threads, memory)
}

fn observe(e: &Expr<Fact>, threads: &mut [Observed], memory: &mut bool) {
    e.for_each_atom(&mut |fact| match fact {
        Fact::Cell(_) | Fact::Seen(..) => *memory = true,
        Fact::CellAt { index, .. } => {
            *memory = true;
            observe(index, threads, memory);
        }
        Fact::Register(t, r) => threads[t.index()].registers.push(*r),
        Fact::At(t, at) => threads[t.index()].at.push(at.clone()),
    });
}

impl Automaton {
    /// Rebuilds the edge indices and drops states that no path from an initial state reaches.
    fn index(&mut self) {
        let mut outgoing = vec![Vec::new(); self.states.len()];
        for (i, e) in self.edges.iter().enumerate() {
            outgoing[e.source as usize].push(i as u32);
        }
        let mut number = vec![u32::MAX; self.states.len()];
        let mut order = Vec::new();
        let mut work = std::collections::VecDeque::new();
        for &q in &self.initial {
            if number[q as usize] == u32::MAX {
                number[q as usize] = 0;
                work.push_back(q);
            }
        }
        while let Some(q) = work.pop_front() {
            number[q as usize] = order.len() as u32;
            order.push(q);
            for &e in &outgoing[q as usize] {
                let target = self.edges[e as usize].target;
                if number[target as usize] == u32::MAX {
                    number[target as usize] = 0;
                    work.push_back(target);
                }
            }
        }
        self.states = order
            .iter()
            .map(|q| self.states[*q as usize].clone())
            .collect();
        let mut edges = Vec::new();
        self.outgoing = vec![Vec::new(); order.len()];
        self.incoming = vec![Vec::new(); order.len()];
        for (source, q) in order.iter().enumerate() {
            for &e in &outgoing[*q as usize] {
                let mut edge = self.edges[e as usize].clone();
                edge.source = source as u32;
                edge.target = number[edge.target as usize];
                self.outgoing[source].push(edges.len() as u32);
                self.incoming[edge.target as usize].push(edges.len() as u32);
                edges.push(edge);
            }
        }
        self.edges = edges;
        for q in &mut self.initial {
            *q = number[*q as usize];
        }
    }

    pub fn edges_from(&self, q: LocalId) -> impl Iterator<Item = &Edge> {
        self.outgoing[q as usize]
            .iter()
            .map(|e| &self.edges[*e as usize])
    }

    pub fn edges_to(&self, q: LocalId) -> impl Iterator<Item = &Edge> {
        self.incoming[q as usize]
            .iter()
            .map(|e| &self.edges[*e as usize])
    }
}

impl Automata {
    /// The value of a condition where every thread is in the given local state.
    pub fn evaluate(
        &self,
        locals: &[LocalId],
        memory: &dyn Fn(CellId) -> i64,
        e: &Expr<Fact>,
    ) -> Result<i64, crate::FaultKind> {
        use wattle_model::Op2;
        let part = |e: &Expr<Fact>| self.evaluate(locals, memory, e);
        Ok(match e {
            Expr::Const(c) => *c,
            Expr::Atom(fact) => self.fact(locals, memory, fact)?,
            Expr::Unary(op @ wattle_model::Op1::Wrap { .. }, a) => {
                op.apply(self.modular(locals, memory, a)?)?
            }
            Expr::Unary(op, a) => op.apply(part(a)?)?,
            Expr::Binary(Op2::And, a, b) => i64::from(part(a)? != 0 && part(b)? != 0),
            Expr::Binary(Op2::Or, a, b) => i64::from(part(a)? != 0 || part(b)? != 0),
            Expr::Binary(op, a, b) => op.apply(part(a)?, part(b)?)?,
            Expr::Ite(c, a, b) => part(if part(c)? != 0 { a } else { b })?,
        })
    }

    /// What is about to be cut to its low bits; see `Op2::apply_modular`.
    fn modular(
        &self,
        locals: &[LocalId],
        memory: &dyn Fn(CellId) -> i64,
        e: &Expr<Fact>,
    ) -> Result<i64, crate::FaultKind> {
        use wattle_model::Op2;
        let part = |e: &Expr<Fact>| self.modular(locals, memory, e);
        if let Expr::Binary(op @ (Op2::Add | Op2::Sub | Op2::Mul), a, b) = e {
            return Ok(op.apply_modular(part(a)?, part(b)?)?);
        }
        if let Expr::Binary(op @ Op2::Shl, a, b) = e {
            return Ok(op.apply_modular(part(a)?, self.evaluate(locals, memory, b)?)?);
        }
        self.evaluate(locals, memory, e)
    }

    fn fact(
        &self,
        locals: &[LocalId],
        memory: &dyn Fn(CellId) -> i64,
        fact: &Fact,
    ) -> Result<i64, crate::FaultKind> {
        let local = |t: &ThreadId| &self.threads[t.index()].states[locals[t.index()] as usize];
        match fact {
            Fact::Cell(c) => Ok(memory(*c)),
            Fact::CellAt {
                base,
                length,
                index,
            } => {
                let index = self.evaluate(locals, memory, index)?;
                let length = *length;
                match u32::try_from(index).ok().filter(|i| *i < length) {
                    Some(i) => Ok(memory(CellId(base.0 + i))),
                    None => Err(crate::FaultKind::IndexOutOfRange { index, length }),
                }
            }
            // Automata have no buffers: what is pending is not known.
            Fact::Seen(t, _) => Err(crate::FaultKind::IndexOutOfRange {
                index: i64::from(t.0),
                length: 0,
            }),
            Fact::Register(t, r) => Ok(local(t).registers[r.index()]),
            Fact::At(t, at) => Ok(i64::from(at.contains(&local(t).location))),
        }
    }
}

//! Minimal predecessors of a configuration with load buffers: each rule of the forward semantics,
//! read backwards.

use super::config::{Config, Message};
use crate::backward::System;
use crate::local::{Local, generalise, others_without_lock, pattern};
use crate::pending::{Pending, matters_when_open};
use crate::targets::Target;
use wattle_memory::automaton::{Act, Automata};
use wattle_model::CellId;

/// A forward move, as the way from a predecessor to its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// The thread takes this edge of its automaton. For a load from memory, `consumed` says that
    /// the oldest message is not needed any more afterwards.
    Edge {
        thread: usize,
        edge: u32,
        consumed: bool,
    },
    /// The thread's oldest message, an own one, is lost.
    Lose { thread: usize },
    /// Memory sends a cell's value.
    Send { thread: usize, cell: CellId },
    /// The snapshot of memory is taken.
    Snapshot,
}

pub struct LoadBuffers<'a> {
    pub automata: &'a Automata,
    bad: &'a [Target],
    /// Cells of which an own message may be in a buffer.
    pending: Pending,
    /// Edges that matter when the local state they lead to is left open.
    open_edges: Vec<Vec<u32>>,
    uses_locks: bool,
}

impl<'a> LoadBuffers<'a> {
    pub fn new(automata: &'a Automata, bad: &'a [Target]) -> Self {
        LoadBuffers {
            automata,
            bad,
            pending: Pending::new(automata),
            open_edges: automata.threads.iter().map(matters_when_open).collect(),
            uses_locks: automata
                .threads
                .iter()
                .any(|a| a.states.iter().any(|s| s.holds)),
        }
    }

    /// Nobody but `t` holds the lock; locals left open are narrowed.
    fn others_without_lock(&self, config: &mut Config, t: usize) -> bool {
        !self.uses_locks || others_without_lock(self.automata, &mut config.locals, t)
    }

    fn edge(&self, after: &Config, t: usize, index: u32, out: &mut Vec<(Move, Config)>) {
        let automaton = &self.automata.threads[t];
        let edge = &automaton.edges[index as usize];
        let mut before = after.clone();
        before.locals[t] = Local::At(edge.source);
        let how = |consumed| Move::Edge {
            thread: t,
            edge: index,
            consumed,
        };
        let buffer = &after.buffers[t];
        let own = |cell: CellId| {
            buffer
                .iter()
                .position(|m| matches!(m, Message::Own(c, _) if *c == cell))
        };
        match &edge.act {
            Act::Local | Act::StoreFence => out.push((how(false), before)),
            Act::Load(cell, value) => match own(*cell) {
                Some(i) => {
                    let Message::Own(_, known) = buffer[i] else {
                        return;
                    };
                    if known.is_none_or(|v| v == *value) {
                        before.buffers[t][i] = Message::Own(*cell, Some(*value));
                        out.push((how(false), before));
                    }
                }
                None => {
                    let wanted = Message::Sent(*cell, *value);
                    let consumed = buffer.first() != Some(&wanted);
                    if consumed {
                        before.buffers[t].insert(0, wanted);
                    }
                    out.push((how(consumed), before));
                }
            },
            Act::Store(cell, value) => self.store(after, before, (t, index), *cell, *value, out),
            Act::Fence => {
                if buffer.is_empty() && !after.after {
                    out.push((how(false), before));
                }
            }
            Act::Atomic { reads, writes } => {
                if !buffer.is_empty() || after.after {
                    return;
                }
                if !self.others_without_lock(&mut before, t) {
                    return;
                }
                for (c, v) in writes {
                    if before.memory[c.index()].is_some_and(|m| m != *v) {
                        return;
                    }
                    before.memory[c.index()] = None;
                }
                for (c, v) in reads {
                    if before.memory[c.index()].is_some_and(|m| m != *v) {
                        return;
                    }
                    before.memory[c.index()] = Some(*v);
                }
                out.push((how(false), before));
            }
            Act::Lock | Act::Unlock => {
                if buffer.is_empty() && !after.after && self.others_without_lock(&mut before, t) {
                    out.push((how(false), before));
                }
            }
        }
    }

    /// A store appended the newest message. An older own message of the same cell, hidden by it, may
    /// have been anywhere before.
    fn store(
        &self,
        after: &Config,
        mut before: Config,
        (t, index): (usize, u32),
        cell: CellId,
        value: i64,
        out: &mut Vec<(Move, Config)>,
    ) {
        let Some(Message::Own(c, known)) = after.buffers[t].last().copied() else {
            return;
        };
        if c != cell || known.is_some_and(|v| v != value) {
            return;
        }
        if !after.after {
            if !self.others_without_lock(&mut before, t) {
                return;
            }
            if before.memory[cell.index()].is_some_and(|m| m != value) {
                return;
            }
            before.memory[cell.index()] = None;
        }
        before.buffers[t].pop();
        let how = Move::Edge {
            thread: t,
            edge: index,
            consumed: false,
        };
        if self.pending.cells(t, before.locals[t]).contains(&cell) {
            for i in 0..=before.buffers[t].len() {
                let mut hidden = before.clone();
                hidden.buffers[t].insert(i, Message::Own(cell, None));
                out.push((how.clone(), hidden));
            }
        }
        out.push((how, before));
    }
}

impl System for LoadBuffers<'_> {
    type Config = Config;
    /// Local states, the own messages of each buffer (their order must agree), and the phase.
    type Key = (Vec<Local>, Vec<CellId>, bool);
    type Move = Move;

    fn bad(&self) -> Vec<Config> {
        let threads = self.automata.threads.len();
        let configs = self.bad.iter().map(|t| Config {
            locals: t.locals.clone(),
            memory: t.memory.clone(),
            buffers: vec![Vec::new(); threads],
            after: t.snapshot,
        });
        configs.collect()
    }

    fn predecessors(&self, after: &Config) -> Vec<(Move, Config)> {
        let mut out = Vec::new();
        if after.after {
            let mut before = after.clone();
            before.after = false;
            out.push((Move::Snapshot, before));
        }
        for (t, automaton) in self.automata.threads.iter().enumerate() {
            match after.locals[t] {
                Local::At(q) => {
                    for &e in &automaton.incoming[q as usize] {
                        self.edge(after, t, e, &mut out);
                    }
                }
                open => {
                    for &e in &self.open_edges[t] {
                        if open.contains(automaton.edges[e as usize].target, automaton) {
                            self.edge(after, t, e, &mut out);
                        }
                    }
                }
            }
            // Losing a sent message, or an own one that another hides, leads to nothing new.
            for cell in self.pending.cells(t, after.locals[t]) {
                let buffer = &after.buffers[t];
                if !buffer
                    .iter()
                    .any(|m| matches!(m, Message::Own(c, _) if c == cell))
                {
                    let mut before = after.clone();
                    before.buffers[t].insert(0, Message::Own(*cell, None));
                    out.push((Move::Lose { thread: t }, before));
                }
            }
            if let Some(Message::Sent(cell, value)) = after.buffers[t].last().copied()
                && !after.after
                && after.memory[cell.index()].is_none_or(|m| m == value)
            {
                let mut before = after.clone();
                before.buffers[t].pop();
                before.memory[cell.index()] = Some(value);
                out.push((Move::Send { thread: t, cell }, before));
            }
        }
        out
    }

    fn covers(&self, general: &Config, special: &Config) -> bool {
        general.covers(special, self.automata)
    }

    fn is_initial(&self, config: &Config) -> bool {
        !config.after
            && config.buffers.iter().all(Vec::is_empty)
            && (config.memory.iter().zip(&self.automata.initial))
                .all(|(m, initial)| m.is_none_or(|v| initial.contains(&v)))
            && (config.locals.iter().zip(&self.automata.threads))
                .all(|(l, a)| a.initial.iter().any(|q| l.contains(*q, a)))
    }

    fn key(&self, config: &Config) -> Self::Key {
        let mut own = Vec::new();
        for buffer in &config.buffers {
            own.extend(buffer.iter().filter_map(|m| match m {
                Message::Own(c, _) => Some(*c),
                Message::Sent(..) => None,
            }));
            own.push(CellId(u32::MAX));
        }
        (config.locals.clone(), own, config.after)
    }

    fn pattern(&self, (locals, ..): &Self::Key) -> u64 {
        pattern(locals)
    }

    fn generalise(&self, (locals, own, after): &Self::Key, pattern: u64) -> Option<Self::Key> {
        Some((
            generalise(self.automata, locals, pattern)?,
            own.clone(),
            *after,
        ))
    }

    fn size(&self, config: &Config) -> usize {
        let messages: usize = config.buffers.iter().map(Vec::len).sum();
        size_of::<Config>()
            + config.locals.len() * (size_of::<Local>() * 2 + size_of::<Vec<Message>>())
            + config.memory.len() * size_of::<Option<i64>>()
            + messages * size_of::<Message>()
    }
}

//! Minimal predecessors of a configuration with load buffers: each rule of the forward semantics,
//! read backwards.

use super::config::{Config, Listed, Message};
use crate::backward::System;
use crate::local::{Local, agree, found};
use crate::parts::{Part, part};
use crate::pending::{Pending, matters_when_open};
use crate::targets::Target;
use wattle_memory::automaton::{Act, Automata};
use wattle_model::{CellId, Roles};

/// A forward move, as the way from a predecessor to its configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// The thread at this position takes this edge of its automaton. For a load from memory, `consumed` says that
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
    roles: &'a Roles,
    bad: &'a [Target],
    /// Stores wait in buffers; without that loads read memory and stores write it at once (SC).
    pub buffered: bool,
    /// Cells of which an own message may be in a buffer.
    pending: Pending,
    /// By role: edges that matter when a thread that is not listed takes them.
    open_edges: Vec<Vec<u32>>,
    /// By role: whether it may hold the lock.
    may_hold: Vec<bool>,
}

impl<'a> LoadBuffers<'a> {
    pub fn new(
        automata: &'a Automata,
        roles: &'a Roles,
        bad: &'a [Target],
        buffered: bool,
    ) -> Self {
        let may_hold = (automata.threads.iter()).map(|a| a.states.iter().any(|s| s.holds));
        LoadBuffers {
            automata,
            roles,
            bad,
            buffered,
            pending: Pending::new(automata),
            open_edges: automata.threads.iter().map(matters_when_open).collect(),
            may_hold: may_hold.collect(),
        }
    }

    /// Whether every thread's stores reach memory in their order under PSO too.
    pub fn in_order(&self) -> bool {
        self.pending.one_cell_at_a_time()
    }

    /// Whether there may be threads of the role that the configuration does not list.
    fn has_others(&self, config: &Config, role: usize) -> bool {
        self.roles.is_open(role) || config.threads.iter().all(|t| t.role != role)
    }

    /// Says that nobody else holds the lock where nobody else could.
    fn settle(&self, mut config: Config) -> Config {
        let mut others = self.roles.all().filter(|r| self.may_hold[*r]);
        config.others_unlocked |= others.all(|r| !self.has_others(&config, r));
        config
    }

    /// Nobody but the thread at position `i` holds the lock.
    fn others_without_lock(&self, config: &mut Config, i: usize) -> bool {
        config.others_unlocked = true;
        let holds = |t: &Listed| self.automata.threads[t.role].states[t.at as usize].holds;
        let mut others = config.threads.iter().enumerate().filter(|(j, _)| *j != i);
        !others.any(|(_, t)| holds(t))
    }

    /// The lock does not keep the thread at position `i` from memory.
    fn may_access(&self, before: &mut Config, i: usize) -> bool {
        !self.may_hold.contains(&true) || self.others_without_lock(before, i)
    }

    /// What a thread that the configuration does not list can have done last. Before it the thread
    /// has any buffer: the empty one stands for all without own messages, and losing those leads to
    /// it from the others.
    fn unlisted(&self, after: &Config, role: usize, index: u32, out: &mut Vec<(Move, Config)>) {
        let automaton = &self.automata.threads[role];
        let edge = &automaton.edges[index as usize];
        let asked = |c: &CellId| after.memory[c.index()].is_some();
        let matters = match &edge.act {
            Act::Store(cell, _) => asked(cell),
            Act::Atomic { writes, .. } => writes.iter().any(|(c, _)| asked(c)),
            Act::Unlock => after.others_unlocked,
            Act::Local | Act::Load(..) | Act::StoreFence | Act::Fence | Act::Lock => false,
        };
        let holds = automaton.states[edge.target as usize].holds;
        if !matters || after.after || after.others_unlocked && holds {
            return;
        }
        let mut before = after.clone();
        before.threads.push(Listed {
            role,
            at: edge.source,
            buffer: Vec::new(),
        });
        let thread = after.threads.len();
        if self.on_memory(&mut before, thread, &edge.act) {
            let how = Move::Edge {
                thread,
                edge: index,
                consumed: false,
            };
            out.push((how, before));
        }
    }

    /// What an act that changes memory or the lock found there; `false` if it cannot have been.
    fn on_memory(&self, before: &mut Config, i: usize, act: &Act) -> bool {
        let memory = &mut before.memory;
        let possible = match act {
            Act::Store(cell, value) => {
                let written = agree(&mut memory[cell.index()], *value);
                memory[cell.index()] = None;
                written
            }
            Act::Atomic { reads, writes } => found(memory, reads, writes),
            Act::Lock | Act::Unlock => true,
            Act::Local | Act::Load(..) | Act::StoreFence | Act::Fence => return true,
        };
        possible && self.may_access(before, i)
    }

    /// A listed thread took this edge.
    fn edge(&self, after: &Config, i: usize, index: u32, out: &mut Vec<(Move, Config)>) {
        let role = after.threads[i].role;
        let edge = &self.automata.threads[role].edges[index as usize];
        let mut before = after.clone();
        before.threads[i].at = edge.source;
        let how = |consumed| Move::Edge {
            thread: i,
            edge: index,
            consumed,
        };
        let buffer = &after.threads[i].buffer;
        match &edge.act {
            Act::Local | Act::StoreFence => out.push((how(false), before)),
            Act::Load(cell, value) if !self.buffered => {
                if self.may_access(&mut before, i)
                    && agree(&mut before.memory[cell.index()], *value)
                {
                    out.push((how(false), before));
                }
            }
            Act::Load(cell, value) => match own(buffer, *cell) {
                Some(n) => {
                    let Message::Own(_, known) = buffer[n] else {
                        return;
                    };
                    if known.is_none_or(|v| v == *value) {
                        before.threads[i].buffer[n] = Message::Own(*cell, Some(*value));
                        out.push((how(false), before));
                    }
                }
                None => {
                    let wanted = Message::Sent(*cell, *value);
                    let consumed = buffer.first() != Some(&wanted);
                    if consumed {
                        before.threads[i].buffer.insert(0, wanted);
                    }
                    out.push((how(consumed), before));
                }
            },
            Act::Store(cell, value) if self.buffered => {
                self.store(before, i, index, (*cell, *value), out);
            }
            act @ (Act::Store(..) | Act::Fence | Act::Atomic { .. } | Act::Lock | Act::Unlock) => {
                let possible = buffer.is_empty() && !after.after;
                if possible && self.on_memory(&mut before, i, act) {
                    out.push((how(false), before));
                }
            }
        }
    }

    /// A store appended the newest message. An older own message of the same cell, hidden by it, may
    /// have been anywhere before.
    fn store(
        &self,
        mut before: Config,
        i: usize,
        index: u32,
        (cell, value): (CellId, i64),
        out: &mut Vec<(Move, Config)>,
    ) {
        let Some(Message::Own(c, known)) = before.threads[i].buffer.pop() else {
            return;
        };
        if c != cell || known.is_some_and(|v| v != value) {
            return;
        }
        if !before.after && !self.on_memory(&mut before, i, &Act::Store(cell, value)) {
            return;
        }
        let how = Move::Edge {
            thread: i,
            edge: index,
            consumed: false,
        };
        let Listed { role, at, buffer } = &before.threads[i];
        if self.pending.cells(*role, Local::At(*at)).contains(&cell) {
            for n in 0..=buffer.len() {
                let mut hidden = before.clone();
                hidden.threads[i].buffer.insert(n, Message::Own(cell, None));
                out.push((how.clone(), hidden));
            }
        }
        out.push((how, before));
    }

    /// A message was lost or sent.
    fn messages(&self, after: &Config, i: usize, out: &mut Vec<(Move, Config)>) {
        let Listed { role, at, buffer } = &after.threads[i];
        // Losing a sent message, or an own one that another hides, leads to nothing new.
        for cell in self.pending.cells(*role, Local::At(*at)) {
            if own(buffer, *cell).is_none() {
                let mut before = after.clone();
                let lost = Message::Own(*cell, None);
                before.threads[i].buffer.insert(0, lost);
                out.push((Move::Lose { thread: i }, before));
            }
        }
        if let Some(Message::Sent(cell, value)) = buffer.last().copied()
            && !after.after
            && after.memory[cell.index()].is_none_or(|m| m == value)
        {
            let mut before = after.clone();
            before.threads[i].buffer.pop();
            before.memory[cell.index()] = Some(value);
            if self.may_access(&mut before, i) {
                out.push((Move::Send { thread: i, cell }, before));
            }
        }
    }
}

fn own(buffer: &[Message], cell: CellId) -> Option<usize> {
    let is_own = |m: &Message| matches!(m, Message::Own(c, _) if *c == cell);
    buffer.iter().position(is_own)
}

impl System for LoadBuffers<'_> {
    type Config = Config;
    type Move = Move;

    fn bad(&self) -> Vec<Config> {
        let configs = self.bad.iter().map(|target| {
            let locals = target.locals.iter().enumerate();
            let threads = locals.filter_map(|(t, local)| match local {
                Local::At(at) => Some(Listed {
                    role: self.roles.of(t),
                    at: *at,
                    buffer: Vec::new(),
                }),
                Local::Free | Local::Any => None,
            });
            self.settle(Config {
                threads: threads.collect(),
                memory: target.memory.clone(),
                others_unlocked: false,
                after: target.snapshot && self.buffered,
            })
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
        for (i, thread) in after.threads.iter().enumerate() {
            for &e in &self.automata.threads[thread.role].incoming[thread.at as usize] {
                self.edge(after, i, e, &mut out);
            }
            if self.buffered {
                self.messages(after, i, &mut out);
            }
        }
        for role in self.roles.all().filter(|r| self.has_others(after, *r)) {
            for &e in &self.open_edges[role] {
                self.unlisted(after, role, e, &mut out);
            }
        }
        out.into_iter()
            .map(|(how, before)| (how, self.settle(before)))
            .collect()
    }

    fn covers(&self, general: &Config, special: &Config) -> bool {
        general.covers(special, self.automata)
    }

    fn is_initial(&self, config: &Config) -> bool {
        let starts = |t: &Listed| {
            t.buffer.is_empty() && self.automata.threads[t.role].initial.contains(&t.at)
        };
        !config.after
            && (config.memory.iter().zip(&self.automata.initial))
                .all(|(m, initial)| m.is_none_or(|v| initial.contains(&v)))
            && config.threads.iter().all(starts)
    }

    /// The phase, and for each thread listed its role, local state and own messages.
    fn parts(&self, config: &Config) -> Vec<Part> {
        let mut parts = vec![part(config.after)];
        parts.extend(config.threads.iter().map(|t| {
            let own = t.buffer.iter().filter_map(|m| match m {
                Message::Own(c, _) => Some(*c),
                Message::Sent(..) => None,
            });
            part((t.role, t.at, own.collect::<Vec<_>>()))
        }));
        parts.sort_unstable();
        parts
    }

    fn size(&self, config: &Config) -> usize {
        let messages: usize = config.threads.iter().map(|t| t.buffer.len()).sum();
        size_of::<Config>()
            + config.threads.len() * 2 * size_of::<Listed>()
            + config.memory.len() * size_of::<Option<i64>>()
            + messages * size_of::<Message>()
    }
}

//! Minimal predecessors of a configuration with multiset buffers.

use super::config::{Bag, Config};
use crate::backward::System;
use crate::local::{Local, agree, found};
use crate::parts::{Part, part};
use crate::pending::{Pending, matters_when_open};
use crate::targets::{Target, stopped};
use wattle_evidence::{Control, Meter, Reason};
use wattle_memory::automaton::{Act, Automata};
use wattle_model::CellId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    Edge {
        thread: usize,
        edge: u32,
    },
    /// A store reaches memory; the value is open if nobody asked for it.
    Drain {
        thread: usize,
        cell: CellId,
        value: Option<i64>,
    },
}

pub struct Multisets<'a> {
    automata: &'a Automata,
    bad: Vec<Config>,
    pending: Pending,
    open_edges: Vec<Vec<u32>>,
    uses_locks: bool,
}

/// More ways for buffers to look in bad states than this are not worth starting from.
const MAX_BAD: usize = 1 << 18;

impl<'a> Multisets<'a> {
    pub fn new(
        automata: &'a Automata,
        targets: &[Target],
        only_final: bool,
        control: &Control<'_>,
    ) -> Result<Self, Reason> {
        let meter = Meter::new(control);
        let uses_locks = automata
            .threads
            .iter()
            .any(|a| a.states.iter().any(|s| s.holds));
        let mut system = Multisets {
            automata,
            bad: Vec::new(),
            pending: Pending::new(automata),
            open_edges: automata.threads.iter().map(matters_when_open).collect(),
            uses_locks,
        };
        for target in targets {
            let cells = automata.values.len();
            let empty = Config {
                locals: target.locals.clone(),
                memory: target.memory.clone(),
                bags: vec![vec![None; cells]; automata.threads.len()],
            };
            // A bad state stays bad while buffers drain, unless it looks at memory meanwhile or a
            // lock keeps them from draining: then every way for buffers to look is a start. In
            // final states nothing is pending.
            let mut starts = vec![empty];
            let is_final = only_final && target.fault.is_none();
            if target.snapshot || uses_locks && !is_final {
                for (t, local) in target.locals.iter().enumerate() {
                    for c in system.pending.cells(t, *local) {
                        let more = starts.iter().map(|s| {
                            let mut s = s.clone();
                            s.bags[t][c.index()] = Some(Bag::default());
                            s
                        });
                        let more: Vec<Config> = more.collect();
                        meter.spend(16 * more.len()).map_err(stopped)?;
                        starts.extend(more);
                        if starts.len() + system.bad.len() > MAX_BAD {
                            let why = "the property is true in too many configurations";
                            return Err(Reason::Other(why.into()));
                        }
                    }
                }
            }
            system.bad.extend(starts);
        }
        Ok(system)
    }

    fn others_without_lock(&self, config: &mut Config, t: usize) -> bool {
        !self.uses_locks || crate::local::others_without_lock(self.automata, &mut config.locals, t)
    }

    fn edge(&self, after: &Config, t: usize, index: u32, out: &mut Vec<(Move, Config)>) {
        let edge = &self.automata.threads[t].edges[index as usize];
        let mut before = after.clone();
        before.locals[t] = Local::At(edge.source);
        let how = Move::Edge {
            thread: t,
            edge: index,
        };
        let empty = after.bags[t].iter().all(Option::is_none);
        match &edge.act {
            Act::Local | Act::StoreFence => out.push((how, before)),
            Act::Load(cell, value) => {
                if !self.others_without_lock(&mut before, t) {
                    return;
                }
                let ok = match &mut before.bags[t][cell.index()] {
                    Some(bag) => agree(&mut bag.last, *value),
                    None => agree(&mut before.memory[cell.index()], *value),
                };
                if ok {
                    out.push((how, before));
                }
            }
            Act::Store(cell, value) => {
                let Some(bag) = after.bags[t][cell.index()].clone() else {
                    return;
                };
                if bag.last.is_some_and(|v| v != *value) {
                    return;
                }
                let mut with = |bag: Option<Bag>| {
                    let mut before = before.clone();
                    before.bags[t][cell.index()] = bag;
                    out.push((how.clone(), before));
                };
                if bag.others.is_empty() {
                    with(None);
                }
                if self.pending.cells(t, Local::At(edge.source)).contains(cell) {
                    // What was last before is among the others now: one of those asked for, or not.
                    for v in bag.others.keys() {
                        let mut earlier = bag.clone();
                        earlier.remove(*v);
                        earlier.last = Some(*v);
                        with(Some(earlier));
                    }
                    let others = bag.others.clone();
                    with(Some(Bag { last: None, others }));
                }
            }
            Act::Fence => {
                if empty {
                    out.push((how, before));
                }
            }
            Act::Lock | Act::Unlock => {
                if empty && self.others_without_lock(&mut before, t) {
                    out.push((how, before));
                }
            }
            Act::Atomic { reads, writes } => {
                if !empty || !self.others_without_lock(&mut before, t) {
                    return;
                }
                if found(&mut before.memory, reads, writes) {
                    out.push((how, before));
                }
            }
        }
    }

    fn drains(&self, after: &Config, t: usize, out: &mut Vec<(Move, Config)>) {
        for &cell in self.pending.cells(t, after.locals[t]) {
            let value = after.memory[cell.index()];
            let mut before = after.clone();
            if !self.others_without_lock(&mut before, t) {
                return;
            }
            before.memory[cell.index()] = None;
            match (&mut before.bags[t][cell.index()], value) {
                // The last of the cell drained.
                (bag @ None, value) => {
                    *bag = Some(Bag {
                        last: value,
                        ..Bag::default()
                    });
                }
                // One of the others did.
                (Some(bag), Some(v)) => bag.add(v),
                // Nobody asks what is in memory: nothing new comes of it.
                (Some(_), None) => continue,
            }
            let how = Move::Drain {
                thread: t,
                cell,
                value,
            };
            out.push((how, before));
        }
    }
}

impl System for Multisets<'_> {
    type Config = Config;
    type Move = Move;

    fn bad(&self) -> Vec<Config> {
        self.bad.clone()
    }

    fn predecessors(&self, after: &Config) -> Vec<(Move, Config)> {
        let mut out = Vec::new();
        for (t, automaton) in self.automata.threads.iter().enumerate() {
            match after.locals[t] {
                Local::At(q) => {
                    for &e in &automaton.incoming[q as usize] {
                        self.edge(after, t, e, &mut out);
                    }
                }
                open @ (Local::Free | Local::Any) => {
                    for &e in &self.open_edges[t] {
                        if open.contains(automaton.edges[e as usize].target, automaton) {
                            self.edge(after, t, e, &mut out);
                        }
                    }
                }
            }
            self.drains(after, t, &mut out);
        }
        out
    }

    fn covers(&self, general: &Config, special: &Config) -> bool {
        general.covers(special, self.automata)
    }

    fn is_initial(&self, config: &Config) -> bool {
        config.bags.iter().flatten().all(Option::is_none)
            && (config.memory.iter().zip(&self.automata.initial))
                .all(|(m, initial)| m.is_none_or(|v| initial.contains(&v)))
            && (config.locals.iter().zip(&self.automata.threads))
                .all(|(l, a)| a.initial.iter().any(|q| l.contains(*q, a)))
    }

    /// Known local states, and of which cells something is pending.
    fn parts(&self, config: &Config) -> Vec<Part> {
        let pending = config.bags.iter().flatten().map(Option::is_some);
        let mut parts = vec![part(pending.collect::<Vec<bool>>())];
        let locals = config.locals.iter().enumerate();
        parts.extend(locals.filter_map(|(t, l)| match l {
            Local::At(q) => Some(part((t, q))),
            Local::Free | Local::Any => None,
        }));
        parts.sort_unstable();
        parts
    }

    fn size(&self, config: &Config) -> usize {
        let bags = config.bags.iter().flatten().flatten();
        let entries: usize = bags.map(|b| 48 + b.others.len() * 32).sum();
        size_of::<Config>() + config.memory.len() * 16 + config.locals.len() * 64 + entries
    }
}

//! From a run with load buffers to a run with store buffers.
//!
//! Memory changes in the same order in both. A load that read a message happens, with store
//! buffers, when that message was sent; a store's drain happens when it wrote memory; everything
//! else of a thread happens as early as its program order allows (a fence: when the thread's last
//! store has drained). So what a thread does without memory never waits for a lock taken meanwhile.

use super::config::Message;
use super::predecessors::{LoadBuffers, Move};
use crate::backward::Search;
use crate::local::Local;
use crate::start::start;
use std::collections::VecDeque;
use wattle_evidence::{End, Task, Trace};
use wattle_memory::Event;
use wattle_memory::automaton::{Act, Automata};
use wattle_model::{CellId, ThreadId};

/// Where a run is to be shown: an instance with enough threads for it.
pub struct Stage<'a> {
    pub task: Task<'a>,
    /// The automata of the instance's own threads.
    pub automata: &'a Automata,
    /// By position in the run's first configuration: which thread it is.
    pub seats: &'a [usize],
}

pub fn concrete(
    stage: &Stage<'_>,
    search: &Search<'_, LoadBuffers<'_>>,
    first: u32,
) -> Result<Trace, String> {
    let (task, automata) = (&stage.task, stage.automata);
    let initial = &search.nodes[first as usize].config;
    let mut locals = vec![Local::Any; automata.threads.len()];
    for (thread, seat) in initial.threads.iter().zip(stage.seats) {
        locals[*seat] = Local::At(thread.at);
    }
    let start = start(task, automata, &initial.memory, &locals);
    let mut run = Run::new(stage, search.system().buffered);
    let mut n = first;
    let mut after = false;
    while let Some((next, how)) = &search.nodes[n as usize].next {
        after |= *how == Move::Snapshot;
        run.play(how, after)?;
        n = *next;
    }
    let bad = &search.nodes[n as usize].config;
    let mut events = run.events();
    let fault = (bad.threads.iter().zip(stage.seats)).find_map(|(thread, seat)| {
        let state = &automata.threads[*seat].states[thread.at as usize];
        state.fault.clone()
    });
    let end = match fault {
        None => End::Target,
        Some(fault) => {
            let last = events.iter().position(|e| {
                matches!(e, Event::Step { thread, step, .. }
                    if *thread == fault.thread && *step == fault.step
                        && run.faulting == Some((*thread, *step)))
            });
            // The faulting step is the thread's last; what others do later is not needed.
            if let Some(i) = last.and_then(|_| {
                events.iter().rposition(
                    |e| matches!(e, Event::Step { thread, .. } if *thread == fault.thread),
                )
            }) {
                events.truncate(i + 1);
            }
            End::Fault(fault)
        }
    };
    let trace = Trace {
        model: task.model,
        start,
        events,
        end,
    };
    // A machine overflow is no violation; the caller turns it into "undecided".
    let overflow = wattle_memory::FaultKind::MachineOverflow;
    if !matches!(&trace.end, End::Fault(f) if f.kind == overflow) {
        trace.check(task).map_err(|e| {
            format!("a run with load buffers did not replay with store buffers: {e:?}")
        })?;
    }
    Ok(trace)
}

struct Run<'a> {
    automata: &'a Automata,
    seats: &'a [usize],
    buffered: bool,
    /// Per thread: its load buffer, each message with the time it was sent.
    buffers: Vec<VecDeque<(Message, u64)>>,
    /// Per thread: when its last step happened with store buffers.
    clock: Vec<u64>,
    /// Per thread: when its last store reached memory.
    drained: Vec<u64>,
    now: u64,
    /// Events with their time; drains come before steps of the same time.
    timed: Vec<((u64, u8), Event)>,
    faulting: Option<(ThreadId, wattle_model::StepId)>,
}

impl<'a> Run<'a> {
    fn new(stage: &Stage<'a>, buffered: bool) -> Self {
        let threads = stage.automata.threads.len();
        Run {
            automata: stage.automata,
            seats: stage.seats,
            buffered,
            buffers: vec![VecDeque::new(); threads],
            clock: vec![0; threads],
            drained: vec![0; threads],
            now: 0,
            timed: Vec::new(),
            faulting: None,
        }
    }

    fn play(&mut self, how: &Move, after: bool) -> Result<(), String> {
        self.now += 1;
        match *how {
            Move::Snapshot => {}
            Move::Lose { thread } => {
                self.buffers[self.seats[thread]].pop_front();
            }
            Move::Send { thread, cell } => {
                // The value is not needed: only when it was sent.
                let seat = self.seats[thread];
                self.buffers[seat].push_back((Message::Sent(cell, 0), self.now));
            }
            Move::Edge {
                thread,
                edge,
                consumed,
            } => self.edge(self.seats[thread], edge, consumed, after)?,
        }
        Ok(())
    }

    fn edge(&mut self, t: usize, edge: u32, consumed: bool, after: bool) -> Result<(), String> {
        let automaton = &self.automata.threads[t];
        let edge = &automaton.edges[edge as usize];
        let buffer = &mut self.buffers[t];
        let own = |b: &VecDeque<(Message, u64)>, cell: CellId| {
            b.iter()
                .position(|(m, _)| matches!(m, Message::Own(c, _) if *c == cell))
        };
        match &edge.act {
            // Under SC everything happens when it happens.
            _ if !self.buffered => self.clock[t] = self.now,
            Act::Load(cell, _) if own(buffer, *cell).is_none() => {
                let (_, sent) = *buffer.front().ok_or("a load had no message to read")?;
                self.clock[t] = self.clock[t].max(sent);
                if consumed {
                    buffer.pop_front();
                }
            }
            Act::Fence => self.clock[t] = self.clock[t].max(self.drained[t]),
            Act::Atomic { .. } | Act::Lock | Act::Unlock => self.clock[t] = self.now,
            Act::Store(cell, value) => {
                if let Some(i) = own(buffer, *cell) {
                    buffer.remove(i);
                }
                buffer.push_back((Message::Own(*cell, Some(*value)), self.now));
                if !after {
                    let drain = Event::Drain {
                        thread: ThreadId::new(t),
                        cell: *cell,
                        value: *value,
                        keep: false,
                    };
                    self.timed.push(((self.now, 0), drain));
                    self.drained[t] = self.now;
                }
            }
            Act::Local | Act::Load(..) | Act::StoreFence => {}
        }
        let thread = ThreadId::new(t);
        for (step, value) in &edge.steps {
            let event = Event::Step {
                thread,
                step: *step,
                value: *value,
            };
            self.timed.push(((self.clock[t], 1), event));
        }
        if automaton.states[edge.target as usize].fault.is_some() {
            self.faulting = edge.steps.last().map(|(s, _)| (thread, *s));
        }
        Ok(())
    }

    /// In order of time; a stable sort keeps each thread's program order.
    fn events(&self) -> Vec<Event> {
        let mut timed = self.timed.clone();
        timed.sort_by_key(|(time, _)| *time);
        timed.into_iter().map(|(_, e)| e).collect()
    }
}

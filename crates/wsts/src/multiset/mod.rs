//! `multiset`: proofs under TSO and PSO by backward coverability with multiset buffers (calin-2016
//! §3.2.2 and Appendix B).
//!
//! A buffer remembers, per cell, the last-added value and how often every other value is pending;
//! order is forgotten, so what cannot be reached here cannot be reached under TSO, nor under PSO
//! (whose store fences are forgotten too). Ordered by "same last-added values, at least these
//! counts" the system is well-structured and backward search ends. Two corrections to the appendix:
//! the last-added value before a store is not determined by what comes after it (any pending value
//! of the cell, or none, is possible), and the order compares last-added values with equality.
//!
//! A bad state that is reached may be an artefact of the lost order: then there is no verdict.

mod config;
mod predecessors;

pub use config::{Bag, Config};

use crate::backward::{Found, Search};
use crate::local::Local;
use crate::targets::targets;
use predecessors::{Move, Multisets};
use wattle_evidence::{
    Answer, Certificate, Control, End, Engine, Progress, Reason, Refusal, Task, Trace,
};
use wattle_memory::automaton::Automata;
use wattle_memory::{Event, MemoryModel};
use wattle_model::{Roles, ThreadId};

pub struct Multiset;

const NAME: &str = "multiset";

impl Engine for Multiset {
    fn name(&self) -> &'static str {
        NAME
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        task.is_about_memory()?;
        if task.model == MemoryModel::Sc {
            return Err(Refusal::new(format!("`{NAME}` is for TSO and PSO")));
        }
        if task.deadlock {
            return Err(Refusal::new(format!(
                "`{NAME}` does not look for deadlocks"
            )));
        }
        Ok(())
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        decide(task, control).unwrap_or_else(|reason| Answer::Undecided {
            reason,
            effort: Progress::default(),
        })
    }
}

fn decide(task: &Task<'_>, control: &Control<'_>) -> Result<Answer, Reason> {
    control
        .poll(NAME, Progress::default())
        .map_err(|stop| Reason::stopped(stop, NAME))?;
    let automata = task.unfold(NAME, false, control)?;
    let bad = targets(task, &Roles::fixed(task.instance), &automata, control)?;
    let only_final = task.question().is_some_and(|q| q.only_final);
    let system = Multisets::new(&automata, &bad, only_final, control)?;
    let mut search = Search::new(&system);
    let found = search.run(NAME, control);
    let effort = search.progress(0);
    Ok(match found {
        Err(stop) => Answer::Undecided {
            reason: Reason::Stopped {
                stop,
                stage: format!("{NAME} ({} configurations)", effort.states),
            },
            effort,
        },
        Ok(Found::Closed) => Answer::Unreachable {
            certificate: Certificate::Multisets(config::certificate(&automata, search.basis())),
            effort,
        },
        Ok(Found::Initial(n)) => match concrete(task, &automata, &search, n) {
            Some(trace) => Answer::Reached { trace, effort },
            None => {
                let why = "the run it found needs stores out of order; it cannot decide this one";
                Answer::Undecided {
                    reason: Reason::Other(format!("{NAME}: {why}")),
                    effort,
                }
            }
        },
    })
}

/// The run as a trace, if the real machine follows it.
fn concrete(
    task: &Task<'_>,
    automata: &Automata,
    search: &Search<'_, Multisets<'_>>,
    first: u32,
) -> Option<Trace> {
    let mut events = Vec::new();
    let mut pending: Vec<Vec<Vec<i64>>> =
        vec![vec![Vec::new(); automata.values.len()]; automata.threads.len()];
    let mut n = first;
    while let Some((next, how)) = &search.nodes[n as usize].next {
        match how {
            Move::Edge { thread, edge } => {
                let edge = &automata.threads[*thread].edges[*edge as usize];
                if let wattle_memory::automaton::Act::Store(c, v) = edge.act {
                    pending[*thread][c.index()].push(v);
                }
                let steps = edge.steps.iter().map(|(step, value)| Event::Step {
                    thread: ThreadId::new(*thread),
                    step: *step,
                    value: *value,
                });
                events.extend(steps);
            }
            Move::Drain {
                thread,
                cell,
                value,
            } => {
                let queue = &mut pending[*thread][cell.index()];
                let i = match value {
                    Some(v) => queue.iter().position(|w| w == v)?,
                    None => 0,
                };
                let value = (i < queue.len()).then(|| queue.remove(i))?;
                events.push(Event::Drain {
                    thread: ThreadId::new(*thread),
                    cell: *cell,
                    value,
                    keep: false,
                });
            }
        }
        n = *next;
    }
    let last = &search.nodes[n as usize].config;
    let fault = last
        .locals
        .iter()
        .zip(&automata.threads)
        .find_map(|(l, a)| match l {
            Local::At(q) => a.states[*q as usize].fault.clone(),
            Local::Free | Local::Any => None,
        });
    let first = &search.nodes[first as usize].config;
    let trace = Trace {
        model: task.model,
        start: crate::start::start(task, automata, &first.memory, &first.locals),
        events,
        end: fault.map_or(End::Target, End::Fault),
    };
    trace.check(task).is_ok().then_some(trace)
}

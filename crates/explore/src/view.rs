//! What there is to see at the end of a way.

use crate::walk::{Subject, Walk, Way};
use serde::Serialize;
use wattle_memory::Event;
use wattle_memory::reference::Snapshot;
use wattle_report::why::{self, Overtaking, Why};
use wattle_report::words;

/// A state, how it came about and what can follow.
#[derive(Clone, Debug, Serialize)]
pub struct Scene {
    pub way: Way,
    pub threads: Vec<ThreadView>,
    pub memory: Vec<CellView>,
    pub history: Vec<EventView>,
    pub next: Vec<EventView>,
    /// Properties that this state answers: their numbers.
    pub shows: Vec<usize>,
    /// Which later accesses were done before which earlier stores were in memory.
    pub overtakings: Vec<OvertakingView>,
    /// Where it answers a property: why this is possible on relaxed memory.
    pub why: Vec<String>,
    /// Why it does not go on: a fault, the end of all threads, or that nobody can move.
    pub end: Option<String>,
    /// How many initial states there are.
    pub starts: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct ThreadView {
    pub name: String,
    /// The line it stands at, or 0.
    pub line: u32,
    /// The labels it stands at.
    pub labels: Vec<String>,
    pub ended: bool,
    pub registers: Vec<Value>,
    /// Pending stores, oldest first.
    pub buffer: Vec<Value>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Value {
    pub name: String,
    pub value: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct CellView {
    pub name: String,
    pub value: i64,
    /// Whether the last event changed it.
    pub changed: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct EventView {
    pub thread: usize,
    pub drain: bool,
    pub text: String,
    /// Line in the source, or 0.
    pub line: u32,
}

/// Positions in the history.
#[derive(Clone, Debug, Serialize)]
pub struct OvertakingView {
    pub store: usize,
    pub later: usize,
    /// The line below which a fence would have kept the order, if it is between lines.
    pub fence: Option<u32>,
}

impl Subject<'_> {
    /// What there is to see after a walk.
    pub fn view(&self, walk: &Walk) -> Scene {
        let last = walk.states.len() - 1;
        let state = &walk.states[last];
        let history = walk.events.iter().enumerate().map(|(i, event)| {
            let after = walk.states.get(i + 1);
            self.event(event, &walk.states[i], after)
        });
        let questions = 0..self.instance.questions.len();
        let shows: Vec<usize> = questions.filter(|q| self.shows(walk, *q)).collect();
        let why = self.why(walk);
        let overtaking = |o: &Overtaking| OvertakingView {
            store: o.store,
            later: o.later,
            fence: why::line(self.instance, o),
        };
        Scene {
            way: walk.way.clone(),
            threads: (0..self.instance.threads.len())
                .map(|t| self.thread(t, state))
                .collect(),
            memory: self.memory(state, last.checked_sub(1).map(|b| &walk.states[b])),
            history: history.collect(),
            next: walk
                .next
                .iter()
                .map(|e| self.event(e, state, None))
                .collect(),
            overtakings: why.overtakings.iter().map(overtaking).collect(),
            // Steps of a walk are events.
            why: match !shows.is_empty() || walk.fault.is_some() || self.stuck(walk, state) {
                true => why::sentences(&self.task(None), &why, &|event| event + 1),
                false => Vec::new(),
            },
            shows,
            end: self.end(walk, state),
            starts: self.starts().map_or(1, |s| s.len()),
        }
    }

    /// What SC says of the same end is not asked.
    fn why(&self, walk: &Walk) -> Why {
        let (task, trace) = (self.task(None), self.trace(walk));
        Why {
            overtakings: why::overtakings(&task, &trace, &walk.states),
            sc_forbids: None,
        }
    }

    fn thread(&self, t: usize, state: &Snapshot) -> ThreadView {
        let thread = &self.instance.threads[t];
        let at = &thread.locations[state.locations[t].index()];
        let registers = thread.registers.iter().zip(&state.registers[t]);
        let registers = registers.filter(|(r, _)| !words::is_temporary(&r.name));
        let value = |name: &str, value: i64| Value {
            name: name.to_string(),
            value,
        };
        // In the midst of a statement it is the one whose steps go on.
        let out = thread
            .steps
            .iter()
            .filter(|s| s.source == state.locations[t]);
        let lines = [at.span.line].into_iter().chain(out.map(|s| s.span.line));
        ThreadView {
            name: thread.name.clone(),
            line: lines.into_iter().find(|l| *l > 0).unwrap_or(0),
            labels: at.labels.clone(),
            ended: thread.ended(state.locations[t]),
            registers: registers.map(|(r, v)| value(&r.name, *v)).collect(),
            buffer: (state.buffers[t].iter())
                .map(|(c, v)| value(&self.instance.cell(*c).name, *v))
                .collect(),
        }
    }

    fn memory(&self, state: &Snapshot, before: Option<&Snapshot>) -> Vec<CellView> {
        let cells = self.instance.cells.iter().zip(&state.memory).enumerate();
        let cell = |(i, (c, v)): (usize, (&wattle_model::instance::Cell, &i64))| CellView {
            name: c.name.clone(),
            value: *v,
            changed: before.is_some_and(|b| b.memory[i] != *v),
        };
        cells.map(cell).collect()
    }

    fn event(&self, event: &Event, before: &Snapshot, after: Option<&Snapshot>) -> EventView {
        let thread = event.thread();
        EventView {
            thread: thread.index(),
            drain: matches!(event, Event::Drain { .. }),
            text: match (event, after) {
                // What will be chosen is known already.
                (
                    Event::Step {
                        step,
                        value: Some(v),
                        ..
                    },
                    None,
                ) => {
                    let t = self.instance.thread(thread);
                    format!("{} → {v}", words::step(self.instance, t, t.step(*step)))
                }
                _ => words::event(self.instance, event, before, after),
            },
            line: wattle_report::table::line(self.instance, event),
        }
    }

    fn end(&self, walk: &Walk, state: &Snapshot) -> Option<String> {
        if let Some(fault) = &walk.fault {
            let thread = &self.instance.thread(fault.thread).name;
            return Some(format!("{thread}: {}", fault.kind));
        }
        if !walk.next.is_empty() {
            return None;
        }
        Some(match self.stuck(walk, state) {
            false => "all threads have ended".into(),
            true => "nobody can move: a deadlock".into(),
        })
    }

    /// Nobody can move, and not all have ended.
    fn stuck(&self, walk: &Walk, state: &Snapshot) -> bool {
        let mut threads = self.instance.threads.iter().zip(&state.locations);
        let ended = threads.all(|(thread, at)| thread.ended(*at));
        walk.next.is_empty() && !ended
    }
}

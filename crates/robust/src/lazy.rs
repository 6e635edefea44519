//! The engine `lazy`: TSO reachability by SC reachability of a program that buffers only where an
//! oracle says (calin-2016, Algorithm 3.1, with the robustness oracle of Section 3.1.2).
//!
//! Each round asks SC about the extended program; if the target is not reached, the attack search
//! gives sequences along which a store can be delayed to some effect, and the program is extended by
//! them. Deviations: the original store stays (see [`crate::extend`]), so sequences already dealt
//! with are excluded from the oracle instead; several sequences are taken per round. What is found
//! is a run of the original program under TSO and is replayed. If the oracle has nothing to say at
//! once the program is robust and SC's answer stands; later on it only means that the engine gives
//! up. On programs with loops it need not end (Fig. 3.3), so its rounds are bounded.

use crate::attack::{Goal, Options, Sequence, search_many};
use crate::engine::{self, Robust};
use crate::extend::Extended;
use wattle_evidence::{
    Answer, Certificate, Control, End, Engine, Progress, Reason, Refusal, Task, Trace,
};
use wattle_memory::reference::{Machine, Outcome};
use wattle_memory::{Event, Exact, MemoryModel, Tso};
use wattle_search::Explicit;

#[derive(Clone, Copy, Debug)]
pub struct Lazy {
    pub explicit: Explicit,
    /// Sequences per round.
    pub sequences: usize,
    pub most_rounds: usize,
    /// The extended program has at most this many steps.
    pub most_steps: usize,
}

impl Default for Lazy {
    fn default() -> Self {
        Lazy {
            explicit: Explicit::default(),
            sequences: 8,
            most_rounds: 60,
            most_steps: 20_000,
        }
    }
}

impl Engine for Lazy {
    fn name(&self) -> &'static str {
        "lazy"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        if task.model != MemoryModel::Tso {
            return Err(Refusal::new("it decides TSO only"));
        }
        if task.deadlock {
            return Err(Refusal::new("it does not look for deadlocks"));
        }
        self.explicit.accepts(&Task {
            model: MemoryModel::Sc,
            ..*task
        })
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let mut extended = Extended::new(task.instance);
        let mut done: Vec<Sequence> = Vec::new();
        let mut effort = Progress::default();
        for round in 0..self.most_rounds {
            let under_sc = match self.round(task, &extended, control, &mut effort) {
                Ok(certificate) => certificate,
                Err(answer) => return *answer,
            };
            let options = Options::new(Goal::Robustness, MemoryModel::Tso);
            let found = search_many(&extended.instance, options, &done, self.sequences, control);
            effort.states += found.effort.states;
            if found.attacks.is_empty() {
                let robust = round == 0 && found.unfinished.is_none();
                if robust && Robust::default().accepts(task).is_ok() {
                    return engine::by_sc(under_sc, effort);
                }
                let reason = found.unfinished.unwrap_or_else(|| {
                    Reason::Other(format!("the oracle knows nothing new after {round} rounds"))
                });
                return Answer::Undecided { reason, effort };
            }
            for attack in found.attacks {
                let sequence = (attack.attacker, attack.path);
                extended.extend(sequence.0, &sequence.1);
                done.push(sequence);
            }
            if extended.size() > self.most_steps {
                let reason = Reason::Other("the extended program became too large".into());
                return Answer::Undecided { reason, effort };
            }
        }
        let rounds = self.most_rounds;
        let reason = Reason::Other(format!("nothing found in {rounds} rounds of buffering"));
        Answer::Undecided { reason, effort }
    }
}

impl Lazy {
    /// Asks SC about the extended program: a certificate, or the answer to give.
    fn round(
        &self,
        task: &Task<'_>,
        extended: &Extended,
        control: &Control<'_>,
        effort: &mut Progress,
    ) -> Result<Certificate, Box<Answer>> {
        let mut instance = extended.instance.clone();
        for q in &mut instance.questions {
            q.target = extended.target(&q.target);
        }
        let sc = Task {
            instance: &instance,
            model: MemoryModel::Sc,
            ..*task
        };
        match self.explicit.run(&sc, control) {
            Answer::Reached { trace, effort: e } => {
                effort.states += e.states;
                let effort = *effort;
                Err(Box::new(match original(task, extended, &trace) {
                    Some(trace) => Answer::Reached { trace, effort },
                    None => Answer::Undecided {
                        reason: Reason::Other("a run of the extended program is no TSO run".into()),
                        effort,
                    },
                }))
            }
            Answer::Unreachable {
                certificate,
                effort: e,
            } => {
                effort.states += e.states;
                effort.memory = effort.memory.max(e.memory);
                Ok(certificate)
            }
            other @ (Answer::Bounded { .. } | Answer::Undecided { .. }) => Err(Box::new(other)),
        }
    }
}

/// The SC run of the extended program as a TSO run of the original: emulated steps happen, stores of
/// the extended program are drains.
fn original(task: &Task<'_>, extended: &Extended, trace: &Trace) -> Option<Trace> {
    let machine = Machine::<Tso, Exact>::new(task.instance, ()).ok()?;
    let mut start = trace.start.clone();
    for (mine, thread) in start.registers.iter_mut().zip(&task.instance.threads) {
        mine.truncate(thread.registers.len());
    }
    let mut state = machine.initial(&start);
    let mut events = Vec::new();
    let mut end = trace.end.clone();
    for event in &trace.events {
        let Event::Step {
            thread,
            step,
            value,
        } = *event
        else {
            return None;
        };
        if let Some(meant) = extended.original(thread, step) {
            let event = Event::Step {
                thread,
                step: meant,
                value,
            };
            events.push(event);
            match machine.apply(&state, &event) {
                Outcome::Next(next) => state = next,
                Outcome::Fault(fault) => {
                    end = End::Fault(fault);
                    break;
                }
                Outcome::Full(_) => return None,
            }
        }
        let action = &extended.instance.thread(thread).step(step).action;
        let drains = matches!(action, wattle_model::graph::Action::Store { .. });
        if drains && let Some((cell, value)) = state.buffers[thread.index()].0.first().copied() {
            let drain = Event::Drain {
                thread,
                cell,
                value,
                keep: false,
            };
            events.push(drain);
            match machine.apply(&state, &drain) {
                Outcome::Next(next) => state = next,
                Outcome::Fault(_) | Outcome::Full(_) => return None,
            }
        }
    }
    let run = Trace {
        model: MemoryModel::Tso,
        start,
        events,
        end,
    };
    run.check(task).ok()?;
    Some(run)
}

//! The engine `robust`: TSO by SC (calin-2016 Theorem 5).
//!
//! If a program is robust, its TSO runs have the happens-before relations of SC runs. What that
//! preserves: every combination of locations and registers that TSO reaches, SC reaches (with the
//! pending stores made); and memory, wherever all buffers are empty. So the engine answers questions
//! that look at locations and registers only, and questions about final states; it refuses those
//! that look at memory in between, where a store may still be pending, and deadlocks. Faults depend
//! on registers, or on the value a load reads, so they are preserved too.

use crate::attack::{Finding, Goal, Options, search};
use wattle_evidence::certificate::Robust as Proof;
use wattle_evidence::{
    Answer, Certificate, Control, Engine, Progress, Reason, Refusal, Task, Trace,
};
use wattle_memory::reference::{Machine, Outcome};
use wattle_memory::{Event, Exact, MemoryModel, Tso};
use wattle_model::instance::Fact;
use wattle_search::Explicit;

#[derive(Clone, Copy, Debug, Default)]
pub struct Robust {
    pub explicit: Explicit,
}

impl Engine for Robust {
    fn name(&self) -> &'static str {
        "robust"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        let refuse = |why: &str| Err(Refusal::new(why.to_string()));
        task.is_about_memory()?;
        if task.model != MemoryModel::Tso {
            return refuse("it decides TSO only");
        }
        if task.deadlock {
            return refuse("robustness says nothing about deadlocks");
        }
        if let Some(q) = task.question()
            && !q.only_final
        {
            let mut memory = false;
            q.target.for_each_atom(&mut |f| {
                memory |= matches!(f, Fact::Cell(_) | Fact::Seen(..) | Fact::CellAt { .. });
            });
            if memory {
                return refuse(
                    "the property looks at memory while stores may be pending, \
                     which robustness does not preserve",
                );
            }
        }
        if !(task.instance).waiting_for_the_lock_is_unseen(task.question()) {
            return refuse(
                "under TSO others go on past their stores while a thread holds the lock, \
                 which the property may see and robustness does not preserve",
            );
        }
        self.explicit.accepts(&under_sc(task))
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let sc = under_sc(task);
        let (under_sc, effort) = match self.explicit.run(&sc, control) {
            Answer::Reached { trace, effort } => {
                return match as_tso(task, &trace) {
                    Some(trace) => Answer::Reached { trace, effort },
                    None => Answer::Undecided {
                        reason: Reason::Other("an SC run did not run under TSO".into()),
                        effort,
                    },
                };
            }
            Answer::Unreachable {
                certificate,
                effort,
            } => (certificate, effort),
            other @ (Answer::Bounded { .. } | Answer::Undecided { .. }) => return other,
        };
        let options = Options::new(Goal::Robustness, MemoryModel::Tso);
        match search(task.instance, options, control) {
            Finding::Free { effort: attack } => by_sc(under_sc, sum(effort, attack)),
            Finding::Found {
                attack,
                effort: searched,
            } => {
                let thread = &task.instance.thread(attack.attacker).name;
                let why = format!("the program is not robust (`{thread}` overtakes its own store)");
                Answer::Undecided {
                    reason: Reason::Other(why),
                    effort: sum(effort, searched),
                }
            }
            Finding::Undecided {
                reason,
                effort: searched,
            } => Answer::Undecided {
                reason,
                effort: sum(effort, searched),
            },
        }
    }
}

/// The answer for a robust program whose target SC does not reach.
pub(crate) fn by_sc(under_sc: Certificate, effort: Progress) -> Answer {
    Answer::Unreachable {
        certificate: Certificate::Robust(Proof {
            under_sc: Box::new(under_sc),
        }),
        effort,
    }
}

fn under_sc<'i>(task: &Task<'i>) -> Task<'i> {
    Task {
        model: MemoryModel::Sc,
        ..*task
    }
}

fn sum(a: Progress, b: Progress) -> Progress {
    Progress {
        states: a.states + b.states,
        frontier: 0,
        memory: a.memory.max(b.memory),
        ..Progress::default()
    }
}

/// The SC run as a TSO run: every store drains at once.
pub(crate) fn as_tso(task: &Task<'_>, trace: &Trace) -> Option<Trace> {
    let machine = Machine::<Tso, Exact>::new(task.instance, ()).ok()?;
    let mut state = machine.initial(&trace.start);
    let mut events = Vec::new();
    for event in &trace.events {
        events.push(*event);
        match machine.apply(&state, event) {
            Outcome::Next(next) => state = next,
            Outcome::Fault(_) => break,
            Outcome::Full(_) => return None,
        }
        let t = event.thread();
        while let Some((cell, value)) = state.buffers[t.index()].0.first().copied() {
            let drain = Event::Drain {
                thread: t,
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
    Some(Trace {
        model: MemoryModel::Tso,
        start: trace.start.clone(),
        events,
        end: trace.end.clone(),
    })
}

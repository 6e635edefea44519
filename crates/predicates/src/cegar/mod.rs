//! Counterexample-guided abstraction refinement over the reduced system (abdulla-2012 §6–7, with
//! predicates from sequence interpolants instead of given ones).
//!
//! Where the threads are, which cells are pending and who holds the lock is explicit; integer data is
//! known by predicates. Each round explores the abstract states breadth first. A trace to something
//! bad is unrolled: it is a run, which is replayed, or it gives new predicates. Without a bad trace
//! the abstract states are an inductive formula per control state, which is the certificate.
//!
//! Deviations: buffers are exact as far as they go. Where the static analysis bounds them the answer
//! is exact; else they hold at most k entries, k is raised while an overflow is a real run, and at
//! the last k the answer is `bounded`, never "unreachable" (dan-2013: safe at k needs overflow to be
//! unreachable too).

pub mod abstraction;
pub mod certify;
pub mod refine;
mod search;

use crate::reduce::System;
use abstraction::Halt;
use search::{Outcome, Search};
use std::time::Duration;
use wattle_evidence::{
    Answer, Certificate, Control, End, Engine, Limits, Progress, Reason, Refusal, Task, Trace,
};
use wattle_logic::Formula;
use wattle_memory::FaultKind;
use wattle_memory::reference::{ReplayError, replay};
use wattle_memory::{Event, Start};
use wattle_search::Explicit;

/// Predicate abstraction with predicates from interpolants.
#[derive(Clone, Copy, Debug)]
pub struct Cegar {
    /// Buffers without a static bound are followed up to this many entries.
    pub most_entries: usize,
    /// Give up after so many refinements: predicates seem to diverge.
    pub most_rounds: usize,
    /// A run is first looked for concretely, among states of so many bytes; 0 leaves that out.
    pub hunt: u64,
}

impl Default for Cegar {
    fn default() -> Self {
        Cegar {
            most_entries: 4,
            most_rounds: 400,
            hunt: 8 << 20,
        }
    }
}

impl Engine for Cegar {
    fn name(&self) -> &'static str {
        "cegar"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        if task.deadlock {
            return Err(Refusal("predicates do not decide deadlocks".into()));
        }
        if task.instance.threads.is_empty() {
            return Err(Refusal("there are no threads".into()));
        }
        let system = System::new(task.instance, task.model, task.question(), 1);
        system
            .check(task.question())
            .map_err(|why| Refusal(format!("cegar treats linear integer programs only: {why}")))
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        if let Err(refusal) = self.accepts(task) {
            return Answer::Undecided {
                reason: Reason::Refused(refusal),
                effort: Progress::default(),
            };
        }
        if let Some(run) = self.hunted(task, control) {
            return run;
        }
        let mut k = 1;
        let mut search = Search::new(System::new(task.instance, task.model, task.question(), k));
        let mut followed = true;
        for round in 0..self.most_rounds {
            match search.round(task, control, followed) {
                Ok(Outcome::Excluded) => {}
                Ok(Outcome::Overflow) if k < self.most_entries => {
                    k += 1;
                    let system = System::new(task.instance, task.model, task.question(), k);
                    search = search.with_system(system);
                }
                Ok(Outcome::Overflow) => followed = false,
                Ok(Outcome::Run(start, events)) => {
                    return reached(task, start, events, search.effort());
                }
                Ok(Outcome::Closed) if !followed => {
                    return bounded(task, &search, k);
                }
                Ok(Outcome::Closed) => {
                    let effort = search.effort();
                    return match search.certificate() {
                        Some(c) => Answer::Unreachable {
                            certificate: Certificate::Inductive(c),
                            effort,
                        },
                        None => other("a predicate's numbers are too large to write down", effort),
                    };
                }
                Err(halt) => {
                    let reason = match halt {
                        Halt::Stopped(stop) => Reason::Stopped {
                            stop,
                            stage: format!("cegar (round {}, k = {k})", round + 1),
                        },
                        Halt::Unknown(why) => Reason::SolverUnknown(why.to_string()),
                        Halt::Other(why) => Reason::Other(why),
                    };
                    let effort = search.effort();
                    return Answer::Undecided { reason, effort };
                }
            }
        }
        other(
            "the predicates found so far do not converge",
            search.effort(),
        )
    }
}

impl Cegar {
    /// A run that a short concrete search finds: long before the abstraction would exclude all
    /// spurious traces that are no longer. What that search proves is not asked.
    fn hunted(&self, task: &Task<'_>, control: &Control<'_>) -> Option<Answer> {
        if self.hunt == 0 {
            return None;
        }
        let bytes = control
            .memory_limit()
            .map_or(self.hunt, |m| m.min(self.hunt));
        let control = control.stage(Duration::MAX).with_memory(Some(bytes));
        let answer = Explicit::default().run(task, &control);
        matches!(answer, Answer::Reached { .. }).then_some(answer)
    }

    /// Predicates with which this engine proves the task, in the variables of its system; `None` if
    /// it does not prove it within the budget.
    pub fn predicates(&self, task: &Task<'_>, control: &Control<'_>) -> Option<Vec<Formula>> {
        self.accepts(task).ok()?;
        let mut search = Search::new(System::new(task.instance, task.model, task.question(), 1));
        for _ in 0..self.most_rounds {
            match search.round(task, control, true) {
                Ok(Outcome::Excluded) => {}
                Ok(Outcome::Closed) => return Some(search.predicates.all),
                Ok(Outcome::Run(..) | Outcome::Overflow) | Err(_) => return None,
            }
        }
        None
    }
}

fn other(why: &str, effort: Progress) -> Answer {
    Answer::Undecided {
        reason: Reason::Other(why.into()),
        effort,
    }
}

fn bounded(task: &Task<'_>, search: &Search<'_>, k: usize) -> Answer {
    let threads = task.instance.threads.iter().zip(&search.system.bounds);
    let unbounded = threads.filter(|(_, (_, exact))| !exact);
    let names: Vec<&str> = unbounded.map(|(t, _)| t.name.as_str()).collect();
    Answer::Bounded {
        limits: Limits {
            buffered_stores: k as u32,
            cause: format!("{} can store in a loop without a fence", names.join(", ")),
        },
        effort: search.effort(),
    }
}

/// The run, replayed on the reference machine; it decides how the run ends.
pub fn reached(task: &Task<'_>, start: Start, events: Vec<Event>, effort: Progress) -> Answer {
    let fault = match replay(task.instance, task.model, &start, &events) {
        Ok((_, fault)) => fault,
        Err(ReplayError::AfterFault { index }) => {
            // Only the machine's own limits stop a run that the unrolled trace allows.
            let why = format!("the run stops after event {index} on the reference machine");
            return other(&why, effort);
        }
        Err(_) => return other("the run found does not replay", effort),
    };
    let end = match fault {
        Some(f) if f.kind == FaultKind::MachineOverflow => {
            let place = task.instance.thread(f.thread).name.clone();
            return Answer::Undecided {
                reason: Reason::MachineOverflow { place },
                effort,
            };
        }
        Some(f) => End::Fault(f),
        None => End::Target,
    };
    let trace = Trace {
        model: task.model,
        start,
        events,
        end,
    };
    match trace.check(task) {
        Ok(_) => Answer::Reached { trace, effort },
        Err(e) => other(&format!("the run found does not replay: {e}"), effort),
    }
}

//! Counterexample-guided abstraction refinement over the reduced system (abdulla-2012 §6–7, with
//! predicates from sequence interpolants instead of given ones).
//!
//! Where the threads are, which cells are pending and who holds the lock is explicit; integer data is
//! known by predicates. Each round explores the abstract states breadth first. A trace to something
//! bad is unrolled: it is a run, which is replayed, or it gives new predicates. Without a bad trace
//! the abstract states are an inductive formula per control state, which is the certificate.
//!
//! Buffers that the static analysis bounds are exact, and so are others if a few entries turn out to
//! be enough. Where a run fills them they are blurred (`reduce::blur`): k
//! stores of each thread stay in order, the rest is known by cells and classes of values. A trace
//! that only the blur allows makes it finer (`coarse`); when k has grown to its limit and that is not
//! enough the answer is `bounded`, never "unreachable".
//!
//! A predicate is first followed only where the threads are when a trace needs it, and everywhere once
//! it was needed at several places; and only where its variables matter (registers that are live,
//! entries that are there). Fences (case 2) are the business of `repair`, over all traces instead of
//! one.

pub mod abstraction;
pub mod certify;
pub mod coarse;
pub mod refine;
mod search;
mod templates;

use crate::reduce::System;
use crate::reduce::blur::Blur;
use abstraction::Halt;
use search::{Manner, Outcome, Search};
use std::time::Duration;
use wattle_evidence::{
    Answer, Certificate, Control, End, Engine, Limits, Progress, Reason, Refusal, Task, Trace,
};
use wattle_logic::Formula;
use wattle_memory::FaultKind;
use wattle_memory::reference::{ReplayError, replay};
use wattle_memory::{Event, Start};
use wattle_model::Type;
use wattle_model::instance::{Initial, Instance};
use wattle_search::Explicit;

/// Predicate abstraction with predicates from interpolants.
#[derive(Clone, Copy, Debug)]
pub struct Cegar {
    /// Of buffers without a static bound at most this many stores are kept exact.
    pub most_entries: usize,
    /// A loop that stores need not fill its buffer: with so many entries the exact system may close.
    pub most_exact: usize,
    /// Give up after so many refinements: predicates seem to diverge.
    pub most_rounds: usize,
    /// A run is first looked for concretely, among states of so many bytes; 0 leaves that out.
    pub hunt: u64,
    /// Blurred buffers keep the newest stores exact rather than the oldest.
    pub newest: bool,
    /// So many at first.
    pub keep: usize,
    /// A predicate is followed only where the threads were when a trace needed it, until it was needed
    /// at more places than this; then everywhere.
    pub local: usize,
    /// Whether comparisons of variables are tried before interpolants.
    pub templates: bool,
    /// The values of a variable that has at most so many are told apart all at once.
    pub few: u64,
}

impl Default for Cegar {
    fn default() -> Self {
        Cegar {
            most_entries: 4,
            most_exact: 4,
            most_rounds: 400,
            hunt: 8 << 20,
            newest: false,
            keep: 1,
            local: 1,
            templates: true,
            few: 4,
        }
    }
}

impl Engine for Cegar {
    fn name(&self) -> &'static str {
        "cegar"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        let anywhere = begins_anywhere(task.instance);
        System::accepts_types(task, (anywhere, anywhere))
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
        let system = |k| system(task, k);
        let mut blur = Blur::new(task.instance, self.keep, self.newest);
        let mut search = Search::new(system(1), self.manner());
        // While this grows buffers are exact and overflow; then they are blurred.
        let mut exact = 1;
        for round in 0..self.most_rounds {
            let k = blur.keep.iter().copied().max().unwrap_or(0);
            match search.round(task, control, true) {
                Ok(Outcome::Excluded) => {}
                Ok(Outcome::Overflow) if exact < self.most_exact => {
                    exact += 1;
                    search = search.with_system(system(exact));
                }
                Ok(Outcome::Overflow) => {
                    search = search.with_system(system(1).unbounded(Some(blur.clone())));
                }
                Ok(Outcome::Coarse { cuts, threads }) => {
                    if !blur.refine(&cuts, &threads, self.most_entries) {
                        return bounded(task, &search, k);
                    }
                    search = search.with_system(system(1).unbounded(Some(blur.clone())));
                }
                Ok(Outcome::Run(start, events)) => {
                    return reached(task, start, events, search.effort());
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
    fn manner(&self) -> Manner {
        Manner {
            local: self.local,
            templates: self.templates,
            few: self.few,
        }
    }

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
        let system = system(task, 1);
        // As few as will do are wanted, not as few rounds.
        let manner = Manner {
            few: 0,
            ..self.manner()
        };
        let mut search = Search::new(system, manner);
        for _ in 0..self.most_rounds {
            match search.round(task, control, true) {
                Ok(Outcome::Excluded) => {}
                Ok(Outcome::Closed) => return Some(search.predicates.all),
                Ok(_) | Err(_) => return None,
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

/// The system with at most `k` entries in buffers that have no bound. Casts are followed where the engine is the only
/// one to do so.
fn system<'i>(task: &Task<'i>, k: usize) -> System<'i> {
    let system = System::new(task.instance, task.model, task.question(), k);
    system.with_casts(begins_anywhere(task.instance))
}

/// Whether something that wraps around begins with any of so many values that nobody goes through them. Elsewhere
/// states of numbers do better.
fn begins_anywhere(instance: &Instance) -> bool {
    let wide = |ty: Type| matches!(ty, Type::Wrap { bits, .. } if bits > 8);
    let cells = instance.cells.iter().map(|c| (c.ty, c.init));
    let registers = instance.threads.iter().flat_map(|t| &t.registers);
    let mut all = cells.chain(registers.map(|r| (r.ty, r.init)));
    all.any(|(ty, init)| init == Initial::Any && wide(ty))
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
            let place = events.get(index).map(|e| task.instance.thread(e.thread()));
            let place = place.map_or_else(String::new, |t| t.name.clone());
            return Answer::Undecided {
                reason: Reason::MachineOverflow { place },
                effort,
            };
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

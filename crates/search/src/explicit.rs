//! The engine `explicit`: every reachable state of a fixed number of threads, one by one.

use crate::explore::{Ended, Look, Order, Search};
use crate::rounds::{self, Cut, Plan, Sizes};
use wattle_evidence::{Answer, Control, End, Engine, Reason, Refusal, Task, Trace};
use wattle_memory::compiled::{Code, Flaw, Machine, Reductions, View};
use wattle_memory::{Fault, MemoryModel};
use wattle_model::graph::Action;
use wattle_model::instance::Question;
use wattle_model::{Instance, StepId, ThreadId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub order: Order,
    pub chaining: bool,
    pub dead_registers: bool,
    /// Buffers that may grow without end are followed up to this many stores.
    pub most_buffered: u32,
    /// A certificate of at most this many states is written; larger sets are only counted.
    pub most_certified: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            order: Order::BreadthFirst,
            chaining: true,
            dead_registers: true,
            most_buffered: 6,
            most_certified: 1_000_000,
        }
    }
}

impl Options {
    pub fn reductions(&self) -> Reductions {
        Reductions {
            chaining: self.chaining,
            dead_registers: self.dead_registers,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Explicit {
    pub options: Options,
}

/// Looks for the question's target.
struct Target<'i> {
    question: Option<&'i Question>,
    condition: Option<Code>,
}

impl Look for Target<'_> {
    fn fit(&mut self, machine: &Machine<'_>) {
        self.condition = self.question.map(|q| machine.condition(&q.target));
    }

    #[inline]
    fn look(&mut self, machine: &Machine<'_>, state: &[u64]) -> Result<bool, Flaw> {
        let (Some(condition), Some(question)) = (&self.condition, self.question) else {
            return Ok(false);
        };
        if question.only_final && !machine.is_final(state) {
            return Ok(false);
        }
        Ok(machine.value(condition, state).map_err(|flaw| *flaw)? != 0)
    }
}

impl Engine for Explicit {
    fn name(&self) -> &'static str {
        "explicit"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        let refused = |r: wattle_memory::reference::Refusal| Refusal::new(r.to_string());
        task.is_narrow(1 << 24)?;
        wattle_memory::reference::starts(task.instance).map_err(refused)?;
        Ok(())
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        self.search(task, control)
            .unwrap_or_else(|refusal| Answer::Undecided {
                reason: Reason::Refused(Refusal::new(refusal.to_string())),
                effort: wattle_evidence::Progress::default(),
            })
    }
}

impl Explicit {
    fn search(
        &self,
        task: &Task<'_>,
        control: &Control<'_>,
    ) -> Result<Answer, wattle_memory::reference::Refusal> {
        let instance = task.instance;
        let view = View::of_question(instance, task.question());
        let plan = Plan {
            instance,
            model: task.model,
            view: &view,
            reductions: self.options.reductions(),
            order: self.options.order,
            most_buffered: self.options.most_buffered,
        };
        let mut sizes = Sizes::guess(instance, task.model);
        let target = || Target {
            question: task.question(),
            condition: None,
        };
        let outcome = rounds::run(&plan, &mut sizes, control, target, |search, ended, _| {
            trace(task.model, search, ended)
        })?;
        let effort = outcome.effort;
        let undecided = |reason| Answer::Undecided { reason, effort };
        Ok(match outcome.ended {
            Ended::Halted(_) | Ended::Fault { .. } => match outcome.value {
                Some(trace) => Answer::Reached { trace, effort },
                None => undecided(Reason::Other("a run could not be rebuilt".into())),
            },
            Ended::NoValue(_, flaw) => undecided(Reason::Other(format!(
                "the property has no value in a reachable state: {}",
                flaw.kind(None)
            ))),
            Ended::Stopped(stop) => undecided(Reason::Stopped {
                stop,
                stage: "explicit".into(),
            }),
            Ended::Narrow(..) => undecided(Reason::Other("a value did not fit".into())),
            Ended::Exhausted => match (outcome.overflow, outcome.cut) {
                (Some((t, s)), _) => undecided(Reason::MachineOverflow {
                    place: place(instance, t, s),
                }),
                (None, Cut::Buffers(limits)) => Answer::Bounded { limits, effort },
                (None, Cut::Nothing) if task.deadlock => {
                    crate::deadlock::search(self, task, control, effort)?
                }
                (None, Cut::Nothing) => crate::certificate::proof(self, task, control, effort)?,
            },
        })
    }
}

/// The run a search found.
fn trace(model: MemoryModel, search: &Search<'_, '_>, ended: &Ended) -> Option<Trace> {
    let (run, end) = match ended {
        Ended::Halted(index) => (search.run_to(*index)?, End::Target),
        Ended::Fault {
            state,
            thread,
            step,
            flaw,
        } => {
            let fault = fault(search.machine.instance, *thread, *step, *flaw);
            (search.run_to_fault(*state)?, End::Fault(fault))
        }
        _ => return None,
    };
    Some(Trace {
        model,
        start: run.start,
        events: run.events,
        end,
    })
}

pub(crate) fn fault(instance: &Instance, thread: ThreadId, step: StepId, flaw: Flaw) -> Fault {
    let message = match &instance.thread(thread).step(step).action {
        Action::Assert { message, .. } => message.as_deref(),
        _ => None,
    };
    let kind = flaw.kind(message);
    Fault { thread, step, kind }
}

pub(crate) fn place(instance: &Instance, t: ThreadId, s: StepId) -> String {
    let thread = instance.thread(t);
    match thread.step(s).span.line {
        0 => format!("thread {}", thread.name),
        line => format!("thread {}, line {line}", thread.name),
    }
}

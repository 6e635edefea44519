//! A task's question, put to the compiled machine with any content.

use crate::checkpoint::Keeper;
use crate::explore::{Finished, Observer, Order, Search};
use crate::rounds::{self, Cut, Sizes, Subject};
use wattle_evidence::certificate::Unreached;
use wattle_evidence::{Control, End, Limits, Progress, Reason, Stop, Task, Trace};
use wattle_memory::compiled::{Code, Flaw, Machine, Reductions, Watched};
use wattle_memory::reference::Refusal;
use wattle_memory::{Contents, Event, Fault, MemoryModel};
use wattle_model::graph::Action;
use wattle_model::instance::{Fact, Question};
use wattle_model::{Instance, StepId, ThreadId};

/// How to search, beyond what the task says.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'a> {
    /// Who searches, for those who watch.
    pub name: &'static str,
    pub contents: &'a Contents,
    pub reductions: Reductions,
    pub order: Order,
    /// Buffers that may grow without end are followed up to this many stores.
    pub most_buffered: u32,
    /// States are compressed.
    pub compress: bool,
}

/// What the search found.
pub enum Explored {
    /// Nothing bad is reachable.
    Closed {
        unreached: Option<Unreached>,
        /// Leaving out events was tried, and not worth it.
        takes_all: bool,
    },
    /// Nothing bad is reachable within these limits.
    Cut(Limits),
    /// A run that ends badly; if the content forgets, perhaps not one of the real machine.
    Bad(Trace),
    /// Ran out of a budget.
    Stopped(Stop),
    /// No answer, and why.
    Unclear(Reason),
}

/// Looks for a fault and for the question's target.
pub fn explore(
    task: &Task<'_>,
    manner: &Manner<'_>,
    sizes: &mut Sizes,
    control: &Control<'_>,
) -> Result<(Explored, Progress), Refusal> {
    explore_kept(task, manner, sizes, control, None)
}

/// The same, written down from time to time.
pub(crate) fn explore_kept(
    task: &Task<'_>,
    manner: &Manner<'_>,
    sizes: &mut Sizes,
    control: &Control<'_>,
    keeper: Option<Keeper<'_>>,
) -> Result<(Explored, Progress), Refusal> {
    let instance = task.instance;
    let view = Watched::of_question(instance, task.question());
    let plan = plan(task, manner, &view);
    let target = || Target::new(task.question());
    let outcome =
        rounds::run_kept(
            &plan,
            sizes,
            control,
            keeper,
            target,
            |search, ended, _| match ended {
                Finished::Exhausted => (None, unreached(task, search), search.count.left_out == 0),
                Finished::Halted(_)
                | Finished::NoValue(..)
                | Finished::Fault { .. }
                | Finished::Narrow(..)
                | Finished::Short(_)
                | Finished::Idle
                | Finished::Stopped(_) => (trace(task.model, search, ended), None, false),
            },
        )?;
    let (run, unreached, takes_all) = outcome.value;
    let takes_all = takes_all && manner.reductions.persistent;
    let other = |why: String| Explored::Unclear(Reason::Other(why));
    let explored = match (outcome.ended, run) {
        (Finished::Halted(_) | Finished::Fault { .. }, Some(run)) => Explored::Bad(run),
        (Finished::Halted(_) | Finished::Fault { .. }, None) => {
            other("a run could not be rebuilt".into())
        }
        (Finished::NoValue(_, flaw), _) => other(format!(
            "the property has no value in a reachable state: {}",
            flaw.kind(None)
        )),
        (Finished::Stopped(stop), _) => Explored::Stopped(stop),
        (Finished::Narrow(..) | Finished::Short(_) | Finished::Idle, _) => {
            other("a value did not fit".into())
        }
        (Finished::Exhausted, _) => match (outcome.overflow, outcome.cut) {
            (Some((t, s)), _) => Explored::Unclear(Reason::MachineOverflow {
                place: place(instance, t, s),
            }),
            (None, Cut::Buffers(limits)) => Explored::Cut(limits),
            (None, Cut::Nothing) => Explored::Closed {
                unreached,
                takes_all,
            },
        },
    };
    Ok((explored, outcome.effort))
}

/// What is searched.
pub(crate) fn plan<'a, 'i>(
    task: &Task<'i>,
    manner: &Manner<'a>,
    view: &'a Watched,
) -> Subject<'a, 'i> {
    Subject {
        name: manner.name,
        instance: task.instance,
        model: task.model,
        contents: manner.contents,
        view,
        // What a thread sees changes by its own stores too, which no reduction expects.
        reductions: match task.sees_buffers() {
            true => Reductions {
                dead_registers: manner.reductions.dead_registers,
                ..Reductions::NONE
            },
            false => manner.reductions,
        },
        order: manner.order,
        most_buffered: manner.most_buffered,
        compress: manner.compress,
    }
}

/// The places the question asks about. If only final states are looked at, threads may pass them unseen, and nothing is
/// said of them.
pub(crate) fn places(task: &Task<'_>) -> Option<Unreached> {
    let question = task.question().filter(|q| !q.only_final)?;
    let mut places: Unreached = Vec::new();
    question.target.for_each_atom(&mut |fact| {
        if let Fact::At(t, at) = fact
            && !places.iter().any(|p| p.0 == *t && p.1 == *at)
        {
            places.push((*t, at.clone()));
        }
    });
    Some(places)
}

/// Those where no thread is in this state.
pub(crate) fn without(places: &mut Unreached, machine: &Machine<'_>, state: &[u64]) {
    places.retain(|(t, at)| {
        let mut alike = machine.alike(t.index()).into_iter();
        !alike.any(|t| at.contains(&machine.location(state, ThreadId::new(t))))
    });
}

/// The places the question asks about where no thread is in any state.
fn unreached(task: &Task<'_>, search: &Search<'_, '_>) -> Option<Unreached> {
    let mut places = places(task)?;
    search.all_until(|state| {
        without(&mut places, search.machine, state);
        places.is_empty()
    });
    Some(places)
}

/// The same run on the real machine, if it has it.
pub fn realise(task: &Task<'_>, run: &Trace) -> Option<Trace> {
    let mut trace = run.clone();
    for event in &mut trace.events {
        if let Event::Drain { keep, .. } = event {
            *keep = false;
        }
    }
    trace.check(task).is_ok().then_some(trace)
}

/// Looks for the question's target.
pub(crate) struct Target<'i> {
    question: Option<&'i Question>,
    condition: Option<Code>,
}

impl<'i> Target<'i> {
    pub fn new(question: Option<&'i Question>) -> Self {
        Target {
            question,
            condition: None,
        }
    }
}

impl Observer for Target<'_> {
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

    fn fork(&self) -> Self {
        Target {
            question: self.question,
            condition: self.condition.clone(),
        }
    }
}

/// The run a search found.
fn trace(model: MemoryModel, search: &Search<'_, '_>, ended: &Finished) -> Option<Trace> {
    let (run, end) = match ended {
        Finished::Halted(index) => (search.run_to(*index)?, End::Target),
        Finished::Fault {
            state,
            thread,
            step,
            flaw,
        } => {
            let run = search.run_to_fault(*state)?;
            let thread = ThreadId::new(run.who[thread.index()]);
            let fault = fault(search.machine.instance, thread, *step, *flaw);
            (run, End::Fault(fault))
        }
        Finished::Exhausted
        | Finished::NoValue(..)
        | Finished::Narrow(..)
        | Finished::Short(_)
        | Finished::Idle
        | Finished::Stopped(_) => return None,
    };
    Some(Trace {
        model,
        start: run.start,
        events: run.events,
        end,
    })
}

pub(crate) fn fault(instance: &Instance, thread: ThreadId, step: StepId, flaw: Flaw) -> Fault {
    let message = if let Action::Assert { message, .. } = &instance.thread(thread).step(step).action
    {
        message.as_deref()
    } else {
        None
    };
    let kind = flaw.kind(message);
    Fault { thread, step, kind }
}

/// A step, for a person.
pub fn place(instance: &Instance, t: ThreadId, s: StepId) -> String {
    let thread = instance.thread(t);
    match thread.step(s).span.line {
        0 => format!("thread {}", thread.name),
        line => format!("thread {}, line {line}", thread.name),
    }
}

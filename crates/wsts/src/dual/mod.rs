//! `exact`: TSO for finite data, sound and complete, by load buffers instead of store buffers, for a
//! fixed number of threads and for any number of threads that nothing tells apart ([`crowd`]).
//!
//! Each thread has a FIFO from memory to it. A store writes memory at once and appends an *own*
//! message to the writer's FIFO; at any time memory may append the current value of a cell to any
//! FIFO, and any FIFO may lose its oldest message. A load takes the newest own message of its cell
//! if there is one; otherwise the oldest message must be about the cell and is read. Fences and
//! atomic blocks need an empty FIFO. The reachable local states are those of TSO (Abdulla, Atig,
//! Bouajjani and Ngo, "The benefits of duality in verifying concurrent programs under TSO", 2016).
//!
//! Ordered by subwords between newest own messages this is a well-structured system, so backward
//! search from the bad states ends. A configuration lists the threads it needs and says nothing of
//! the others: of a thread of the program there is at most one to list, of a family of any number of
//! threads there are as many as one likes, and the lists are compared as multisets. Extra threads
//! disturb nobody (but for the lock, of which a configuration may say that no other thread holds it).
//! When a thread that is not listed acts, it is listed before. Three things differ from the paper:
//!
//! - Memory and own values are constraints that may be left open, and threads need not be listed, so
//!   that one configuration stands for many.
//! - Own messages that a newer own message of the same cell hides are never needed and never kept.
//! - A property may read memory in the middle of a run. Memory here is ahead of the threads' views,
//!   so such a bad state is reached in two phases: a *snapshot* of memory is taken; after it no
//!   message is sent, no fence is passed, and stores only append own messages (they are the stores
//!   still pending in the bad state). The same goes for bad states in programs with `lock`: while it
//!   is held, others go on past stores that cannot reach memory.
//!
//! The lock keeps others from memory: their stores write nothing and memory sends them nothing. With
//! store buffers a load served by the thread's own buffer has to wait too, which nobody can see: while
//! somebody else holds the lock a thread does nothing that depends on others, so all of it could have
//! happened before the lock was taken. Own messages may be read at any time.

mod config;
pub mod crowd;
mod predecessors;
mod trace;

pub use config::{Config, Listed, Message};

use crate::backward::{Found, Search};
use crate::targets::targets;
use predecessors::LoadBuffers;
use trace::Stage;
use wattle_evidence::{
    Answer, AnyNumber, Certificate, Control, End, Engine, OpenAnswer, OpenTask, Progress, Reason,
    Refusal, Stop, Task, Trace,
};
use wattle_memory::automaton::Automata;
use wattle_memory::{FaultKind, MemoryModel};
use wattle_model::{Crowd, Program, Roles};

pub struct Exact;

const NAME: &str = "exact";

impl Engine for Exact {
    fn name(&self) -> &'static str {
        NAME
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        task.is_about_memory()?;
        if task.model != MemoryModel::Tso {
            return Err(Refusal::new(format!("`{NAME}` decides TSO only")));
        }
        if task.deadlock {
            return Err(Refusal::new(format!(
                "`{NAME}` does not look for deadlocks"
            )));
        }
        Ok(())
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        match decide(task, control) {
            Ok(answer) => answer,
            Err(reason) => Answer::Undecided {
                reason,
                effort: Progress::default(),
            },
        }
    }

    fn accepts_open(&self, task: &OpenTask<'_>) -> Result<(), Refusal> {
        crowd_of(task).map(|_| ())
    }

    fn run_open(&self, task: &OpenTask<'_>, control: &Control<'_>) -> OpenAnswer {
        match crowd_of(task) {
            Ok((program, crowd)) => {
                crowd::decide(program, &crowd, task.model, task.question, control)
            }
            Err(refusal) => OpenAnswer::Undecided {
                reason: Reason::Refused(refusal),
                effort: Progress::default(),
            },
        }
    }
}

/// The threads of a program that nothing tells apart.
fn crowd_of<'t>(task: &OpenTask<'t>) -> Result<(&'t Program, Crowd), Refusal> {
    if task.deadlock {
        return Err(Refusal::no_open_deadlocks());
    }
    let AnyNumber::Program(program) = task.of else {
        let why = format!("`{NAME}` reads programs; array-based systems are for params");
        return Err(Refusal::new(why));
    };
    let property = task.question.and_then(|q| program.properties.get(q));
    if property.is_some_and(|p| p.condition.expr.sees_buffers()) {
        let why = "the property asks what a thread sees of its pending stores";
        return Err(Refusal::new(why));
    }
    let crowd = program.crowd(task.question);
    let crowd = crowd.map_err(|n| Refusal::new(n.message).at(n.span, n.hint))?;
    Ok((program, crowd))
}

fn decide(task: &Task<'_>, control: &Control<'_>) -> Result<Answer, Reason> {
    let roles = Roles::fixed(task.instance);
    decide_roles(task, &roles, control, |automata, search, first| {
        let listed = &search.nodes[first as usize].config.threads;
        let seats: Vec<usize> = listed.iter().map(|t| t.role).collect();
        let stage = Stage {
            task: *task,
            automata,
            seats: &seats,
        };
        let trace = trace::concrete(&stage, search, first).map_err(Reason::Other)?;
        no_overflow(task, trace)
    })
    .map(|found| match found {
        Outcome::Reached(trace, effort) => Answer::Reached { trace, effort },
        Outcome::Unreachable(certificate, effort) => Answer::Unreachable {
            certificate,
            effort,
        },
        Outcome::Stopped(stop, effort) => Answer::Undecided {
            reason: out_of(stop, &effort),
            effort,
        },
    })
}

/// How a search ended; a run is told as `R`.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Outcome<R> {
    Reached(R, Progress),
    Unreachable(Certificate, Progress),
    Stopped(Stop, Progress),
}

/// The search; `show` makes a run of what it found, from the node with this number on.
fn decide_roles<R>(
    task: &Task<'_>,
    roles: &Roles,
    control: &Control<'_>,
    show: impl FnOnce(&Automata, &Search<'_, LoadBuffers<'_>>, u32) -> Result<R, Reason>,
) -> Result<Outcome<R>, Reason> {
    let automata = task.unfold_roles(NAME, false, roles, control)?;
    let bad = targets(task, roles, &automata, control)?;
    let buffered = task.model != MemoryModel::Sc;
    let system = LoadBuffers::new(&automata, roles, &bad, buffered);
    if task.model == MemoryModel::Pso && !system.in_order() {
        let why = format!(
            "under PSO `{NAME}` needs every thread to have stores to one cell pending at a time"
        );
        return Err(Reason::Refused(Refusal::new(why)));
    }
    let mut search = Search::new(&system);
    let found = search.run(NAME, control);
    let effort = search.progress(0);
    Ok(match found {
        Err(stop) => Outcome::Stopped(stop, effort),
        Ok(Found::Closed) => {
            let basis = config::certificate(&automata, search.basis());
            Outcome::Unreachable(Certificate::LoadBuffers(basis), effort)
        }
        Ok(Found::Initial(n)) => Outcome::Reached(show(&automata, &search, n)?, effort),
    })
}

/// An overflow of the machine's numbers is no violation.
fn no_overflow(task: &Task<'_>, trace: Trace) -> Result<Trace, Reason> {
    if let End::Fault(fault) = &trace.end
        && fault.kind == FaultKind::MachineOverflow
    {
        let thread = task.instance.thread(fault.thread);
        let line = thread.step(fault.step).span.line;
        let place = format!("`{}` line {line}", thread.name);
        return Err(Reason::MachineOverflow { place });
    }
    Ok(trace)
}

fn out_of(stop: Stop, effort: &Progress) -> Reason {
    let stage = format!("{NAME} ({} configurations)", effort.states);
    Reason::Stopped { stop, stage }
}

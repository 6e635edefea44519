//! `exact`: TSO for finite data, sound and complete, by load buffers instead of store buffers.
//!
//! Each thread has a FIFO from memory to it. A store writes memory at once and appends an *own*
//! message to the writer's FIFO; at any time memory may append the current value of a cell to any
//! FIFO, and any FIFO may lose its oldest message. A load takes the newest own message of its cell
//! if there is one; otherwise the oldest message must be about the cell and is read. Fences and
//! atomic blocks need an empty FIFO. The reachable local states are those of TSO (Abdulla, Atig,
//! Bouajjani and Ngo, "The benefits of duality in verifying concurrent programs under TSO", 2016).
//!
//! Ordered by subwords between newest own messages this is a well-structured system, so backward
//! search from the bad states ends. Three things differ from the paper:
//!
//! - Memory, local states and own values are constraints that may be left open, so that one
//!   configuration stands for many.
//! - Own messages that a newer own message of the same cell hides are never needed and never kept.
//! - A property may read memory in the middle of a run. Memory here is ahead of the threads' views,
//!   so such a bad state is reached in two phases: a *snapshot* of memory is taken; after it no
//!   message is sent, no fence is passed, and stores only append own messages (they are the stores
//!   still pending in the bad state).

mod config;
mod predecessors;
mod trace;

pub use config::{Config, Message};

use crate::backward::{Found, Search};
use crate::targets::targets;
use predecessors::LoadBuffers;
use wattle_evidence::{
    Answer, Certificate, Control, Engine, Progress, Reason, Refusal, Stop, Task,
};
use wattle_memory::{FaultKind, MemoryModel};

pub struct Exact;

const NAME: &str = "exact";

impl Engine for Exact {
    fn name(&self) -> &'static str {
        NAME
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
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
}

fn decide(task: &Task<'_>, control: &Control<'_>) -> Result<Answer, Reason> {
    let automata = task.unfold(NAME, false, control)?;
    let bad = targets(task, &automata).map_err(Reason::Other)?;
    let system = LoadBuffers::new(&automata, &bad);
    let mut search = Search::new(&system);
    let found = search.run(NAME, control);
    let effort = search.progress(0);
    match found {
        Err(stop) => Ok(stopped(stop, effort)),
        Ok(Found::Closed) => Ok(Answer::Unreachable {
            certificate: Certificate::LoadBuffers(config::certificate(&automata, search.basis())),
            effort,
        }),
        Ok(Found::Initial(n)) => {
            let trace = trace::concrete(task, &automata, &search, n).map_err(Reason::Other)?;
            if let wattle_evidence::End::Fault(fault) = &trace.end
                && fault.kind == FaultKind::MachineOverflow
            {
                let thread = task.instance.thread(fault.thread);
                let place = format!(
                    "`{}` line {}",
                    thread.name,
                    thread.step(fault.step).span.line
                );
                return Err(Reason::MachineOverflow { place });
            }
            Ok(Answer::Reached { trace, effort })
        }
    }
}

fn stopped(stop: Stop, effort: Progress) -> Answer {
    Answer::Undecided {
        reason: Reason::Stopped {
            stop,
            stage: format!("{NAME} ({} configurations)", effort.states),
        },
        effort,
    }
}

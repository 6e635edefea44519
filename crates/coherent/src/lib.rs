//! `coherent`: proofs under TSO and PSO with buffers that remember k stores in order and the rest as
//! a set, refined from spurious traces (calin-2016 Algorithm 3.2, abdulla-2012 §4 and §7 case 3).
//!
//! The abstract machine has every behaviour of the real one, so what it cannot reach cannot be
//! reached. A bad state it does reach gives a trace: if the real machine follows it, the property is
//! violated; if not, some buffer forgot an order that mattered, and its k is raised to the least
//! value at which the trace falls apart. Each thread has its own k, under PSO each of its cells. The
//! abstract machine is the compiled one with contents that forget, searched like the exact one.

#![deny(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants
)]

mod hierarchy;
mod refine;

pub use hierarchy::Hierarchy;

use refine::Kind;
use wattle_evidence::certificate::Coherent as CoherentCertificate;
use wattle_evidence::{Answer, Certificate, Control, Engine, Progress, Reason, Refusal, Task};
use wattle_memory::compiled::{Reductions, are_few};
use wattle_memory::{
    ContentKind, Contents, Keeps, Layout, MemoryModel, NewestK, OldestK, Pso, Tso,
};
use wattle_search::Order;
use wattle_search::question::{Explored, Manner, explore, realise};
use wattle_search::rounds::Sizes;

/// Which k stores a buffer keeps in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coherent {
    OldestK,
    NewestK,
}

impl Engine for Coherent {
    fn name(&self) -> &'static str {
        match self {
            Coherent::OldestK => "coherent",
            Coherent::NewestK => "coherent-newest",
        }
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        if task.model == MemoryModel::Sc {
            return Err(Refusal::new(format!(
                "`{}` is for TSO and PSO",
                self.name()
            )));
        }
        if task.deadlock {
            let name = self.name();
            return Err(Refusal::new(format!(
                "`{name}` does not look for deadlocks"
            )));
        }
        let refused = |r: wattle_memory::reference::Refusal| Refusal::new(r.to_string());
        task.is_narrow(1 << 20)?;
        wattle_memory::reference::starts(task.instance).map_err(refused)?;
        Ok(())
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let answer = match (self, task.model) {
            (Coherent::OldestK, MemoryModel::Pso) => decide::<Pso, OldestK>(*self, task, control),
            (Coherent::OldestK, _) => decide::<Tso, OldestK>(*self, task, control),
            (Coherent::NewestK, MemoryModel::Pso) => decide::<Pso, NewestK>(*self, task, control),
            (Coherent::NewestK, _) => decide::<Tso, NewestK>(*self, task, control),
        };
        answer.unwrap_or_else(|(reason, effort)| Answer::Undecided { reason, effort })
    }
}

fn decide<L: Layout, C: Kind>(
    engine: Coherent,
    task: &Task<'_>,
    control: &Control<'_>,
) -> Result<Answer, (Reason, Progress)> {
    let mut effort = Progress::default();
    if !are_few(task.instance) {
        // Unfolding the threads one by one ends, or says why it does not.
        task.unfold(engine.name(), true, control)
            .map_err(|r| (r, effort))?;
    }
    let keeps = match engine {
        Coherent::OldestK => Keeps::Oldest,
        Coherent::NewestK => Keeps::Newest,
    };
    let (threads, cells) = (task.instance.threads.len(), task.instance.cells.len());
    let mut contents = Contents::uniform(ContentKind { keeps, k: 0 }, threads, cells);
    let mut sizes = Sizes::guess(task.instance, task.model);
    loop {
        let manner = Manner {
            name: engine.name(),
            contents: &contents,
            reductions: Reductions::ALL,
            order: Order::BreadthFirst,
            most_buffered: 0,
            compress: false,
        };
        let explored = explore(task, &manner, &mut sizes, control);
        let (found, progress) =
            explored.map_err(|r| (Reason::Refused(Refusal::new(r.to_string())), effort))?;
        effort.states += progress.states;
        effort.memory = effort.memory.max(progress.memory);
        let run = match found {
            Explored::Closed { .. } => {
                let certificate = CoherentCertificate::new(task.model, contents);
                return Ok(Answer::Unreachable {
                    certificate: Certificate::Coherent(certificate),
                    effort,
                });
            }
            Explored::Bad(run) => run,
            Explored::Stopped(stop) => {
                let bounds = contents.bounds.iter();
                let k = bounds.map(|b| b.extremes(task.model).1).max().unwrap_or(0);
                let stage = format!("{} (k = {k})", engine.name());
                return Err((Reason::Stopped { stop, stage }, effort));
            }
            Explored::Unclear(reason) => return Err((reason, effort)),
            // These contents are never full.
            Explored::Cut(limits) => return Err((Reason::Other(limits.cause), effort)),
        };
        if let Some(trace) = realise(task, &run) {
            return Ok(Answer::Reached { trace, effort });
        }
        match refine::raise::<L, C>(task, &run, &contents.bounds) {
            Some(higher) => contents.bounds = higher,
            None => {
                let why = "a trace is neither real nor prevented by longer buffers";
                return Err((Reason::Other(why.into()), effort));
            }
        }
    }
}

//! `coherent`: proofs under TSO and PSO with buffers that remember k stores in order and the rest as
//! a set, refined from spurious traces (calin-2016 Algorithm 3.2, abdulla-2012 §4 and §7 case 3).
//!
//! The abstract machine has every behaviour of the real one, so what it cannot reach cannot be
//! reached. A bad state it does reach gives a trace: if the real machine follows it, the property is
//! violated; if not, some buffer forgot an order that mattered, and its k is raised to the least
//! value at which the trace falls apart. Each thread has its own k, under PSO each of its cells.

mod explore;
mod refine;

use explore::{Explored, explore};
use refine::{Kind, Refined};
use wattle_evidence::certificate::Coherent as CoherentCertificate;
use wattle_evidence::{Answer, Certificate, Control, Engine, Progress, Reason, Refusal, Task};
use wattle_memory::{Bounds, Layout, MemoryModel, NewestK, OldestK, Pso, Tso};

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
        task.is_narrow(1 << 20)
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

/// More initial states than this are not listed.
const MAX_STARTS: usize = 1 << 16;

fn decide<L: Layout, C: Kind>(
    engine: Coherent,
    task: &Task<'_>,
    control: &Control<'_>,
) -> Result<Answer, (Reason, Progress)> {
    let mut effort = Progress::default();
    let automata = task
        .unfold(engine.name(), true, control)
        .map_err(|r| (r, effort))?;
    let starts = (automata.initial.iter().map(Vec::len))
        .chain(automata.threads.iter().map(|a| a.initial.len()))
        .try_fold(1usize, |all, n| {
            all.checked_mul(n).filter(|n| *n <= MAX_STARTS)
        });
    if starts.is_none() {
        let why = format!("there are more than {MAX_STARTS} initial states");
        return Err((Reason::Refused(Refusal::new(why)), effort));
    }
    let cells = task.instance.cells.len();
    let mut bounds = vec![Bounds::uniform(0, cells); task.instance.threads.len()];
    loop {
        let explored = explore::<L, C>(engine.name(), task, &automata, &bounds, control);
        let (found, progress) = explored.map_err(|(stop, progress)| {
            let stage = format!("{} (k = {})", engine.name(), largest::<L>(&bounds));
            (Reason::Stopped { stop, stage }, progress)
        })?;
        effort.states += progress.states;
        effort.memory = effort.memory.max(progress.memory);
        let run = match found {
            Explored::Closed => {
                let certificate = Certificate::Coherent(CoherentCertificate {
                    model: task.model,
                    newest: engine == Coherent::NewestK,
                    bounds: bounds.iter().map(|b| (b.thread, b.cells.clone())).collect(),
                });
                return Ok(Answer::Unreachable {
                    certificate,
                    effort,
                });
            }
            Explored::Bad(run) => run,
            Explored::NoValue(why) => return Err((Reason::Other(why), effort)),
        };
        match refine::refine::<L, C>(task, run, &bounds) {
            Refined::Real(trace) => return Ok(Answer::Reached { trace, effort }),
            Refined::Raised(higher) => bounds = higher,
            Refined::Stuck(why) => return Err((why, effort)),
        }
    }
}

fn largest<L: Layout>(bounds: &[Bounds<usize>]) -> usize {
    let all = bounds.iter().flat_map(|b| match L::MODEL {
        MemoryModel::Pso => b.cells.clone(),
        _ => vec![b.thread],
    });
    all.max().unwrap_or(0)
}

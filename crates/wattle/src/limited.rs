//! The engine `explicit` with buffers of at most so many entries, some cells' of another length (dan-2013 §6.2).

use wattle_evidence::certificate::Explored as Proof;
use wattle_evidence::{Answer, Certificate, Control, Engine, Progress, Reason, Refusal, Task};
use wattle_memory::compiled::Reductions;
use wattle_memory::{Contents, MemoryModel};
use wattle_search::Explicit;
use wattle_search::question::{Explored, Manner, explore};
use wattle_search::rounds::Sizes;

/// Under PSO each cell has a buffer of its own, so each may have its own length.
pub(crate) struct LimitedExplicit {
    pub explicit: Explicit,
    /// Names of cells or arrays, and how many entries their buffers have at most.
    pub cells: Vec<(String, usize)>,
}

impl Engine for LimitedExplicit {
    fn name(&self) -> &'static str {
        self.explicit.name()
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        if task.model == MemoryModel::Tso {
            let why = "under TSO a thread has one buffer for all cells; only PSO has one for each";
            return Err(Refusal::new(why));
        }
        if task.deadlock {
            return Err(Refusal::new(
                "buffers that are cut off say nothing about deadlocks",
            ));
        }
        let known = |name: &str| task.instance.cells.iter().any(|c| names(name, &c.name));
        if let Some((name, _)) = self.cells.iter().find(|(name, _)| !known(name)) {
            return Err(Refusal::new(format!("there is no cell called `{name}`")));
        }
        self.explicit.accepts(task)
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        if task.model == MemoryModel::Sc {
            return self.explicit.run(task, control);
        }
        let options = &self.explicit.options;
        let (threads, cells) = (task.instance.threads.len(), task.instance.cells.len());
        let mut contents = Contents::uniform(options.content, threads, cells);
        for (n, cell) in task.instance.cells.iter().enumerate() {
            let mut named = self
                .cells
                .iter()
                .filter(|(name, _)| names(name, &cell.name));
            if let Some((_, k)) = named.next_back() {
                contents.bounds.iter_mut().for_each(|b| b.cells[n] = *k);
            }
        }
        let manner = Manner {
            name: self.name(),
            contents: &contents,
            // Threads that are alike but for the lengths of their buffers are not alike.
            reductions: Reductions {
                symmetry: false,
                ..options.reductions()
            },
            order: options.order,
            most_buffered: options.most_buffered,
            compress: options.compress,
        };
        let mut sizes = Sizes::guess(task.instance, task.model);
        let undecided = |reason, effort| Answer::Undecided { reason, effort };
        let (found, effort) = match explore(task, &manner, &mut sizes, control) {
            Ok(explored) => explored,
            Err(refusal) => {
                let refusal = Refusal::new(refusal.to_string());
                return undecided(Reason::Refused(refusal), Progress::default());
            }
        };
        match found {
            Explored::Bad(trace) => Answer::Reached { trace, effort },
            Explored::Unclear(reason) => undecided(reason, effort),
            Explored::Stopped(stop) => undecided(Reason::stopped(stop, self.name()), effort),
            Explored::Cut(limits) => Answer::Bounded { limits, effort },
            Explored::Closed {
                unreached,
                takes_all,
            } => Answer::Unreachable {
                certificate: Certificate::Explored(Proof {
                    model: task.model,
                    states: effort.states,
                    takes_all,
                    unreached,
                }),
                effort,
            },
        }
    }
}

/// `x` names the cell `x` and every cell of the array `x`.
fn names(name: &str, cell: &str) -> bool {
    cell == name || cell.split_once('[').is_some_and(|(array, _)| array == name)
}

//! The engine `explicit`: every reachable state of a fixed number of threads, one by one.

use crate::checkpoint::{Keep, Keeper};
use crate::explore::Order;
use crate::hosts::{self, Mesh, Together};
use crate::question::{Explored, Manner, explore_kept, realise};
use crate::rounds::Sizes;
use std::sync::Arc;
use wattle_evidence::certificate::{Coherent, Explored as Proof};
use wattle_evidence::{
    Answer, Certificate, Control, Engine, Progress, Reason, Refusal, Task, fingerprint,
};
use wattle_memory::compiled::Reductions;
use wattle_memory::{ContentKind, Contents, MemoryModel};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub order: Order,
    pub chaining: bool,
    pub dead_registers: bool,
    /// Only some of the events of a state are taken, where these are enough.
    pub persistent: bool,
    /// Of states that differ in who is who one is kept.
    pub symmetry: bool,
    /// Buffers that may grow without end are followed up to this many stores.
    pub most_buffered: u32,
    /// What buffers remember. If they forget, proofs hold and runs must be found to be real.
    pub content: ContentKind,
    /// States are compressed: a few bytes for each, and slower. Not the states of a search for deadlocks.
    pub compress: bool,
}

/// How many states are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduce {
    /// None.
    None,
    /// Steps that are nobody else's business are not kept apart; registers that nobody reads are zero.
    Local,
    /// And of events that do not mind each other only one order is followed.
    #[default]
    Persistent,
}

impl Reduce {
    pub const ALL: [Reduce; 3] = [Reduce::None, Reduce::Local, Reduce::Persistent];

    /// Without symmetry, which is another matter.
    pub fn reductions(self) -> Reductions {
        match self {
            Reduce::None => Reductions::NONE,
            Reduce::Local => Reductions {
                persistent: false,
                symmetry: false,
                ..Reductions::ALL
            },
            Reduce::Persistent => Reductions {
                symmetry: false,
                ..Reductions::ALL
            },
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            order: Order::BreadthFirst,
            chaining: true,
            dead_registers: true,
            persistent: true,
            symmetry: true,
            most_buffered: 6,
            content: ContentKind::default(),
            compress: false,
        }
    }
}

impl Options {
    /// With so many states left out.
    pub fn reduced(self, reduce: Reduce) -> Self {
        let reductions = reduce.reductions();
        Options {
            chaining: reductions.chaining,
            dead_registers: reductions.dead_registers,
            persistent: reductions.persistent,
            ..self
        }
    }

    pub fn reductions(&self) -> Reductions {
        Reductions {
            chaining: self.chaining,
            dead_registers: self.dead_registers,
            persistent: self.persistent,
            symmetry: self.symmetry,
        }
    }
}

/// Who else there is.
enum Company<'k> {
    Alone,
    /// Somebody writes the search down.
    Kept(Keeper<'k>),
    /// Other processes.
    Together(Together<'k>),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Explicit {
    pub options: Options,
}

impl Engine for Explicit {
    fn name(&self) -> &'static str {
        "explicit"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        let refused = |r: wattle_memory::reference::Refusal| Refusal::new(r.to_string());
        task.is_narrow(1 << 24)?;
        wattle_memory::reference::starts(task.instance).map_err(refused)?;
        let content = self.content(task.model);
        if task.deadlock && content.keeps.is_abstract() {
            return Err(Refusal::new(format!(
                "buffers of content `{content}` say nothing about deadlocks"
            )));
        }
        Ok(())
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        self.run_in(task, control, Company::Alone)
    }
}

/// The same engine, whose search is written down from time to time and goes on where it was.
#[derive(Clone)]
pub struct KeptExplicit {
    pub explicit: Explicit,
    pub keep: Arc<dyn Keep + Send + Sync>,
}

impl Engine for KeptExplicit {
    fn name(&self) -> &'static str {
        self.explicit.name()
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        self.explicit.accepts(task)
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let keeper = Keeper::new(&*self.keep, self.explicit.name_of(task));
        self.explicit.run_in(task, control, Company::Kept(keeper))
    }
}

/// The same engine, whose search several processes run together. Each of them gets the same answer.
#[derive(Clone)]
pub struct SharedExplicit {
    pub explicit: Explicit,
    pub mesh: Arc<Mesh>,
}

impl Engine for SharedExplicit {
    fn name(&self) -> &'static str {
        self.explicit.name()
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        self.explicit.accepts(task)
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let name = self.explicit.name_of(task);
        let together = Together {
            mesh: &self.mesh,
            name: &name,
        };
        self.explicit
            .run_in(task, control, Company::Together(together))
    }
}

impl Explicit {
    /// All that the search for an answer depends on: what is kept of it is of no use to another one.
    pub fn name_of(&self, task: &Task<'_>) -> String {
        format!(
            "{} {} {:?} {} {:?} {}",
            fingerprint(task.instance),
            task.model,
            task.question,
            task.deadlock,
            self.options,
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn run_in(&self, task: &Task<'_>, control: &Control<'_>, company: Company<'_>) -> Answer {
        self.search(task, control, company)
            .unwrap_or_else(|refusal| Answer::Undecided {
                reason: Reason::Refused(Refusal::new(refusal.to_string())),
                effort: Progress::default(),
            })
    }

    /// Where there are no buffers there is nothing to forget.
    fn content(&self, model: MemoryModel) -> ContentKind {
        match model {
            MemoryModel::Sc => ContentKind::default(),
            MemoryModel::Tso | MemoryModel::Pso => self.options.content,
        }
    }

    fn search(
        &self,
        task: &Task<'_>,
        control: &Control<'_>,
        company: Company<'_>,
    ) -> Result<Answer, wattle_memory::reference::Refusal> {
        let content = self.content(task.model);
        let contents = Contents::uniform(
            content,
            task.instance.threads.len(),
            task.instance.cells.len(),
        );
        let manner = Manner {
            name: self.name(),
            contents: &contents,
            reductions: self.options.reductions(),
            order: self.options.order,
            most_buffered: self.options.most_buffered,
            compress: self.options.compress,
        };
        let mut sizes = Sizes::guess(task.instance, task.model);
        let (keeper, together) = match company {
            Company::Alone => (None, None),
            Company::Kept(keeper) => (Some(keeper), None),
            Company::Together(together) => (None, Some(together)),
        };
        let (found, effort) = match together {
            None => explore_kept(task, &manner, &mut sizes, control, keeper)?,
            Some(together) => hosts::explore(task, &manner, &mut sizes, control, together)?,
        };
        let undecided = |reason| Answer::Undecided { reason, effort };
        Ok(match found {
            Explored::Bad(trace) if !contents.keeps.is_abstract() => {
                Answer::Reached { trace, effort }
            }
            Explored::Bad(run) => match realise(task, &run) {
                Some(trace) => Answer::Reached { trace, effort },
                None => undecided(Reason::Other(format!(
                    "buffers of content `{content}` have a run that real ones do not"
                ))),
            },
            Explored::Unclear(reason) => undecided(reason),
            Explored::Stopped(stop) => undecided(Reason::Stopped {
                stop,
                stage: self.name().into(),
            }),
            Explored::Cut(limits) => Answer::Bounded { limits, effort },
            Explored::Closed { .. } if contents.keeps.is_abstract() => Answer::Unreachable {
                certificate: Certificate::Coherent(Coherent::new(task.model, contents)),
                effort,
            },
            Explored::Closed { .. } if task.deadlock => {
                crate::deadlock::search(self, task, control, effort, together)?
            }
            Explored::Closed {
                unreached,
                takes_all,
            } => proof(
                effort,
                Proof {
                    takes_all,
                    unreached,
                    ..Proof::new(task.model, effort.states)
                },
            ),
        })
    }
}

/// The answer when every state was seen and none was bad.
pub(crate) fn proof(effort: Progress, proof: Proof) -> Answer {
    let certificate = Certificate::Explored(proof);
    Answer::Unreachable {
        certificate,
        effort,
    }
}

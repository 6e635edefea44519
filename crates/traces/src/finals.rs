//! All final states, as seen through a few cells and registers.

use crate::cartesian;
use crate::explore::{Found, Search, Watch, Work};
use crate::moves::{Halt, Moves};
use crate::program::Program;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use wattle_evidence::{Control, Progress, Reason, Refusal};
use wattle_memory::compiled::{Observed, Watched};
use wattle_memory::{Fault, MemoryModel, Start, reference};
use wattle_model::{Instance, StepId, ThreadId};

/// What can be observed when all threads have ended and all buffers are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finals {
    /// One value per observed cell or register, in the order they were asked for.
    pub states: BTreeSet<Vec<i64>>,
    pub work: Work,
    pub effort: Progress,
}

/// Why there is no list of final states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoFinals {
    /// A reachable step is a fault.
    Fault(Fault),
    Undecided(Reason),
}

struct Collect<'o> {
    observed: &'o [Observed],
    now: Vec<i64>,
    states: FxHashSet<Vec<i64>>,
}

impl Watch for Collect<'_> {
    fn look(&mut self, _: &Moves<'_, '_>) -> Result<bool, Halt> {
        Ok(false)
    }

    fn ended(&mut self, moves: &Moves<'_, '_>) -> Result<bool, Halt> {
        let machine = &moves.machine;
        if machine.is_final() {
            self.now.clear();
            let values = self.observed.iter().map(|o| match *o {
                Observed::Cell(c) => machine.memory[c.index()],
                Observed::Register(t, r) => machine.register(t, r),
            });
            self.now.extend(values);
            if !self.states.contains(self.now.as_slice()) {
                self.states.insert(self.now.clone());
            }
        }
        Ok(false)
    }
}

/// What must be known of a program before its final states can be looked for.
pub fn prepare<'i>(
    instance: &'i Instance,
    model: MemoryModel,
    observed: &[Observed],
) -> Result<(Program<'i>, Vec<Start>), Refusal> {
    let view = Watched::of_final(instance, observed);
    let program = Program::new(instance, model, &view)?;
    let starts = reference::starts(instance).map_err(|r| Refusal::new(r.to_string()))?;
    Ok((program, starts))
}

/// A search for final states that may be interrupted.
pub struct FinalSearch<'p, 'i> {
    program: &'p Program<'i>,
    starts: &'p [Start],
    search: Option<Search<'p, 'i>>,
    collect: Collect<'p>,
    work: Work,
    memory: u64,
}

impl<'p, 'i> FinalSearch<'p, 'i> {
    pub fn new(program: &'p Program<'i>, starts: &'p [Start], observed: &'p [Observed]) -> Self {
        FinalSearch {
            program,
            starts,
            search: None,
            collect: Collect {
                observed,
                now: Vec::new(),
                states: FxHashSet::default(),
            },
            work: Work::default(),
            memory: 0,
        }
    }

    /// Searches on until the end; if stopped, it may be asked again.
    pub fn run(&mut self, control: &Control<'_>) -> Result<Finals, NoFinals> {
        loop {
            let search = match &mut self.search {
                Some(search) => search,
                None => {
                    let Some((start, rest)) = self.starts.split_first() else {
                        break;
                    };
                    self.starts = rest;
                    self.search.insert(Search::new(self.program, start, true))
                }
            };
            match search.run(&mut self.collect, control) {
                Ok(None | Some(Found::Seen)) => {}
                Ok(Some(Found::Fault(fault))) => return Err(NoFinals::Fault(fault)),
                Err(halt) => {
                    let why = reason(self.program.instance, halt, "traces");
                    return Err(NoFinals::Undecided(why));
                }
            }
            self.work.runs += search.work.runs;
            self.work.redundant += search.work.redundant;
            self.work.moves += search.work.moves;
            self.memory = self.memory.max(search.effort().memory);
            self.search = None;
        }
        let states = std::mem::take(&mut self.collect.states);
        Ok(Finals {
            states: states.into_iter().collect(),
            work: self.work,
            effort: Progress {
                states: self.work.runs,
                frontier: 0,
                memory: self.memory,
                ..Progress::default()
            },
        })
    }
}

/// Every final state.
pub fn final_states(
    instance: &Instance,
    model: MemoryModel,
    observed: &[Observed],
    control: &Control<'_>,
) -> Result<Finals, NoFinals> {
    let refused = |r: Refusal| NoFinals::Undecided(Reason::Refused(r));
    let (program, starts) = prepare(instance, model, observed).map_err(refused)?;
    FinalSearch::new(&program, &starts, observed).run(control)
}

/// Every final state, by the search that stores states.
pub fn final_states_by_vectors(
    instance: &Instance,
    model: MemoryModel,
    observed: &[Observed],
    control: &Control<'_>,
) -> Result<Finals, NoFinals> {
    let refused = |r: Refusal| NoFinals::Undecided(Reason::Refused(r));
    let (program, starts) = prepare(instance, model, observed).map_err(refused)?;
    let view = Watched::of_final(instance, observed);
    let mut collect = Collect {
        observed,
        now: Vec::new(),
        states: FxHashSet::default(),
    };
    let mut effort = Progress::default();
    for start in &starts {
        let mut search = cartesian::Search::new(&program, &view, start, true);
        match search.run(&mut collect, control) {
            Ok(None | Some(Found::Seen)) => {}
            Ok(Some(Found::Fault(fault))) => return Err(NoFinals::Fault(fault)),
            Err(halt) => return Err(NoFinals::Undecided(reason(instance, halt, "cartesian"))),
        }
        let now = search.effort();
        effort.states += now.states;
        effort.memory = effort.memory.max(now.memory);
    }
    Ok(Finals {
        states: collect.states.into_iter().collect(),
        work: Work::default(),
        effort,
    })
}

/// Why a search did not end.
pub fn reason(instance: &Instance, halt: Halt, name: &'static str) -> Reason {
    match halt {
        Halt::Stop(stop) => Reason::stopped(stop, name),
        Halt::Refused(refusal) => Reason::Refused(refusal),
        Halt::Long => Reason::Other(format!("{name}: a run does not seem to end")),
        Halt::Overflow(t, s) => Reason::MachineOverflow {
            place: place(instance, t, s),
        },
        Halt::NoValue(kind) => Reason::Other(format!(
            "the property has no value in a reachable state: {kind}"
        )),
        Halt::Confused(what) => Reason::Other(format!("{name} lost its way: {what}")),
    }
}

/// A step, for a person.
fn place(instance: &Instance, t: ThreadId, s: StepId) -> String {
    let thread = instance.thread(t);
    match thread.step(s).span.line {
        0 => format!("thread {}", thread.name),
        line => format!("thread {}, line {line}", thread.name),
    }
}

//! Deadlock: states from which no progress can be reached, though the run is not at its end (see
//! [`wattle_evidence::deadlock`] for what counts as progress).
//!
//! The search runs without chaining, so that every edge is one event and can be asked whether it is
//! progress. Registers that are dead are left out: states that differ in them only have the same
//! future. Edges are made again from the stored states rather than kept while searching; a state is
//! *alive* if it has progress or an edge to one that is alive.

use crate::explicit::{Explicit, proof};
use crate::explore::{Finished, Observer, Search};
use crate::hosts::{self, Stuck, Together};
use crate::rounds::{self, Cut, Sizes, Subject};
use wattle_evidence::certificate::Explored;
use wattle_evidence::deadlock::is_progress;
use wattle_evidence::{Answer, Control, End, Progress, Reason, Stop, Task, Trace};
use wattle_memory::compiled::{Flaw, Machine, Notes, Reductions, Sink, Watched};
use wattle_memory::content::EXACT;
use wattle_memory::reference::Refusal;
use wattle_memory::{Event, MemoryModel};
use wattle_model::Instance;

pub(crate) struct Nothing;

impl Observer for Nothing {
    fn look(&mut self, _: &Machine<'_>, _: &[u64]) -> Result<bool, Flaw> {
        Ok(false)
    }

    fn fork(&self) -> Self {
        Nothing
    }
}

/// Collects the successors of one state.
pub(crate) struct Successors<'i> {
    instance: &'i Instance,
    model: MemoryModel,
    /// The event on the way is progress.
    progress: bool,
    alive: bool,
    /// One after the other.
    pub targets: Vec<u64>,
    notes: Notes,
    scratch: Vec<u64>,
}

impl<'i> Successors<'i> {
    pub fn new(machine: &Machine<'i>) -> Self {
        Successors {
            instance: machine.instance,
            model: machine.model,
            progress: false,
            alive: false,
            targets: Vec::new(),
            notes: machine.notes(),
            scratch: vec![0; machine.words],
        }
    }

    /// Collects the successors of a state; whether it is alive by itself.
    pub fn of(&mut self, machine: &Machine<'_>, state: &[u64]) -> bool {
        self.alive = machine.is_discarded(state);
        self.targets.clear();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut notes = std::mem::replace(&mut self.notes, machine.notes());
        // A run that ends with a fault is not stuck; one that matters would have been found before.
        notes.fault = false;
        let cut = machine.expand(state, &mut scratch, &mut notes, self);
        let alive = self.alive || notes.fault || cut.is_err();
        (self.scratch, self.notes) = (scratch, notes);
        alive
    }
}

impl Sink for Successors<'_> {
    fn begin(&mut self) {
        self.progress = false;
    }

    fn event(&mut self, event: impl FnOnce() -> Event) {
        self.progress |= is_progress(self.instance, self.model, &event());
    }

    fn next(&mut self, state: &[u64]) {
        self.alive |= self.progress;
        self.targets.extend(state);
    }
}

/// The first state, in order of discovery, that is not alive though it is not final.
fn first_deadlock(search: &Search<'_, '_>, control: &Control<'_>) -> Result<Option<u32>, Stop> {
    let machine = search.machine;
    let n = search.store.len() as u32;
    let mut alive = vec![false; n as usize];
    // `(target, source)`, to go backwards from what is alive.
    let mut edges: Vec<(u32, u32)> = Vec::new();
    let mut successors = Successors::new(machine);
    for source in 0..n {
        if source.is_multiple_of(1 << 12) {
            let mut progress = search.progress();
            progress.memory += 8 * edges.capacity() as u64;
            control.poll("explicit", progress)?;
        }
        alive[source as usize] = successors.of(machine, search.store.state(source));
        if !alive[source as usize] {
            let targets = successors.targets.chunks_exact(machine.words);
            let targets = targets.filter_map(|t| search.store.find(t));
            edges.extend(targets.map(|t| (t, source)));
        }
    }
    edges.sort_unstable();
    let mut work: Vec<u32> = (0..n).filter(|s| alive[*s as usize]).collect();
    while let Some(target) = work.pop() {
        let from = edges.partition_point(|(t, _)| *t < target);
        for (_, source) in edges[from..].iter().take_while(|(t, _)| *t == target) {
            if !alive[*source as usize] {
                alive[*source as usize] = true;
                work.push(*source);
            }
        }
    }
    Ok((0..n).find(|s| {
        let state = search.store.state(*s);
        !alive[*s as usize] && machine.inside_atomic(state).is_none() && !machine.is_final(state)
    }))
}

/// The answer when every state was seen, none was bad, and deadlocks count too.
pub fn search(
    engine: &Explicit,
    task: &Task<'_>,
    control: &Control<'_>,
    effort: Progress,
    together: Option<Together<'_>>,
) -> Result<Answer, Refusal> {
    let view = Watched {
        faults: task.minds_faults(),
        ..Watched::nothing(task.instance)
    };
    let plan = Subject {
        name: "explicit",
        instance: task.instance,
        model: task.model,
        contents: &EXACT,
        view: &view,
        reductions: Reductions {
            chaining: false,
            dead_registers: engine.options.dead_registers,
            persistent: false,
            symmetry: false,
        },
        order: engine.options.order,
        most_buffered: engine.options.most_buffered,
        compress: false,
    };
    // How far from the start there is no deadlock is not known.
    let effort = Progress {
        depth: None,
        ..effort
    };
    let undecided = |reason| Ok(Answer::Undecided { reason, effort });
    let proof = |effort: Progress| proof(effort, Explored::new(task.model, effort.states));
    let stopped = |stop| Reason::Stopped {
        stop,
        stage: "explicit (deadlock)".into(),
    };
    if let Some(together) = together {
        let (stuck, effort) = hosts::deadlock(task, &plan, control, together)?;
        return match stuck {
            Stuck::Never => Ok(proof(effort)),
            Stuck::Run(trace) => Ok(Answer::Reached { trace, effort }),
            Stuck::Cut(limits) => Ok(Answer::Bounded { limits, effort }),
            Stuck::Stopped(stop) => undecided(stopped(stop)),
            Stuck::Unclear(why) => undecided(Reason::Other(why)),
        };
    }
    let mut sizes = Sizes::guess(task.instance, task.model);
    let outcome = rounds::run(
        &plan,
        &mut sizes,
        control,
        || Nothing,
        |search, ended, _| {
            if *ended != Finished::Exhausted || search.notes.full.contains(&true) {
                return Ok(None);
            }
            let found = first_deadlock(search, control)?;
            Ok(found.map(|index| search.run_to(index)))
        },
    )?;
    match (outcome.ended, outcome.cut, outcome.value) {
        (_, _, Err(stop)) => undecided(stopped(stop)),
        (_, _, Ok(Some(Some(run)))) => Ok(Answer::Reached {
            trace: Trace {
                model: task.model,
                start: run.start,
                events: run.events,
                end: End::Deadlock,
            },
            effort: outcome.effort,
        }),
        (Finished::Exhausted, Cut::Nothing, Ok(None)) => Ok(proof(outcome.effort)),
        (Finished::Exhausted, Cut::Buffers(limits), Ok(None)) => {
            Ok(Answer::Bounded { limits, effort })
        }
        (Finished::Stopped(stop), ..) => undecided(stopped(stop)),
        _ => undecided(Reason::Other(
            "the search for deadlocks was cut short".into(),
        )),
    }
}

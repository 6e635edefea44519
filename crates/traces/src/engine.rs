//! The engine `traces`.

use crate::explore::{Found, Record, Search, Watch};
use crate::finals::reason;
use crate::moves::{Halt, Moves};
use crate::program::Program;
use wattle_evidence::certificate::{Runs, Traces as Proof};
use wattle_evidence::{
    Answer, Certificate, Control, End, Engine, Progress, Reason, Refusal, Task, Trace,
};
use wattle_memory::compiled::View;
use wattle_memory::reference::{self, State};
use wattle_memory::{MemoryModel, Start};
use wattle_model::graph::Action;
use wattle_model::instance::{Question, Step};
use wattle_model::{Fence, Instance, RegisterId};

/// One run for each trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traces;

impl Engine for Traces {
    fn name(&self) -> &'static str {
        "traces"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        task.is_narrow(1 << 24)?;
        let regions = regions_as_blocks(task);
        prepared(&on(task, &regions))?;
        match task.deadlock {
            true => no_choice_to_wait(task.instance, task.model),
            false => Ok(()),
        }
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let refused = |refusal| Answer::Undecided {
            reason: Reason::Refused(refusal),
            effort: Progress::default(),
        };
        let regions = regions_as_blocks(task);
        let simpler = on(task, &regions);
        let answer = match prepared(&simpler) {
            Ok((program, starts)) => search(&simpler, &program, &starts, control),
            Err(refusal) => return refused(refusal),
        };
        match (answer, &regions) {
            (Answer::Reached { trace, effort }, Some(blocks)) => {
                let trace = crate::regions::with_drains(task.instance, blocks, trace);
                Answer::Reached { trace, effort }
            }
            (answer, _) => answer,
        }
    }
}

/// The program with lock regions as atomic blocks, where that is the same. Deadlocks may be inside them.
fn regions_as_blocks(task: &Task<'_>) -> Option<Instance> {
    let may = !task.deadlock;
    may.then(|| task.instance.with_regions_as_blocks(task.question()))?
}

fn on<'r>(task: &Task<'r>, regions: &'r Option<Instance>) -> Task<'r> {
    Task {
        instance: regions.as_ref().unwrap_or(task.instance),
        ..*task
    }
}

fn prepared<'i>(task: &Task<'i>) -> Result<(Program<'i>, Vec<Start>), Refusal> {
    let view = View::of_question(task.instance, task.question());
    let program = Program::new(task.instance, task.model, &view)?;
    let starts = reference::starts(task.instance).map_err(|r| Refusal::new(r.to_string()))?;
    Ok((program, starts))
}

/// A thread that has set out to wait could have gone another way, so that it waits says nothing about a
/// deadlock.
fn no_choice_to_wait(instance: &Instance, model: MemoryModel) -> Result<(), Refusal> {
    let waits = |step: &&Step| match &step.action {
        Action::AtomicBegin(_) | Action::Lock | Action::Unlock | Action::Load { .. } => true,
        Action::Fence(Fence::Full) => model != MemoryModel::Sc,
        Action::Store { .. } => model == MemoryModel::Sc,
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Fence(Fence::Store)
        | Action::AtomicEnd => false,
    };
    for thread in &instance.threads {
        for out in thread.outgoing.iter().filter(|out| out.len() > 1) {
            if let Some(step) = out.iter().map(|s| thread.step(*s)).find(waits) {
                let why =
                    "a choice between waiting and something else says nothing about deadlocks";
                return Err(Refusal::new(why).at(step.span, "`--engine explicit` takes it"));
            }
        }
    }
    Ok(())
}

fn search(
    task: &Task<'_>,
    program: &Program<'_>,
    starts: &[Start],
    control: &Control<'_>,
) -> Answer {
    let mut runs = Vec::new();
    let mut effort = Progress::default();
    for start in starts {
        let mut asks = Asks {
            task,
            question: task.question(),
            end: None,
        };
        let mut search = Search::new(program, start, task.minds_faults());
        search.record = Some(Record::default());
        let found = search.run(&mut asks, control);
        let now = search.effort();
        effort.states += now.states;
        effort.memory = effort.memory.max(now.memory);
        let end = match found {
            Err(halt) => {
                let reason = reason(task.instance, halt);
                return Answer::Undecided { reason, effort };
            }
            Ok(None) => None,
            Ok(Some(Found::Fault(fault))) => Some(End::Fault(fault)),
            Ok(Some(Found::Seen)) => asks.end,
        };
        if let Some(end) = end {
            let trace = Trace {
                model: task.model,
                start: start.clone(),
                events: search.moves.trail.clone(),
                end,
            };
            return Answer::Reached { trace, effort };
        }
        let record = search.record.take().unwrap_or_default();
        runs.push(Runs {
            count: record.runs,
            bytes: record.bytes,
        });
    }
    Answer::Unreachable {
        certificate: Certificate::Traces(Proof {
            model: task.model,
            starts: runs,
        }),
        effort,
    }
}

/// Looks for the question's target and for deadlocks.
struct Asks<'t, 'i> {
    task: &'t Task<'i>,
    question: Option<&'i Question>,
    end: Option<End>,
}

impl Asks<'_, '_> {
    fn ask(&mut self, question: &Question, moves: &Moves<'_, '_>) -> Result<bool, Halt> {
        let holds = moves.machine.evaluate(&question.target);
        let holds = holds.map_err(Halt::NoValue)? != 0;
        if holds {
            self.end = Some(End::Target);
        }
        Ok(holds)
    }
}

impl Watch for Asks<'_, '_> {
    fn look(&mut self, moves: &Moves<'_, '_>) -> Result<bool, Halt> {
        match self.question {
            Some(q) if !q.only_final => self.ask(q, moves),
            Some(_) | None => Ok(false),
        }
    }

    fn ended(&mut self, moves: &Moves<'_, '_>) -> Result<bool, Halt> {
        if moves.machine.is_final() {
            return match self.question {
                Some(q) if q.only_final => self.ask(q, moves),
                Some(_) | None => Ok(false),
            };
        }
        if self.task.deadlock && !moves.has_faulted() && !is_discarded(moves) {
            self.end = Some(End::Deadlock);
            return Ok(true);
        }
        Ok(false)
    }
}

/// Whether some thread stands before nothing but false assumptions.
fn is_discarded(moves: &Moves<'_, '_>) -> bool {
    let (machine, instance) = (&moves.machine, moves.program.instance);
    let registers = instance.thread_ids().map(|t| {
        let all = 0..instance.thread(t).registers.len();
        all.map(|r| machine.register(t, RegisterId::new(r)))
            .collect()
    });
    let state = State::<()> {
        locations: machine.locations.clone(),
        registers: registers.collect(),
        memory: Vec::new(),
        buffers: Vec::new(),
        holder: None,
    };
    wattle_evidence::deadlock::is_discarded(instance, &state)
}

//! The engines `traces` and `cartesian`.

use crate::cartesian;
use crate::explore::{Found, Record, Search, Watch};
use crate::finals::reason;
use crate::moves::{Halt, Moves};
use crate::program::Program;
use wattle_evidence::certificate::{Explored, Runs, Traces as Proof};
use wattle_evidence::{
    Answer, Certificate, Control, End, Engine, Progress, Reason, Refusal, Task, Trace,
};
use wattle_memory::compiled::Watched;
use wattle_memory::reference::{self, State};
use wattle_memory::{Event, MemoryModel, Start};
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
        task.is_about_memory()?;
        let regions = regions_as_blocks(task);
        prepared(&on(task, &regions))?;
        match task.deadlock {
            true => no_choice_to_wait(task.instance, task.model),
            false => Ok(()),
        }
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        asked(task, |task, program, starts| {
            let begin = |start: &Start| {
                let mut search = Search::new(program, start, task.minds_faults());
                search.record = Some(Record::default());
                search
            };
            let mut runs = Vec::new();
            let effort = follow(task, starts, self.name(), control, begin, |mut search| {
                let record = search.record.take().unwrap_or_default();
                runs.push(Runs {
                    count: record.runs,
                    bytes: record.bytes,
                });
            })?;
            let model = task.model;
            let proof = Certificate::Traces(Proof {
                model,
                starts: runs,
            });
            Ok((proof, effort))
        })
    }
}

/// States from which prefixes of runs that do not mind each other are made whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cartesian;

impl Engine for Cartesian {
    fn name(&self) -> &'static str {
        "cartesian"
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        if task.deadlock {
            let why = "prefixes say nothing about who waits for ever; `--engine explicit` looks for deadlocks";
            return Err(Refusal::new(why));
        }
        task.is_narrow(1 << 24)?;
        task.is_about_memory()?;
        let regions = regions_as_blocks(task);
        prepared(&on(task, &regions)).map(|_| ())
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        asked(task, |task, program, starts| {
            let view = Watched::of_question(task.instance, task.question());
            let begin =
                |start: &Start| cartesian::Search::new(program, &view, start, task.minds_faults());
            let effort = follow(task, starts, self.name(), control, begin, drop)?;
            let proof = Certificate::Explored(Explored::new(task.model, effort.states));
            Ok((proof, effort))
        })
    }
}

/// What a proof is found by, or another answer.
type Proved = Result<(Certificate, Progress), Box<Answer>>;

/// Searches the program, simpler where that is the same, and answers for the program that was asked about.
fn asked(
    task: &Task<'_>,
    search: impl FnOnce(&Task<'_>, &Program<'_>, &[Start]) -> Proved,
) -> Answer {
    let regions = regions_as_blocks(task);
    let simpler = on(task, &regions);
    let (program, starts) = match prepared(&simpler) {
        Ok(prepared) => prepared,
        Err(refusal) => {
            return Answer::Undecided {
                reason: Reason::Refused(refusal),
                effort: Progress::default(),
            };
        }
    };
    match search(&simpler, &program, &starts) {
        Ok((certificate, effort)) => Answer::Unreachable {
            certificate,
            effort,
        },
        Err(answer) => as_asked(task, &regions, *answer),
    }
}

/// A search from one start.
trait Follow {
    fn run(&mut self, watch: &mut dyn Watch, control: &Control<'_>) -> Result<Option<Found>, Halt>;
    fn effort(&self) -> Progress;
    fn trail(&self) -> &[Event];
}

macro_rules! follows {
    ($search:ty) => {
        impl Follow for $search {
            fn run(
                &mut self,
                watch: &mut dyn Watch,
                control: &Control<'_>,
            ) -> Result<Option<Found>, Halt> {
                self.run(watch, control)
            }

            fn effort(&self) -> Progress {
                self.effort()
            }

            fn trail(&self) -> &[Event] {
                &self.moves.trail
            }
        }
    };
}

follows!(Search<'_, '_>);
follows!(cartesian::Search<'_, '_>);

/// Searches from every start to the end: what that took, or the answer if one is found or it cannot be done.
fn follow<S: Follow>(
    task: &Task<'_>,
    starts: &[Start],
    name: &'static str,
    control: &Control<'_>,
    begin: impl Fn(&Start) -> S,
    mut done: impl FnMut(S),
) -> Result<Progress, Box<Answer>> {
    let mut effort = Progress::default();
    for start in starts {
        let mut asks = Asks {
            task,
            question: task.question(),
            end: None,
        };
        let mut search = begin(start);
        let found = search.run(&mut asks, control);
        let now = search.effort();
        effort.states += now.states;
        effort.memory = effort.memory.max(now.memory);
        let end = match found {
            Err(halt) => {
                let reason = reason(task.instance, halt, name);
                return Err(Box::new(Answer::Undecided { reason, effort }));
            }
            Ok(None) => None,
            Ok(Some(Found::Fault(fault))) => Some(End::Fault(fault)),
            Ok(Some(Found::Seen)) => asks.end,
        };
        if let Some(end) = end {
            let trace = Trace {
                model: task.model,
                start: start.clone(),
                events: search.trail().to_vec(),
                end,
            };
            return Err(Box::new(Answer::Reached { trace, effort }));
        }
        done(search);
    }
    Ok(effort)
}

/// A run of the program with blocks as one of the program that was asked about.
fn as_asked(task: &Task<'_>, regions: &Option<Instance>, answer: Answer) -> Answer {
    match (answer, regions) {
        (Answer::Reached { trace, effort }, Some(blocks)) => {
            let trace = crate::regions::with_drains(task.instance, blocks, trace);
            Answer::Reached { trace, effort }
        }
        (answer, _) => answer,
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
    let view = Watched::of_question(task.instance, task.question());
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

//! The engine `params`: any number of threads that are told apart, unbounded integers, array-based
//! systems.

use crate::certificate::certificate;
use crate::check::{self, Options, Outcome};
use crate::compile::Unsupported;
use crate::concrete::Run;
use crate::lower::lower;
use crate::machine::{Event, Machine};
use crate::work;
use std::cell::Cell;
use wattle_evidence::related::Translated;
use wattle_evidence::{
    Answer, AnyNumber, Assumption, Control, Engine, OpenAnswer, OpenProof, OpenTask, Progress,
    Reason, Refusal, Stop, Task,
};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;

pub struct Params;

pub const NAME: &str = "params";

impl Engine for Params {
    fn name(&self) -> &'static str {
        NAME
    }

    fn accepts(&self, _: &Task<'_>) -> Result<(), Refusal> {
        Err(Refusal::new("it is for any number of threads"))
    }

    fn run(&self, task: &Task<'_>, _: &Control<'_>) -> Answer {
        let effort = Progress::default();
        let reason = match self.accepts(task) {
            Err(refusal) => Reason::Refused(refusal),
            Ok(()) => Reason::Other(String::new()),
        };
        Answer::Undecided { reason, effort }
    }

    fn accepts_open(&self, task: &OpenTask<'_>) -> Result<(), Refusal> {
        no_deadlocks(task)?;
        match task.of {
            AnyNumber::System(_) => Ok(()),
            AnyNumber::Program(program) => {
                lower(program, task.question).map(|_| ()).map_err(refusal)
            }
        }
    }

    fn run_open(&self, task: &OpenTask<'_>, control: &Control<'_>) -> OpenAnswer {
        let effort = Progress::default();
        if let Err(refusal) = no_deadlocks(task) {
            let reason = Reason::Refused(refusal);
            return OpenAnswer::Undecided { reason, effort };
        }
        match task.of {
            AnyNumber::System(system) => of_system(system, task.model, control),
            AnyNumber::Program(program) => match lower(program, task.question) {
                Err(u) => OpenAnswer::Undecided {
                    reason: Reason::Refused(refusal(u)),
                    effort,
                },
                Ok(lowered) => {
                    let assumptions = lowered.assumptions();
                    let translated = Translated {
                        relation: lowered.relation().clone(),
                        system: lowered.system,
                    };
                    of_program(translated, assumptions, task.model, control)
                }
            },
        }
    }
}

/// Nobody proves that any number of threads is free of deadlock.
fn no_deadlocks(task: &OpenTask<'_>) -> Result<(), Refusal> {
    match task.deadlock {
        true => Err(Refusal::no_open_deadlocks()),
        false => Ok(()),
    }
}

fn refusal(u: Unsupported) -> Refusal {
    Refusal::new(u.message).at(u.span, u.hint)
}

/// The system of a program.
fn of_program(
    translated: Translated,
    assumptions: Vec<Assumption>,
    model: MemoryModel,
    control: &Control<'_>,
) -> OpenAnswer {
    let system = &translated.system;
    let (outcome, stopped) = decide(system, model, control);
    match outcome {
        Outcome::Violated(run) => OpenAnswer::Suspected {
            threads: u32::from(run.threads),
            effort: Progress::default(),
        },
        Outcome::Holds(proof) => OpenAnswer::Unreachable {
            proof: OpenProof {
                certificate: certificate(system, model, &proof),
                assumptions,
                translated: Some(Box::new(translated)),
                claims: Vec::new(),
            },
            effort: held(proof.size()),
        },
        Outcome::Undecided(why) => undecided(why, stopped),
        Outcome::Refused(u) => refused(u),
    }
}

/// A system that somebody wrote.
fn of_system(system: &ArraySystem, model: MemoryModel, control: &Control<'_>) -> OpenAnswer {
    let (outcome, stopped) = decide(system, model, control);
    match outcome {
        Outcome::Violated(run) => match broken_claim(system, model, &run) {
            None => OpenAnswer::Ran {
                lines: tell(system, model, &run),
                effort: Progress::default(),
            },
            Some(line) => undecided(
                format!(
                    "a run violates it, but on the way also the invariant of line {line}, which the \
                     file takes for granted"
                ),
                None,
            ),
        },
        Outcome::Holds(proof) => {
            let axioms = (system.assumed.iter()).any(|q| system.only_constants(&q.body));
            OpenAnswer::Unreachable {
                proof: OpenProof {
                    certificate: certificate(system, model, &proof),
                    assumptions: axioms
                        .then_some(Assumption::Invariants)
                        .into_iter()
                        .collect(),
                    translated: None,
                    claims: proof.claims().to_vec(),
                },
                effort: held(proof.size()),
            }
        }
        Outcome::Undecided(why) => undecided(why, stopped),
        Outcome::Refused(u) => refused(u),
    }
}

/// Cubes or views.
fn held(size: usize) -> Progress {
    Progress {
        states: size as u64,
        ..Progress::default()
    }
}

fn undecided(why: String, stopped: Option<Stop>) -> OpenAnswer {
    OpenAnswer::Undecided {
        reason: match stopped {
            Some(stop) => Reason::stopped(stop, NAME),
            None => Reason::Other(why),
        },
        effort: Progress::default(),
    }
}

fn refused(u: Unsupported) -> OpenAnswer {
    OpenAnswer::Undecided {
        reason: Reason::Refused(refusal(u).with_its_hint()),
        effort: Progress::default(),
    }
}

/// Work from one poll to the next, in nanoseconds that are counted.
const POLL: u64 = 500_000;

/// Runs the search under the budget; also says what stopped it.
fn decide(
    system: &ArraySystem,
    model: MemoryModel,
    control: &Control<'_>,
) -> (Outcome, Option<Stop>) {
    let stopped = Cell::new(None);
    let begun = work::so_far();
    // What was done, for whoever runs beside it; cubes held may well become fewer.
    let polls = Cell::new(0u64);
    let look = || -> Result<(), Stop> {
        // Who was told once to stop begins nothing anew.
        if let Some(stop) = stopped.get() {
            return Err(stop);
        }
        let due = 1 + work::so_far().wrapping_sub(begun) / POLL;
        while polls.get() < due {
            polls.set(polls.get() + 1);
            let progress = Progress {
                states: polls.get(),
                ..Progress::default()
            };
            control.poll(NAME, progress)?;
        }
        control.go_on()
    };
    let stop = |_: usize| match look() {
        Ok(()) => false,
        Err(s) => {
            stopped.set(Some(s));
            true
        }
    };
    let (outcome, _) = check::check(system, model, Options::default(), &stop);
    (outcome, stopped.get())
}

/// The line of an invariant of the file that does not hold somewhere in the run.
fn broken_claim(system: &ArraySystem, model: MemoryModel, run: &Run) -> Option<u32> {
    let machine = Machine::new(system, model, run.threads);
    let mut state = run.start.clone();
    let mut events = run.events.iter();
    loop {
        if let Some(claim) = machine.broken_claim(&state) {
            return Some(system.assumed[claim].span.line);
        }
        state = machine.apply(&state, events.next()?)?;
    }
}

/// A run of the array-based system, one line for each event.
pub fn tell(system: &ArraySystem, model: MemoryModel, run: &Run) -> Vec<String> {
    let machine = Machine::new(system, model, run.threads);
    let name = |position: usize| {
        let (cell, args) = machine.cell_at(position);
        let args: Vec<String> = args.iter().map(|a| format!("#{a}")).collect();
        let base = &system.cell(cell).name;
        if args.is_empty() {
            base.clone()
        } else {
            format!("{base}[{}]", args.join(", "))
        }
    };
    let with = match run.threads {
        1 => "with 1 thread:".to_string(),
        n => format!("with {n} threads:"),
    };
    let mut lines = vec![with];
    let mut state = run.start.clone();
    for (i, event) in run.events.iter().enumerate() {
        let Some(next) = machine.apply(&state, event) else {
            break;
        };
        let what = match event {
            Event::Step {
                transition, args, ..
            } => {
                let args: Vec<String> = args.iter().map(|a| format!("#{a}")).collect();
                format!(
                    "{} ({})",
                    system.transitions[*transition].name,
                    args.join(", ")
                )
            }
            Event::Drain { thread, .. } => format!("a store of #{thread} reaches memory"),
        };
        let changed = (0..machine.size()).filter(|p| state.values[*p] != next.values[*p]);
        let changed: Vec<String> = changed.map(name).collect();
        let note = match changed.is_empty() {
            true => String::new(),
            false => format!("   changes {}", changed.join(", ")),
        };
        lines.push(format!("{:>4}  {what}{note}", i + 1));
        state = next;
    }
    lines
}

//! Small instances beside the provers: with more and more threads, and more and more states of each.
//!
//! A bug may need four or six threads, and two or three may have more states than anyone sees. So every
//! number of threads gets the same share of each round, and rounds grow.
//!
//! What begins with any of too many values to go through is begun with a few that matter
//! ([`beginnings`]): so are programs with a fixed number of threads. Where no such beginning is bad, the conditions
//! on the way are solved for one, on instances of up to three threads; with a fixed number `cegar` does that by itself.

use crate::beginnings;
use crate::small_worlds::{BUFFERED, fewer_choices, numbers, run};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wattle_evidence::control::Pace;
use wattle_evidence::{
    Answer, AnyNumber, Control, Engine, OpenAnswer, OpenTask, Progress, Reason, Refusal, Stop,
    Task, Trace,
};
use wattle_model::Instance;
use wattle_predicates::Cegar;
use wattle_search::question::Explored;

/// Breaks programs with any number of threads, and those with too many beginnings; never proves.
pub struct Small;

const NAME: &str = "small";

/// Most threads in a family.
const THREADS: u32 = 6;
/// States of each instance in the rounds.
const ROUNDS: [u64; 4] = [5_000, 20_000, 100_000, 400_000];
/// States of all of them.
const ALL_STATES: u64 = 2_000_000;
/// States of an instance from each of many beginnings, and threads in a family of such.
const BEGUN_STATES: u64 = 20_000;
const BEGUN_THREADS: u32 = 3;
/// Refinements of an instance whose conditions are solved.
const SOLVED_ROUNDS: usize = 24;

impl Engine for Small {
    fn name(&self) -> &'static str {
        NAME
    }

    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal> {
        match beginnings::are_many(task.instance) && !task.deadlock {
            true => Ok(()),
            false => Err(Refusal::new(
                "it is for any number of threads, and for variables that begin with too many values",
            )),
        }
    }

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer {
        let effort = Progress::default();
        if let Err(refusal) = self.accepts(task) {
            let reason = Reason::Refused(refusal);
            return Answer::Undecided { reason, effort };
        }
        match from_beginnings(task, control) {
            Ok((trace, effort)) => Answer::Reached { trace, effort },
            Err(reason) => Answer::Undecided { reason, effort },
        }
    }

    fn accepts_open(&self, task: &OpenTask<'_>) -> Result<(), Refusal> {
        match task.of {
            _ if task.deadlock => Err(Refusal::no_open_deadlocks()),
            AnyNumber::System(_) => Err(Refusal::new("it runs programs")),
            AnyNumber::Program(_) => Ok(()),
        }
    }

    fn run_open(&self, task: &OpenTask<'_>, control: &Control<'_>) -> OpenAnswer {
        let undecided = |reason: Reason| OpenAnswer::Undecided {
            reason,
            effort: Progress::default(),
        };
        let program = match (self.accepts_open(task), task.of) {
            (Ok(()), AnyNumber::Program(program)) => program,
            (Err(refusal), _) => return undecided(Reason::Refused(refusal)),
            (Ok(()), AnyNumber::System(_)) => return undecided(Reason::Other(String::new())),
        };
        let by_states = ByStates::new(control);
        let control = &control
            .stage(std::time::Duration::MAX)
            .with_pace(&by_states);
        let given = program;
        let (program, _) = fewer_choices(program);
        let mut complete = Vec::new();
        let mut left = ALL_STATES;
        for states in ROUNDS {
            for counts in numbers(&program, THREADS) {
                if complete.contains(&counts) || left == 0 {
                    continue;
                }
                let Ok(instance) = program.instantiate(&counts) else {
                    continue;
                };
                if instance.threads.is_empty() {
                    continue;
                }
                by_states.begin(&instance);
                let explored = run(&task.on(&instance), BUFFERED[0], states.min(left), control);
                if let Ok((_, effort)) = &explored {
                    left = left.saturating_sub(effort.states);
                }
                match explored {
                    Ok((Explored::Bad(trace), effort)) => {
                        return OpenAnswer::Reached {
                            instance: Box::new(instance),
                            trace,
                            effort,
                        };
                    }
                    Ok((Explored::Closed { .. } | Explored::Unclear(_) | Explored::Cut(_), _))
                    | Err(_) => complete.push(counts),
                    Ok((Explored::Stopped(stop), _)) => {
                        if let Some(stop) = real(stop, control) {
                            return undecided(Reason::stopped(stop, NAME));
                        }
                    }
                }
            }
        }
        for counts in numbers(given, BEGUN_THREADS) {
            let Ok(instance) = given.instantiate(&counts) else {
                continue;
            };
            if !beginnings::are_many(&instance) || instance.threads.is_empty() {
                continue;
            }
            match from_beginnings(&task.on(&instance), control) {
                Ok((trace, effort)) => {
                    return OpenAnswer::Reached {
                        instance: Box::new(instance),
                        trace,
                        effort,
                    };
                }
                Err(Reason::Stopped { stop, .. }) => {
                    return undecided(Reason::stopped(stop, NAME));
                }
                Err(_) => {}
            }
            if let Some((trace, effort)) = solved(&task.on(&instance), control) {
                return OpenAnswer::Reached {
                    instance: Box::new(instance),
                    trace,
                    effort,
                };
            }
        }
        let why = format!("no run of up to {THREADS} threads was seen to break it");
        undecided(Reason::Other(why))
    }
}

/// Polls by the states of many searches, most of which end soon: each begins with a poll, and goes on with another
/// whenever numbers have outgrown their places.
struct ByStates<'c> {
    outer: &'c Control<'c>,
    met: Mutex<Met>,
}

#[derive(Default)]
struct Met {
    /// The most that the search had done at a poll.
    most: u64,
    /// States not yet polled for, and polls.
    owed: u64,
    polls: u64,
}

impl<'c> ByStates<'c> {
    /// States from one poll to the next, and as how many a poll of a search counts that has done no more.
    const EVERY: u64 = 1 << 12;
    const EACH: u64 = 1 << 7;
    /// As many each step of an instance counts before its search.
    const READY: u64 = 1 << 6;

    fn new(outer: &'c Control<'c>) -> Self {
        let met = Mutex::new(Met::default());
        ByStates { outer, met }
    }

    fn met(&self) -> MutexGuard<'_, Met> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another instance is searched from now on; getting it ready takes about as long as so many states.
    fn begin(&self, instance: &Instance) {
        let steps: usize = instance.threads.iter().map(|t| t.steps.len()).sum();
        let mut met = self.met();
        met.most = 0;
        met.owed += Self::READY * steps as u64;
    }
}

impl Pace for ByStates<'_> {
    fn tick(&self, worker: &'static str, progress: Progress) -> Result<(), Stop> {
        let mut met = self.met();
        let done = progress.states.saturating_sub(progress.frontier);
        met.owed += Self::EACH + done.saturating_sub(met.most);
        met.most = met.most.max(done);
        while met.owed >= Self::EVERY {
            met.owed -= Self::EVERY;
            met.polls += 1;
            // No two are about the same.
            let states = progress.frontier + met.polls;
            self.outer.poll(worker, Progress { states, ..progress })?;
        }
        self.outer.go_on()
    }

    fn is_over(&self) -> bool {
        self.outer.stop() == Some(Stop::Cancelled)
    }
}

/// Why everything stops, if it does: enough states of one instance are told as too much memory.
fn real(stop: Stop, control: &Control<'_>) -> Option<Stop> {
    match (control.stop(), stop) {
        (None, Stop::Memory) => None,
        (told, stop) => Some(told.unwrap_or(stop)),
    }
}

/// A bad run from a beginning that the conditions on its way tell: `x + ecx == 1000` has many, none of them written
/// anywhere.
fn solved(task: &Task<'_>, control: &Control<'_>) -> Option<(Trace, Progress)> {
    let cegar = Cegar {
        most_rounds: SOLVED_ROUNDS,
        ..Cegar::default()
    };
    cegar.accepts(task).ok()?;
    match cegar.run(task, control) {
        Answer::Reached { trace, effort } => Some((trace, effort)),
        Answer::Unreachable { .. } | Answer::Bounded { .. } | Answer::Undecided { .. } => None,
    }
}

/// A bad run from one of the beginnings that matter.
fn from_beginnings(task: &Task<'_>, control: &Control<'_>) -> Result<(Trace, Progress), Reason> {
    let mut seen = Progress::default();
    for instance in beginnings::of(task.instance, task.question()) {
        let task = Task {
            instance: &instance,
            ..*task
        };
        let Ok((explored, effort)) = run(&task, BUFFERED[0], BEGUN_STATES, control) else {
            continue;
        };
        seen.states += effort.states;
        seen.memory = seen.memory.max(effort.memory);
        match explored {
            Explored::Bad(trace) => return Ok((trace, seen)),
            Explored::Stopped(stop) => {
                if let Some(stop) = real(stop, control) {
                    return Err(Reason::stopped(stop, NAME));
                }
            }
            Explored::Closed { .. } | Explored::Unclear(_) | Explored::Cut(_) => {}
        }
    }
    Err(Reason::Other("no beginning was seen to break it".into()))
}

//! Small instances beside the provers: with more and more threads, and more and more states of each.
//!
//! A bug may need four or six threads, and two or three may have more states than anyone sees. So every
//! number of threads gets the same share of each round, and rounds grow.

use crate::small_worlds::{BUFFERED, fewer_choices, numbers, run};
use wattle_evidence::{
    Answer, AnyNumber, Control, Engine, OpenAnswer, OpenTask, Progress, Reason, Refusal, Stop, Task,
};
use wattle_search::question::Explored;

/// Breaks programs with any number of threads; never proves.
pub struct Small;

const NAME: &str = "small";

/// Most threads in a family.
const THREADS: u32 = 6;
/// States of each instance in the rounds.
const ROUNDS: [u64; 4] = [5_000, 20_000, 100_000, 400_000];
/// States of all of them.
const ALL_STATES: u64 = 2_000_000;

impl Engine for Small {
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
                    Ok((Explored::Stopped(Stop::Memory), _)) if control.stop().is_none() => {}
                    Ok((Explored::Stopped(stop), _)) => {
                        return undecided(Reason::stopped(stop, NAME));
                    }
                }
            }
        }
        let why = format!("no run of up to {THREADS} threads was seen to break it");
        undecided(Reason::Other(why))
    }
}

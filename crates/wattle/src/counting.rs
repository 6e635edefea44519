//! The engine `counting`: facts are guessed by [`wattle_counting`] and judged by the auditor's
//! examination. They meet here, because no engine leans on the auditor.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wattle_auditor::counting::{self as auditor, Examination};
use wattle_auditor::{AuditError, Solvers};
use wattle_counting::{Granted, Judge, Outcome, Samples, Trouble, prove};
use wattle_evidence::certificate::counting::{Claims, Counting as Facts, Gap, Place};
use wattle_evidence::{
    Answer, AnyNumber, Assumption, Certificate, Control, Engine, OpenAnswer, OpenProof, OpenTask,
    Pace, Progress, Reason, Refusal, Stop, Task,
};
use wattle_model::graph::{Action, Section};
use wattle_model::{CountedCrowd, Program};

/// Proves what is a matter of how many threads are where.
pub struct Counting;

const NAME: &str = "counting";
/// What polls while the auditor asks.
const AUDITS: &str = "audit";

/// As many as Linux can have at once, on any machine: 2²².
const THREADS: u32 = 1 << 22;

impl Engine for Counting {
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
        treated(task).map(|_| ())
    }

    fn run_open(&self, task: &OpenTask<'_>, control: &Control<'_>) -> OpenAnswer {
        let undecided = |reason: Reason| OpenAnswer::Undecided {
            reason,
            effort: Progress::default(),
        };
        let (program, counted) = match treated(task) {
            Ok(both) => both,
            Err(refusal) => return undecided(Reason::Refused(refusal)),
        };
        // Numbers that wrap around are taken as they are first, for any number of threads and for as many as
        // there can be; then for granted not to.
        let (_, wraps) = program.with_wraps_as_faults();
        let look = |granted, work| facts(program, task, &counted, (granted, work), control);
        let mut outcome = look(Granted::Nothing, WORK);
        for granted in [
            Granted::AtMost(THREADS),
            Granted::Unwrapped(most(program)),
            Granted::NoWrap,
        ] {
            if matches!(outcome, Outcome::Open(_) | Outcome::Hard(_)) && !wraps.is_empty() {
                outcome = look(granted, WORK);
            }
        }
        if matches!(outcome, Outcome::Hard(_)) {
            outcome = look(Granted::Nothing, MORE_WORK);
        }
        match outcome {
            Outcome::Stopped(stop) => undecided(Reason::stopped(stop, NAME)),
            Outcome::Open(why) | Outcome::Hard(why) => undecided(Reason::Other(why)),
            Outcome::Proved(certificate) => {
                let states = certificate.facts.len() as u64;
                let assumed = Assumption::NoWrap { variables: wraps };
                OpenAnswer::Unreachable {
                    proof: OpenProof {
                        assumptions: certificate.no_wrap.then_some(assumed).into_iter().collect(),
                        certificate: Certificate::Counting(certificate),
                        translated: None,
                        claims: Vec::new(),
                    },
                    effort: Progress {
                        states,
                        ..Progress::default()
                    },
                }
            }
        }
    }
}

/// The program as it is counted.
fn treated<'t>(task: &OpenTask<'t>) -> Result<(&'t Program, CountedCrowd), Refusal> {
    if task.deadlock {
        return Err(Refusal::no_open_deadlocks());
    }
    let AnyNumber::Program(program) = task.of else {
        return Err(Refusal::new("it reads programs"));
    };
    let property = task.question.and_then(|q| program.properties.get(q));
    if property.is_some_and(|p| p.condition.expr.sees_buffers()) {
        let why = "the property asks what a thread sees of its pending stores";
        return Err(Refusal::new(why));
    }
    for step in program.families.iter().flat_map(|f| &f.steps) {
        let untreated = match step.action {
            Action::Lock | Action::Unlock => Some("`lock` is not counted"),
            Action::AtomicBegin(Section::Buffered) => {
                Some("an atomic section that keeps its stores buffered is not counted")
            }
            Action::AtomicBegin(Section::Drained)
            | Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicEnd => None,
        };
        if let Some(why) = untreated {
            return Err(Refusal::new(why).at(step.span, "use atomic steps"));
        }
    }
    let counted = program.counted_crowd(task.question);
    let counted = counted.map_err(|n| Refusal::new(n.message).at(n.span, n.hint))?;
    Ok((program, counted))
}

fn facts(
    program: &Program,
    task: &OpenTask<'_>,
    counted: &CountedCrowd,
    (granted, work): (Granted, u64),
    control: &Control<'_>,
) -> Outcome {
    let asked = auditor::Asked {
        program,
        model: task.model,
        property: task.question,
        no_wrap: granted.no_wrap(),
        at_most: granted.at_most(),
        unwrapped: granted.unwrapped(),
    };
    let unwrapped = match granted.unwrapped() {
        true => match unwrapped(program, task.question) {
            Some(unwrapped) => Some(unwrapped),
            None => return Outcome::Open("there are no numbers to unwrap".into()),
        },
        false => None,
    };
    let counted = unwrapped.as_ref().unwrap_or(counted);
    let solvers = Solvers::own();
    let guesses = Guesses::new(control);
    let paced = control.stage(Duration::MAX).with_pace(&guesses);
    let judge = |places: Vec<Place>| {
        let examination = Examination::new(&solvers, &asked, places, &paced);
        let examination = examination.map_err(trouble)?;
        let examination = examination.with_work(work);
        let guesses = &guesses;
        Ok(Box::new(Examined {
            examination,
            guesses,
        }) as Box<dyn Judge>)
    };
    prove(counted, task.model, granted, &paced, &judge)
}

/// Polls for guesses as for what they are: the auditor asks about them, but no proof is there yet. Others wait for
/// them as long as for a short audit; from then on they are work like any other. A query takes the longer the more is
/// guessed.
struct Guesses<'c> {
    outer: &'c Control<'c>,
    met: Mutex<Met>,
}

#[derive(Default)]
struct Met {
    /// Facts in the queries that are asked now.
    facts: u64,
    /// Microseconds of queries not yet polled for, those for which others waited, and those of the search.
    owed: u64,
    held: u64,
    searched: u64,
}

impl<'c> Guesses<'c> {
    /// What a query takes, and each fact in it, in tenths of microseconds: of 4 programs one with 15 facts took about 0.13 ms,
    /// with 68 0.4, with 425 1.1.
    const QUERY: u64 = 1000;
    const FACT: u64 = 24;
    /// Microseconds from one poll to the next, in the search and here.
    const POLL: u64 = 400;
    /// So many times the search others wait for guesses.
    const SHARE: u64 = 2;

    fn new(outer: &'c Control<'c>) -> Self {
        let met = Mutex::new(Met::default());
        Guesses { outer, met }
    }

    fn met(&self) -> MutexGuard<'_, Met> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queries about so many facts come next.
    fn about(&self, facts: usize) {
        self.met().facts = facts as u64;
    }
}

impl Pace for Guesses<'_> {
    fn tick(&self, worker: &'static str, progress: Progress) -> Result<(), Stop> {
        let mut met = self.met();
        if worker != AUDITS {
            met.searched += Self::POLL;
            drop(met);
            return self.outer.poll(worker, progress);
        }
        met.owed += (Self::QUERY + Self::FACT * met.facts) / 10;
        while met.owed >= Self::POLL {
            met.owed -= Self::POLL;
            met.held += Self::POLL;
            let worker = match met.held <= Self::SHARE * met.searched {
                true => AUDITS,
                false => NAME,
            };
            self.outer.poll(worker, progress)?;
        }
        self.outer.go_on()
    }

    fn is_over(&self) -> bool {
        self.outer.stop() == Some(Stop::Cancelled)
    }
}

/// What one query about guesses may take: others wait for it. And where some were too hard and nothing else proves it.
const WORK: u64 = 500_000;
const MORE_WORK: u64 = 20 * WORK;

struct Examined<'a> {
    examination: Examination<'a>,
    guesses: &'a Guesses<'a>,
}

fn trouble(e: AuditError) -> Trouble {
    match e {
        AuditError::Stopped(stop) => Trouble::Stopped(stop),
        other => Trouble::Refused(other.to_string()),
    }
}

impl Judge for Examined<'_> {
    fn gap(&mut self, claims: Claims<'_>) -> Result<Option<Gap>, Trouble> {
        self.guesses.about(claims.facts.len() + claims.known.len());
        self.examination.gap(claims).map_err(trouble)
    }

    fn allows(&mut self, claims: Claims<'_>) -> Result<Option<Gap>, Trouble> {
        self.guesses.about(claims.facts.len() + claims.known.len());
        self.examination.allows(claims).map_err(trouble)
    }
}

/// The program with numbers that do not wrap around, as it is counted.
fn unwrapped(program: &Program, question: Option<usize>) -> Option<CountedCrowd> {
    program.unwrapped()?.0.counted_crowd(question).ok()
}

/// With how many threads it is tried: no more than the narrowest number that is compared has values, which is as many as a
/// ticket lock stands.
fn most(program: &Program) -> u32 {
    let bits = program.unwrapped().map_or(64, |(_, bits)| bits);
    1u32.checked_shl(bits.into())
        .map_or(THREADS, |n| n.min(THREADS))
}

/// A state of a small instance that the facts do not stand for.
pub fn outside(
    program: &Program,
    task: &OpenTask<'_>,
    certificate: &Facts,
    control: &Control<'_>,
) -> Option<String> {
    if certificate.no_wrap {
        return None;
    }
    let counted = match certificate.unwrapped {
        true => unwrapped(program, task.question)?,
        false => program.counted_crowd(task.question).ok()?,
    };
    let samples = Samples::take(&counted, task.model, certificate.unwrapped, control).ok()?;
    // Of instances with more threads nothing is said.
    let most = certificate.at_most.map_or(usize::MAX, |n| n as usize);
    let few = samples.states.iter().filter(|s| s.locals.len() <= most);
    few.into_iter().find_map(|state| {
        let locals = state.locals.iter();
        let locals: Vec<_> = locals.map(|l| &samples.locals[*l as usize]).collect();
        certificate.excludes(&state.cells, &locals)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many polls as an audit, and as a search, so many queries about so many facts are.
    fn polls(searched: u64, queries: u64, facts: usize) -> (usize, usize) {
        let seen = Mutex::new(Vec::new());
        let sink = |worker: &'static str, _: Progress| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(worker);
        };
        let control = Control::unlimited().with_sink(&sink);
        let guesses = Guesses::new(&control);
        let paced = control.stage(Duration::MAX).with_pace(&guesses);
        // The inner control tells the sink as well; only what the outer one is told counts.
        for n in 0..searched {
            assert!(guesses.tick(NAME, Progress::of(n)).is_ok());
        }
        guesses.about(facts);
        for n in 0..queries {
            assert!(guesses.tick(AUDITS, Progress::of(n)).is_ok());
        }
        assert!(paced.go_on().is_ok());
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let audits = seen.iter().filter(|w| **w == AUDITS).count();
        (audits, seen.len() - audits - searched as usize)
    }

    #[test]
    fn queries_about_many_facts_are_more_polls() {
        let (few, _) = polls(1000, 400, 0);
        let (many, _) = polls(1000, 400, 500);
        assert_eq!((few, many), (100, 1300));
    }

    #[test]
    fn others_wait_for_guesses_twice_as_long_as_for_the_search() {
        assert_eq!(polls(10, 400, 0), (20, 80));
        assert_eq!(polls(0, 400, 0), (0, 100));
    }
}

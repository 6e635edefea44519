//! The engine `levels`: what numbers mean is guessed from how they are used, and what two threads and a level look like
//! is closed by the auditor's own examination. They meet here, because no engine leans on the auditor.

mod meant;

use std::collections::BTreeSet;
use wattle_auditor::AuditError;
use wattle_auditor::levels::{Behind, Done, Situation, judge, looks};
use wattle_evidence::certificate::levels::{Against, Levels as Certified};
use wattle_evidence::{
    Answer, AnyNumber, Certificate, Control, Engine, OpenAnswer, OpenProof, OpenTask, Progress,
    Reason, Refusal, Task,
};
use wattle_model::{LocationId, Program};

/// Proves that few are left of those who climb levels, where somebody stays behind on each.
pub struct Levels;

const NAME: &str = "levels";

impl Engine for Levels {
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
        let (program, done, guesses) = match treated(task) {
            Ok(all) => all,
            Err(refusal) => return undecided(Reason::Refused(refusal)),
        };
        let mut why = String::new();
        for guess in guesses {
            match climbed(program, &done, guess, control) {
                Ok((certificate, states)) => {
                    return OpenAnswer::Unreachable {
                        proof: OpenProof {
                            certificate: Certificate::Levels(certificate),
                            assumptions: Vec::new(),
                            translated: None,
                            claims: Vec::new(),
                        },
                        effort: Progress {
                            states,
                            ..Progress::default()
                        },
                    };
                }
                Err(AuditError::Stopped(stop)) => return undecided(Reason::stopped(stop, NAME)),
                Err(e) => why = e.to_string(),
            }
        }
        undecided(Reason::Other(why))
    }
}

/// What the property forbids, and what numbers may mean.
fn treated<'t>(task: &OpenTask<'t>) -> Result<(&'t Program, Done, Vec<Certified>), Refusal> {
    if task.deadlock {
        return Err(Refusal::no_open_deadlocks());
    }
    let AnyNumber::Program(program) = task.of else {
        return Err(Refusal::new("it reads programs"));
    };
    let property = task.question.and_then(|q| program.properties.get(q));
    let property = property.ok_or_else(|| Refusal::new("it is for threads at places"))?;
    let done = Done::of(program, property).map_err(|e| Refusal::new(e.to_string()))?;
    if done.threads < 2 {
        return Err(Refusal::new("it is for several threads at places"));
    }
    let guesses = meant::guesses(program, task.model);
    match guesses.is_empty() {
        true => Err(Refusal::new("nobody climbs levels")),
        false => Ok((program, done, guesses)),
    }
}

/// The certificate with who has reached and passed levels, if that proves what is asked.
fn climbed(
    program: &Program,
    done: &Done,
    guess: Certified,
    control: &Control<'_>,
) -> Result<(Certified, u64), AuditError> {
    let (looks, states) = looks(program, &guess, control)?;
    let mut why = AuditError::Other("the property needs more levels".into());
    for skips in [[false, false], [true, false], [false, true], [true, true]] {
        let left = usize::from(skips[0]) + usize::from(skips[1]);
        if done.threads <= left.max(1) {
            continue;
        }
        let mut certificate = guess.clone();
        certificate.skips = skips;
        (certificate.reached, certificate.passed) = least(done, skips, &looks);
        match judge(&certificate, done, &looks) {
            Ok(()) => return Ok((certificate, states)),
            Err(e) => why = e,
        }
    }
    Err(why)
}

type Sides = Vec<(LocationId, Against)>;

/// Who has to have reached and passed a level, if whom the property forbids has passed all. If these do not do, no
/// others will.
fn least(done: &Done, skips: [bool; 2], looks: &BTreeSet<Situation>) -> (Sides, Sides) {
    let all = done.at.iter().flat_map(|l| Against::ALL.map(|a| (*l, a)));
    let mut passed: BTreeSet<(LocationId, Against)> = all.collect();
    let mut reached = BTreeSet::new();
    loop {
        let before = (passed.len(), reached.len());
        reached.extend(&passed);
        for (l, against) in &reached {
            let next: &[Against] = match against {
                Against::Below => &[Against::Below, Against::At],
                Against::At | Against::Above => &[Against::Above],
            };
            passed.extend(next.iter().map(|a| (*l, *a)));
        }
        for look in looks {
            let skipped = skips.iter().zip(look.ends).any(|(skip, end)| *skip && end);
            let [first, second] = look.threads;
            if !skipped
                && look.behind == Behind::First
                && !look.pending[1]
                && reached.contains(&second)
            {
                reached.insert(first);
            }
        }
        if before == (passed.len(), reached.len()) {
            let sides = |of: BTreeSet<_>| of.into_iter().collect();
            return (sides(reached), sides(passed));
        }
    }
}

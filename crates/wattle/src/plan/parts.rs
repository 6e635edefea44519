//! Threads that have nothing to do with each other are looked at apart, by whoever is best at each part.
//!
//! A target is true in certain ways, each a list of conditions that look at one part each: a way is
//! excluded if one part cannot make its conditions true, and reached if all can, one after the other.
//! Whatever comes out of it is evidence about the whole program, and judged as such; where nothing does, the
//! program is looked at as a whole.

use super::{Options, Outcome, is_decided, judged};
use wattle_auditor::AuditPolicy;
use wattle_evidence::certificate::{IndependentPart, Parts};
use wattle_evidence::{
    Answer, Broken, Certificate, Control, End, Progress, Proof, Task, Trace, Unsound, Verdict,
};
use wattle_model::instance::{Fact, Question};
use wattle_model::{Expr, Instance, Op2, ThreadId};
use wattle_search::Reduce;

/// What is known of a question about a part.
#[derive(Clone)]
enum Found {
    Never(Certificate),
    Reached(Trace),
    /// A fault, which answers for the whole program.
    Fault(Trace),
    Unknown,
}

/// The answer for a program of several parts, if they give one.
pub fn run(
    task: &Task<'_>,
    options: &Options,
    control: &Control<'_>,
) -> Result<Option<Outcome>, Unsound> {
    let wanted = options.engine.is_none() && options.reduce == Reduce::default();
    if !wanted || task.deadlock && task.instance.locks() {
        return Ok(None);
    }
    let ways = task.question().map_or(Vec::new(), |q| q.target.ways());
    let conditions = ways.iter().flatten();
    let together: Vec<_> = conditions.map(|c| task.instance.seen_by(c)).collect();
    let parts = task.instance.parts(&together);
    if parts.len() < 2 {
        return Ok(None);
    }
    let mut apart = Apart {
        task,
        options: Options {
            audit: AuditPolicy::Never,
            ..options.clone()
        },
        control,
        known: vec![Vec::new(); parts.len()],
        parts,
        effort: Progress::default(),
    };
    let Some(answer) = apart.answer(&ways)? else {
        return Ok(None);
    };
    let outcome = judged("parts", answer, task, options, control)?;
    Ok(is_decided(&outcome).then_some(outcome))
}

struct Apart<'t> {
    task: &'t Task<'t>,
    options: Options,
    control: &'t Control<'t>,
    parts: Vec<Vec<ThreadId>>,
    /// Per part what was asked before.
    known: Vec<Vec<(Option<Expr<Fact>>, Found)>>,
    effort: Progress,
}

impl Apart<'_> {
    fn answer(&mut self, ways: &[Vec<Expr<Fact>>]) -> Result<Option<Answer>, Unsound> {
        let (mut excluded_by, mut targets) = (Vec::new(), vec![None; self.parts.len()]);
        for way in ways {
            let mut runs = Vec::new();
            let (mut excluded, mut unknown) = (None, false);
            for part in 0..self.parts.len() {
                let half = self.half(way, part);
                // A part that is not looked at has only to end, if that matters.
                let idle = half.is_none() && !self.only_final();
                let half = half.unwrap_or(Expr::Const(1));
                if idle {
                    continue;
                }
                match self.ask(part, Some(&half))? {
                    Found::Never(_) => {
                        excluded = Some((part, half));
                        break;
                    }
                    Found::Reached(trace) => runs.push(trace),
                    Found::Fault(trace) => return Ok(Some(self.reached(trace))),
                    Found::Unknown => unknown = true,
                }
            }
            match excluded {
                Some((part, half)) => {
                    excluded_by.push(part as u32);
                    let target: &mut Option<Expr<Fact>> = &mut targets[part];
                    *target = Some(match target.take() {
                        None => half,
                        Some(before) => Expr::binary(Op2::Or, before, half),
                    });
                }
                None if unknown => return Ok(None),
                None => {
                    let run = one_after_the_other(runs);
                    let real = run.filter(|t| t.check_within(self.task, self.control).is_ok());
                    return Ok(real.map(|trace| self.reached(trace)));
                }
            }
        }
        let mut parts = Vec::new();
        for (part, target) in targets.iter().enumerate() {
            let owed = target.is_some() || self.task.minds_faults() || self.task.deadlock;
            let proof = match owed {
                false => None,
                true => match self.ask(part, target.as_ref())? {
                    Found::Never(proof) => Some(Box::new(proof)),
                    Found::Fault(trace) => return Ok(Some(self.reached(trace))),
                    Found::Reached(_) | Found::Unknown => return Ok(None),
                },
            };
            let threads = self.parts[part].clone();
            parts.push(IndependentPart { threads, proof });
        }
        Ok(Some(Answer::Unreachable {
            certificate: Certificate::Parts(Parts { parts, excluded_by }),
            effort: self.effort,
        }))
    }

    fn only_final(&self) -> bool {
        self.task.question().is_some_and(|q| q.only_final)
    }

    fn reached(&self, trace: Trace) -> Answer {
        let effort = self.effort;
        Answer::Reached { trace, effort }
    }

    /// Those of a way's conditions that look at this part only.
    fn half(&self, way: &[Expr<Fact>], part: usize) -> Option<Expr<Fact>> {
        let own = |c: &&Expr<Fact>| {
            let mut seen = self.task.instance.seen_by(c).into_iter();
            let idle = |t: ThreadId| self.task.instance.thread(t).steps.is_empty();
            seen.all(|t| idle(t) || self.parts[part].contains(&t))
        };
        let conditions = way.iter().filter(own).cloned();
        conditions.reduce(|a, b| Expr::binary(Op2::And, a, b))
    }

    /// Whether the part alone gets there; without a target, whether it has faults.
    fn ask(&mut self, part: usize, target: Option<&Expr<Fact>>) -> Result<Found, Unsound> {
        let known = self.known[part].iter().find(|(t, _)| t.as_ref() == target);
        if let Some((_, found)) = known {
            return Ok(found.clone());
        }
        if self.control.stop().is_some() {
            return Ok(Found::Unknown);
        }
        let mut instance: Instance = self.task.instance.alone(&self.parts[part]);
        if let (Some(question), Some(target)) = (self.task.question(), target) {
            instance.questions.push(Question {
                target: target.clone(),
                ..question.clone()
            });
        }
        let task = Task {
            instance: &instance,
            model: self.task.model,
            question: (!instance.questions.is_empty()).then_some(0),
            deadlock: self.task.deadlock,
        };
        let outcome = super::run(&task, &self.options, self.control)?;
        self.effort.states += outcome.effort.states;
        self.effort.memory = self.effort.memory.max(outcome.effort.memory);
        let found = match outcome.judged.verdict {
            Verdict::Holds {
                proof: Proof::Certificate(proof),
                ..
            }
            | Verdict::Violated {
                because: Broken::NeverReached(proof),
            } => Found::Never(proof),
            Verdict::Holds {
                proof: Proof::Witness(trace),
                ..
            }
            | Verdict::Violated {
                because: Broken::Trace(trace),
            } => match trace.end {
                End::Target => Found::Reached(trace),
                End::Fault(_) => Found::Fault(trace),
                // Others may go on for ever.
                End::Deadlock => Found::Unknown,
            },
            Verdict::Violated {
                because: Broken::Lasso(_) | Broken::Run(_),
            }
            | Verdict::HoldsIf { .. }
            | Verdict::Bounded { .. }
            | Verdict::Undecided { .. } => Found::Unknown,
        };
        self.known[part].push((target.cloned(), found.clone()));
        Ok(found)
    }
}

/// One run of them all, if they begin in one state.
fn one_after_the_other(runs: Vec<Trace>) -> Option<Trace> {
    runs.into_iter().try_fold(None, |all: Option<Trace>, run| {
        Some(Some(match all {
            None => run,
            Some(all) if all.start != run.start => return None,
            Some(mut all) => {
                all.events.extend(run.events);
                all
            }
        }))
    })?
}

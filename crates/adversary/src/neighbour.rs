//! The auditor tried on its own: proofs put to programs that they are not about.
//!
//! A *neighbour* of a program differs from it in one step, in what a cell holds at first or in its
//! property, and its states look the same: a proof of the one can be read as a proof of the other. Where
//! brute force finds the neighbour violated, the auditor has to reject whatever it is shown. For any
//! number of threads a few are enough to be violated with, and a proof about an array-based system is
//! put to it with the neighbour's own translation and with that of the program it was made for.

use crate::brute::Truth;
use crate::trial::{Judge, Limits};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use wattle_auditor::{AuditError, Solvers, audit, audit_open, audit_system, translation};
use wattle_evidence::{AnyNumber, Certificate, Control, OpenTask, Pace, Progress, Stop, Task};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::{Expr, Init, Op1, Program, print, validate};
use wattle_params::lower::lower;
use wattle_random::Rng;

/// Neighbours that are made of a program.
const MADE: usize = 8;
/// Violated ones that proofs are put to.
const KEPT: usize = 2;
/// Threads of open families that are enough for a neighbour.
const THREADS: u32 = 3;
/// How often one audit may at least ask whether it goes on, about once in a millisecond.
const LOOKS: u64 = 100;

/// Ends an audit at the same point on every machine.
struct Patience {
    left: AtomicU64,
}

impl Pace for Patience {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        if self.is_over() {
            return Err(Stop::Budget);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let one = |left: u64| left.checked_sub(1);
        let looked = (self.left).fetch_update(Ordering::Relaxed, Ordering::Relaxed, one);
        looked.is_err()
    }
}

/// A proof, a program it is to be a proof of, and whether the auditor has to reject it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Audit {
    pub program: String,
    pub model: MemoryModel,
    pub question: Option<usize>,
    pub deadlock: bool,
    pub certificate: Certificate,
    /// The program whose translation the proof brings along, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translated: Option<String>,
    pub accepted: bool,
}

impl Audit {
    /// Whether the auditor takes it, as of now; nothing if it was not asked to the end.
    pub fn again(
        &self,
        program: &Program,
        translated: Option<&Program>,
        control: &Control<'_>,
    ) -> Option<bool> {
        let result = match program.is_parameterised() {
            true => self.open(program, translated.unwrap_or(program), control),
            false => {
                let instance = program.instance().ok()?;
                let task = Task {
                    instance: &instance,
                    model: self.model,
                    question: self.question,
                    deadlock: self.deadlock,
                };
                audit(&task, &self.certificate, control).map(|_| ())
            }
        };
        match result {
            Ok(()) => Some(true),
            Err(AuditError::Stopped(_)) => None,
            Err(_) => Some(false),
        }
    }

    /// A proof about any number of threads: of the program itself, or of a system that is then compared
    /// with it.
    fn open(
        &self,
        program: &Program,
        translated: &Program,
        control: &Control<'_>,
    ) -> Result<(), AuditError> {
        let solvers = Solvers::own();
        if !matches!(
            self.certificate,
            Certificate::Cubes(_) | Certificate::Views(_)
        ) {
            let task = OpenTask {
                of: AnyNumber::Program(program),
                model: self.model,
                question: self.question,
                deadlock: self.deadlock,
            };
            return audit_open(&solvers, &task, &self.certificate, None, control).map(|_| ());
        }
        let refused = |why: &str| AuditError::Refused(why.to_string());
        let lowered = lower(translated, self.question).map_err(|_| refused("not translated"))?;
        if !lowered.may_wrap.is_empty() {
            return Err(refused("under a condition"));
        }
        audit_system(
            &solvers,
            &lowered.system,
            self.model,
            &self.certificate,
            control,
        )?;
        let translation = translation::Translation {
            program,
            property: self.question,
            system: &lowered.system,
            relation: lowered.relation(),
            assumptions: &[],
        };
        translation::validate(&solvers, &translation, control).map(|_| ())
    }
}

/// Violated neighbours of a program.
pub struct Neighbours<'p> {
    program: &'p Program,
    all: Vec<Program>,
    model: MemoryModel,
    question: Option<usize>,
    deadlock: bool,
    /// What one audit may ask, as often as the search could.
    looks: u64,
}

impl<'p> Neighbours<'p> {
    pub fn of(
        program: &'p Program,
        model: MemoryModel,
        question: Option<usize>,
        deadlock: bool,
        limits: Limits,
    ) -> Neighbours<'p> {
        let seed = program.families.iter().map(|f| f.steps.len() as u64).sum();
        let mut rng = Rng::new(seed);
        let limits = Limits {
            states: limits.states / 4,
            threads: limits.threads.min(THREADS),
            ..limits
        };
        let mut all = Vec::new();
        for _ in 0..MADE {
            let other = changed(program, question, &mut rng);
            if other == *program || other.canonical() != other || !validate(&other).is_empty() {
                continue;
            }
            let judge = Judge::of(&other, model, limits);
            if judge.truth(question, deadlock) == Truth::Violated {
                all.push(other);
            }
            if all.len() == KEPT {
                break;
            }
        }
        Neighbours {
            program,
            all,
            model,
            question,
            deadlock,
            looks: LOOKS.max(limits.budget.work / 1_000),
        }
    }

    /// Puts the proof to every neighbour; says which one the auditor takes it for a proof of. What was
    /// asked is added to `audits`.
    pub fn accepted(&self, proof: &Certificate, audits: &mut Vec<Audit>) -> Option<&Program> {
        let mut wrong = None;
        let systems = matches!(proof, Certificate::Cubes(_) | Certificate::Views(_));
        for program in &self.all {
            // A translation of another program comes with it, or its own.
            let brought = systems.then_some(self.program);
            for translated in std::iter::once(None).chain(brought.map(Some)) {
                let mut asked = self.audit(program, proof, false);
                asked.translated = translated.map(print::to_wtl);
                let patience = Patience {
                    left: AtomicU64::new(self.looks),
                };
                let control = Control::unlimited().with_pace(&patience);
                let Some(accepted) = asked.again(program, translated, &control) else {
                    continue;
                };
                asked.accepted = accepted;
                audits.push(asked);
                if accepted && wrong.is_none() {
                    wrong = Some(program);
                }
            }
        }
        wrong
    }

    /// A proof of the program itself. Where its translation is not validated, nor is the proof.
    pub fn own(&self, proof: &Certificate) -> Audit {
        let mut asked = self.audit(self.program, proof, true);
        if self.program.is_parameterised() {
            let again = asked.again(self.program, None, &Control::unlimited());
            asked.accepted = again == Some(true);
        }
        asked
    }

    fn audit(&self, program: &Program, proof: &Certificate, accepted: bool) -> Audit {
        Audit {
            program: print::to_wtl(program),
            model: self.model,
            question: self.question,
            deadlock: self.deadlock,
            certificate: proof.clone(),
            translated: None,
            accepted,
        }
    }
}

/// The program with one step, one cell's initial value or its property changed.
fn changed(program: &Program, question: Option<usize>, rng: &mut Rng) -> Program {
    let mut other = program.clone();
    if let Some(q) = question
        && rng.one_in(4)
    {
        let expr = &mut other.properties[q].condition.expr;
        *expr = Expr::unary(Op1::Not, expr.clone());
        return other;
    }
    if !other.regions.is_empty() && rng.one_in(5) {
        let r = rng.below(other.regions.len());
        let init = &mut other.regions[r].init;
        match init {
            Init::All(Expr::Const(c)) => *c = if *c == 0 { 1 } else { 0 },
            Init::All(_) | Init::Each(_) | Init::Any => *init = Init::All(Expr::Const(1)),
        }
        return other;
    }
    let f = rng.below(other.families.len());
    let steps = &mut other.families[f].steps;
    if steps.is_empty() {
        return other;
    }
    let s = rng.below(steps.len());
    let more = |e: &Expr<_>| Expr::binary(wattle_model::Op2::Add, e.clone(), Expr::Const(1));
    let action = match &steps[s].action {
        Action::Skip => Action::Fence(wattle_model::Fence::Full),
        Action::Fence(_) => Action::Skip,
        Action::Assume(e) => Action::Assume(Expr::unary(Op1::Not, e.clone())),
        Action::Assert { condition, message } => Action::Assert {
            condition: Expr::unary(Op1::Not, condition.clone()),
            message: message.clone(),
        },
        Action::Assign { register, value } => Action::Assign {
            register: *register,
            value: more(value),
        },
        Action::Havoc { register, range } => Action::Havoc {
            register: *register,
            range: range.map(|(lo, hi)| (lo, hi.saturating_add(1))),
        },
        Action::Store { place, value } => Action::Store {
            place: place.clone(),
            value: match value {
                Expr::Const(c) => Expr::Const(if *c == 0 { 1 } else { c - 1 }),
                e @ (Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..)) => more(e),
            },
        },
        Action::Load { register, .. } => Action::Assign {
            register: *register,
            value: Expr::Const(rng.between(0, 2)),
        },
        // The whole block, or the programs would not be valid.
        Action::AtomicBegin(_) | Action::AtomicEnd | Action::Lock | Action::Unlock => {
            for step in steps.iter_mut() {
                if let Action::AtomicBegin(_) | Action::AtomicEnd | Action::Lock | Action::Unlock =
                    step.action
                {
                    step.action = Action::Skip;
                }
            }
            return other;
        }
    };
    steps[s].action = action;
    other
}

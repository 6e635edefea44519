//! The auditor tried on its own: proofs put to programs that they are not about.
//!
//! A *neighbour* of a program differs from it in one step or in its property, and its states look the
//! same: a proof of the one can be read as a proof of the other. Where brute force finds the neighbour
//! violated, the auditor has to reject whatever it is shown.

use crate::brute::{Truth, explore};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use wattle_auditor::{AuditError, audit};
use wattle_evidence::{Certificate, Control, Pace, Progress, Stop, Task};
use wattle_memory::MemoryModel;
use wattle_model::graph::Action;
use wattle_model::{Expr, Instance, Op1, Program, print, validate};
use wattle_random::Rng;

/// Neighbours that are made of a program.
const MADE: usize = 8;
/// Violated ones that proofs are put to.
const KEPT: usize = 2;
/// How often one audit may ask whether it goes on, about once in a millisecond.
const LOOKS: u64 = 100;

/// Ends an audit at the same point on every machine.
struct Patience {
    looks: AtomicU64,
}

impl Pace for Patience {
    fn tick(&self, _: &'static str, _: Progress) -> Result<(), Stop> {
        if self.is_over() {
            return Err(Stop::Budget);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.looks.fetch_add(1, Ordering::Relaxed) >= LOOKS
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
    pub accepted: bool,
}

/// Violated neighbours of a program.
pub struct Neighbours {
    all: Vec<(Program, Instance)>,
    model: MemoryModel,
    question: Option<usize>,
    deadlock: bool,
}

impl Neighbours {
    pub fn of(
        program: &Program,
        model: MemoryModel,
        question: Option<usize>,
        deadlock: bool,
        states: usize,
    ) -> Neighbours {
        let seed = program.families.iter().map(|f| f.steps.len() as u64).sum();
        let mut rng = Rng::new(seed);
        let mut all = Vec::new();
        for _ in 0..MADE {
            let other = changed(program, question, &mut rng);
            if other == *program || other.canonical() != other || !validate(&other).is_empty() {
                continue;
            }
            let Ok(instance) = other.instance() else {
                continue;
            };
            let seen = explore(&instance, model, states);
            let violated = |s: crate::brute::Seen| s.truth(&instance, question, deadlock);
            if seen.map(violated) == Some(Truth::Violated) {
                all.push((other, instance));
            }
            if all.len() == KEPT {
                break;
            }
        }
        Neighbours {
            all,
            model,
            question,
            deadlock,
        }
    }

    /// Puts the proof to every neighbour; says which one the auditor takes it for a proof of. What was
    /// asked is added to `audits`.
    pub fn accepted(&self, proof: &Certificate, audits: &mut Vec<Audit>) -> Option<&Program> {
        let mut wrong = None;
        for (program, instance) in &self.all {
            let task = Task {
                instance,
                model: self.model,
                question: self.question,
                deadlock: self.deadlock,
            };
            let patience = Patience {
                looks: AtomicU64::new(0),
            };
            let control = Control::unlimited().with_pace(&patience);
            let accepted = match audit(&task, proof, &control) {
                Ok(_) => true,
                Err(AuditError::Stopped(_)) => continue,
                Err(_) => false,
            };
            audits.push(self.audit(program, proof, accepted));
            if accepted && wrong.is_none() {
                wrong = Some(program);
            }
        }
        wrong
    }

    /// A proof of the program itself, which was accepted.
    pub fn audit(&self, program: &Program, proof: &Certificate, accepted: bool) -> Audit {
        Audit {
            program: print::to_wtl(program),
            model: self.model,
            question: self.question,
            deadlock: self.deadlock,
            certificate: proof.clone(),
            accepted,
        }
    }
}

/// The program with one step or its property changed.
fn changed(program: &Program, question: Option<usize>, rng: &mut Rng) -> Program {
    let mut other = program.clone();
    if let Some(q) = question
        && rng.one_in(4)
    {
        let expr = &mut other.properties[q].condition.expr;
        *expr = Expr::unary(Op1::Not, expr.clone());
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

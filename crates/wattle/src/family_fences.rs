//! Fences and locks for any number of threads.
//!
//! Instances with two threads in each open family give the runs to stop: a bug of two threads is a bug
//! of any number. What two threads leave is asked of the proof for any number; a run with more threads
//! that it finds is learned from like the others. Only a proof makes a repair; without one the
//! answer says up to how many threads it was checked.

use crate::fences::{Record, Safety, cannot_repair};
use crate::options::Options;
use crate::{check, families, plan};
use wattle_evidence::{AnyNumber, Broken, Control, OpenTask, Reason, Verdict};
use wattle_memory::MemoryModel;
use wattle_model::{Counts, Instance, Program, PropertyKind};
use wattle_repair::{Beyond, Check, Checker, Run, Violation};

/// Instances with so many threads in each open family are checked where there is no proof.
const FEW: [u32; 2] = [2, 3];

/// The counts of the smallest instances that are repaired.
pub fn least(program: &Program, options: &Options) -> Counts {
    families::counts(program, options, FEW[0])
}

/// Whether the properties hold for any number of threads.
pub struct Families<'o> {
    /// For instances.
    pub safety: Safety<'o>,
    /// What proofs may use.
    pub options: &'o Options,
    pub(crate) record: &'o Record,
}

impl Checker for Families<'_> {
    fn check(&self, instance: &Instance, model: MemoryModel, control: &Control<'_>) -> Check {
        self.safety.check(instance, model, control)
    }

    fn beyond(&self, program: &Program, model: MemoryModel, control: &Control<'_>) -> Beyond {
        // Where time is limited, some of it is kept for larger instances.
        let stage = control.remaining().map(|left| control.stage(left / 3 * 2));
        let reason = match self.proved(program, model, stage.as_ref().unwrap_or(control)) {
            Ok(()) => return Beyond::Holds,
            Err(Unproved::Violated(v)) => return Beyond::Violated(*v),
            Err(Unproved::Open(reason)) => reason,
        };
        let mut threads = FEW[0];
        for n in &FEW[1..] {
            let counts = families::counts(program, self.options, *n);
            let Ok(instance) = program.instantiate(&counts) else {
                break;
            };
            match self.safety.check(&instance, model, control) {
                Check::Holds => threads = *n,
                Check::Violated(run) => return Beyond::Violated(Violation { counts, run }),
                Check::Undecided(_) => break,
            }
        }
        Beyond::UpTo { threads, reason }
    }
}

enum Unproved {
    Violated(Box<Violation>),
    Open(Reason),
}

impl Families<'_> {
    /// Every property for any number of threads.
    fn proved(
        &self,
        program: &Program,
        model: MemoryModel,
        control: &Control<'_>,
    ) -> Result<(), Unproved> {
        let program = check::with_counts(program, self.options)
            .map_err(|e| Unproved::Open(Reason::Other(e.to_string())))?;
        let asked = program.properties.iter().enumerate();
        let asked = asked.filter(|(_, p)| p.kind != PropertyKind::Reachable);
        let mut questions: Vec<Option<usize>> = asked.map(|(i, _)| Some(i)).collect();
        if questions.is_empty() {
            questions.push(None);
        }
        for question in questions {
            let task = OpenTask {
                of: AnyNumber::Program(&program),
                model,
                question,
                deadlock: false,
            };
            let outcome = plan::run(&task, self.options, control);
            let outcome = outcome.map_err(|u| Unproved::Open(self.record.unsound(u)))?;
            match (outcome.judged.verdict, outcome.shown) {
                (Verdict::Holds { scope, .. }, _) => {
                    self.record.unchecked(outcome.judged.unchecked);
                    self.record.assumes(&scope);
                }
                (
                    Verdict::Violated {
                        because: Broken::Trace(trace),
                    },
                    Some(instance),
                ) => {
                    let counts = families::counts_of(&program, self.options, &instance);
                    let run = Run::Trace { trace, question };
                    return Err(Unproved::Violated(Box::new(Violation { counts, run })));
                }
                (verdict, _) => return Err(Unproved::Open(cannot_repair(verdict))),
            }
        }
        Ok(())
    }
}

//! Fences and locks for any number of threads.
//!
//! Instances with two threads in each open family give the runs to stop: a bug of two threads is a bug
//! of any number. What two threads leave is asked of the proof for any number; a run with more threads
//! that it finds is learned from like the others. Only a proof makes a repair; without one the
//! answer says up to how many threads it was checked.

use crate::families;
use crate::fences::{Record, Safety, cannot_repair};
use crate::options::{Options, ThreadCount};
use wattle_evidence::{Broken, Control, Verdict};
use wattle_memory::MemoryModel;
use wattle_model::{Count, Counts, Instance, Program, PropertyKind};
use wattle_repair::{Beyond, Check, Checker, Run, Violation};

/// Instances with so many threads in each open family are checked where there is no proof.
const FEW: [u32; 2] = [2, 3];

/// The families that have any number of threads, as the options say or the program does.
pub fn open_families(program: &Program, options: &Options) -> Vec<String> {
    let open = program
        .families
        .iter()
        .filter(|f| match options.threads.get(&f.name) {
            Some(count) => *count == ThreadCount::Any,
            None => f.count == Count::Any,
        });
    open.map(|f| f.name.clone()).collect()
}

/// The counts with so many threads in each open family.
pub fn counts(program: &Program, options: &Options, n: u32) -> Counts {
    let mut counts = options.counts();
    for name in open_families(program, options) {
        counts.0.insert(name, n);
    }
    counts
}

/// The counts of an instance: those of the options, and how many threads it has of each open family.
pub fn counts_of(program: &Program, options: &Options, instance: &Instance) -> Counts {
    let mut counts = options.counts();
    for name in open_families(program, options) {
        if let Some(family) = program.family_named(&name) {
            let threads = instance.threads.iter().filter(|t| t.family == family);
            let n = u32::try_from(threads.count()).unwrap_or(u32::MAX);
            counts.0.insert(name, n);
        }
    }
    counts
}

/// The counts of the smallest instances that are repaired.
pub fn least(program: &Program, options: &Options) -> Counts {
    counts(program, options, FEW[0])
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
            let counts = counts(program, self.options, *n);
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
    Open(wattle_evidence::Reason),
}

impl Families<'_> {
    /// Every property for any number of threads.
    fn proved(
        &self,
        program: &Program,
        model: MemoryModel,
        control: &Control<'_>,
    ) -> Result<(), Unproved> {
        let mut program = program.clone();
        for name in open_families(&program, self.options) {
            if let Some(family) = program.family_named(&name) {
                program.families[family.index()].count = Count::Any;
            }
        }
        let asked = program.properties.iter().enumerate();
        let asked = asked.filter(|(_, p)| p.kind != PropertyKind::Reachable);
        let mut questions: Vec<Option<usize>> = asked.map(|(i, _)| Some(i)).collect();
        if questions.is_empty() {
            questions.push(None);
        }
        for question in questions {
            let mut shown = None;
            let finding =
                families::program(&program, model, question, self.options, control, &mut shown);
            let finding = finding.map_err(|u| Unproved::Open(self.record.unsound(u)))?;
            match (finding.judged.verdict, shown) {
                (Verdict::Holds { scope, .. }, _) => {
                    self.record.unchecked(finding.judged.unchecked);
                    self.record.assumes(&scope);
                }
                (
                    Verdict::Violated {
                        because: Broken::Trace(trace),
                    },
                    Some(instance),
                ) => {
                    let counts = counts_of(&program, self.options, &instance);
                    let run = Run::Trace { trace, question };
                    return Err(Unproved::Violated(Box::new(Violation { counts, run })));
                }
                (verdict, _) => return Err(Unproved::Open(cannot_repair(verdict))),
            }
        }
        Ok(())
    }
}

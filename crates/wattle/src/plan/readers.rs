//! Any number of threads that only read: a few of them are looked at, by whoever is best at that.
//!
//! Why a few stand for all is told where such proofs are audited (`wattle_auditor`, `readers.rs`).

use super::{Options, Outcome, open, willing};
use crate::families;
use crate::small_worlds::Shown;
use wattle_auditor::{AuditPolicy, judge_open};
use wattle_evidence::certificate::Readers;
use wattle_evidence::{
    AnyNumber, Asked, Broken, Certificate, Control, OpenProof, OpenTask, Proof, Task, Unsound,
    Verdict,
};
use wattle_model::{Count, Counts, Crowd, Program};

/// The answer for a program whose open families only read, if a few threads of them give one.
pub fn run(
    task: &OpenTask<'_>,
    options: &Options,
    control: &Control<'_>,
) -> Result<Option<Outcome>, Unsound> {
    let AnyNumber::Program(program) = task.of else {
        return Ok(None);
    };
    let Some(few) = few(program, task) else {
        return Ok(None);
    };
    let alone = Task {
        instance: &few.instance,
        model: task.model,
        question: task.question.map(|_| 0),
        deadlock: false,
    };
    // The proof is audited as one about any number.
    let unaudited = Options {
        audit: AuditPolicy::Never,
        ..options.clone()
    };
    let engines = super::engines(&unaudited);
    if willing(&engines, &Asked::Fixed(alone), &unaudited)
        .0
        .is_empty()
    {
        return Ok(None);
    }
    let outcome = super::run(&alone, &unaudited, control)?;
    let (engine, effort) = (outcome.engine, outcome.effort);
    match outcome.judged.verdict {
        Verdict::Holds {
            proof: Proof::Certificate(proof),
            ..
        } => {
            let proof = OpenProof {
                certificate: Certificate::Readers(Readers {
                    proof: Box::new(proof),
                }),
                assumptions: Vec::new(),
                translated: None,
                claims: Vec::new(),
            };
            let scope = families::scope(task, options);
            let policy = (options.audit, |a: &_| options.accepts(a));
            let judged = judge_open(task, engine, proof, scope, policy, control)?;
            Ok(Some(Outcome::new(engine, judged, effort)))
        }
        Verdict::Violated {
            because: Broken::Trace(trace),
        } => {
            // The same threads in the program itself, which asks its own questions.
            let Ok(instance) = program.instantiate(&counts(program, &few)) else {
                return Ok(None);
            };
            let run = Shown {
                instance,
                trace,
                effort,
            };
            open::shown(engine, task, run, options, control).map(Some)
        }
        Verdict::Holds { .. }
        | Verdict::Violated { .. }
        | Verdict::HoldsIf { .. }
        | Verdict::Bounded { .. }
        | Verdict::Undecided { .. } => Ok(None),
    }
}

/// A few threads that stand for all, if those of open families only read.
fn few(program: &Program, task: &OpenTask<'_>) -> Option<Crowd> {
    let mut open = program.families.iter().filter(|f| f.count == Count::Any);
    if task.deadlock || !open.all(|f| f.only_reads()) {
        return None;
    }
    program.crowd(task.question).ok()
}

fn counts(program: &Program, few: &Crowd) -> Counts {
    let open = (program.families.iter().enumerate()).filter(|(_, f)| f.count == Count::Any);
    let threads = |f: usize| {
        let of = few.instance.threads.iter();
        of.filter(|t| t.family.index() == f).count() as u32
    };
    Counts(
        open.map(|(f, family)| (family.name.clone(), threads(f)))
            .collect(),
    )
}

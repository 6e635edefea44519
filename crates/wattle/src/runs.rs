//! Demands on whole runs: the engine `liveness`, and what a person wants to know about its answer.

use crate::options::Options;
use crate::{families, resources};
use wattle_auditor::judge_live;
use wattle_evidence::{
    Control, Judged, LiveTask, Progress, Reason, Refusal, Scope, Unsound, Verdict,
};
use wattle_memory::MemoryModel;
use wattle_model::{Instance, Program, Temporal, TemporalKind, print};
use wattle_report::Finding;
use wattle_report::finding::Live;

/// The program with the demands that the options add.
pub fn demanding(program: &Program, options: &Options) -> Program {
    let mut program = program.clone();
    let progress = |t: &Temporal| t.kind == TemporalKind::Progress;
    if options.progress && !program.temporal.iter().any(progress) {
        program.temporal.push(Temporal {
            kind: TemporalKind::Progress,
            span: wattle_model::Span::NONE,
        });
    }
    program
}

/// One demand under one memory model.
pub fn one(
    program: &Program,
    instance: Option<&Instance>,
    model: MemoryModel,
    demand: usize,
    options: &Options,
    control: &Control<'_>,
) -> Result<Finding, Unsound> {
    let refused = |why: String| {
        let reason = Reason::Refused(Refusal::new(why));
        let so_far = Progress::default();
        let judged = Judged::checked(Verdict::Undecided { reason, so_far });
        (judged, so_far)
    };
    let name = wattle_liveness::NAME;
    let other = options.engine.as_deref().filter(|e| *e != name);
    let (judged, effort, scope) = match (instance, other) {
        (None, _) => {
            let why = "demands on runs are checked with a fixed number of threads (such as `--threads 3`)";
            let (judged, effort) = refused(why.into());
            let threads = families::any_number(options);
            let scope = Scope {
                threads,
                ..Scope::default()
            };
            (judged, effort, scope)
        }
        (Some(instance), Some(other)) => {
            let why = format!("`{other}` does not treat demands on runs; `{name}` does");
            let (judged, effort) = refused(why);
            let task = task(instance, model, demand, options);
            (judged, effort, Scope::of(&task.faults()))
        }
        (Some(instance), None) => {
            let task = task(instance, model, demand, options);
            let answer = wattle_liveness::run(&task, control);
            let effort = answer.1;
            let judged = judge_live(&task, name, answer, options.audit, control)?;
            (judged, effort, Scope::of(&task.faults()))
        }
    };
    Ok(Finding {
        model,
        question: None,
        deadlock: false,
        live: Some(Live {
            demand,
            fairness: options.fairness,
        }),
        property: Some(print::temporal(program, &program.temporal[demand])),
        scope,
        engine: name,
        seconds: control.elapsed().as_secs_f64(),
        states: effort.states,
        peak_memory: resources::peak_memory(),
        shown: None,
        why: None,
        small_worlds: None,
        proved_under: None,
        warnings: Vec::new(),
        judged,
    })
}

fn task<'i>(
    instance: &'i Instance,
    model: MemoryModel,
    demand: usize,
    options: &Options,
) -> LiveTask<'i> {
    LiveTask {
        instance,
        model,
        demand,
        fairness: options.fairness,
    }
}

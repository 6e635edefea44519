//! One program, every memory model asked for, every property: the whole line from model to finding.

use crate::options::{Options, Run, ThreadCount};
use crate::{explain, families, plan, resources, vacuity, weaker};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use wattle_evidence::{Control, Scope, Task, Unsound, Verdict};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_model::{Count, Instance, InstanceError, Program, PropertyKind, Span, print};
use wattle_report::Finding;

/// What was found out about a program.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Absent if the number of threads is open.
    pub instance: Option<Instance>,
    /// Model by model, and in each property by property.
    pub results: Vec<Result<Finding, Unsound>>,
}

impl Checked {
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.results.iter().filter_map(|r| r.as_ref().ok())
    }
}

/// Why a program cannot be checked as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    NoThreads,
    NoEngine {
        name: String,
        known: Vec<&'static str>,
    },
    Instance(InstanceError),
    /// Any number of threads cannot be treated; the place, why, and what to do instead.
    AnyNumber {
        span: Span,
        message: String,
        hint: String,
    },
}

const UNTREATED: &str = "not treated for any number of threads";

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::NoThreads => write!(f, "the program has no threads"),
            CheckError::NoEngine { name, known } => write!(
                f,
                "there is no engine called `{name}`; there are auto, {}",
                known.join(", ")
            ),
            CheckError::Instance(e) => write!(f, "{e}"),
            // Some messages say it themselves.
            CheckError::AnyNumber { message, hint, .. } if message.ends_with(UNTREATED) => {
                write!(f, "{message} ({hint})")
            }
            CheckError::AnyNumber { message, hint, .. } => {
                write!(f, "{UNTREATED}: {message} ({hint})")
            }
        }
    }
}

impl std::error::Error for CheckError {}

impl CheckError {
    /// The place in the source it is about, if there is one.
    pub fn span(&self) -> Span {
        match self {
            CheckError::AnyNumber { span, .. } => *span,
            CheckError::Instance(
                InstanceError::Unfixed { span, .. }
                | InstanceError::BadInit { span, .. }
                | InstanceError::InitLength { span, .. }
                | InstanceError::NoThread { span, .. }
                | InstanceError::NotConstant { span, .. },
            ) => *span,
            _ => Span::NONE,
        }
    }
}

/// Checks a program: every property under every memory model of the options.
pub fn check(program: &Program, options: &Options) -> Result<Checked, CheckError> {
    check_with(program, options, &Run::default())
}

/// Like [`check`], with a way to watch and to stop it.
pub fn check_with(
    program: &Program,
    options: &Options,
    run: &Run<'_>,
) -> Result<Checked, CheckError> {
    if let Some(name) = &options.engine {
        let known = plan::names();
        if !known.contains(&name.as_str()) {
            let name = name.clone();
            return Err(CheckError::NoEngine { name, known });
        }
    }
    let program = &with_counts(program, options)?;
    let instance = match program.instantiate(&options.counts()) {
        Ok(instance) if instance.threads.is_empty() => return Err(CheckError::NoThreads),
        Ok(instance) => Some(instance),
        Err(InstanceError::Unfixed { .. }) => None,
        Err(e) => return Err(CheckError::Instance(e)),
    };
    // Whether it can be proved; what breaks it may be found all the same.
    let untreated = match instance {
        None => {
            families::fits_any_number(program)?;
            families::treated(program, options).err()
        }
        Some(_) => None,
    };
    let questions = questions(program, options.deadlock);
    let asked: Vec<(MemoryModel, Option<usize>)> = options
        .models
        .iter()
        .flat_map(|m| questions.iter().map(|q| (*m, *q)))
        .collect();
    let over = AtomicBool::new(false);
    let started = Instant::now();
    let mut shown: Option<Instance> = None;
    let results = resources::watching(options.memory, &over, || {
        let mut results: Vec<Result<Finding, Unsound>> = Vec::new();
        for (i, (model, question)) in asked.iter().enumerate() {
            let left = options.timeout.map(|t| {
                let rest = t.saturating_sub(started.elapsed());
                rest / u32::try_from(asked.len() - i).unwrap_or(1)
            });
            let flags: Vec<&AtomicBool> = run.cancel.into_iter().collect();
            let control = control(left, options.memory, &flags, &over, run);
            let options = &Options {
                deadlock: options.deadlock && !is_reachable(program, *question),
                ..options.clone()
            };
            let finding = match &instance {
                Some(instance) => {
                    let task = Task {
                        instance,
                        model: *model,
                        question: *question,
                        deadlock: options.deadlock,
                    };
                    one(&task, &results, options, &control)
                }
                None => {
                    families::program(program, *model, *question, options, &control, &mut shown)
                }
            };
            results.push(finding.map(|mut f| {
                f.property = question.map(|q| property_text(program, q));
                f
            }));
        }
        weaker::answer(program, &mut results);
        results
    });
    let broken = |f: &Result<Finding, Unsound>| {
        let verdict = f.as_ref().map(|f| &f.judged.verdict);
        matches!(verdict, Err(_) | Ok(Verdict::Violated { .. }))
    };
    match untreated {
        Some(why) if !results.iter().any(broken) => Err(why),
        _ => Ok(Checked {
            instance: instance.or(shown),
            results,
        }),
    }
}

/// What is asked about a program: its properties by their numbers, or its assertions and faults alone.
/// Deadlocks and faults elsewhere do not matter to a state that is to be reached: they are asked for
/// apart, unless another property does so already.
pub fn questions(program: &Program, deadlock: bool) -> Vec<Option<usize>> {
    let mut all: Vec<Option<usize>> = (0..program.properties.len()).map(Some).collect();
    if all.is_empty() || (deadlock && all.iter().all(|q| is_reachable(program, *q))) {
        all.push(None);
    }
    all
}

fn is_reachable(program: &Program, question: Option<usize>) -> bool {
    question.is_some_and(|q| program.properties[q].kind == PropertyKind::Reachable)
}

/// One question: the plan, then what a person wants to know about its answer.
pub(crate) fn one(
    task: &Task<'_>,
    before: &[Result<Finding, Unsound>],
    options: &Options,
    control: &Control<'_>,
) -> Result<Finding, Unsound> {
    let outcome = plan::run(task, options, control)?;
    Ok(tell(task, outcome, before, options, control))
}

/// What a person wants to know about an answer.
pub(crate) fn tell(
    task: &Task<'_>,
    outcome: plan::Outcome,
    before: &[Result<Finding, Unsound>],
    options: &Options,
    control: &Control<'_>,
) -> Finding {
    let mut finding = Finding {
        model: task.model,
        question: task.question,
        deadlock: task.deadlock,
        property: None,
        scope: Scope::of(task),
        engine: outcome.engine,
        seconds: control.elapsed().as_secs_f64(),
        states: outcome.effort.states,
        peak_memory: resources::peak_memory(),
        shown_with: None,
        why: None,
        small_worlds: None,
        proved_under: None,
        warnings: Vec::new(),
        judged: outcome.judged,
    };
    finding.warnings = vacuity::warnings(task, &finding.judged.verdict, options, control);
    if let (true, Some(trace)) = (options.explain, finding.trace()) {
        let same = before.iter().flatten();
        let sc = same
            .filter(|f| f.model == MemoryModel::Sc && f.question == task.question)
            .map(|f| &f.judged.verdict)
            .next();
        if matches!(finding.judged.verdict, Verdict::Violated { .. }) {
            finding.why = explain::explain(task, trace, sc, options, control);
        }
    }
    finding
}

/// Array-based systems, for any number of threads.
pub fn system(system: &ArraySystem, options: &Options, run: &Run<'_>) -> Checked {
    let over = AtomicBool::new(false);
    let results = resources::watching(options.memory, &over, || {
        let models = options.models.iter().enumerate();
        let started = Instant::now();
        let each = models.map(|(i, model)| {
            let left = options.timeout.map(|t| {
                let rest = t.saturating_sub(started.elapsed());
                rest / u32::try_from(options.models.len() - i).unwrap_or(1)
            });
            let flags: Vec<&AtomicBool> = run.cancel.into_iter().collect();
            let control = control(left, options.memory, &flags, &over, run);
            families::system(system, *model, options, &control)
        });
        each.collect()
    });
    Checked {
        instance: None,
        results,
    }
}

/// The program with `NAME=*` applied; numbers are applied when the instance is made.
fn with_counts(program: &Program, options: &Options) -> Result<Program, CheckError> {
    let mut program = program.clone();
    let given: &BTreeMap<String, ThreadCount> = &options.threads;
    for (name, count) in given {
        let family = name.clone();
        let Some(id) = program.family_named(name) else {
            return Err(CheckError::Instance(InstanceError::NoFamily { family }));
        };
        let own = &mut program.families[id.index()].count;
        match (*own, count) {
            (Count::One, _) => {
                return Err(CheckError::Instance(InstanceError::Single { family }));
            }
            (_, ThreadCount::Any) => *own = Count::Any,
            (_, ThreadCount::Fixed(n)) => *own = Count::Fixed(*n),
        }
    }
    Ok(program)
}

/// `never p[i]@critical && p[j]@critical`
pub fn property_text(program: &Program, question: usize) -> String {
    let p = &program.properties[question];
    format!(
        "{} {}",
        p.kind.keyword(),
        print::condition(program, &p.condition)
    )
}

/// The budget of one question.
fn control<'c>(
    timeout: Option<Duration>,
    memory: Option<u64>,
    cancel: &'c [&'c AtomicBool],
    over: &'c AtomicBool,
    run: &Run<'c>,
) -> Control<'c> {
    let control = Control::unlimited()
        .with_timeout(timeout)
        .with_memory(memory)
        .with_cancel(cancel)
        .with_alarm(over);
    match run.sink {
        Some(sink) => control.with_sink(sink),
        None => control,
    }
}

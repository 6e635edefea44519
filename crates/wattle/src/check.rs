//! One program, every memory model asked for, every property: the whole line from model to finding.

use crate::options::{Options, Run, ThreadCount};
use crate::{explain, families, plan, resources, runs, starving, vacuity, values, weaker};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use wattle_evidence::{AnyNumber, Asked, Broken, Control, OpenTask, Scope, Task, Unsound, Verdict};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_model::instance::Fact;
use wattle_model::{Count, Instance, InstanceError, Program, PropertyKind, Span, print};
use wattle_report::Finding;

/// What was found out about a program.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Absent if the number of threads is open; a finding has the one that shows it.
    pub instance: Option<Instance>,
    /// Model by model, and in each property by property.
    pub results: Vec<Result<Finding, Unsound>>,
}

impl Checked {
    /// What was found, where evidence checked.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.results.iter().filter_map(|r| r.as_ref().ok())
    }
}

/// Why a program cannot be checked as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckError {
    /// There is nothing to run.
    NoThreads,
    /// The engine asked for does not exist.
    NoEngine {
        /// As asked for.
        name: String,
        /// Those there are.
        known: Vec<&'static str>,
    },
    /// The numbers of threads do not fit the program.
    Instance(InstanceError),
    /// Any number of threads cannot be treated; the place, why, and what to do instead.
    AnyNumber {
        /// Where.
        span: Span,
        /// Why.
        message: String,
        /// What would work.
        hint: String,
    },
    /// The checkpoint to go on from is of something else.
    Foreign,
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
            CheckError::Foreign => write!(
                f,
                "the checkpoint is of another program, property, memory model or version, or of other options"
            ),
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
    let program = &runs::demanding(&with_counts(program, options)?, options);
    let instance = match program.instantiate(&options.counts()) {
        Ok(instance) if instance.threads.is_empty() => return Err(CheckError::NoThreads),
        Ok(instance) => Some(instance),
        Err(InstanceError::Unfixed { .. }) => None,
        Err(e) => return Err(CheckError::Instance(e)),
    };
    if instance.is_none() {
        families::fits_any_number(program)?;
    }
    let mut questions: Vec<Turn> = (questions(program, options.deadlock).into_iter())
        .map(Turn::Question)
        .collect();
    questions.extend((0..program.temporal.len()).map(Turn::Demand));
    let asked: Vec<(MemoryModel, Turn)> = options
        .models
        .iter()
        .flat_map(|m| questions.iter().map(|q| (*m, *q)))
        .collect();
    if let Some(directory) = &options.checkpoint {
        let explicit = plan::explicit(options);
        let names = asked.iter().filter_map(|(model, turn)| {
            let (Turn::Question(question), Some(instance)) = (*turn, &instance) else {
                return None;
            };
            let deadlock = options.deadlock && !is_reachable(program, question);
            Some(explicit.name_of(&Task {
                instance,
                model: *model,
                question,
                deadlock,
            }))
        });
        if !directory.is_of(names) {
            return Err(CheckError::Foreign);
        }
    }
    let over = AtomicBool::new(false);
    let started = Instant::now();
    let results = resources::watching(options.memory, &over, || {
        let mut results: Vec<Result<Finding, Unsound>> = Vec::new();
        for (i, (model, asked_for)) in asked.iter().enumerate() {
            let left = options.timeout.map(|t| {
                let rest = t.saturating_sub(started.elapsed());
                rest / u32::try_from(asked.len() - i).unwrap_or(1)
            });
            let flags: Vec<&AtomicBool> = run.cancel.into_iter().collect();
            let control = control(left, options, &flags, &over, run);
            let question = match asked_for {
                Turn::Question(question) => question,
                Turn::Demand(d) => {
                    let instance = instance.as_ref();
                    results.push(runs::one(program, instance, *model, *d, options, &control));
                    continue;
                }
            };
            let options = &Options {
                deadlock: options.deadlock && !is_reachable(program, *question),
                ..options.clone()
            };
            let (model, question, deadlock) = (*model, *question, options.deadlock);
            let finding = match &instance {
                Some(instance) => {
                    let task = Task {
                        instance,
                        model,
                        question,
                        deadlock,
                    };
                    one(&Asked::Fixed(task), &results, options, &control)
                }
                None => {
                    let task = OpenTask {
                        of: AnyNumber::Program(program),
                        model,
                        question,
                        deadlock,
                    };
                    one(&Asked::Open(task), &results, options, &control)
                }
            };
            results.push(finding.map(|mut f| {
                f.property = question.map(|q| property_text(program, q));
                f
            }));
        }
        weaker::answer(program, &mut results);
        if let (true, Some(instance)) = (options.explain, &instance) {
            let left = options.timeout.map(|t| t.saturating_sub(started.elapsed()));
            let flags: Vec<&AtomicBool> = run.cancel.into_iter().collect();
            let control = control(left, options, &flags, &over, run);
            starving::warn(instance, options, &control, &mut results);
        }
        results
    });
    Ok(Checked { instance, results })
}

/// What is asked in turn.
#[derive(Clone, Copy)]
enum Turn {
    /// About single states: a property, or faults alone.
    Question(Option<usize>),
    /// About whole runs.
    Demand(usize),
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
fn one(
    asked: &Asked<'_>,
    before: &[Result<Finding, Unsound>],
    options: &Options,
    control: &Control<'_>,
) -> Result<Finding, Unsound> {
    let outcome = plan::run(*asked, options, control)?;
    // Only the search that was asked for is written down, or run together with others.
    let options = &Options {
        checkpoint: None,
        mesh: None,
        ..options.clone()
    };
    Ok(tell(asked, outcome, before, options, control))
}

/// What a person wants to know about an answer.
fn tell(
    asked: &Asked<'_>,
    outcome: plan::Outcome,
    before: &[Result<Finding, Unsound>],
    options: &Options,
    control: &Control<'_>,
) -> Finding {
    let shown = outcome.shown;
    let (model, question, deadlock) = match asked {
        Asked::Fixed(task) => (task.model, task.question, task.deadlock),
        Asked::Open(task) => (task.model, task.question, task.deadlock),
    };
    // The instance that is talked about, if there is one.
    let task = match (asked, &shown) {
        (Asked::Fixed(task), _) => Some(*task),
        (Asked::Open(task), Some(instance)) => Some(task.on(instance)),
        (Asked::Open(_), None) => None,
    };
    let scope = match (asked, &task) {
        (_, Some(task)) => Scope::of(task),
        (Asked::Open(task), None) => families::scope(task, options),
        (Asked::Fixed(task), None) => Scope::of(task),
    };
    let mut finding = Finding {
        model,
        question,
        deadlock,
        live: None,
        property: None,
        scope,
        engine: outcome.engine,
        seconds: control.elapsed().as_secs_f64(),
        states: outcome.effort.states,
        peak_memory: resources::peak_memory(),
        shown: shown.clone(),
        why: None,
        small_worlds: outcome.small_worlds,
        proved_under: None,
        warnings: outcome.warnings,
        judged: outcome.judged,
    };
    if let Some(task) = &task {
        let verdict = &mut finding.judged.verdict;
        values::plainly(task.instance, &mut finding.scope, verdict);
        let vacuous = vacuity::warnings(task, &finding.judged.verdict, options, control);
        finding.warnings.extend(vacuous);
        let early = too_early(task, &finding);
        finding.warnings.extend(early);
        let violated = matches!(finding.judged.verdict, Verdict::Violated { .. });
        if let (true, true, Some(trace)) = (options.explain, violated, finding.trace()) {
            // What SC says about the same instance.
            let same = before.iter().flatten().filter(|_| shown.is_none());
            let sc = same
                .filter(|f| f.model == MemoryModel::Sc && f.question == question)
                .map(|f| &f.judged.verdict)
                .next();
            finding.why = explain::explain(task, trace, sc, options, control);
        }
    }
    finding
}

/// A `never` about registers alone that nothing has happened to yet: most likely the end of runs was
/// meant.
fn too_early(task: &Task<'_>, finding: &Finding) -> Option<String> {
    let question = task.question()?;
    let Verdict::Violated {
        because: Broken::Trace(trace),
    } = &finding.judged.verdict
    else {
        return None;
    };
    let mut registers = true;
    question
        .target
        .for_each_atom(&mut |f| registers &= matches!(f, Fact::Register(..)));
    let meant = question.kind == PropertyKind::Never && trace.events.is_empty() && registers;
    meant.then(|| {
        "the initial state already violates it: `never` is about every state of every run. Where \
         threads have ended, write `finally !(…)`"
            .to_string()
    })
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
            let control = control(left, options, &flags, &over, run);
            let task = OpenTask {
                of: AnyNumber::System(system),
                model: *model,
                question: None,
                deadlock: options.deadlock,
            };
            one(&Asked::Open(task), &[], options, &control).map(|mut f| {
                f.property = (!system.bad.is_empty()).then(|| "unsafe".to_string());
                f
            })
        });
        each.collect()
    });
    Checked {
        instance: None,
        results,
    }
}

/// The program with `NAME=*` applied; numbers are applied when the instance is made.
pub(crate) fn with_counts(program: &Program, options: &Options) -> Result<Program, CheckError> {
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
    options: &Options,
    cancel: &'c [&'c AtomicBool],
    over: &'c AtomicBool,
    run: &Run<'c>,
) -> Control<'c> {
    let control = Control::unlimited()
        .with_timeout(timeout)
        .with_memory(options.memory)
        .with_budget(options.budget)
        .with_workers(options.workers)
        .with_cancel(cancel)
        .with_alarm(over);
    match run.sink {
        Some(sink) => control.with_sink(sink),
        None => control,
    }
}

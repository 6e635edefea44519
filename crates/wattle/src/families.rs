//! Any number of threads: programs with open families and array-based systems.
//!
//! `params` treats threads that are told apart and unbounded integers, and tries small instances
//! first; `exact` decides finite data where nothing tells threads apart. Both run
//! side by side ([`crate::plan`]). A violation with some number of threads is shown on an instance, a
//! proof is audited before it is told.

mod breaker;
mod counting;
mod program;
mod small_worlds;

pub use program::{program, provers_named};

use crate::check::CheckError;
use crate::family_fences::open_families;
use crate::input::Subject;
use crate::options::{Options, ThreadCount};
use crate::resources;
use std::cell::Cell;
use std::collections::BTreeMap;
use wattle_auditor::meaning::Meaning;
use wattle_auditor::{AuditPolicy, Solvers, after_audit, audit_system};
use wattle_evidence::related::Met;
use wattle_evidence::{
    Assumption, Broken, Certificate, Control, EvidenceFile, Judged, Progress, Proof, Reason,
    Refusal, Scope, SmallWorlds, Stop, Unchecked, Unsound, Verdict,
};
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_model::{Count, Init, Instance, InstanceError, Length, Program, Span};
use wattle_params::certificate::certificate;
use wattle_params::compile::Unsupported;
use wattle_params::lower::{Lowered, lower};
use wattle_params::machine::{Event, Machine};
use wattle_params::small::Small;
use wattle_params::{Outcome, Run};
use wattle_report::Finding;

pub const PARAMS: &str = "params";
pub const EXACT: &str = "exact";
pub const COUNTING: &str = "counting";

/// Whether the program as such can be treated for any number of threads; what cannot be said of one of
/// its properties is told with that property.
pub fn treated(program: &Program, options: &Options) -> Result<(), CheckError> {
    let by_params = lower(program, None)
        .map(|_| ())
        .map_err(|u| (u.span, u.message, u.hint));
    let by_exact = (program.crowd(None).map(|_| ())).map_err(|n| (n.span, n.message, n.hint));
    let by_counting = program.counted_crowd(None).map(|_| ());
    let by_counting = by_counting.map_err(|n| (n.span, n.message, n.hint));
    let result = match options.engine.as_deref() {
        Some(EXACT) => by_exact,
        Some(COUNTING) => by_counting,
        Some(PARAMS) => by_params,
        _ => by_params.or_else(|why| by_counting.map_err(|_| why)),
    };
    result.map_err(|(span, message, hint)| CheckError::AnyNumber {
        span,
        message,
        hint,
    })
}

/// A list of initial values fits one number of threads only.
pub fn fits_any_number(program: &Program) -> Result<(), CheckError> {
    for region in &program.regions {
        if let (Length::PerThread(f), Init::Each(list)) = (region.length, &region.init)
            && program.family(f).count == Count::Any
        {
            return Err(CheckError::AnyNumber {
                span: region.span,
                message: format!(
                    "`{}` starts with a list of {} values, one for each thread of `{}`",
                    region.name,
                    list.len(),
                    program.family(f).name
                ),
                hint: "give one value for all, or fix the number of threads".into(),
            });
        }
    }
    // Some number of threads must make an instance.
    let mut error = None;
    for n in 1..=FEW {
        match with_threads(program, &Options::default(), n) {
            Ok(_) => return Ok(()),
            Err(e) => error = error.or(Some(e)),
        }
    }
    error.map_or(Ok(()), |e| Err(CheckError::Instance(e)))
}

/// A property may name certain threads; few programs name more than these.
const FEW: u32 = 8;

/// Whether the subject has any number of threads, with these options.
pub fn is_open(subject: &Subject, options: &Options) -> bool {
    match subject {
        Subject::System(_) => true,
        Subject::Program(program) => !open_families(program, options).is_empty(),
    }
}

/// A proof with what `wattle audit` needs to find out what it is about.
pub fn kept(
    subject: &Subject,
    options: &Options,
    finding: &Finding,
    proof: &Certificate,
) -> Result<EvidenceFile<Certificate>, String> {
    let open = options.threads.iter();
    let any: Vec<String> = open
        .filter(|(_, n)| **n == ThreadCount::Any)
        .map(|(name, _)| name.clone())
        .collect();
    let (model, question) = (finding.model, finding.question);
    let counts = options.counts();
    if let (Certificate::LoadBuffers(_) | Certificate::Counting(_), Subject::Program(program)) =
        (proof, subject)
    {
        let program = opened(program, &any, &counts.0)?;
        let crowd = match proof {
            Certificate::Counting(_) => program.counted_crowd(question).map(|c| c.crowd),
            _ => program.crowd(question),
        };
        let crowd = crowd.map_err(|n| n.message)?;
        let proof = proof.clone();
        return Ok(EvidenceFile::of_crowd(
            &crowd, &counts, any, model, question, proof,
        ));
    }
    let system = system_of(subject, &any, &counts.0, question)?;
    let mut counts = counts;
    if let (Subject::System(_), Some(n)) = (subject, system.threads) {
        counts.0.insert(OF_SYSTEM.into(), n);
    }
    Ok(EvidenceFile::of_system(
        &system,
        &counts,
        any,
        model,
        question,
        proof.clone(),
    ))
}

/// What the number of threads of an array-based system is called in files of evidence.
const OF_SYSTEM: &str = "threads";

/// The program with its open and fixed families.
pub fn opened(
    program: &Program,
    any: &[String],
    counts: &BTreeMap<String, u32>,
) -> Result<Program, String> {
    let mut program = program.clone();
    let any = any.iter().map(|name| (name, Count::Any));
    let fixed = counts.iter().map(|(name, n)| (name, Count::Fixed(*n)));
    for (name, count) in any.chain(fixed) {
        let family = program.family_named(name);
        let family = family.ok_or_else(|| format!("there is no family `{name}`"))?;
        program.families[family.index()].count = count;
    }
    Ok(program)
}

/// The array-based system that a proof about any number of threads is about.
pub fn system_of(
    subject: &Subject,
    any: &[String],
    counts: &BTreeMap<String, u32>,
    question: Option<usize>,
) -> Result<ArraySystem, String> {
    match subject {
        Subject::System(system) => {
            let mut system = (**system).clone();
            system.threads = counts.get(OF_SYSTEM).copied().or(system.threads);
            Ok(system)
        }
        Subject::Program(program) => {
            let program = opened(program, any, counts)?;
            Ok(translated(&program, question)?.system)
        }
    }
}

/// Small instances of what a certificate is about: how one of them breaks it, if one does.
pub fn small_worlds_again(
    subject: &Subject,
    kept: &EvidenceFile<Certificate>,
    control: &Control<'_>,
) -> Result<(), String> {
    let (any, counts) = (&kept.any, &kept.threads);
    let (question, model, certificate) = (kept.question, kept.model, &kept.evidence);
    let broken = |n: u32| format!("with {} a run breaks what it proves", threads(n));
    match subject {
        Subject::System(system) => {
            let small = run_small(system, model, Some(certificate), control);
            match (small.run, small.outside) {
                (Some(run), _) => Err(broken(u32::from(run.threads))),
                (None, Some(what)) => Err(what),
                (None, None) => Ok(()),
            }
        }
        Subject::Program(program) => {
            let asked = program::Asked {
                program: &opened(program, any, counts)?,
                model,
                question,
                options: &Options::default(),
                kept: None,
            };
            match asked.sample(small_worlds::THREADS, small_worlds::STATES, control) {
                small_worlds::Sampled::Fine(_) => {
                    asked.members(certificate, control).map_or(Ok(()), Err)
                }
                small_worlds::Sampled::Broken(shown) => {
                    Err(broken(shown.instance.threads.len() as u32))
                }
            }
        }
    }
}

fn run_small(
    system: &ArraySystem,
    model: MemoryModel,
    certificate: Option<&Certificate>,
    control: &Control<'_>,
) -> Small {
    let limits = (small_worlds::THREADS as u8, small_worlds::STATES as usize);
    let meaning = certificate.map(|c| Meaning::new(system, model, c));
    let meaning = meaning.and_then(Result::ok).flatten();
    let stop = || control.stop().is_some();
    let excludes = |state: &Met<'_>| meaning.as_ref().and_then(|m| m.excludes(state));
    wattle_params::small_worlds(system, model, Some(&excludes), limits, &stop)
}

/// What a proof about the program's system takes for granted about the program.
pub fn assumptions(
    program: &Program,
    any: &[String],
    counts: &BTreeMap<String, u32>,
    question: Option<usize>,
) -> Result<Vec<Assumption>, String> {
    let program = opened(program, any, counts)?;
    Ok(translated(&program, question)?.assumptions())
}

fn translated(program: &Program, question: Option<usize>) -> Result<Lowered, String> {
    if question.is_some_and(|q| q >= program.properties.len()) {
        return Err("it answers a property which the program lacks".into());
    }
    let refused = |u: Unsupported| format!("line {}: {} ({})", u.span.line, u.message, u.hint);
    lower(program, question).map_err(refused)
}

/// An array-based system.
pub fn system(
    system: &ArraySystem,
    model: MemoryModel,
    options: &Options,
    control: &Control<'_>,
) -> Result<Finding, Unsound> {
    if let Some(name) = options.engine.as_ref().filter(|e| *e != PARAMS) {
        let why = format!("`{name}` reads programs; array-based systems are for {PARAMS}");
        let reason = Reason::Refused(Refusal::new(why));
        return Ok(open(model, None, options, reason));
    }
    if options.deadlock {
        return Ok(open(model, None, options, no_deadlocks()));
    }
    let (outcome, stopped) = decide(system, model, control);
    let mut finding = found(system, model, None, options, control, (outcome, stopped))?;
    confirm(system, model, &mut finding, control)?;
    let axioms = (system.assumed.iter()).any(|q| system.only_constants(&q.body));
    let assumptions = axioms.then_some(Assumption::Invariants);
    finding.judged = finding
        .judged
        .assuming(assumptions.into_iter().collect(), |a| options.accepts(a));
    finding.property = (!system.bad.is_empty()).then(|| "unsafe".to_string());
    if let Some(n) = system.threads {
        finding.scope.threads = threads(n);
        if let Verdict::Holds { scope, .. } = &mut finding.judged.verdict {
            scope.threads = threads(n);
        }
    }
    finding.seconds = control.elapsed().as_secs_f64();
    Ok(finding)
}

/// Small instances of a system that was proved safe: what they show comes first.
fn confirm(
    system: &ArraySystem,
    model: MemoryModel,
    finding: &mut Finding,
    control: &Control<'_>,
) -> Result<(), Unsound> {
    let Verdict::Holds {
        proof: Proof::Certificate(certificate),
        ..
    } = &finding.judged.verdict
    else {
        return Ok(());
    };
    if finding.judged.unchecked == Some(Unchecked::Off) {
        return Ok(());
    }
    let small = run_small(system, model, Some(certificate), control);
    if let Some(run) = small.run {
        let because = Broken::Run(tell(system, model, &run));
        finding.judged.verdict = Verdict::Violated { because };
        finding.warnings.push(refuted(PARAMS));
        return Ok(());
    }
    if let Some(what) = small.outside {
        let engine = PARAMS;
        return Err(Unsound { engine, what });
    }
    sampled(finding, small.worlds);
    Ok(())
}

/// Notes how far small instances were run.
fn sampled(finding: &mut Finding, worlds: SmallWorlds) {
    if let Some(why) = &worlds.not_run {
        let note = format!("small instances could not be run: {why}");
        finding.warnings.push(note);
    }
    finding.small_worlds = Some(worlds);
}

/// Engine and auditor were wrong.
fn refuted(engine: &str) -> String {
    format!(
        "{engine} had a proof of the opposite, which this run refutes; please report this program"
    )
}

/// `1 thread`, `2 threads`
pub fn threads(n: u32) -> String {
    match n {
        1 => "1 thread".to_string(),
        n => format!("{n} threads"),
    }
}

/// Runs the search under the budget; also says what stopped it.
fn decide(
    system: &ArraySystem,
    model: MemoryModel,
    control: &Control<'_>,
) -> (Outcome, Option<Stop>) {
    let stopped = Cell::new(None);
    // What was done, for whoever runs beside it; cubes held may well become fewer.
    let polls = Cell::new(0u64);
    let stop = |_: usize| {
        polls.set(polls.get() + 1);
        let progress = Progress {
            states: polls.get(),
            ..Progress::default()
        };
        match control.poll(PARAMS, progress) {
            Ok(()) => false,
            Err(s) => {
                stopped.set(Some(s));
                true
            }
        }
    };
    let (outcome, _) =
        wattle_params::check(system, model, wattle_params::Options::default(), &stop);
    (outcome, stopped.get())
}

fn found(
    system: &ArraySystem,
    model: MemoryModel,
    question: Option<usize>,
    options: &Options,
    control: &Control<'_>,
    (outcome, stopped): (Outcome, Option<Stop>),
) -> Result<Finding, Unsound> {
    let mut finding = open(model, question, options, Reason::Other(String::new()));
    finding.judged.verdict = match outcome {
        Outcome::Holds(proof) => {
            finding.states = proof.size() as u64;
            let certificate = certificate(system, model, &proof);
            let result = match options.audit {
                AuditPolicy::Always => {
                    let solvers = Solvers::own();
                    let result = audit_system(&solvers, system, model, &certificate, control);
                    after_audit(PARAMS, result.map(|_| ()))?
                }
                AuditPolicy::Never => Ok(Some(Unchecked::Off)),
            };
            match result {
                Ok(unchecked) => {
                    finding.judged.unchecked = unchecked;
                    Verdict::Holds {
                        scope: finding.scope.clone(),
                        proof: Proof::Certificate(certificate),
                    }
                }
                Err(reason) => Verdict::Undecided {
                    reason,
                    so_far: Progress::default(),
                },
            }
        }
        Outcome::Violated(run) => match broken_claim(system, model, &run) {
            None => Verdict::Violated {
                because: Broken::Run(tell(system, model, &run)),
            },
            Some(line) => Verdict::Undecided {
                reason: Reason::Other(format!(
                    "a run violates it, but on the way also the invariant of line {line}, which the file \
                     takes for granted"
                )),
                so_far: Progress::default(),
            },
        },
        Outcome::Undecided(why) => {
            let reason = match stopped {
                Some(stop) => Reason::Stopped {
                    stop,
                    stage: PARAMS.into(),
                },
                None => Reason::Other(why),
            };
            Verdict::Undecided {
                reason,
                so_far: Progress::default(),
            }
        }
        Outcome::Refused(u) => Verdict::Undecided {
            reason: refusal(u.span, &u.message, &u.hint),
            so_far: Progress::default(),
        },
    };
    Ok(finding)
}

/// The line of an invariant of the file that does not hold somewhere in the run.
fn broken_claim(system: &ArraySystem, model: MemoryModel, run: &Run) -> Option<u32> {
    let machine = Machine::new(system, model, run.threads);
    let mut state = run.start.clone();
    let mut events = run.events.iter();
    loop {
        if let Some(claim) = machine.broken_claim(&state) {
            return Some(system.assumed[claim].span.line);
        }
        state = machine.apply(&state, events.next()?)?;
    }
}

/// A run of the array-based system, one line for each event.
fn tell(system: &ArraySystem, model: MemoryModel, run: &Run) -> Vec<String> {
    let machine = Machine::new(system, model, run.threads);
    let name = |position: usize| {
        let (cell, args) = machine.cell_at(position);
        let args: Vec<String> = args.iter().map(|a| format!("#{a}")).collect();
        let base = &system.cell(cell).name;
        if args.is_empty() {
            base.clone()
        } else {
            format!("{base}[{}]", args.join(", "))
        }
    };
    let mut lines = vec![format!("with {}:", threads(u32::from(run.threads)))];
    let mut state = run.start.clone();
    for (i, event) in run.events.iter().enumerate() {
        let Some(next) = machine.apply(&state, event) else {
            break;
        };
        let what = match event {
            Event::Step {
                transition, args, ..
            } => {
                let args: Vec<String> = args.iter().map(|a| format!("#{a}")).collect();
                format!(
                    "{} ({})",
                    system.transitions[*transition].name,
                    args.join(", ")
                )
            }
            Event::Drain { thread, .. } => format!("a store of #{thread} reaches memory"),
        };
        let changed = (0..machine.size()).filter(|p| state.values[*p] != next.values[*p]);
        let changed: Vec<String> = changed.map(name).collect();
        let note = match changed.is_empty() {
            true => String::new(),
            false => format!("   changes {}", changed.join(", ")),
        };
        lines.push(format!("{:>4}  {what}{note}", i + 1));
        state = next;
    }
    lines
}

/// Nobody proves that any number of threads is free of deadlock.
fn no_deadlocks() -> Reason {
    let why = "deadlocks are looked for with a fixed number of threads (such as `--threads t=3`), and \
               not proved absent for any number";
    Reason::Refused(Refusal::new(why))
}

fn refusal(span: Span, message: &str, hint: &str) -> Reason {
    let why = format!("{message} ({hint})");
    Reason::Refused(Refusal::new(why).at(span, hint))
}

/// The program's instance with so many threads in each open family.
fn with_threads(program: &Program, options: &Options, n: u32) -> Result<Instance, InstanceError> {
    let mut counts = options.counts();
    for f in program.families.iter().filter(|f| f.count == Count::Any) {
        counts.0.insert(f.name.clone(), n);
    }
    program.instantiate(&counts)
}

/// Any number of threads, but for the families that were given one.
pub fn any_number(options: &Options) -> String {
    let counts = options.counts().0;
    let fixed: Vec<String> = counts.iter().map(|(f, n)| format!("{f}={n}")).collect();
    match fixed.is_empty() {
        true => "any number of threads".into(),
        false => format!("any number of threads with {}", fixed.join(", ")),
    }
}

fn open(model: MemoryModel, question: Option<usize>, options: &Options, reason: Reason) -> Finding {
    Finding {
        model,
        question,
        deadlock: options.deadlock,
        property: None,
        scope: Scope {
            threads: any_number(options),
            data: "finite".into(),
            unbounded: Vec::new(),
            assumptions: Vec::new(),
        },
        judged: Judged::checked(Verdict::Undecided {
            reason,
            so_far: Progress::default(),
        }),
        engine: PARAMS,
        seconds: 0.0,
        states: 0,
        peak_memory: resources::peak_memory(),
        shown_with: None,
        why: None,
        small_worlds: None,
        proved_under: None,
        warnings: Vec::new(),
    }
}

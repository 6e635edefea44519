//! What programs read: one object per file.
//!
//! A file with one property, checked under one memory model, gives one flat object. With several,
//! the flat fields are those of the worst result (violated before undecided before bounded before
//! holds; the first of these) and `results` lists all. A file that could not be checked has a null
//! `verdict`, the sentence in `reason` and the messages in `errors`. The schema is
//! `schema/check.schema.json`.

use crate::finding::Finding;
use crate::{lasso, table, text, words};
use serde::Serialize;
use wattle_evidence::{Assumption, Broken, End, Fairness, Scope, Task, Trace, Verdict};
use wattle_memory::reference::Snapshot;
use wattle_memory::{Event, MemoryModel};
use wattle_model::Instance;
use wattle_model::graph::Action;

/// One file.
#[derive(Clone, Debug, Serialize)]
pub struct FileReport {
    #[serde(flatten)]
    pub origin: Origin,
    pub file: String,
    pub language: Option<String>,
    #[serde(flatten)]
    pub worst: ResultReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ResultReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The errors and warnings about the text, as data.
    pub diagnostics: Vec<DiagnosticReport>,
}

/// Who wrote an object, and what it looks like: the first fields of every object.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    /// `wattle-check-1`: the command, and a number that goes up when a field changes its meaning.
    pub schema: String,
    pub tool: Tool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Tool {
    pub name: &'static str,
    pub version: &'static str,
}

impl Origin {
    pub fn of(command: &str) -> Self {
        Origin {
            schema: format!("wattle-{command}-1"),
            tool: Tool {
                name: "wattle",
                version: VERSION,
            },
        }
    }
}

/// The version of all crates.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An error or a warning about a text.
#[derive(Clone, Debug, Serialize)]
pub struct DiagnosticReport {
    /// `error` or `warning`
    pub severity: &'static str,
    /// From 1; null if it is about no place.
    pub line: Option<usize>,
    /// In characters, from 1.
    pub column: Option<usize>,
    pub message: String,
    pub expected: Option<String>,
    pub hint: Option<String>,
}

impl DiagnosticReport {
    /// The message with what was expected and the hint, in one line.
    pub fn sentence(&self) -> String {
        let more = [("expected", &self.expected), ("hint", &self.hint)];
        let mut text = self.message.clone();
        for (word, what) in more {
            if let Some(what) = what {
                text.push_str(&format!("; {word}: {what}"));
            }
        }
        text
    }
}

/// One property under one memory model.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResultReport {
    pub model: Option<MemoryModel>,
    /// The first line as a person reads it.
    pub headline: Option<String>,
    /// Where the property is written.
    pub line: Option<u32>,
    /// As written; null if only assertions and faults were looked for.
    pub property: Option<String>,
    pub verdict: Option<&'static str>,
    pub scope: Option<ScopeReport>,
    pub engine: Option<&'static str>,
    pub seconds: f64,
    pub states: u64,
    /// Undecided, but no run of so many steps is a violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    pub peak_memory_bytes: u64,
    /// Whether the evidence was re-checked before this was written.
    pub audited: bool,
    /// Why not.
    pub audit_reason: Option<String>,
    pub trace: Option<Vec<EventReport>>,
    /// What is violated, and by its name.
    pub violation: Option<ViolationReport>,
    /// What the trace shows in the end: `target`, `fault` or `deadlock`.
    pub end: Option<String>,
    pub why: Option<WhyReport>,
    /// For a violation of relaxed memory: the fence that stops this run. The least set that stops all
    /// is what `wattle fences` is for.
    pub fences: Option<Vec<FenceReport>>,
    pub reason: Option<String>,
    /// For proofs about any number of threads.
    pub small_worlds: Option<SmallWorldsReport>,
    pub warnings: Vec<String>,
    /// For demands on runs.
    pub liveness: Option<LivenessReport>,
}

/// What was assumed, and the run without end if there is one.
#[derive(Clone, Debug, Serialize)]
pub struct LivenessReport {
    /// `none`, `weak` or `strong`
    pub fairness: Fairness,
    /// The index into `trace` from which its events are repeated for ever; its length if nothing
    /// happens any more.
    pub cycle: Option<usize>,
    /// Who waits where and for what, and who could have helped.
    pub why: Vec<String>,
}

/// A fault or a deadlock that was met while a property was checked says nothing about the property.
#[derive(Clone, Debug, Serialize)]
pub struct ViolationReport {
    /// `property`, `fault` or `deadlock`
    pub kind: &'static str,
    /// The property, the fault's name, or `deadlock`.
    pub what: String,
}

/// What is violated, if something is.
fn violation(finding: &Finding) -> Option<ViolationReport> {
    let Verdict::Violated { because } = &finding.judged.verdict else {
        return None;
    };
    let kind = match because {
        Broken::Trace(trace) => match trace.end {
            End::Target => "property",
            End::Fault(_) => "fault",
            End::Deadlock => "deadlock",
        },
        Broken::Run(_) | Broken::NeverReached(_) | Broken::Lasso(_) => "property",
    };
    let what = finding.other_violation().or(finding.property.clone());
    let what = what.unwrap_or_default();
    Some(ViolationReport { kind, what })
}

/// How far small instances were run before a proof about any number of threads was told.
#[derive(Clone, Debug, Serialize)]
pub struct SmallWorldsReport {
    /// The most threads run in an open family.
    pub threads: u32,
    /// States seen, of all instances together.
    pub states: u64,
    /// Whether every state of every instance with up to so many threads was seen.
    pub complete: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct ScopeReport {
    /// How many; null if any number.
    pub threads: Option<u32>,
    /// `2 threads`, `any number of threads`
    pub text: String,
    pub data: String,
    /// What was not bounded.
    pub unbounded: Vec<String>,
    /// For `bounded`: at most this many pending stores in a buffer.
    pub buffered_stores: Option<u32>,
    /// What the proof takes for granted: where the verdict is not `holds`, it would be with these.
    pub assumptions: Vec<AssumptionReport>,
    /// Lines of the file's invariants that were proved together with the property.
    pub invariants: Vec<u32>,
}

impl ScopeReport {
    /// What a result about the task covers.
    pub fn of(task: &Task<'_>) -> Self {
        ScopeReport::from(&wattle_evidence::Scope::of(task))
    }
}

impl From<&Scope> for ScopeReport {
    fn from(covered: &Scope) -> Self {
        let assumptions = covered.assumptions.iter();
        ScopeReport {
            threads: number(&covered.threads),
            text: covered.threads.clone(),
            data: covered.data.clone(),
            unbounded: covered.unbounded.clone(),
            buffered_stores: None,
            assumptions: assumptions.map(AssumptionReport::from).collect(),
            invariants: covered.invariants.clone(),
        }
    }
}

/// The number a scope begins with.
fn number(threads: &str) -> Option<u32> {
    threads.split(' ').next()?.parse().ok()
}

/// What a proof takes for granted.
#[derive(Clone, Debug, Serialize)]
pub struct AssumptionReport {
    /// `no-wrap`, `at-most` or `invariants`
    pub kind: &'static str,
    /// The variables it is about, as written.
    pub variables: Vec<String>,
    /// How many threads there are at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
}

impl From<&Assumption> for AssumptionReport {
    fn from(assumption: &Assumption) -> Self {
        match assumption {
            Assumption::NoWrap { variables } => AssumptionReport {
                kind: "no-wrap",
                variables: variables.clone(),
                threads: None,
            },
            Assumption::AtMost { threads } => AssumptionReport {
                kind: "at-most",
                variables: Vec::new(),
                threads: Some(*threads),
            },
            Assumption::Invariants => AssumptionReport {
                kind: "invariants",
                variables: Vec::new(),
                threads: None,
            },
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct EventReport {
    /// The thread's name.
    pub thread: String,
    /// `drain`, or what the step does: `load`, `store`, `assign`, `assume`, `fence`, …
    pub kind: &'static str,
    pub text: String,
    pub line: Option<u32>,
    /// The cell a load, store or drain is about.
    pub cell: Option<String>,
    pub value: Option<i64>,
    /// Compiled code: where it comes from.
    pub source: Option<SourceReport>,
}

/// An instruction of compiled code.
#[derive(Clone, Debug, Serialize)]
pub struct SourceReport {
    /// The source file without folders, and the line in it; absent without debug information.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Place, inlined frames and instruction, in words.
    pub text: String,
}

/// Says of every event where it comes from, by its line in the program's text.
pub fn locate(events: &mut [EventReport], source: &dyn Fn(u32) -> Option<SourceReport>) {
    for e in events {
        e.source = e.line.and_then(source);
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct WhyReport {
    pub sc_forbids: Option<bool>,
    pub overtakings: Vec<OvertakingReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct OvertakingReport {
    pub thread: String,
    /// Indices into `trace`, from 0.
    pub store_event: usize,
    pub later_event: usize,
    pub store: String,
    pub later: String,
    pub later_is_load: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct FenceReport {
    pub thread: String,
    pub location: String,
    pub line: Option<u32>,
    pub column: Option<u32>,
    /// In words: `fence after line 10`.
    pub place: Option<String>,
    pub kind: String,
    pub why: String,
}

/// How bad a result is, best first.
fn rank(r: &ResultReport) -> u8 {
    match r.verdict {
        Some("holds") => 0,
        Some("bounded") => 1,
        Some("undecided") => 2,
        Some("violated") => 3,
        _ => 4,
    }
}

impl FileReport {
    pub fn new(file: String, language: Option<String>, mut results: Vec<ResultReport>) -> Self {
        let mut worst = 0;
        for i in 1..results.len() {
            if rank(&results[i]) > rank(&results[worst]) {
                worst = i;
            }
        }
        let worst = match results.len() {
            0 => ResultReport::default(),
            1 => results.remove(0),
            _ => results[worst].clone(),
        };
        FileReport {
            origin: Origin::of("check"),
            file,
            language,
            worst,
            results,
            errors: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    /// A file that could not be checked.
    pub fn failed(
        file: String,
        language: Option<String>,
        reason: String,
        errors: Vec<String>,
        diagnostics: Vec<DiagnosticReport>,
    ) -> Self {
        let mut report = FileReport::new(file, language, Vec::new());
        report.worst.reason = Some(reason);
        report.errors = errors;
        report.diagnostics = diagnostics;
        report
    }
}

/// One result as data.
pub fn result(instance: Option<&Instance>, finding: &Finding) -> ResultReport {
    let mut r = ResultReport {
        model: Some(finding.model),
        headline: Some(text::headline(finding, text::Style::PLAIN)),
        line: instance.and_then(|i| property_line(i, finding)),
        property: finding.property.clone(),
        engine: Some(finding.engine),
        seconds: finding.seconds,
        states: finding.states,
        peak_memory_bytes: finding.peak_memory,
        audited: finding.judged.unchecked.is_none(),
        audit_reason: finding.judged.unchecked.as_ref().map(|u| u.to_string()),
        small_worlds: finding.small_worlds.as_ref().map(|w| SmallWorldsReport {
            threads: w.threads,
            states: w.states,
            complete: w.complete,
        }),
        warnings: finding.warnings.clone(),
        ..ResultReport::default()
    };
    let mut scope = ScopeReport::from(&finding.scope);
    r.verdict = Some(match &finding.judged.verdict {
        Verdict::Holds { scope: s, .. } => {
            scope = ScopeReport::from(s);
            "holds"
        }
        // Whoever reads only the verdict must not take it for a proof.
        Verdict::HoldsIf { scope: s, .. } => {
            scope = ScopeReport::from(s);
            let assumed = words::all(s.assumptions.iter().map(ToString::to_string));
            r.reason = Some(format!("holds if {assumed}: {}", s.condition()));
            "undecided"
        }
        Verdict::Violated { because } => {
            if let Broken::NeverReached(_) = because {
                r.reason = Some("no run ends like that".into());
            }
            "violated"
        }
        Verdict::Bounded { limits } => {
            scope.unbounded.clear();
            scope.buffered_stores = Some(limits.buffered_stores);
            r.reason = Some(format!(
                "no violation up to {} buffered stores; {}",
                limits.buffered_stores, limits.cause
            ));
            "bounded"
        }
        Verdict::Undecided { reason, so_far } => {
            r.depth = so_far.depth;
            r.reason = Some(text::reason(reason, finding.seconds));
            "undecided"
        }
    });
    r.violation = violation(finding);
    r.scope = Some(scope);
    r.liveness = finding.live.map(|l| LivenessReport {
        fairness: l.fairness,
        cycle: None,
        why: Vec::new(),
    });
    if let (Some(found), Some(task), Some(live)) = (
        finding.lasso(),
        instance.and_then(|i| finding.live_task(i)),
        &mut r.liveness,
    ) && let Ok(replayed) = found.check(&task)
    {
        r.end = Some("cycle".into());
        let trace = lasso::as_trace(found);
        r.trace = Some(reports(task.instance, &trace, &replayed.states));
        live.cycle = Some(found.stem.len());
        live.why = lasso::why(&task, found, &replayed);
    }
    if let Some(trace) = finding.trace() {
        r.end = Some(end(trace).into());
        r.trace = finding
            .instance(instance)
            .and_then(|i| events(&finding.task(i), trace));
        r.reason = r.reason.or_else(|| match &trace.end {
            End::Fault(f) => Some(f.kind.to_string()),
            End::Deadlock => Some("deadlock".into()),
            End::Target => None,
        });
    }
    if let (Some(instance), Some(why)) = (finding.instance(instance), &finding.why) {
        let overtakings = why.overtakings.iter();
        r.why = Some(WhyReport {
            sc_forbids: why.sc_forbids,
            overtakings: overtakings.map(|o| overtaking(instance, o)).collect(),
        });
        if why.sc_forbids != Some(false) {
            let first = why.overtakings.first();
            r.fences = first.map(|o| vec![fence(instance, o)]);
        }
    }
    r
}

fn property_line(instance: &Instance, finding: &Finding) -> Option<u32> {
    let question = instance.questions.get(finding.question?)?;
    Some(question.span.line).filter(|l| *l > 0)
}

/// The fence that the text under a trace speaks of.
fn fence(instance: &Instance, o: &crate::why::Overtaking) -> FenceReport {
    let thread = instance.thread(o.thread);
    let step = thread.step(o.fence_before);
    let labels = &thread.locations[step.source.index()].labels;
    let (kind, later) = match o.later_is_load {
        true => ("fence", "load"),
        false => ("fence store", "store"),
    };
    let name = |c: wattle_model::CellId| instance.cell(c).name.as_str();
    FenceReport {
        thread: thread.name.clone(),
        location: labels.first().cloned().unwrap_or(step.source.to_string()),
        line: Some(step.span.line).filter(|l| *l > 0),
        column: None,
        place: Some(crate::why::place(instance, o)),
        kind: kind.into(),
        why: format!(
            "stops this run: {later} {} overtook store {}",
            name(o.later_cell),
            name(o.store_cell)
        ),
    }
}

/// What a trace shows.
pub fn end(trace: &Trace) -> &'static str {
    match trace.end {
        End::Target => "target",
        End::Fault(_) => "fault",
        End::Deadlock => "deadlock",
    }
}

fn overtaking(instance: &Instance, o: &crate::why::Overtaking) -> OvertakingReport {
    OvertakingReport {
        thread: instance.thread(o.thread).name.clone(),
        store_event: o.store,
        later_event: o.later,
        store: instance.cell(o.store_cell).name.clone(),
        later: instance.cell(o.later_cell).name.clone(),
        later_is_load: o.later_is_load,
    }
}

/// The events of a trace; `None` if it does not replay.
pub fn events(task: &Task<'_>, trace: &Trace) -> Option<Vec<EventReport>> {
    let states = crate::walked::states(task, trace).ok()?;
    Some(reports(task.instance, trace, &states))
}

/// The events of a run that goes on for ever, stem and one round; `None` if it does not replay.
pub fn events_for_ever(
    task: &wattle_evidence::LiveTask<'_>,
    found: &wattle_evidence::Lasso,
) -> Option<Vec<EventReport>> {
    let replayed = found.check(task).ok()?;
    let trace = lasso::as_trace(found);
    Some(reports(task.instance, &trace, &replayed.states))
}

fn reports(instance: &Instance, trace: &Trace, states: &[Snapshot]) -> Vec<EventReport> {
    let report = |(i, event): (usize, &Event)| {
        let (before, after) = (&states[i], states.get(i + 1));
        let t = event.thread();
        let (kind, cell, value) = match event {
            Event::Drain { cell, value, .. } => ("drain", Some(*cell), Some(*value)),
            Event::Step { step, value, .. } => {
                let got =
                    |r: &wattle_model::RegisterId| after.map(|s| s.registers[t.index()][r.index()]);
                match &instance.thread(t).step(*step).action {
                    Action::Load { register, place } => {
                        ("load", words::cell(before, t, place), got(register))
                    }
                    Action::Store { place, value } => (
                        "store",
                        words::cell(before, t, place),
                        words::value(before, t, value),
                    ),
                    Action::Assign { register, .. } => ("assign", None, got(register)),
                    Action::Havoc { .. } => ("choose", None, *value),
                    Action::Skip => ("skip", None, None),
                    Action::Assume(_) => ("assume", None, None),
                    Action::Assert { .. } => ("assert", None, None),
                    Action::Fence(_) => ("fence", None, None),
                    Action::AtomicBegin(_) => ("atomic-begin", None, None),
                    Action::AtomicEnd => ("atomic-end", None, None),
                    Action::Lock => ("lock", None, None),
                    Action::Unlock => ("unlock", None, None),
                }
            }
        };
        EventReport {
            thread: instance.thread(t).name.clone(),
            kind,
            text: words::event(instance, event, before, after),
            line: Some(table::line(instance, event)).filter(|l| *l > 0),
            cell: cell.map(|c| instance.cell(c).name.clone()),
            value,
            source: None,
        }
    };
    trace.events.iter().enumerate().map(report).collect()
}

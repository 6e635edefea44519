//! `wattle robust`: is every relaxed run an SC run in disguise?

use super::batch::{Files, Tally, not_begun};
use super::exit::Exit;
use super::fences::{fence_at, told};
use super::models::OneRelaxed;
use super::subject::{self, Failure};
use super::{budget::Budget, output, progress, units};
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::fmt::Write;
use wattle::Language;
use wattle::ThreadCount;
use wattle::fences::{place, recheck_robust};
use wattle::input::{InputLanguage, Source, Subject};
use wattle_auditor::AuditPolicy;
use wattle_evidence::{Control, End, Task, Trace};
use wattle_memory::MemoryModel;
use wattle_model::instance::{Counts, Question};
use wattle_model::{Expr, Instance, Program, PropertyKind, Span};
use wattle_repair::{Places, SiteKind, clause, insert};
use wattle_report::{json, table, text};
use wattle_robust::attack::EdgeKind;
use wattle_robust::{Attack, Finding, Goal, Options, search};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    files: Files,
    /// What to look for
    #[arg(long, value_enum, default_value_t = GoalName::Robustness)]
    goal: GoalName,
    /// The memory model
    #[arg(long, short, value_enum, default_value_t = OneRelaxed::Tso)]
    model: OneRelaxed,
    /// How many threads a family has
    #[arg(long, value_name = "NAME=N", value_parser = units::threads)]
    threads: Vec<(String, ThreadCount)>,
    #[command(flatten)]
    budget: Budget,
    /// Believe a proof without re-checking it; the answer says so
    #[arg(long)]
    no_audit: bool,
    /// Print the results as JSON, an array for several files
    #[arg(long)]
    json: bool,
    /// Only the first line of each answer, and no progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GoalName {
    /// Every run has the happens-before relation of an SC run
    Robustness,
    /// No load overtakes a store of its thread just before another thread writes what it read
    Triangular,
}

/// What there is to say about one file.
struct Answer {
    exit: Exit,
    text: String,
    notes: String,
    json: serde_json::Value,
}

pub fn run(arguments: &Arguments) -> Exit {
    let batch = arguments.files.batch();
    let (mut exit, mut tally) = (Exit::Holds, Tally::default());
    let mut values = Vec::new();
    for (name, error) in &batch.errors {
        let failure = Failure::from(error.clone());
        output::note(&failure.note(name));
        values.push(failure.json("robust", name));
        tally.add([failure.exit]);
        exit = exit.max(failure.exit);
    }
    let quiet = arguments.quiet || arguments.json;
    let line = progress::Line::new(quiet);
    let work = |_: usize, name: &str| {
        (arguments.budget).within_line(name, &line, |control| decide(arguments, name, control))
    };
    let rest = batch.in_order(arguments.files.jobs, work, |name, decided| {
        let answer = decided.unwrap_or_else(|failure| Answer {
            exit: failure.exit,
            text: String::new(),
            notes: failure.note(name),
            json: failure.json("robust", name),
        });
        tally.add([answer.exit]);
        exit = exit.max(answer.exit);
        output::note(&answer.notes);
        values.push(answer.json);
        arguments.json
            || answer.text.is_empty()
            || output::answer(&told(&answer.text, name, batch.headed, quiet))
    });
    if arguments.json {
        let value = match (batch.headed, values.len()) {
            (false, 1) => values.remove(0),
            _ => serde_json::Value::Array(values),
        };
        output::answer(&format!("{value}\n"));
    } else if batch.headed && !batch.files.is_empty() {
        output::answer(&tally.line(["robust", "not robust"]));
    }
    exit.max(not_begun(rest))
}

fn decide(arguments: &Arguments, name: &str, control: &Control<'_>) -> Result<Answer, Failure> {
    let files = &arguments.files;
    let (source, subject, warnings) = subject::load(name, files.language, files.mathematical)?;
    let Subject::Program(program) = subject else {
        return Err(Failure::input("array-based systems have no robustness"));
    };
    let threads = units::named(&arguments.threads, &program).map_err(Failure::input)?;
    let mut counts = Counts::default();
    for (name, count) in threads {
        if let ThreadCount::Fixed(n) = count {
            counts.0.insert(name, n);
        }
    }
    let instance = match program.instantiate(&counts) {
        Ok(instance) if instance.threads.is_empty() => {
            return Err(Failure::input("the program has no threads"));
        }
        Ok(instance) => instance,
        Err(e @ wattle_model::InstanceError::Unfixed { .. }) => {
            let wattle_model::InstanceError::Unfixed { family, .. } = &e else {
                return Err(Failure::input(e.to_string()));
            };
            return Err(Failure::input(format!(
                "{e}; `--threads {family}=2` decides it for two"
            )));
        }
        Err(e) => return Err(Failure::input(e.to_string())),
    };
    let (goal, word) = match arguments.goal {
        GoalName::Robustness => (Goal::Robustness, "robustness"),
        GoalName::Triangular => (Goal::Triangular, "triangular"),
    };
    let model = MemoryModel::from(arguments.model);
    let found = search(&instance, Options::new(goal, model), control);
    let policy = match arguments.no_audit {
        true => AuditPolicy::Never,
        false => AuditPolicy::Always,
    };
    let unchecked = match &found {
        Finding::Free { .. } => recheck_robust(&instance, goal, model, policy, control),
        Finding::Found { .. } | Finding::Undecided { .. } => Ok(None),
    };
    let unchecked = unchecked.map_err(|u| Failure::new(Exit::Unsound, u.to_string()))?;
    let is_free = matches!(found, Finding::Free { .. });
    let audited = match is_free {
        true => format!(", {}", text::audited(unchecked.as_ref())),
        false => String::new(),
    };
    let seconds = control.elapsed().as_secs_f64();
    let (verdict, exit, effort) = match &found {
        Finding::Free { effort } => ("holds", Exit::Holds, *effort),
        Finding::Found { effort, .. } => ("violated", Exit::Violated, *effort),
        Finding::Undecided { effort, .. } => ("undecided", Exit::Undecided, *effort),
    };
    let shown = match &found {
        Finding::Found { attack, .. } => Some(Shown::new(&instance, attack)),
        _ => None,
    };
    let stopping = match &found {
        Finding::Found { attack, .. } => Some(fences(&source, &program, &instance, attack)),
        _ => None,
    };
    let reason = match &found {
        Finding::Undecided { reason, .. } => Some(text::reason(reason, seconds)),
        _ => None,
    };
    let json = {
        let attack = match &found {
            Finding::Found { attack, .. } => Some(attack),
            _ => None,
        };
        let task = Task {
            instance: &instance,
            model,
            question: None,
            deadlock: false,
        };
        let mut value = serde_json::json!({
            "file": source.name,
            "language": source.language.name(),
            "model": model,
            "property": word,
            "verdict": verdict,
            "robust": match verdict { "holds" => Some(true), "violated" => Some(false), _ => None },
            "scope": json::ScopeReport::of(&task),
            "engine": "robust",
            "audited": is_free && unchecked.is_none(),
            "audit_reason": unchecked.as_ref().map(ToString::to_string),
            "seconds": seconds,
            "states": effort.states,
            "peak_memory_bytes": wattle::resources::peak_memory(),
            "trace": shown.as_ref().and_then(|s| s.events(&source)),
            "cycle": attack.map(|a| cycle(&instance, a)),
            "fences": stopping,
            "reason": reason,
        });
        output::originated("robust", &mut value);
        value
    };
    let scope = format!(
        "{}, {} states{audited}",
        wattle::families::threads(instance.threads.len() as u32),
        effort.states
    );
    let mut answer = match (goal, verdict) {
        (Goal::Robustness, "holds") => format!("robust against {model} ({scope})\n"),
        (Goal::Robustness, "violated") => format!("not robust against {model} ({scope})\n"),
        (Goal::Triangular, "holds") => {
            format!("no triangular race, so robust against {model} ({scope})\n")
        }
        (Goal::Triangular, "violated") => format!("a triangular race on {model} ({scope})\n"),
        _ => format!("undecided: {}\n", reason.unwrap_or_default()),
    };
    if let (Finding::Found { attack, .. }, Some(shown)) = (&found, &shown) {
        answer.push('\n');
        answer.push_str(&shown.table());
        for sentence in sentences(&instance, attack, shown, stopping.as_deref()) {
            let _ = writeln!(answer, "{sentence}");
        }
    }
    Ok(Answer {
        exit,
        text: answer,
        notes: warnings.concat(),
        json,
    })
}

/// An attack with what is needed to print it: its run as a trace that ends anywhere.
struct Shown {
    instance: Instance,
    trace: Trace,
}

impl Shown {
    fn new(instance: &Instance, attack: &Attack) -> Self {
        let mut instance = instance.clone();
        instance.questions = vec![Question {
            kind: PropertyKind::Never,
            target: Expr::TRUE,
            only_final: false,
            span: Span::NONE,
        }];
        let trace = Trace {
            model: attack.model,
            start: attack.start.clone(),
            events: attack.events.clone(),
            end: End::Target,
        };
        Shown { instance, trace }
    }

    fn task(&self) -> Task<'_> {
        Task {
            instance: &self.instance,
            model: self.trace.model,
            question: Some(0),
            deadlock: false,
        }
    }

    fn events(&self, source: &Source) -> Option<Vec<json::EventReport>> {
        let mut events = json::events(&self.task(), &self.trace)?;
        output::locate(source, &mut events);
        Some(events)
    }

    fn rows(&self) -> Vec<table::Row> {
        match self.trace.check(&self.task()) {
            Ok(states) => table::rows(&self.task(), &self.trace, &states),
            Err(_) => Vec::new(),
        }
    }

    fn table(&self) -> String {
        table::render(&self.instance, &self.rows(), output::style().width)
    }
}

/// `x = 1 (t0, line 7)`
fn access(instance: &Instance, attack: &Attack, node: usize) -> String {
    let n = &attack.relation.nodes[node];
    let kind = if n.write { "store" } else { "load" };
    let cell = &instance.cell(n.cell).name;
    let thread = &instance.thread(n.thread).name;
    match table::line(instance, &attack.events[n.event]) {
        0 => format!("{kind} {cell} ({thread})"),
        line => format!("{kind} {cell} ({thread}, line {line})"),
    }
}

fn edge(kind: EdgeKind) -> &'static str {
    match kind {
        EdgeKind::ProgramOrder => "program order",
        EdgeKind::ReadsFrom => "reads from",
        EdgeKind::FromRead => "is overwritten by",
        EdgeKind::WriteOrder => "is overwritten by",
        EdgeKind::Together => "same block as",
    }
}

fn cycle(instance: &Instance, attack: &Attack) -> Vec<serde_json::Value> {
    let edges = attack.cycle.iter();
    let show = |e: &wattle_robust::attack::Edge| {
        serde_json::json!({
            "from": access(instance, attack, e.from),
            "to": access(instance, attack, e.to),
            "edge": edge(e.kind),
        })
    };
    edges.map(show).collect()
}

/// Where a fence of the attacker stops the run, in the words of `wattle fences`.
fn fences(
    source: &Source,
    program: &Program,
    instance: &Instance,
    attack: &Attack,
) -> Vec<json::FenceReport> {
    let language = match source.language {
        InputLanguage::Program(language) => language,
        InputLanguage::Code | InputLanguage::Cubicle => Language::Wtl,
    };
    let gaps = wattle_syntax::gaps::gaps(language, &source.text);
    let places = Places::new(program, &gaps);
    let unchanged = insert::fenced(program, &places, &BTreeSet::new());
    let stopping = clause::of_attack(&unchanged, &places, instance, attack);
    // Where a store fence is enough, it is what is told.
    let weaker = |p| {
        let sites = stopping.iter();
        sites.clone().any(|s| s.kind == SiteKind::StoreFence(p))
    };
    let thread = instance.thread(attack.attacker);
    let report = |site: &wattle_repair::Site| {
        let p = match site.kind {
            SiteKind::Fence(p) if weaker(p) => return None,
            SiteKind::Fence(p) | SiteKind::StoreFence(p) => p,
            SiteKind::Lock(_) | SiteKind::Swap(_) => return None,
        };
        let found = place(language, &source.text, program, &gaps, *site);
        let location = places.family(site.family).place(p).location.to_string();
        let first = found.at.first();
        Some(json::FenceReport {
            thread: thread.name.clone(),
            line: first.map(|(line, _)| *line),
            column: first.map(|(_, column)| *column),
            place: Some(fence_at(site.kind, &found)),
            location: found.label.unwrap_or(location),
            kind: site.kind.keyword().to_string(),
            why: "a fence here stops this run".to_string(),
        })
    };
    stopping.iter().filter_map(report).collect()
}

fn sentences(
    instance: &Instance,
    attack: &Attack,
    shown: &Shown,
    stopping: Option<&[json::FenceReport]>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let rows = shown.rows();
    let row = |event: usize| table::row_number(&rows, event);
    let thread = &instance.thread(attack.attacker).name;
    lines.push(format!(
        "why   {thread} step {} overtook step {}; step {} of another thread comes between.",
        row(attack.overtaker),
        row(attack.store),
        row(attack.conflict)
    ));
    let places: Vec<&str> = (stopping.into_iter().flatten())
        .filter_map(|f| f.place.as_deref())
        .collect();
    if !places.is_empty() {
        lines.push(format!(
            "      A {} stops this run.",
            places.join(", or a ")
        ));
    }
    for (i, e) in attack.cycle.iter().enumerate() {
        let head = if i == 0 { "cycle" } else { "     " };
        lines.push(format!(
            "{head} {} → {} [{}]",
            access(instance, attack, e.from),
            access(instance, attack, e.to),
            edge(e.kind)
        ));
    }
    lines
}

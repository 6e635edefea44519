//! `wattle robust`: is every relaxed run an SC run in disguise?

use super::exit::Exit;
use super::subject::File;
use super::{budget::Budget, output, units};
use clap::{Args, ValueEnum};
use std::fmt::Write;
use wattle::ThreadCount;
use wattle::fences::recheck_robust;
use wattle::input::Subject;
use wattle_auditor::AuditPolicy;
use wattle_evidence::{Control, End, Task, Trace};
use wattle_memory::MemoryModel;
use wattle_model::instance::{Counts, Question};
use wattle_model::{Expr, Instance, PropertyKind, Span};
use wattle_report::{json, table, text};
use wattle_robust::attack::EdgeKind;
use wattle_robust::{Attack, Finding, Goal, Options, search};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// What to look for
    #[arg(long, value_enum, default_value_t = GoalName::Robustness)]
    goal: GoalName,
    /// The memory model
    #[arg(long, value_enum, default_value_t = Model::Tso)]
    model: Model,
    /// How many threads a family has
    #[arg(long, value_name = "NAME=N", value_parser = units::threads)]
    threads: Vec<(String, ThreadCount)>,
    #[command(flatten)]
    budget: Budget,
    /// Believe a proof without re-checking it; the answer says so
    #[arg(long)]
    no_audit: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GoalName {
    /// Every run has the happens-before relation of an SC run
    Robustness,
    /// No load overtakes a store of its thread just before another thread writes what it read
    Triangular,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Model {
    Tso,
    Pso,
}

pub fn run(arguments: &Arguments) -> Exit {
    let (file, json) = (&arguments.file.file, arguments.json);
    let decided = (arguments.budget).within(file, json, |control| decide(arguments, control));
    match decided {
        Ok(exit) | Err(exit) => exit,
    }
}

fn decide(arguments: &Arguments, control: &Control<'_>) -> Result<Exit, Exit> {
    let (source, subject) = arguments.file.load()?;
    let Subject::Program(program) = subject else {
        output::error(&source.name, "array-based systems have no robustness", &[]);
        return Err(Exit::Input);
    };
    let threads = units::named(&arguments.threads, &program).map_err(|why| {
        output::error(&source.name, &why, &[]);
        Exit::Input
    })?;
    let mut counts = Counts::default();
    for (name, count) in threads {
        if let ThreadCount::Fixed(n) = count {
            counts.0.insert(name, n);
        }
    }
    let instance = arguments.file.instance(&program, &counts)?;
    let (goal, word) = match arguments.goal {
        GoalName::Robustness => (Goal::Robustness, "robustness"),
        GoalName::Triangular => (Goal::Triangular, "triangular"),
    };
    let model = match arguments.model {
        Model::Tso => MemoryModel::Tso,
        Model::Pso => MemoryModel::Pso,
    };
    let found = search(&instance, Options::new(goal, model), control);
    let policy = match arguments.no_audit {
        true => AuditPolicy::Never,
        false => AuditPolicy::Always,
    };
    let unchecked = match &found {
        Finding::Free { .. } => recheck_robust(&instance, goal, model, policy, control),
        Finding::Found { .. } | Finding::Undecided { .. } => Ok(None),
    };
    let unchecked = unchecked.map_err(|unsound| {
        output::error(&source.name, &unsound.to_string(), &[]);
        Exit::Unsound
    })?;
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
    let reason = match &found {
        Finding::Undecided { reason, .. } => Some(text::reason(reason, seconds)),
        _ => None,
    };
    if arguments.json {
        let attack = match &found {
            Finding::Found { attack, .. } => Some(attack),
            _ => None,
        };
        let crossings = attack.map(|a| fences(&instance, a));
        let task = Task {
            instance: &instance,
            model,
            question: None,
            deadlock: false,
        };
        let value = serde_json::json!({
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
            "trace": shown.as_ref().and_then(|s| s.events()),
            "cycle": attack.map(|a| cycle(&instance, a)),
            "fences": crossings,
            "reason": reason,
        });
        output::answer(&format!("{value}\n"));
        return Ok(exit);
    }
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
        for sentence in sentences(&instance, attack, shown) {
            let _ = writeln!(answer, "{sentence}");
        }
    }
    output::answer(&answer);
    Ok(exit)
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

    fn events(&self) -> Option<Vec<json::EventReport>> {
        json::events(&self.task(), &self.trace)
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

fn fences(instance: &Instance, attack: &Attack) -> Vec<json::FenceReport> {
    let thread = instance.thread(attack.attacker);
    let report = |c: &wattle_robust::attack::Crossing| {
        let location = &thread.locations[c.location.index()];
        json::FenceReport {
            thread: thread.name.clone(),
            location: match location.labels.first() {
                Some(label) => label.clone(),
                None => c.location.to_string(),
            },
            line: Some(location.span.line).filter(|l| *l > 0),
            kind: if c.store_fence {
                "fence store"
            } else {
                "fence"
            }
            .to_string(),
            why: "a fence here stops this run".to_string(),
        }
    };
    attack.crossings.iter().map(report).collect()
}

fn sentences(instance: &Instance, attack: &Attack, shown: &Shown) -> Vec<String> {
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
    for (i, e) in attack.cycle.iter().enumerate() {
        let head = if i == 0 { "cycle" } else { "     " };
        lines.push(format!(
            "{head} {} → {} [{}]",
            access(instance, attack, e.from),
            access(instance, attack, e.to),
            edge(e.kind)
        ));
    }
    let places = fences(instance, attack);
    let place = |f: &json::FenceReport| match f.line {
        Some(line) => format!("line {line}"),
        None => f.location.clone(),
    };
    let places: Vec<String> = places.iter().map(place).collect();
    lines.push(format!("fence {thread} before {}", places.join(" or ")));
    lines
}

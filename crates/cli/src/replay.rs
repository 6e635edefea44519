//! `wattle replay`: a trace, event by event, on the reference machine.

use super::exit::Exit;
use super::subject::{self, Failure, File};
use super::{budget::Budget, output};
use clap::Args;
use std::path::Path;
use wattle::check::property_text;
use wattle_auditor::{AuditError, audit_for_ever};
use wattle_evidence::file::Kept;
use wattle_evidence::{Control, EvidenceFile, Lasso, Trace};
use wattle_model::{Instance, Program};
use wattle_report::{json, lasso, text, walked, why};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    file: File,
    /// The trace, as written by `wattle check --trace`
    trace: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page with every state of the run and buttons to step through it: one file, nothing
    /// fetched
    #[arg(long, value_name = "FILE.html", conflicts_with = "json")]
    html: Option<std::path::PathBuf>,
    #[command(flatten)]
    budget: Budget,
}

pub fn run(arguments: &Arguments) -> Exit {
    let file = &arguments.file.file;
    match (arguments.budget).within(file, true, |control| replay(arguments, control)) {
        Ok(exit) => exit,
        Err(failure) => failure.told("replay", file, arguments.json),
    }
}

fn replay(arguments: &Arguments, control: &Control<'_>) -> Result<Exit, Failure> {
    let program = arguments.file.program()?;
    if let Some(kept) = subject::lasso(&arguments.trace)? {
        return replay_for_ever(arguments, &program, &kept, control);
    }
    let kept = subject::evidence::<Trace>(&arguments.trace)?;
    let instance = arguments.file.instance(&program, &kept.counts())?;
    let fail = |exit: Exit, reason: String| Failure::new(exit, reason).about(&arguments.trace);
    let task = kept.task(&instance);
    let task = task.map_err(|e| fail(Exit::Input, e.to_string()))?;
    let trace = &kept.evidence;
    let states = walked::states(&task, trace).map_err(|e| {
        let reason = format!(
            "the trace does not replay: {e}\n\
             If Wattle wrote this file as it is, that is a bug in Wattle: please report it."
        );
        fail(Exit::Unsound, reason)
    })?;
    if let Some(path) = &arguments.html {
        page(arguments, path, &program, &instance, &kept, trace, &[])?;
    } else if arguments.json {
        let events = json::events(&task, trace).unwrap_or_default();
        let end = (!walked::is_walk(&task, trace)).then(|| json::end(trace));
        told(arguments, &program, &kept, events, end, None)?;
    } else {
        let why = why::Why {
            overtakings: why::overtakings(&task, trace, &states),
            sc_forbids: None,
        };
        let n = trace.events.len();
        let nothing = match walked::is_walk(&task, trace) {
            true => "; it shows nothing about a property",
            false => "",
        };
        let mut answer = format!(
            "the trace replays on {} ({n} events){nothing}\n\n",
            task.model
        );
        answer.push_str(&text::trace_text(&task, trace, Some(&why), output::style()));
        output::answer(&answer);
    }
    Ok(Exit::Holds)
}

/// A run that goes on for ever.
fn replay_for_ever(
    arguments: &Arguments,
    program: &Program,
    kept: &EvidenceFile<Lasso>,
    control: &Control<'_>,
) -> Result<Exit, Failure> {
    let fail = |reason: String, exit: Exit| Failure::new(exit, reason).about(&arguments.trace);
    let instance = arguments.file.demanded(program, kept)?;
    let task = kept.live_task(&instance);
    let task = task.map_err(|e| fail(e.to_string(), Exit::Input))?;
    let found = &kept.evidence;
    if let Err(e) = found.check(&task) {
        let reason = format!(
            "the run does not replay: {e}\n\
             If Wattle wrote this file as it is, that is a bug in Wattle: please report it."
        );
        return Err(fail(reason, Exit::Unsound));
    }
    if let Err(e) = audit_for_ever(&task, found, control) {
        return Err(match e {
            e @ (AuditError::Stopped(_) | AuditError::Refused(_) | AuditError::TooMany) => {
                fail(e.to_string(), Exit::Undecided)
            }
            e => fail(
                format!("that the run goes on like this for ever is not shown: {e}"),
                Exit::Unsound,
            ),
        });
    }
    if let Some(path) = &arguments.html {
        let replayed = found.check(&task).map(|r| lasso::why(&task, found, &r));
        let mut ends = replayed.unwrap_or_default();
        let round = found.stem.len() + 1;
        ends.push(format!("From step {round} on it is repeated for ever."));
        let trace = lasso::as_trace(found);
        page(arguments, path, program, &instance, kept, &trace, &ends)?;
    } else if arguments.json {
        let events = json::events_for_ever(&task, found).unwrap_or_default();
        let cycle = Some(found.stem.len());
        told(arguments, program, kept, events, Some("cycle"), cycle)?;
    } else {
        let (stem, cycle) = (found.stem.len(), found.cycle.len());
        let mut answer = format!(
            "the run replays on {} {} ({stem} events, then {cycle} for ever)\n\n",
            task.model, task.fairness
        );
        answer.push_str(&lasso::text(&task, found, output::style()));
        output::answer(&answer);
    }
    Ok(Exit::Holds)
}

/// The page of a run; `ends` is said at its end.
fn page<E: Kept>(
    arguments: &Arguments,
    path: &Path,
    program: &Program,
    instance: &Instance,
    kept: &EvidenceFile<E>,
    trace: &Trace,
    ends: &[String],
) -> Result<(), Failure> {
    let (source, _) = arguments.file.load()?;
    let properties = 0..program.properties.len();
    let subject = wattle_explore::Subject {
        name: source.name.clone(),
        text: source.text.clone(),
        instance,
        counts: kept.counts(),
        model: kept.model,
        properties: properties.map(|q| property_text(program, q)).collect(),
    };
    let page = subject
        .way_of(trace)
        .and_then(|way| wattle_explore::page::of_run(&subject, &way, ends));
    let written = page.and_then(|page| std::fs::write(path, page).map_err(|e| e.to_string()));
    written.map_err(|e| Failure::input(e).about(path.display().to_string()))?;
    output::answer(&format!("written to {}\n", path.display()));
    Ok(())
}

/// The object of a run that replays.
fn told<E: Kept>(
    arguments: &Arguments,
    program: &Program,
    kept: &EvidenceFile<E>,
    mut events: Vec<json::EventReport>,
    end: Option<&str>,
    cycle: Option<usize>,
) -> Result<(), Failure> {
    output::locate(&arguments.file.load()?.0, &mut events);
    let mut value = serde_json::json!({
        "file": arguments.file.file,
        "model": kept.model,
        "property": subject::property(program, kept),
        "trace": events,
        "end": end,
        "cycle": cycle,
    });
    output::originated("replay", &mut value);
    let text = serde_json::to_string_pretty(&value).unwrap_or_default();
    output::answer(&format!("{text}\n"));
    Ok(())
}

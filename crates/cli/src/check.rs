//! `wattle check`: files in, verdicts out.

mod arguments;

pub use arguments::{Arguments, Extrapolated};

use super::batch::{Batch, Tally, not_begun};
use super::budget;
use super::exit::Exit;
use super::format::Format;
use super::{output, progress, signals, units};
use arguments::NoMesh;
use std::path::PathBuf;
use std::sync::Arc;
use wattle::families;
use wattle::input::{self, InputError, Subject};
use wattle::options::Mesh;
use wattle::{CheckError, Checked, Finding, Options, Run};
use wattle_auditor::write_down;
use wattle_evidence::{Broken, Certificate, Control, EvidenceFile, Proof, Verdict};
use wattle_model::Instance;
use wattle_report::formats::{github, junit, sarif};
use wattle_report::json::FileReport;
use wattle_report::{html, json, text};
use wattle_syntax::Diagnostic;

/// What is printed about one file, and its exit.
struct Answer {
    exit: Exit,
    /// One for each property and memory model.
    texts: Vec<String>,
    /// Their exits.
    exits: Vec<Exit>,
    /// For standard error.
    notes: String,
    json: FileReport,
    /// For the page of `--report`.
    section: html::Section,
}

impl Answer {
    fn is_long(&self) -> bool {
        self.texts.iter().any(|t| t.lines().count() > 3)
    }

    /// With several files, the file's name before each verdict.
    fn text(&self, name: &str, headed: bool) -> String {
        let mut out = String::new();
        for (i, text) in self.texts.iter().enumerate() {
            if i > 0 && text.lines().count() > 1 {
                out.push('\n');
            }
            if headed {
                out.push_str(&format!("{name}: "));
            }
            out.push_str(text);
        }
        out
    }
}

pub fn run(arguments: &Arguments) -> Exit {
    let batch = arguments.files.batch();
    if let Some(complaint) = arguments.complaint(batch.files.len()) {
        output::note(&format!("error: {complaint}\n"));
        return Exit::Input;
    }
    signals::listen();
    let format = arguments.format.get();
    let silent = arguments.is_silent();
    let line = progress::Line::new(arguments.quiet || silent || format != Format::Text);
    let mesh = match arguments.mesh() {
        Ok(mesh) => mesh.map(Arc::new),
        Err(NoMesh::Input(why)) => {
            output::note(&format!("error: {why}\n"));
            return Exit::Input;
        }
        Err(NoMesh::Lost(why)) => {
            output::note(&format!("undecided: {why}\n"));
            return Exit::Undecided;
        }
    };
    if silent {
        return silently(arguments, &batch, &line, mesh);
    }
    let mut shown = Shown::new(format, &batch);
    for (name, error) in &batch.errors {
        shown.add(name, failed(name, None, error.clone()));
    }
    let work = |i: usize, name: &str| one(arguments, i, name, &line, mesh.clone());
    let rest = batch.in_order(arguments.files.jobs, work, |name, a| shown.add(name, a));
    let mut exit = shown.finish().max(not_begun(rest));
    if let Some(path) = &arguments.report
        && let Err(e) = std::fs::write(path, html::page(&shown.sections, &made()))
    {
        output::note(&format!("error: {}: {e}\n", path.display()));
        exit = exit.max(Exit::Input);
    }
    exit
}

/// A process that helps another one, which tells the answer: only what keeps it from one is told here.
fn silently(
    arguments: &Arguments,
    batch: &Batch,
    line: &progress::Line,
    mesh: Option<Arc<Mesh>>,
) -> Exit {
    let mut exit = Exit::Holds;
    for (name, error) in &batch.errors {
        let answer = failed(name, None, error.clone());
        output::note(&answer.notes);
        exit = exit.max(answer.exit);
    }
    let work = |i: usize, name: &str| one(arguments, i, name, line, mesh.clone());
    let show = |name: &str, answer: Answer| {
        output::note(&answer.notes);
        for (text, _) in answer
            .texts
            .iter()
            .zip(&answer.exits)
            .filter(|(_, e)| **e == Exit::Undecided)
        {
            output::note(&format!("{name}: {text}"));
        }
        exit = exit.max(answer.exit);
        true
    };
    let rest = batch.in_order(arguments.files.jobs, work, show);
    exit.max(not_begun(rest))
}

/// What the page of `--report` says of itself.
fn made() -> html::Made {
    let words = std::env::args().skip(1).map(|word| {
        let plain = |c: char| c.is_alphanumeric() || "-_./=*,:+@".contains(c);
        match word.chars().all(plain) && !word.is_empty() {
            true => word,
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    });
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    html::Made {
        command: format!("wattle {}", words.collect::<Vec<_>>().join(" ")),
        seconds: now.map_or(0, |d| d.as_secs()),
    }
}

/// What was shown so far, and what is shown when all is known.
struct Shown<'b> {
    format: Format,
    batch: &'b Batch,
    exit: Exit,
    tally: Tally,
    reports: Vec<FileReport>,
    suites: Vec<junit::Suite>,
    sections: Vec<html::Section>,
    /// Whether the last text was long: a blank line comes after a trace.
    long: bool,
}

impl<'b> Shown<'b> {
    fn new(format: Format, batch: &'b Batch) -> Self {
        Shown {
            format,
            batch,
            exit: Exit::Holds,
            tally: Tally::default(),
            reports: Vec::new(),
            suites: Vec::new(),
            sections: Vec::new(),
            long: false,
        }
    }

    /// One more answer; says whether anybody still reads.
    fn add(&mut self, name: &str, answer: Answer) -> bool {
        output::note(&answer.notes);
        self.exit = self.exit.max(answer.exit);
        self.sections.push(answer.section.clone());
        match answer.exits.is_empty() {
            true => self.tally.add([answer.exit]),
            false => self.tally.add(answer.exits.iter().copied()),
        }
        match self.format {
            Format::Text if answer.texts.is_empty() => true,
            Format::Text => {
                let gap = match std::mem::replace(&mut self.long, answer.is_long()) {
                    true => "\n",
                    false => "",
                };
                output::answer(&format!("{gap}{}", answer.text(name, self.batch.headed)))
            }
            Format::Github => output::answer(&github::annotations(&answer.json)),
            Format::Junit => {
                self.suites.push(junit::suite(&answer.json, &answer.texts));
                true
            }
            Format::Json | Format::Sarif => {
                self.reports.push(answer.json);
                true
            }
        }
    }

    fn finish(&self) -> Exit {
        let text = match self.format {
            Format::Text if !self.batch.headed || self.batch.files.is_empty() => String::new(),
            Format::Text => {
                let gap = if self.long { "\n" } else { "" };
                format!("{gap}{}", self.tally.line(["hold", "violated"]))
            }
            Format::Github => String::new(),
            Format::Junit => junit::document(&self.suites),
            Format::Sarif => sarif::log(&self.reports),
            Format::Json => {
                let text = match (self.batch.headed, self.reports.as_slice()) {
                    (false, [one]) => serde_json::to_string_pretty(one),
                    (_, all) => serde_json::to_string_pretty(all),
                };
                text.unwrap_or_default() + "\n"
            }
        };
        if !text.is_empty() {
            output::answer(&text);
        }
        self.exit
    }
}

/// One file, from its name to its answer.
fn one(
    arguments: &Arguments,
    number: usize,
    name: &str,
    line: &progress::Line,
    mesh: Option<Arc<Mesh>>,
) -> Answer {
    let memory = arguments.budget.bytes();
    let _guard = budget::guard(name, arguments.budget.time(), memory);
    let mut source = match signals::reading(|| input::read(name, arguments.files.language)) {
        Ok(source) => input::Source {
            mathematical: arguments.files.mathematical,
            ..source
        },
        Err(e) => return failed(name, None, e),
    };
    let language = source.language.name();
    let (mut subject, warnings) = match input::parse(&mut source) {
        Ok(parsed) => parsed,
        Err(e) => return failed(name, Some(language), e),
    };
    let mut options = arguments.options();
    options.mesh = mesh;
    match arguments.directory() {
        Ok(directory) => options.checkpoint = directory.map(Arc::new),
        Err(why) => return failed(name, Some(language), InputError::new(why)),
    }
    let threads = match &mut subject {
        Subject::Program(program) => units::named(&arguments.threads, program),
        Subject::System(system) => {
            units::of_system(&arguments.threads, system).map(|()| Vec::new())
        }
    };
    match threads {
        Ok(threads) => options.threads = threads.into_iter().collect(),
        Err(why) => return failed(name, Some(language), InputError::new(why)),
    }
    let sink = |engine: &'static str, p| line.show(name, engine, p);
    let run = Run {
        cancel: Some(signals::interrupted()),
        sink: Some(&sink),
    };
    let checked = match &subject {
        Subject::Program(program) => wattle::check_with(program, &options, &run),
        Subject::System(system) => Ok(wattle::check::system(system, &options, &run)),
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(e) => {
            let message = match &e {
                CheckError::AnyNumber { message, hint, .. } => {
                    Diagnostic::error(e.span(), message.as_str()).hint(hint.as_str())
                }
                _ => Diagnostic::error(e.span(), e.to_string()),
            };
            let messages = match e.span().is_some() {
                true => vec![message],
                false => Vec::new(),
            };
            let error = InputError::of_text(e.to_string(), &messages, name, &source.text);
            return failed(name, Some(language), error);
        }
    };
    let mut answer = present(arguments, name, language, &checked);
    // Places in compiled code, in the words of its source.
    answer.texts = answer
        .texts
        .iter()
        .map(|t| format!("{t}{}", source.code_lines(t)))
        .collect();
    let json = &mut answer.json;
    for result in json.results.iter_mut().chain([&mut json.worst]) {
        if let Some(events) = &mut result.trace {
            output::locate(&source, events);
        }
    }
    answer.notes = warnings.join("\n") + &answer.notes;
    let obstacles = checked.findings().filter_map(|f| match &f.judged.verdict {
        Verdict::Undecided { reason, .. } => Some(output::obstacle(name, &source.text, reason)),
        _ => None,
    });
    let mut obstacles: Vec<String> = obstacles.collect();
    obstacles.dedup();
    answer.notes.push_str(&obstacles.concat());
    if arguments.report.is_some() {
        let instance = checked.instance.as_ref();
        let findings: Vec<_> = (checked.findings())
            .map(|f| (f, f.instance(instance).and_then(|i| drawing(f, i))))
            .collect();
        answer.section = html::Section::checked(number, name, &source.text, instance, &findings);
    }
    if let Some(why) = options.checkpoint.as_ref().and_then(|d| d.failure()) {
        let note = format!("warning: the checkpoint could not be written: {why}\n");
        answer.notes.push_str(&note);
    }
    match keep(arguments, &subject, &options, &checked) {
        Ok(notes) => answer.notes.push_str(&notes),
        Err(e) => {
            answer.notes.push_str(&format!("error: {e}\n"));
            answer.exit = answer.exit.max(Exit::Input);
        }
    }
    answer
}

/// The happens-before graph of a short run.
fn drawing(finding: &Finding, instance: &Instance) -> Option<String> {
    let trace = finding.trace().filter(|t| t.events.len() <= DRAWN)?;
    let order = wattle::picture::order(&finding.task(instance), trace);
    Some(order.ok()?.svg())
}

/// Longer runs make pictures nobody can read.
const DRAWN: usize = 200;

fn failed(name: &str, language: Option<&str>, e: InputError) -> Answer {
    let mut notes = e.messages.join("\n");
    if !notes.is_empty() {
        notes.push('\n');
    }
    notes.push_str(&format!("error: {name}: {}\n", e.reason));
    let language = language.map(String::from);
    Answer {
        exit: Exit::Input,
        texts: Vec::new(),
        exits: Vec::new(),
        notes,
        section: html::Section::failed(name, &e.reason, &e.messages),
        json: FileReport::failed(
            name.into(),
            language,
            e.reason,
            e.messages,
            e.diagnostics.iter().map(output::diagnostic).collect(),
        ),
    }
}

/// The answer about a file that was checked.
fn present(arguments: &Arguments, name: &str, language: &str, checked: &Checked) -> Answer {
    let style = output::style();
    let instance = checked.instance.as_ref();
    let mut exit = Exit::Holds;
    let (mut texts, mut notes, mut results) = (Vec::new(), String::new(), Vec::new());
    let mut exits = Vec::new();
    for result in &checked.results {
        exits.push(Exit::from(result));
        exit = exit.max(Exit::from(result));
        match result {
            Ok(finding) => {
                let mut words = match arguments.quiet {
                    true => text::headline(finding, style) + "\n",
                    false => text::finding(instance, finding, style),
                };
                if arguments.verbose {
                    words.push_str(&text::effort(finding));
                }
                texts.push(words);
                results.push(json::result(instance, finding));
            }
            Err(unsound) => {
                notes.push_str(&format!("error: {name}: {unsound}\n"));
                results.push(json::ResultReport {
                    reason: Some(unsound.to_string()),
                    ..json::ResultReport::default()
                });
            }
        }
    }
    Answer {
        exit,
        texts,
        exits,
        section: html::Section::failed(name, notes.trim_end(), &[]),
        notes,
        json: FileReport::new(name.into(), Some(language.into()), results),
    }
}

/// Writes the first trace and the first certificate where they were asked for; gives what a person
/// should know of what was not written.
fn keep(
    arguments: &Arguments,
    subject: &Subject,
    options: &Options,
    checked: &Checked,
) -> Result<String, String> {
    let write = |path: &PathBuf, text: Option<String>, what: &str| match text {
        Some(text) => std::fs::write(path, text + "\n")
            .map(|()| String::new())
            .map_err(|e| format!("{}: {e}", path.display())),
        None => Ok(format!(
            "note: there is no {what}: {} was not written\n",
            path.display()
        )),
    };
    let mut notes = String::new();
    if let Some(path) = &arguments.trace {
        let run = |f: &Finding| {
            let instance = f.instance(checked.instance.as_ref())?;
            // A run of some number of threads has to say which.
            let counts = match subject {
                Subject::Program(program) => families::counts_of(program, options, instance),
                Subject::System(_) => options.counts(),
            };
            if let (Some(lasso), Some(task)) = (f.lasso(), f.live_task(instance)) {
                return Some(EvidenceFile::of_live(&task, &counts, lasso.clone()).to_json());
            }
            let task = f.task(instance);
            Some(EvidenceFile::new(&task, &counts, f.trace()?.clone()).to_json())
        };
        notes += &write(path, checked.findings().find_map(run), "run to show")?;
    }
    if let Some(path) = &arguments.certificate {
        let mut text = None;
        // A proof that answers for a stronger model is about a weaker one, where it is found too.
        let own = |f: &&Finding| f.proved_under.is_none();
        let mut own: Vec<&Finding> = checked.findings().filter(own).collect();
        // That there are no faults is of less interest than what was asked.
        own.sort_by_key(|f| f.question.is_none() && f.live.is_none());
        if let Some((f, c)) = own.into_iter().find_map(|f| Some((f, certificate(f)?))) {
            text = match (c, &checked.instance) {
                _ if families::is_open(subject, options) => {
                    Some(families::kept(subject, options, f, c)?.to_json())
                }
                (_, None) => None,
                (Certificate::Components(_) | Certificate::Returning(_), Some(instance)) => {
                    f.live_task(instance).map(|task| {
                        EvidenceFile::of_live(&task, &options.counts(), c.clone()).to_json()
                    })
                }
                (_, Some(instance)) => {
                    let task = f.task(instance);
                    let flags = [signals::interrupted()];
                    let control = Control::unlimited()
                        .with_timeout(options.timeout)
                        .with_memory(options.memory)
                        .with_cancel(&flags);
                    let c = write_down(&task, c, &control);
                    Some(EvidenceFile::new(&task, &options.counts(), c).to_json())
                }
            };
        }
        notes += &write(path, text, "proof")?;
    }
    Ok(notes)
}

fn certificate(finding: &Finding) -> Option<&Certificate> {
    match &finding.judged.verdict {
        Verdict::Holds {
            proof: Proof::Certificate(c),
            ..
        }
        | Verdict::HoldsIf {
            proof: Proof::Certificate(c),
            ..
        }
        | Verdict::Violated {
            because: Broken::NeverReached(c),
        } => Some(c),
        _ => None,
    }
}

//! `wattle test`: do programs answer as their headers, or a `wattle.toml`, say they do?

mod config;
mod control;
mod report;

use super::batch::{Files, not_begun};
use super::budget::{self, Budget};
use super::exit::Exit;
use super::format::{Format, Formatted};
use super::subject;
use super::{output, progress, signals};
use clap::Args;
use config::Wanted;
use report::{Case, Outcome, Tested};
use std::collections::BTreeMap;
use wattle::expect::{self, Answer, Expectations};
use wattle::input::{InputError, Subject};
use wattle::{CheckError, Checked, MemoryModel, Options, Run, ThreadCount, Verdict};
use wattle_report::text;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    files: Files,
    /// Negative control: take out each fence, `lock` and exchange of what holds in turn, and want a
    /// violation
    #[arg(long)]
    control: bool,
    #[command(flatten)]
    budget: Budget,
    #[command(flatten)]
    format: Formatted,
    /// Only what is not as expected, and the summary
    #[arg(long, short)]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Exit {
    let format = arguments.format.get();
    if format == Format::Sarif {
        output::note("error: a test has no SARIF form; `wattle check --format sarif` has\n");
        return Exit::Input;
    }
    let config = match config::read(&arguments.files.files) {
        Ok(config) => config,
        Err((file, why)) => {
            output::error(&file, &why, &[]);
            return Exit::Input;
        }
    };
    let mut batch = arguments.files.batch();
    // A directory may hold nothing but its `wattle.toml`.
    for file in config.keys() {
        if batch.files.contains(file) {
            continue;
        }
        batch.errors.retain(|(d, _)| !file.starts_with(d.as_str()));
        batch.files.push(file.clone());
    }
    batch.files.sort();
    signals::listen();
    let line = progress::Line::new(arguments.quiet || format != Format::Text);
    let mut report = report::Report::new(format, arguments.quiet);
    for (name, error) in &batch.errors {
        report.add(Tested::broken(name, error));
    }
    let work = |_: usize, name: &str| one(arguments, config.get(name), name, &line);
    let rest = batch.in_order(arguments.files.jobs, work, |_, tested| report.add(tested));
    report.finish(batch.files.is_empty()).max(not_begun(rest))
}

/// One file, all that is expected of it.
fn one(
    arguments: &Arguments,
    configured: Option<&Wanted>,
    name: &str,
    line: &progress::Line,
) -> Tested {
    let wanted = configured.cloned().unwrap_or_default();
    let timeout = wanted.timeout.or(arguments.budget.time());
    let guard = budget::guard(name, timeout, arguments.budget.bytes());
    let files = &arguments.files;
    let (source, subject, _) = match subject::load(name, files.language, files.mathematical) {
        Ok(loaded) => loaded,
        Err(e) => return Tested::broken(name, &e),
    };
    let said =
        expect::of_text(&source.text).and_then(|own| Ok((own, expect::fairness(&source.text)?)));
    let (own, fairness) = match said {
        Ok(said) => said,
        Err(why) => return Tested::broken(name, &InputError::new(why)),
    };
    let expected: Expectations = match wanted.expect.is_empty() {
        true => own,
        false => wanted.expect.clone(),
    };
    let models: Vec<MemoryModel> = (MemoryModel::ALL.into_iter())
        .filter(|m| expected.keys().any(|(_, k)| k == m))
        .filter(|m| wanted.models.as_ref().is_none_or(|w| w.contains(m)))
        .collect();
    let options = Options {
        models: models.clone(),
        threads: (wanted.threads.iter())
            .map(|(n, c)| (n.clone(), ThreadCount::Fixed(*c)))
            .collect::<BTreeMap<_, _>>(),
        timeout,
        memory: arguments.budget.bytes(),
        budget: wanted.budget.or(arguments.budget.work()),
        deadlock: wanted.deadlock || source.text.contains("deadlock: yes"),
        fairness,
        // What headers say of counters is said for as long as they last.
        assume_no_wrap: true,
        explain: false,
        ..Options::default()
    };
    let sink = |engine: &'static str, p| line.show(name, engine, p);
    let run = Run {
        cancel: Some(signals::interrupted()),
        sink: Some(&sink),
    };
    let checked = match check(&subject, &options, &run) {
        Ok(checked) => checked,
        Err(e) => return Tested::broken(name, &InputError::new(e.to_string())),
    };
    let mut tested = Tested::new(name);
    let per_model = checked.results.len() / models.len().max(1);
    for (i, result) in checked.results.iter().enumerate() {
        let (model, property) = (models[i / per_model.max(1)], i % per_model.max(1));
        let Some(expected) = expected.get(&(property, model)) else {
            continue;
        };
        tested.cases.push(Case {
            name: match per_model {
                1 => model.keyword().to_string(),
                _ => format!("{} property {}", model.keyword(), property + 1),
            },
            expected: Some(expected.answer),
            outcome: match result {
                Err(unsound) => Outcome::Unsound(unsound.to_string()),
                Ok(finding) => {
                    let got = text::headline(finding, text::Style::PLAIN);
                    match (&finding.judged.verdict, expected.answer) {
                        (Verdict::Holds { .. }, Answer::Holds)
                        | (Verdict::Violated { .. }, Answer::Violated) => Outcome::AsExpected,
                        (Verdict::Holds { .. } | Verdict::Violated { .. }, _) => {
                            Outcome::Wrong(got)
                        }
                        // The header says that this cannot be decided yet.
                        _ if !expected.notes.is_empty() => Outcome::AsExpected,
                        _ => Outcome::Undecided(got),
                    }
                }
            },
            seconds: result.as_ref().map_or(0.0, |f| f.seconds),
        });
    }
    if let (true, Subject::Program(program)) = (arguments.control, &subject) {
        let holds = |m: &&MemoryModel| {
            let mine = expected.iter().filter(|((_, k), _)| k == *m);
            mine.into_iter().all(|(_, e)| e.answer == Answer::Holds)
        };
        let models: Vec<MemoryModel> = models.iter().filter(holds).copied().collect();
        drop(guard);
        let controls = control::cases(name, program, &models, &options, &run);
        tested.cases.extend(controls);
    }
    tested
}

fn check(subject: &Subject, options: &Options, run: &Run<'_>) -> Result<Checked, CheckError> {
    if options.models.is_empty() {
        let (instance, results) = (None, Vec::new());
        return Ok(Checked { instance, results });
    }
    match subject {
        Subject::Program(program) => wattle::check_with(program, options, run),
        Subject::System(system) => Ok(wattle::check::system(system, options, run)),
    }
}

//! `wattle litmus`: every final state of litmus tests, with herd's summary.

use super::exit::Exit;
use super::models::{self, Model};
use super::{budget::Budget, output, units};
use clap::Args;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Instant;
use wattle::MemoryModel;
use wattle::input::{self, InputError, InputLanguage, Source};
use wattle_litmus::{Answer, NoAnswer, Summary, answer_by_traces, answer_by_vectors, answer_with};
use wattle_syntax::litmus::{ParsedLitmus, Quantifier, parse_test};
use wattle_syntax::{Language, Severity};

#[derive(Debug, Args)]
pub struct Arguments {
    /// Litmus tests, or directories of them (`-` for standard input)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,
    /// The memory model, or several with commas between them
    #[arg(
        long,
        short,
        value_enum,
        value_delimiter = ',',
        value_name = "MODEL,…",
        default_value = "tso"
    )]
    model: Vec<Model>,
    #[command(flatten)]
    budget: Budget,
    /// Which states the search leaves out
    #[arg(long, value_enum, default_value_t = units::Reduced::Persistent)]
    reduce: units::Reduced,
    /// With herd's `Time` line too, the one line that differs from run to run
    #[arg(long, conflicts_with = "json")]
    time: bool,
    /// Print one JSON object per test
    #[arg(long)]
    json: bool,
    /// Only the line with the `Observation` of each test
    #[arg(long, short, conflicts_with = "time")]
    quiet: bool,
}

pub fn run(arguments: &Arguments) -> Exit {
    let budget = &arguments.budget;
    let (files, errors) = input::expand(&arguments.files);
    let given = |f: &String| arguments.files.contains(f);
    // A directory may hold programs in other languages too; they are no litmus tests.
    let files: Vec<&String> = files.iter().filter(|f| given(f) || is_litmus(f)).collect();
    let mut exit = Exit::Holds;
    let mut objects = Vec::new();
    for (name, error) in &errors {
        objects.push(complain(name, error));
        exit = Exit::Input;
    }
    if files.is_empty() && errors.is_empty() {
        let none = InputError::new("there are no litmus tests here");
        objects.push(complain(&arguments.files.join(" "), &none));
        exit = Exit::Input;
    }
    let models = models::named(&arguments.model);
    let mut first = true;
    for name in files {
        let (parsed, hash) = match read(name) {
            Ok(read) => read,
            Err(error) => {
                objects.push(complain(name, &error));
                exit = exit.max(Exit::Input);
                continue;
            }
        };
        for model in &models {
            let started = Instant::now();
            let found = (budget).within(name, true, |control| match arguments.reduce {
                units::Reduced::Traces => answer_by_traces(&parsed, *model, control),
                units::Reduced::Cartesian => answer_by_vectors(&parsed, *model, control),
                reduce @ (units::Reduced::None
                | units::Reduced::Local
                | units::Reduced::Persistent) => {
                    answer_with(&parsed, *model, reduce.into(), control)
                }
            });
            exit = exit.max(exit_of(&found));
            if arguments.json {
                objects.push(object(name, *model, &found));
                continue;
            }
            let text = match &found {
                Ok(found) if arguments.quiet => {
                    observation(found, (models.len() > 1).then_some(*model))
                }
                Ok(found) => {
                    let time = (arguments.time).then(|| started.elapsed().as_secs_f64());
                    text(found, time, hash.as_deref())
                }
                Err(why) => {
                    output::error(name, &why.to_string(), &[]);
                    continue;
                }
            };
            let apart = !arguments.quiet && !std::mem::take(&mut first);
            let gap = if apart { "\n" } else { "" };
            // Herd's lines do not say it.
            let on = match models.len() {
                _ if arguments.quiet => String::new(),
                1 => String::new(),
                _ => format!("{model}\n"),
            };
            if !output::answer(&format!("{gap}{on}{text}")) {
                return exit;
            }
        }
    }
    if arguments.json {
        let text = match (arguments.files.as_slice(), objects.as_slice()) {
            ([one], [object]) if !std::path::Path::new(one).is_dir() => {
                serde_json::to_string_pretty(object)
            }
            (_, all) => serde_json::to_string_pretty(all),
        };
        output::answer(&format!("{}\n", text.unwrap_or_default()));
    }
    exit
}

/// Says what is wrong with an input, and gives the JSON object that stands for it.
fn complain(name: &str, error: &InputError) -> Value {
    output::error(name, &error.reason, &error.messages);
    let diagnostics = error.diagnostics.iter().map(output::diagnostic);
    let mut value = json!({
        "file": name,
        "error": error.reason,
        "reason": error.reason,
        "diagnostics": diagnostics.collect::<Vec<_>>(),
    });
    output::originated("litmus", &mut value);
    value
}

fn is_litmus(name: &str) -> bool {
    let path = std::path::Path::new(name);
    InputLanguage::from_path(path) == Some(InputLanguage::Program(Language::Litmus))
}

/// The test, and its hash if the file has one in its head.
fn read(name: &str) -> Result<(ParsedLitmus, Option<String>), InputError> {
    let language = Some(InputLanguage::Program(Language::Litmus));
    let Source { text, name, .. } = input::read(name, language)?;
    let parsed = parse_test(&text);
    let is_error = |d: &&wattle_syntax::Diagnostic| d.severity == Severity::Error;
    let errors = parsed.diagnostics.iter().filter(is_error).count();
    if errors == 0 && parsed.test.is_some() {
        let head = text
            .lines()
            .take_while(|l| !l.trim_start().starts_with('{'));
        let hash = head
            .into_iter()
            .find_map(|l| l.trim().strip_prefix("Hash="));
        return Ok((parsed, hash.map(String::from)));
    }
    let reason = match errors {
        1 => "1 error".to_string(),
        n => format!("{n} errors"),
    };
    Err(InputError::of_text(
        reason,
        &parsed.diagnostics,
        &name,
        &text,
    ))
}

fn exit_of(found: &Result<Answer, NoAnswer>) -> Exit {
    match found {
        Err(_) => Exit::Undecided,
        Ok(found) if found.limits.is_some() => Exit::Undecided,
        Ok(found) if found.summary.holds() => Exit::Holds,
        Ok(_) => Exit::Violated,
    }
}

/// Herd's lines; what a search that was cut off may have missed is said first.
fn text(found: &Answer, time: Option<f64>, hash: Option<&str>) -> String {
    let mut out = match &found.limits {
        None => found.summary.to_string(),
        Some(limits) => format!(
            "only up to {} buffered stores (NOT every final state): {}\n{}",
            limits.buffered_stores, limits.cause, found.summary
        ),
    };
    if let Some(seconds) = time {
        let _ = writeln!(out, "Time {} {seconds:.2}", found.summary.name);
    }
    // Herd computes it from the test as it reads it; ours is what the file says of itself.
    if let Some(hash) = hash {
        let _ = writeln!(out, "Hash={hash}");
    }
    out
}

/// One line of a test: what was observed, on which memory model if there are several, and what it is worth.
fn observation(found: &Answer, model: Option<MemoryModel>) -> String {
    let s = &found.summary;
    let on = model.map_or(String::new(), |m| format!("{m}: "));
    let cut = match found.limits {
        None => "",
        Some(_) => " (NOT every final state)",
    };
    format!(
        "{on}Observation {} {} {} {}{cut}\n",
        s.name,
        s.observation(),
        s.positive,
        s.negative
    )
}

fn object(file: &str, model: MemoryModel, found: &Result<Answer, NoAnswer>) -> Value {
    let mut value = match found {
        Err(why) => {
            json!({ "file": file, "model": model, "error": why.to_string(), "reason": why.to_string() })
        }
        Ok(found) => {
            let s = &found.summary;
            json!({
                "file": file,
                "name": s.name,
                "model": model,
                "states": s.states.len(),
                "final_states": s.states.iter().map(|row| state(s, row)).collect::<Vec<_>>(),
                "quantifier": match s.quantifier {
                    Quantifier::Exists => "exists",
                    Quantifier::NotExists => "~exists",
                    Quantifier::Forall => "forall",
                },
                "condition": s.condition,
                "holds": s.holds(),
                "observation": s.observation().to_string(),
                "positive": s.positive,
                "negative": s.negative,
                "complete": found.limits.is_none(),
            })
        }
    };
    output::originated("litmus", &mut value);
    value
}

/// Numbers are numbers; an address is the name of its location.
fn state(summary: &Summary, row: &[i64]) -> Value {
    let fields = summary.items.iter().zip(row).map(|(item, value)| {
        let shown = summary
            .location(*value)
            .map_or_else(|| Value::from(*value), Value::from);
        (item.clone(), shown)
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

//! Feeds broken texts to every parser for a while.
//!
//! ```text
//! cargo run --release -p wattle-random --example fuzz -- SECONDS [SEED] [FOLDER…]
//! ```
//!
//! The folders (by default `examples`) give texts of every language by their extension; random
//! programs are added for `.wtl`. A parser must not panic, must say why where it gives no program,
//! and what it gives must be valid, canonical, and the same after printing and parsing.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wattle_model::print::to_wtl;
use wattle_model::validate;
use wattle_random::{Rng, Shape, mutate, program, wild};
use wattle_syntax::{Language, Severity, parse};

/// Reading a text of this size takes a parser well under this long, even on a busy machine.
const SLOW: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(60);
    let seed: u64 = arguments.next().and_then(|a| a.parse().ok()).unwrap_or(1);
    let mut folders: Vec<String> = arguments.collect();
    if folders.is_empty() {
        folders.push("examples".to_string());
    }
    let mut texts: Vec<(Language, String)> = Vec::new();
    folders
        .iter()
        .for_each(|f| collect(Path::new(f), &mut texts));
    for s in 0..40 {
        texts.push((Language::Wtl, to_wtl(&wild(s))));
        texts.push((Language::Wtl, to_wtl(&program(s, &Shape::default()))));
    }
    println!("seed {seed}, {} texts", texts.len());
    let languages: Vec<Language> = Language::ALL
        .iter()
        .copied()
        .filter(|l| texts.iter().any(|t| t.0 == *l))
        .collect();
    let each = Duration::from_secs(seconds) / u32::try_from(languages.len().max(1)).unwrap_or(1);
    for language in languages {
        let own: Vec<&str> = texts
            .iter()
            .filter(|t| t.0 == language)
            .map(|t| t.1.as_str())
            .collect();
        let mut rng = Rng::new(seed);
        let (started, mut tried, mut good) = (Instant::now(), 0u64, 0u64);
        while started.elapsed() < each {
            let text = own[rng.below(own.len())];
            let text = mutate(text, &mut rng);
            tried += 1;
            match survives(language, &text) {
                Ok(parsed) => good += u64::from(parsed),
                Err(why) => {
                    println!("{}: {why}\n--- text\n{text}\n---", language.name());
                    return ExitCode::FAILURE;
                }
            }
        }
        println!(
            "{}: {tried} texts, {good} of them programs",
            language.name()
        );
    }
    ExitCode::SUCCESS
}

fn collect(folder: &Path, texts: &mut Vec<(Language, String)>) {
    let Ok(entries) = fs::read_dir(folder) else {
        println!("skipped: {} is not here", folder.display());
        return;
    };
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, texts);
            continue;
        }
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("");
        let language = Language::from_extension(extension);
        if let (Some(language), Ok(text)) = (language, fs::read_to_string(&path)) {
            texts.push((language, text));
        }
    }
}

/// Whether it was a program, or what is wrong with the parser.
fn survives(language: Language, text: &str) -> Result<bool, String> {
    let started = Instant::now();
    let parsed = parse(language, text);
    if started.elapsed() > SLOW {
        return Err(format!("took {:?}", started.elapsed()));
    }
    let _ = parsed.render("fuzz", text);
    let errors = parsed
        .diagnostics
        .iter()
        .any(|d| d.severity == Severity::Error);
    let Some(program) = parsed.program else {
        return if errors {
            Ok(false)
        } else {
            Err("neither a program nor an error".to_string())
        };
    };
    if errors {
        return Err("a program in spite of errors".to_string());
    }
    if let Some(broken) = validate(&program).first() {
        return Err(format!(
            "an invalid program: rule {}: {broken}",
            broken.rule
        ));
    }
    if program.canonical() != program {
        return Err("the program is not canonical".to_string());
    }
    let printed = to_wtl(&program);
    match parse(Language::Wtl, &printed).program {
        Some(again) if again.without_spans() == program.without_spans() => Ok(true),
        _ => Err(format!("printing and parsing changes it:\n{printed}")),
    }
}

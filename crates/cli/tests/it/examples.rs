//! Every example says in its header what it answers under each memory model:
//!
//! ```text
//! // expect: sc holds, tso violated, pso violated
//! // expect 2: sc holds, tso holds (explicit: bounded), pso holds
//! ```
//!
//! `expect 2` is about the second property. A note in parentheses is what the engine named gives
//! instead, because it cannot do better; no engine may ever contradict the answer itself. A line
//! `threads: 4` says how many threads a family of any number is looked at with (two, if nothing is said),
//! `assume: no-wrap` says that the answer takes for granted that numbers do not wrap around. Evidence is
//! replayed and audited on the way: a result whose evidence does not check fails here.

use crate::support::root;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wattle::input::{self, InputLanguage, Subject};
use wattle::{MemoryModel, Options, Run, Verdict};
use wattle_evidence::Progress;

/// States after which an engine is told to stop: a deterministic stand-in for a time limit.
const MAX_STATES: u64 = 400_000;
/// The same for engines asked one by one, which may give up early here.
const MAX_STATES_ALONE: u64 = 20_000;
const MAX_POLLS: usize = 60;

/// Property (from 0) and model: the answer, and what engines may say instead.
type Expected = BTreeMap<(usize, MemoryModel), (String, Vec<String>)>;

fn expected(text: &str) -> Expected {
    let mut all = Expected::new();
    for line in text.lines() {
        let line = line.trim_start_matches(|c: char| !c.is_alphabetic());
        let Some(rest) = line.strip_prefix("expect") else {
            continue;
        };
        let Some((number, answers)) = rest.split_once(':') else {
            continue;
        };
        let property = match number.trim() {
            "" => 0,
            n => match n.parse::<usize>() {
                Ok(n) => n - 1,
                Err(_) => continue,
            },
        };
        for answer in answers.split(", ") {
            let mut words = answer.split_whitespace();
            let (Some(model), Some(verdict)) = (words.next(), words.next()) else {
                continue;
            };
            let model = MemoryModel::ALL.into_iter().find(|m| m.keyword() == model);
            let model = model.unwrap_or_else(|| panic!("no memory model in `{answer}`"));
            let notes = words.map(|w| w.trim_matches(['(', ')', ',']).to_string());
            let verdict = verdict.trim_matches(',').to_string();
            all.insert((property, model), (verdict, notes.collect()));
        }
    }
    all
}

fn name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Holds { .. } => "holds",
        Verdict::HoldsIf { .. } => "holds-if",
        Verdict::Violated { .. } => "violated",
        Verdict::Bounded { .. } => "bounded",
        Verdict::Undecided { .. } => "undecided",
    }
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.ends_with("machine-code") {
            // These need a compiler; `machine.rs` has it.
        } else if path.is_dir() {
            files(&path, found);
        } else if InputLanguage::from_path(&path).is_some() {
            found.push(path);
        }
    }
    found.sort();
}

/// What is wrong with one example's answers, by one engine or by the plan.
fn complaints(path: &Path, engine: Option<&str>) -> Vec<String> {
    let shown = path
        .strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string();
    let file = path.display().to_string();
    let mut source = match input::read(&file, None) {
        Ok(source) => source,
        Err(e) => return vec![format!("{shown}: {}", e.reason)],
    };
    let expected = expected(&source.text);
    if expected.is_empty() {
        return vec![format!("{shown}: no `expect:` line")];
    }
    let subject = match input::parse(&mut source) {
        // Only the plan knows what to do with systems of any number of threads.
        Ok((Subject::System(_), _)) if engine.is_some() => return Vec::new(),
        Ok((subject, _)) => subject,
        Err(e) => return vec![format!("{shown}: {}\n{}", e.reason, e.messages.join("\n"))],
    };
    // Families of any number of threads are looked at with two, or as many as the header says.
    let header = (source.text.lines()).find_map(|l| l.strip_prefix("// threads: "));
    let few = header.map_or(2, |n| n.trim().parse().expect("a number of threads"));
    let families = match &subject {
        Subject::Program(program) => program.families.as_slice(),
        Subject::System(_) => &[],
    };
    let open = families.iter();
    let open = open.filter(|f| f.count == wattle_model::Count::Any);
    let threads = open.map(|f| (f.name.clone(), wattle::ThreadCount::Fixed(few)));
    let options = Options {
        models: MemoryModel::ALL.to_vec(),
        engine: engine.map(String::from),
        threads: threads.collect(),
        deadlock: source.text.contains("deadlock: yes"),
        fairness: wattle::expect::fairness(&source.text).expect("a fairness"),
        assume_no_wrap: source.text.contains("assume: no-wrap"),
        explain: engine.is_none(),
        ..Options::default()
    };
    let enough = AtomicBool::new(false);
    let polls = AtomicUsize::new(0);
    let sink = |worker: &'static str, p: Progress| {
        let polled = polls.fetch_add(1, Ordering::Relaxed);
        let spent = match engine {
            None => worker != "audit" && p.states > MAX_STATES,
            Some(_) => p.states > MAX_STATES_ALONE || polled > MAX_POLLS,
        };
        if spent {
            enough.store(true, Ordering::Relaxed);
        }
    };
    let mut wrong = Vec::new();
    for model in MemoryModel::ALL {
        enough.store(false, Ordering::Relaxed);
        polls.store(0, Ordering::Relaxed);
        let run = Run {
            cancel: Some(&enough),
            sink: Some(&sink),
        };
        let options = Options {
            models: vec![model],
            ..options.clone()
        };
        let checked = match &subject {
            Subject::Program(program) => wattle::check_with(program, &options, &run),
            Subject::System(system) => Ok(wattle::check::system(system, &options, &run)),
        };
        let checked = match checked {
            Ok(checked) => checked,
            Err(e) => return vec![format!("{shown}: {e}")],
        };
        for (i, result) in checked.results.iter().enumerate() {
            let Some((answer, notes)) = expected.get(&(i, model)) else {
                wrong.push(format!(
                    "{shown}: nothing expected of property {} on {model}",
                    i + 1
                ));
                continue;
            };
            let finding = match result {
                Ok(finding) => finding,
                Err(unsound) => {
                    wrong.push(format!("{shown} on {model}: {unsound}"));
                    continue;
                }
            };
            let got = name(&finding.judged.verdict);
            let excused = engine.is_some() || !notes.is_empty();
            let decided = matches!(got, "holds" | "violated");
            if got != answer && (decided || !excused) {
                let verdict = &finding.judged.verdict;
                wrong.push(format!(
                    "{shown} on {model}: {got} by {}, expected {answer}\n{verdict:.200?}",
                    finding.engine
                ));
            }
        }
    }
    wrong
}

fn all(engine: Option<&str>) {
    let mut found = Vec::new();
    files(&root().join("examples"), &mut found);
    assert!(found.len() >= 40, "only {} examples", found.len());
    let wrong: Vec<String> = found.iter().flat_map(|p| complaints(p, engine)).collect();
    assert!(
        wrong.is_empty(),
        "{} complaints:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn examples_answer_as_they_say() {
    all(None);
}

/// Engines that the plan asks late or never must not contradict it either.
#[test]
fn no_engine_contradicts_an_example() {
    for engine in wattle::plan::names() {
        if engine != "explicit" && engine != "reference" {
            all(Some(engine));
        }
    }
}

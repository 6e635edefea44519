//! The verdicts of the suites, where they are there.

use std::path::{Path, PathBuf};
use wattle_auditor::{Solvers, audit_system};
use wattle_evidence::Control;
use wattle_memory::MemoryModel;
use wattle_params::certificate::certificate;
use wattle_params::lower::lower;
use wattle_params::{Options, Outcome, check, replays};

/// The file names a thread constant and its bad condition is not symmetric: for the reading "some
/// two different threads", one step reaches it.
const MISJUDGED: [&str; 1] = ["exp__minimal.cub"];

fn suite(folder: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/suites")
        .join(folder);
    if !path.is_dir() {
        println!("skipped: suite {folder} is not here");
        return None;
    }
    Some(path)
}

/// Compares one column of expected.csv with our verdicts.
fn compare(folder: &str, column: usize, model: MemoryModel) {
    let Some(path) = suite(folder) else { return };
    let table = std::fs::read_to_string(path.join("expected.csv")).unwrap_or_default();
    for row in table.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let (file, expected) = (fields[0], fields[column]);
        if MISJUDGED.contains(&file) {
            continue;
        }
        let verdict = verdict(&path.join(file), model);
        assert_eq!(verdict, expected, "{file} under {model}");
    }
}

/// What is found out about a file, audited or replayed.
fn verdict(file: &Path, model: MemoryModel) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let Some(system) = wattle_syntax::cubicle::parse(&text).system else {
        panic!("{} does not parse", file.display());
    };
    let polls = std::cell::Cell::new(0usize);
    let stop = |held: usize| {
        polls.set(polls.get() + usize::from(held > 0));
        polls.get() > 5000
    };
    let (outcome, _) = check(&system, model, Options::default(), &stop);
    match outcome {
        Outcome::Holds(cubes) => {
            let cubes = certificate(&system, model, &cubes);
            let (own, control) = (Solvers::own(), Control::unlimited());
            let sound = audit_system(&own, &system, model, &cubes, &control);
            assert!(sound.is_ok(), "{} {model} {sound:?}", file.display());
            "holds".into()
        }
        Outcome::Violated(run) => {
            assert!(replays(&system, model, &run), "{} {model}", file.display());
            "violated".into()
        }
        Outcome::Undecided(why) => why,
        Outcome::Refused(u) => u.message,
    }
}

#[test]
fn weak_memory_suite_under_tso_and_sc() {
    compare("cubicle-w", 1, MemoryModel::Tso);
    compare("cubicle-w", 2, MemoryModel::Sc);
}

#[test]
fn probes_where_others_are_wrong() {
    compare("cubicle-w/probes", 1, MemoryModel::Tso);
}

#[test]
fn classic_suite_under_sc() {
    compare("cubicle-sc", 1, MemoryModel::Sc);
}

/// Threads and data that `init` leaves open: small instances go deep all the same.
#[test]
fn a_directory_with_data_under_sc() {
    let Some(path) = suite("cubicle-more") else {
        return;
    };
    let verdict = verdict(&path.join("flash2_exclusive.cub"), MemoryModel::Sc);
    assert_eq!(verdict, "holds");
}

/// Broken, but the search is too long for a test.
const LONG: [(&str, MemoryModel); 1] = [("filter-lock-broken.wtl", MemoryModel::Pso)];

/// Computed addresses, remainders, and numbers of threads compared with others than none and all: refused here, and left to
/// others.
const FOR_OTHERS: [&str; 9] = [
    "latch.wtl",
    "latch-broken.wtl",
    "slots.wtl",
    "slots-broken.wtl",
    "barrier-count-broken.wtl",
    "barrier-reuse.wtl",
    "barrier-reuse-broken.wtl",
    "parity-lock.wtl",
    "parity-lock-broken.wtl",
];

#[test]
fn broken_examples_for_any_number_of_threads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/families");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the examples").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(entry.path()).expect("a readable file");
        let parsed = wattle_syntax::parse(wattle_syntax::Language::Wtl, &text);
        let program = parsed
            .program
            .unwrap_or_else(|| panic!("{name} does not parse"));
        let lowered = lower(&program, Some(0));
        assert_eq!(
            lowered.is_err(),
            FOR_OTHERS.contains(&name.as_str()),
            "{name}"
        );
        let Ok(lowered) = lowered else { continue };
        // What needs more threads than a few is found with whole instances.
        if text.contains("// threads: ") {
            continue;
        }
        let line = text.lines().find_map(|l| l.split_once("expect: "));
        let (_, line) = line.unwrap_or_else(|| panic!("{name} expects nothing"));
        for model in MemoryModel::ALL {
            let wanted = format!("{} violated", model.to_string().to_lowercase());
            let violated = line.contains(&wanted);
            if !violated || LONG.contains(&(name.as_str(), model)) {
                continue;
            }
            seen += 1;
            let polls = std::cell::Cell::new(0usize);
            let stop = |_: usize| {
                polls.set(polls.get() + 1);
                polls.get() > 30_000
            };
            match check(&lowered.system, model, Options::default(), &stop).0 {
                Outcome::Violated(run) => {
                    assert!(replays(&lowered.system, model, &run), "{name} {model}");
                }
                other => panic!("{name} {model}: {other:?}"),
            }
        }
    }
    assert!(seen >= 15, "only {seen}");
}

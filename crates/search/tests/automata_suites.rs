//! The engine `explicit` on the suites `memorax` and `trencher/reach`, and on the examples in their
//! languages and in those of printz-2015 and calin-2016: the verdicts are the expected ones.

use std::path::{Path, PathBuf};
use wattle_evidence::{Answer, Control, Engine, Task};
use wattle_memory::MemoryModel;
use wattle_search::Explicit;
use wattle_syntax::{Language, parse};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `Some(true)` is violated, `None` undecided.
fn violated(path: &Path, language: Language, model: MemoryModel) -> Option<bool> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let parsed = parse(language, &text);
    let shown = parsed.render(&path.display().to_string(), &text);
    let program = parsed.program.unwrap_or_else(|| panic!("{shown}"));
    let instance = program.instance().expect("an instance");
    let questions = instance.questions.len();
    let mut undecided = false;
    for question in 0..questions.max(1) {
        let task = Task {
            instance: &instance,
            model,
            question: (question < questions).then_some(question),
            deadlock: false,
        };
        match Explicit::default().run(&task, &Control::unlimited()) {
            Answer::Reached { .. } => return Some(true),
            Answer::Unreachable { .. } => {}
            Answer::Bounded { .. } | Answer::Undecided { .. } => undecided = true,
        }
    }
    (!undecided).then_some(false)
}

fn check(path: &Path, language: Language, model: MemoryModel, expected: &str) {
    let found = violated(path, language, model);
    let shown = found.map(|v| if v { "violated" } else { "holds" });
    assert_eq!(shown, Some(expected), "{} on {model:?}", path.display());
}

/// Runs a suite whose first columns are the file, SC, TSO and (if `pso`) PSO. A blank is not known;
/// what holds on unbounded integers is not for this engine.
fn suite(folder: &str, language: Language, pso: bool) {
    let folder = root().join("../shared/suites").join(folder);
    let Ok(table) = std::fs::read_to_string(folder.join("expected.csv")) else {
        println!("skipped: the suite {} is not here", folder.display());
        return;
    };
    for line in table.lines().skip(1) {
        let mut columns = line.split(',');
        let path = folder.join(columns.next().unwrap_or_default());
        let unbounded = line.contains(",integer,");
        let models = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];
        for model in models.into_iter().take(if pso { 3 } else { 2 }) {
            let expected = columns.next().unwrap_or_default();
            if !(expected.is_empty() || unbounded && expected == "holds") {
                check(&path, language, model, expected);
            }
        }
    }
}

#[test]
fn memorax() {
    suite("memorax", Language::Rmm, true);
}

#[test]
fn trencher_reachability() {
    suite("trencher/reach", Language::Trencher, false);
}

/// Examples say `expect: sc holds, tso violated, …` in a comment; ` (explicit: undecided)` after a
/// verdict is for the other engines. Where expectations are numbered there are demands on whole runs, which the
/// command line's test of all examples asks about.
fn examples(folder: &str, language: Language) {
    let folder = root().join("examples").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the examples");
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        if text.lines().any(|l| l.contains("expect 1: ")) {
            continue;
        }
        let line = text.lines().find_map(|l| l.split_once("expect: "));
        let (_, line) = line.unwrap_or_else(|| panic!("{} expects nothing", path.display()));
        for part in line.split(", ").filter(|p| !p.contains('(')) {
            let (model, expected) = part.split_once(' ').expect("a model and a verdict");
            let model = match model {
                "sc" => MemoryModel::Sc,
                "tso" => MemoryModel::Tso,
                "pso" => MemoryModel::Pso,
                other => panic!("{}: no memory model {other}", path.display()),
            };
            check(&path, language, model, expected);
        }
    }
}

#[test]
fn examples_in_rmm() {
    examples("rmm", Language::Rmm);
}

#[test]
fn examples_in_trencher() {
    examples("trencher", Language::Trencher);
}

#[test]
fn examples_in_bitchaku() {
    examples("bitchaku", Language::Bitchaku);
}

#[test]
fn examples_in_imp() {
    examples("imp", Language::Imp);
}

//! Every file of the suites `trencher`, `trencher/reach` and `memorax` parses, and what is printed
//! of it in `.wtl` parses to the same program.

use std::path::{Path, PathBuf};
use wattle_model::print::to_wtl;
use wattle_syntax::{Language, Severity, parse};

/// The files of a suite with this extension; empty (with a printed line) where the suite is absent.
fn suite(folder: &str, extension: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites");
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        println!("skipped: the suite {folder} is not here");
        return Vec::new();
    };
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .filter(|p| {
            let name = p.file_name().unwrap_or_default();
            name != "syntax.txt" && name != "grammar.txt"
        })
        .collect();
    paths.sort();
    paths
}

fn check(language: Language, folder: &str, extension: &str) {
    for path in suite(folder, extension) {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let name = path.display().to_string();
        let parsed = parse(language, &text);
        let shown = parsed.render(&name, &text);
        let errors = parsed
            .diagnostics
            .iter()
            .any(|d| d.severity == Severity::Error);
        assert!(!errors, "{shown}");
        let program = parsed.program.expect("a program without errors");
        program.instance().unwrap_or_else(|e| panic!("{name}: {e}"));
        let wtl = to_wtl(&program);
        let again = parse(Language::Wtl, &wtl);
        let shown = again.render("printed.wtl", &wtl);
        let again = again
            .program
            .unwrap_or_else(|| panic!("{name}\n{shown}\n{wtl}"));
        assert_eq!(
            again.without_spans(),
            program.without_spans(),
            "{name}\n{wtl}"
        );
    }
}

#[test]
fn trencher() {
    check(Language::Trencher, "trencher", "txt");
}

#[test]
fn trencher_reachability() {
    check(Language::Trencher, "trencher/reach", "txt");
}

#[test]
fn memorax() {
    check(Language::Rmm, "memorax", "rmm");
}

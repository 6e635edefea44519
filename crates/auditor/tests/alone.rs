//! The auditor depends on the program, the rules of a step, the crate of the proof checker and the types
//! of evidence, and these on nothing else of ours: on no engine, directly or by another crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The crates of ours that a crate depends on, without those for its tests.
fn depends(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).expect("a readable manifest");
    let mut section = String::new();
    let mut out = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line.to_string();
        } else if section.contains("dependencies")
            && !section.contains("dev-dependencies")
            && let Some(name) = line.split(['.', ' ', '=']).next()
            && name.starts_with("wattle")
        {
            out.push(name.to_string());
        }
    }
    out
}

#[test]
fn no_engine_is_near_the_auditor() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(&crates).expect("the crates") {
        let path = entry.expect("an entry").path();
        let manifest = path.join("Cargo.toml");
        if let (Some(name), true) = (path.file_name(), manifest.exists()) {
            let name = name.to_string_lossy();
            let name = match name.as_ref() {
                "wattle" => "wattle".to_string(),
                name => format!("wattle-{name}"),
            };
            all.insert(name, depends(&manifest));
        }
    }
    let mut near = BTreeSet::new();
    let mut next = vec!["wattle-auditor".to_string()];
    while let Some(name) = next.pop() {
        for one in &all[&name] {
            if near.insert(one.clone()) {
                next.push(one.clone());
            }
        }
    }
    let near: Vec<&str> = near.iter().map(String::as_str).collect();
    let wanted = [
        "wattle-evidence",
        "wattle-logic",
        "wattle-memory",
        "wattle-model",
    ];
    assert_eq!(near, wanted);
    // And no engine leans on the auditor: it finds its proofs alone.
    for engine in [
        "search",
        "traces",
        "robust",
        "coherent",
        "wsts",
        "predicates",
        "extrapolate",
        "params",
        "counting",
        "liveness",
    ] {
        let on = &all[&format!("wattle-{engine}")];
        assert!(!on.iter().any(|c| c == "wattle-auditor"), "{engine}");
    }
}

/// Front-ends, what is printed and measured, and the façade: they know no meaning of a step.
const WITHOUT: [&str; 10] = [
    "bench", "cli", "fuzz", "lsp", "machine", "marks", "report", "syntax", "wattle", "x86",
];

#[test]
fn wildcard_arms_are_denied_where_steps_have_a_meaning() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in fs::read_dir(&crates).expect("the crates") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        if let (Ok(text), false) = (
            fs::read_to_string(path.join("src/lib.rs")),
            WITHOUT.contains(&name.as_ref()),
        ) {
            assert!(text.contains("clippy::wildcard_enum_match_arm"), "{name}");
        }
    }
}

//! The systems of all examples are validated against their programs by the auditor, and those that are
//! known to be wrong are not.

use std::path::{Path, PathBuf};
use wattle_auditor::translation::{Translation, validate};
use wattle_auditor::{AuditError, Solvers};
use wattle_evidence::control::Control;
use wattle_model::{Count, Program};
use wattle_params::lower::{Lowered, lower};

fn validated(
    program: &Program,
    question: Option<usize>,
    lowered: &Lowered,
) -> Result<u64, AuditError> {
    let translation = Translation {
        program,
        property: question,
        system: &lowered.system,
        relation: lowered.relation(),
        assumptions: &lowered.assumptions(),
    };
    let result = validate(&Solvers::own(), &translation, &Control::unlimited());
    result.map(|a| a.checked)
}

/// The programs of a folder, with every family open.
fn programs(folder: &str) -> Vec<(String, Program)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let Ok(list) = std::fs::read_dir(&folder) else {
        println!("skipped: {} is not here", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = list.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let program = match path.extension().and_then(|e| e.to_str()) {
            Some("wtl") => wattle_syntax::wtl::parse(&text).program,
            Some("asm") => wattle_syntax::x86::parse(&text).program,
            _ => None,
        };
        let Some(mut program) = program else {
            continue;
        };
        for f in program
            .families
            .iter_mut()
            .filter(|f| f.count != Count::One)
        {
            f.count = Count::Any;
        }
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        all.push((name.to_string(), program));
    }
    all
}

/// Validates every system of the folder; gives those that were not, with the reason.
fn folder(folder: &str) -> (usize, Vec<(String, AuditError)>) {
    let (mut fine, mut not) = (0, Vec::new());
    for (name, program) in programs(folder) {
        let questions = match program.properties.len() {
            0 => vec![None],
            n => (0..n).map(Some).collect(),
        };
        for question in questions {
            let Ok(lowered) = lower(&program, question) else {
                continue;
            };
            match validated(&program, question, &lowered) {
                Ok(_) => fine += 1,
                Err(e) => {
                    println!("{name} {question:?}: {e}");
                    not.push((name.clone(), e));
                }
            }
        }
    }
    println!("{folder}: {fine} validated, {} not", not.len());
    (fine, not)
}

/// Not those that count threads, which are not treated, nor what the validator cannot show yet: values of
/// the filter lock that stay in their range only because of a loop's bound.
#[test]
fn systems_of_examples_are_validated() {
    for (name, least) in [
        ("examples/families", 16),
        ("examples/x86", 4),
        ("examples", 20),
        ("../shared/suites/families", 0),
    ] {
        let (fine, not) = folder(name);
        assert!(fine >= least, "{name}: only {fine}, {not:?}");
    }
}

/// What the program does and the system does not is found: a guard too many, another value, another
/// place, a store that is missing, a start or a violation that is not known.
#[test]
fn a_wrong_system_is_not_validated() {
    let text = "shared lock: 0..1, owner: t = none, flag[t]: 0..2;\n\
        thread t[*] { local r: 0..3, q: t = none; loop {\n\
        if cas(lock, 0, 1) == 1 { owner = self; q = owner; if q != none { r = flag[q]; }\n\
        critical: skip; flag[self] = r < 2 ? r + 1 : 0; owner = none; lock = 0; } } }\n\
        never t[i]@critical && t[j]@critical;\n";
    let program = wattle_syntax::wtl::parse(text).program.expect("a program");
    let lowered = lower(&program, Some(0)).expect("a system");
    let right = validated(&program, Some(0), &lowered);
    assert!(right.is_ok(), "{right:?}");
    let (mut wrong, mut updates, mut noticed) = (0, 0, 0);
    for n in 0..lowered.system.transitions.len() {
        let mut less = lowered.clone();
        less.system.transitions.remove(n);
        wrong += usize::from(validated(&program, Some(0), &less).is_err());
        for u in 0..lowered.system.transitions[n].updates.len() {
            let mut less = lowered.clone();
            less.system.transitions[n].updates.remove(u);
            updates += 1;
            noticed += usize::from(validated(&program, Some(0), &less).is_err());
        }
    }
    // Some are not needed: what a neighbouring transition does as well, or what breaks a thread.
    let all = lowered.system.transitions.len();
    println!("noticed: {wrong} of {all} transitions, {noticed} of {updates} updates");
    assert!(wrong > 0 && noticed > 0);
    let mut less = lowered.clone();
    less.system.bad.remove(0);
    assert!(validated(&program, Some(0), &less).is_err());
    let mut other = program.clone();
    other.regions[0].init = wattle_model::Init::All(wattle_model::Expr::Const(1));
    assert!(validated(&other, Some(0), &lowered).is_err());
    assert!(validated(&program, Some(0), &lowered).is_ok());
}

//! The verdicts of the suites, where they are there.

use std::path::{Path, PathBuf};
use wattle_evidence::{Control, audit_cubes};
use wattle_memory::MemoryModel;
use wattle_params::certificate::certificate;
use wattle_params::{Options, Outcome, check, replays};

/// The file names a thread constant and its bad condition is not symmetric: for the reading "some
/// two different threads", one step reaches it.
const MISJUDGED: [&str; 1] = ["exp__minimal.cub"];

/// Not decided within the budget of a test.
const HARD: [&str; 3] = [
    "flash_nodata.cub",
    "ricart_abdulla.cub",
    "ricart_abdulla_int.cub",
];

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
        if MISJUDGED.contains(&file) || HARD.contains(&file) {
            continue;
        }
        let text = std::fs::read_to_string(path.join(file)).unwrap_or_default();
        let Some(system) = wattle_syntax::cubicle::parse(&text).system else {
            panic!("{file} does not parse");
        };
        let polls = std::cell::Cell::new(0usize);
        let stop = |_: usize| {
            polls.set(polls.get() + 1);
            polls.get() > 5000
        };
        let (outcome, _) = check(&system, model, Options::default(), &stop);
        let verdict = match &outcome {
            Outcome::Holds(cubes) => {
                let cubes = certificate(&system, model, cubes);
                let sound = audit_cubes(&system, model, &cubes, &Control::unlimited());
                assert!(sound.is_ok(), "{file} {model} {sound:?}");
                "holds"
            }
            Outcome::Violated(run) => {
                assert!(replays(&system, model, run), "{file} {model}");
                "violated"
            }
            Outcome::Undecided(why) => why,
            Outcome::Refused(u) => &u.message,
        };
        assert_eq!(verdict, expected, "{file} under {model}");
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

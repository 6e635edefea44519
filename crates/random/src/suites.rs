//! Programs nobody here wrote, with expected answers, where they lie beside the project.

use std::path::{Path, PathBuf};

/// The folder of a suite; a line says so if it is not there.
pub fn suite(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/suites");
    let folder = root.join(name);
    if !folder.is_dir() {
        println!("skipped: the {name} suite is not here");
        return None;
    }
    Some(folder)
}

/// The rows of a table of comma-separated values, without its head; quotes protect commas.
pub fn rows(table: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(table).unwrap_or_default();
    text.lines().skip(1).map(fields).collect()
}

fn fields(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    out.push(field);
    out
}

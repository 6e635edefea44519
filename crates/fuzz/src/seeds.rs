//! Where mutation starts: the examples, and the suites if they are there.

use crate::target::Target;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longer files only slow the fuzzer down.
const LONGEST: u64 = 64 * 1024;

pub struct Seeds {
    pub texts: Vec<String>,
    /// Words and signs that occur in them, sorted.
    pub words: Vec<String>,
}

impl Seeds {
    pub fn load(target: Target) -> Seeds {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut paths = Vec::new();
        for folder in ["examples", "../shared/suites"] {
            collect(&root.join(folder), target, 0, &mut paths);
        }
        paths.sort();
        let texts = paths.iter().filter_map(|p| std::fs::read_to_string(p).ok());
        let mut texts: Vec<String> = texts.collect();
        texts.push(String::new());
        if target == Target::Object {
            let file = root.join("crates/machine/tests/data/locks.o");
            texts.extend(std::fs::read(file).ok().map(|bytes| hexadecimal(&bytes)));
        }
        let words: BTreeSet<&str> = texts.iter().flat_map(|t| words(t)).collect();
        let words = words.into_iter().map(str::to_string).collect();
        Seeds { texts, words }
    }
}

/// A line for sixteen bytes: changes of lines are changes of tables.
fn hexadecimal(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).map(|line| {
        let words: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn collect(folder: &Path, target: Target, depth: usize, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if depth < 4 {
                collect(&path, target, depth + 1, into);
            }
            continue;
        }
        let short = entry.metadata().is_ok_and(|m| m.len() <= LONGEST);
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        if short && target.reads(&folder.to_string_lossy(), &extension) {
            into.push(path);
        }
    }
}

/// Words, numbers and single signs.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let inside = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let end = match inside(first) {
            true => rest.find(|c| !inside(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, tail) = rest.split_at(end);
        rest = tail;
        Some(word)
    })
}

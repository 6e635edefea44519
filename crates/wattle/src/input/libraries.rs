//! Where Rust functions are that an object calls and does not have: in the libraries beside it, and in
//! those of the `rustc` on the path.
//!
//! Names of Rust functions tell which crate they are of, how it was built and by which compiler, so that a
//! library that has the name has the function that would be linked. Names of C tell nothing of the kind, and
//! are not looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Libraries that are not yet among those at hand and define one of the names; a name that several define is
/// not taken from any.
pub(super) fn of(missing: &BTreeSet<String>, at_hand: &[PathBuf]) -> Vec<PathBuf> {
    let wanted: BTreeSet<&str> = missing.iter().map(String::as_str).filter(is_rust).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let beside = at_hand
        .iter()
        .map(|p| p.parent().unwrap_or(Path::new("")).to_path_buf());
    let folders: BTreeSet<PathBuf> = beside.chain(of_rustc()).collect();
    let all: BTreeSet<PathBuf> = folders.iter().flat_map(|f| archives(f)).collect();
    let mut defined: BTreeMap<String, Vec<&PathBuf>> = BTreeMap::new();
    for library in all.iter().filter(|l| !at_hand.contains(l)) {
        let names = index(library).unwrap_or_default();
        for name in names.into_iter().filter(|n| wanted.contains(n.as_str())) {
            defined.entry(name).or_default().push(library);
        }
    }
    let only: BTreeSet<&PathBuf> = (defined.values())
        .filter(|by| by.len() == 1)
        .flatten()
        .copied()
        .collect();
    only.into_iter().cloned().collect()
}

fn is_rust(name: &&str) -> bool {
    name.starts_with("_ZN") && name.ends_with('E') || name.starts_with("_R")
}

/// Where the `rustc` on the path has its own libraries.
fn of_rustc() -> Option<PathBuf> {
    let mut rustc = Command::new("rustc");
    let done = rustc.args(["--print", "target-libdir"]).output().ok()?;
    let said = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| PathBuf::from(said.trim()))
}

fn archives(folder: &Path) -> Vec<PathBuf> {
    let here = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let Ok(all) = std::fs::read_dir(here) else {
        return Vec::new();
    };
    let names = all.flatten().map(|e| folder.join(e.file_name()));
    names
        .filter(|p| p.extension().is_some_and(|e| e == "rlib"))
        .collect()
}

/// Larger indices are of no library.
const MAX_INDEX: usize = 64 << 20;

/// The names an archive says it defines: its first member is a list of them.
fn index(archive: &Path) -> Option<Vec<String>> {
    let mut file = File::open(archive).ok()?;
    let mut head = [0; 68];
    file.read_exact(&mut head).ok()?;
    if !head.starts_with(b"!<arch>\n/ ") {
        return None;
    }
    let size: usize = std::str::from_utf8(&head[56..66])
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let mut bytes = vec![0; Some(size).filter(|n| (4..=MAX_INDEX).contains(n))?];
    file.read_exact(&mut bytes).ok()?;
    let (count, rest) = bytes.split_first_chunk::<4>()?;
    // Before the names stands where each one's member begins.
    let count = usize::try_from(u32::from_be_bytes(*count)).ok()?;
    let names = rest.get(count.checked_mul(4)?..)?;
    let names = names.split(|b| *b == 0).take(count);
    Some(
        names
            .map(|n| String::from_utf8_lossy(n).into_owned())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_rust_are_looked_for() {
        for name in ["memcpy", "abort", "__rust_alloc", "_Z3foov"] {
            assert!(!is_rust(&name), "{name}");
        }
        assert!(is_rust(&"_ZN3foo3bar17h0123456789abcdefE"));
        assert!(is_rust(&"_RNvCs1234_7mycrate3foo"));
    }

    #[test]
    fn indices_that_lie_are_none() {
        let folder = std::env::temp_dir().join(format!("wattle-index-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let head = |size: &str| format!("!<arch>\n/{:<47}{size:<10}`\n", "").into_bytes();
        let with = |size: &str, bytes: &[u8]| {
            let path = folder.join("libx.rlib");
            std::fs::write(&path, [head(size), bytes.to_vec()].concat()).unwrap();
            index(&path)
        };
        let right = [0, 0, 0, 1, 0, 0, 0, 68, b'f', 0];
        assert_eq!(with("10", &right), Some(vec!["f".to_string()]));
        assert_eq!(with("11", &right), None);
        assert_eq!(with("9999999999", &right), None);
        assert_eq!(with("-1", &right), None);
        assert_eq!(with("8", &[255; 8]), None);
        assert_eq!(archives(&folder).len(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

//! Puts the commit into `--version`, where the sources are those of a repository.

use std::path::Path;
use std::process::Command;

fn main() {
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let root = Path::new("../..");
    // A package has no repository around it, or somebody else's.
    let commit = root.join(".git").exists().then(commit).flatten();
    let full = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=WATTLE_VERSION={full}");
    println!("cargo::rerun-if-changed=build.rs");
    let head = root.join(".git/HEAD");
    if head.exists() {
        println!("cargo::rerun-if-changed={}", head.display());
    }
}

fn commit() -> Option<String> {
    let out = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output()
        .ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let commit = text.trim();
    (out.status.success() && !commit.is_empty()).then(|| commit.to_string())
}

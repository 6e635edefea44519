//! `cargo wattle`: compiles a crate's marked functions as they are shipped (optimised, one object, with
//! debug information) and checks them. Code for it stands behind `cfg(wattle)`.
//!
//! What follows `cargo wattle` goes to `wattle check`; `-p NAME` and `--features …` before it go to cargo:
//! `cargo wattle -p my-lock -- --timeout 60s`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use wattle::input::marked;

const USAGE: &str = "\
usage: cargo wattle [CARGO OPTIONS] [-- OPTIONS OF WATTLE CHECK]

Compiles the library of this crate with `--cfg wattle` and checks its functions `wattle_thread_NAME` (one
thread) and `wattle_threads_NAME` (any number of threads): those of one module together, each module by
itself. Exit codes are those of `wattle check`; of several modules, the worst.";

/// Wrong usage, or nothing could be compiled.
const INPUT: u8 = 2;

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    // As cargo calls it, the first word is its own name.
    if words.first().is_some_and(|w| w == "wattle") {
        words.remove(0);
    }
    if words.iter().any(|w| w == "--help" || w == "-h") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let (cargo, check) = match words.iter().position(|w| w == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (&words[..], &[][..]),
    };
    match compile(cargo) {
        Ok(object) => run(&object, check),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(INPUT)
        }
    }
}

/// Compiles the library into one object; where it is.
fn compile(arguments: &[String]) -> Result<PathBuf, String> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or(PathBuf::from("target"), PathBuf::from);
    let folder = std::path::absolute(target.join("wattle")).map_err(|e| e.to_string())?;
    // Beside the libraries of the crates it depends on: what it calls of them is found there.
    let beside = match triple(arguments) {
        Some(triple) => folder.join(triple).join("release/deps"),
        None => folder.join("release/deps"),
    };
    std::fs::create_dir_all(&beside).map_err(|e| format!("{}: {e}", beside.display()))?;
    // One object for each choice of package and features: cargo does not compile what is up to date.
    let choice: Vec<&str> = (arguments.iter())
        .flat_map(|a| a.split(|c: char| !c.is_ascii_alphanumeric()))
        .filter(|w| !w.is_empty())
        .collect();
    let name = ["crate"]
        .into_iter()
        .chain(choice)
        .collect::<Vec<_>>()
        .join("-");
    let object = beside.join(format!("wattle-{name}.o"));
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let flags = format!("{flags} --cfg wattle --check-cfg cfg(wattle)");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let status = Command::new(cargo)
        .args(["rustc", "--lib", "--release", "--quiet", "--target-dir"])
        .arg(&folder)
        .args(arguments)
        .args(["--", "-g", "-C", "codegen-units=1", "-C", "panic=abort"])
        .arg(format!("--emit=obj={}", object.display()))
        .env("RUSTFLAGS", flags.trim())
        .status()
        .map_err(|e| format!("cargo cannot be run: {e}"))?;
    match status.success() && object.is_file() {
        true => Ok(object),
        false if status.success() => Err("cargo made no object; is there a library?".to_string()),
        false if is_virtual(Path::new("Cargo.toml")) => Err(
            "cargo did not compile it; say which package of the workspace: `cargo wattle -p NAME`"
                .to_string(),
        ),
        false => Err("cargo did not compile the crate".to_string()),
    }
}

/// What follows `--target`.
fn triple(arguments: &[String]) -> Option<&str> {
    let at = arguments.iter().position(|a| a == "--target");
    let next = at.and_then(|at| arguments.get(at + 1)).map(String::as_str);
    next.or_else(|| arguments.iter().find_map(|a| a.strip_prefix("--target=")))
}

/// Whether a manifest is that of a workspace and of no package.
fn is_virtual(manifest: &Path) -> bool {
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    let has = |table: &str| text.lines().any(|l| l.trim() == table);
    has("[workspace]") && !has("[package]")
}

/// Checks the object with the `wattle` beside this program, or the one on the path.
fn run(object: &Path, arguments: &[String]) -> ExitCode {
    let tests = match marked::tests(&object.to_string_lossy()) {
        Ok(tests) => tests,
        Err(e) if e.reason.starts_with("no function is a thread") => {
            eprintln!(
                "error: the crate has nothing to check: write `#[unsafe(no_mangle)] pub extern \"C\" fn \
                 wattle_threads_NAME()` in a module behind `#[cfg(wattle)]`"
            );
            return ExitCode::from(INPUT);
        }
        Err(e) => {
            eprintln!("error: {}: {}", object.display(), e.reason);
            return ExitCode::from(INPUT);
        }
    };
    if let [_] = tests.as_slice() {
        return ExitCode::from(check(object, arguments));
    }
    let quiet = arguments.iter().any(|a| a.contains("json"));
    let mut codes = Vec::new();
    for test in &tests {
        let name = test.module.replace("::", "-");
        let file = object.with_extension(format!("{name}.wtl"));
        if let Err(e) = std::fs::write(&file, &test.text) {
            eprintln!("error: {}: {e}", file.display());
            return ExitCode::from(INPUT);
        }
        if !quiet {
            println!("module {}", test.module);
        }
        codes.push(check(&file, arguments));
        if !quiet {
            println!();
        }
    }
    if !quiet {
        let count = |code: u8| codes.iter().filter(|c| **c == code).count();
        let (ok, violated) = (count(0), count(1));
        let others = codes.len() - ok - violated;
        println!(
            "{} modules: {ok} ok, {violated} violated, {others} not decided",
            codes.len()
        );
    }
    // Nothing is worse than a mistake of ours, then of the input, then a violation.
    let worst = [4, 2, 1].into_iter().find(|c| codes.contains(c));
    let other = codes.into_iter().max().unwrap_or(INPUT);
    ExitCode::from(worst.unwrap_or(other))
}

/// Checks one file; the exit code.
fn check(file: &Path, arguments: &[String]) -> u8 {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|p| Some(p.parent()?.join("wattle")));
    let wattle = beside.filter(|p| p.is_file()).unwrap_or("wattle".into());
    let status = Command::new(wattle)
        .arg("check")
        .arg(file)
        .args(arguments)
        .status();
    match status {
        Ok(status) => status.code().map_or(4, |c| u8::try_from(c).unwrap_or(4)),
        Err(e) => {
            eprintln!("error: wattle cannot be run: {e}");
            INPUT
        }
    }
}

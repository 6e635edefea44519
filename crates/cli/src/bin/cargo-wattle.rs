//! `cargo wattle`: compiles a crate's marked functions as they are shipped (optimised, one object, with
//! debug information) and checks them. Code for it stands behind `cfg(wattle)`.
//!
//! What follows `cargo wattle` goes to `wattle check`; `-p NAME` and `--features …` before it go to cargo:
//! `cargo wattle -p my-lock -- --timeout 60s`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: cargo wattle [CARGO OPTIONS] [-- OPTIONS OF WATTLE CHECK]

Compiles the library of this crate with `--cfg wattle` and checks its functions `wattle_thread_NAME` (one
thread) and `wattle_threads_NAME` (any number of threads). Exit codes are those of `wattle check`.";

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
    let folder = target.join("wattle");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let folder = std::path::absolute(&folder).map_err(|e| e.to_string())?;
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
    let object = folder.join(format!("{name}.o"));
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
        false => Err("the crate does not compile".to_string()),
    }
}

/// Checks the object with the `wattle` beside this program, or the one on the path.
fn run(object: &Path, arguments: &[String]) -> ExitCode {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|p| Some(p.parent()?.join("wattle")));
    let wattle = beside.filter(|p| p.is_file()).unwrap_or("wattle".into());
    let status = Command::new(wattle)
        .arg("check")
        .arg(object)
        .args(arguments)
        .status();
    match status {
        Ok(status) => ExitCode::from(u8::try_from(status.code().unwrap_or(4)).unwrap_or(4)),
        Err(e) => {
            eprintln!("error: wattle cannot be run: {e}");
            ExitCode::from(INPUT)
        }
    }
}

//! Compiled code: the sources of examples/machine-code through the compilers of this machine, and what is
//! said of them compared with their headers.

use super::support::{Scratch, root, run};
use std::path::Path;
use std::process::Command;

/// Compiles a source beside its harnesses; false if there is no such compiler.
fn compiled(compiler: &str, flags: &[&str], source: &Path, object: &str) -> bool {
    let done = Command::new(compiler)
        .args(flags)
        .arg("-o")
        .arg(object)
        .arg(source)
        .output();
    match done {
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(
                done.status.success(),
                "{compiler} {}: {said}",
                source.display()
            );
            true
        }
        Err(_) => {
            println!("skipped: there is no {compiler} here");
            false
        }
    }
}

/// What the header says: the verdict on TSO, and words that must be in what is printed.
fn expected(text: &str) -> (String, Vec<String>) {
    let line = |word: &str| {
        let found = text
            .lines()
            .filter_map(|l| l.strip_prefix("// ")?.strip_prefix(word));
        found.map(|l| l.trim().to_string()).collect::<Vec<_>>()
    };
    let verdict = line("expect: tso").pop().expect("an `expect:` line");
    (verdict, line("shows:"))
}

fn check(source: &str, compiler: &str, flags: &[&str]) {
    let folder = root().join("examples/machine-code");
    let scratch = Scratch::new();
    let stem = source.rsplit_once('.').unwrap().0;
    if !compiled(
        compiler,
        flags,
        &folder.join(source),
        &scratch.path(&format!("{stem}.o")),
    ) {
        return;
    }
    let mut seen = 0;
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    names.sort();
    for path in names {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if !text.contains(&format!("object \"{stem}.o\"")) {
            continue;
        }
        seen += 1;
        let name = path.file_name().unwrap().to_str().unwrap();
        let file = scratch.file(name, &text);
        let (verdict, shows) = expected(&text);
        let ran = run(&["check", &file, "--timeout", "120s"]);
        let all = format!("{}{}", ran.out, ran.err);
        let code = match verdict.as_str() {
            "holds" => 0,
            "violated" => 1,
            "holds-if" => 3,
            "refused" => 2,
            other => panic!("{name}: `{other}` is no verdict"),
        };
        assert_eq!(ran.code, code, "{name} with {compiler} {flags:?}:\n{all}");
        for words in shows {
            assert!(
                all.contains(&words),
                "{name} with {compiler} {flags:?} lacks `{words}`:\n{all}"
            );
        }
    }
    assert!(seen > 0, "no harness for {source}");
}

#[test]
fn c_locks_at_o1() {
    check("locks.c", "gcc", &["-O1", "-g", "-c"]);
}

#[test]
fn c_locks_at_o2() {
    check("locks.c", "gcc", &["-O2", "-g", "-c"]);
}

#[test]
fn c_locks_of_clang() {
    check("locks.c", "clang", &["-O2", "-g", "-c"]);
}

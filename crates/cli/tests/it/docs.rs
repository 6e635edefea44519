//! Every command in the README and the tutorial is run, and says what the page says it does.
//!
//! A block marked ` ```wtl NAME ` or ` ```c NAME ` is a file; a line of a block marked ` ```sh ` is a command, with its exit
//! code in a comment (`# exit 1`; otherwise 0); every line of a ` ```text ` block is in what the commands
//! before it print, but for the number of blanks.

use crate::support::{Scratch, ran, root, wattle};
use std::path::Path;

/// A fenced block: what is behind the fence's mark, and the lines inside.
fn blocks(page: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(mark) if !inside => {
                all.push((mark.trim().to_string(), Vec::new()));
                inside = true;
            }
            Some(_) => inside = false,
            None if inside => {
                if let Some((_, lines)) = all.last_mut() {
                    lines.push(line.to_string());
                }
            }
            None => {}
        }
    }
    all
}

/// The arguments of a command and the exit code it should have; nothing for what is not ours to run.
fn command(line: &str) -> Option<(Vec<String>, i32)> {
    let (text, comment) = line.split_once(" #").unwrap_or((line, ""));
    let text = text.trim();
    let rest = text
        .strip_prefix("wattle ")
        .or_else(|| text.strip_prefix("cargo run --release -- "))?;
    let code = comment.split("exit ").nth(1);
    let code = code.and_then(|c| {
        c.trim()
            .split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    });
    let words = rest.split_whitespace().map(str::to_string).collect();
    Some((words, code.unwrap_or(0)))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Runs the commands of a page in a directory; gives how many there were.
fn follow(page: &str, directory: &Path) -> usize {
    let mut said = String::new();
    let mut commands = 0;
    let mut skipped = false;
    for (mark, lines) in blocks(page) {
        match mark.split_whitespace().collect::<Vec<_>>()[..] {
            ["wtl" | "c", name] => {
                std::fs::write(directory.join(name), lines.join("\n") + "\n").expect("a file");
            }
            ["sh"] => {
                for line in lines.iter().filter(|l| !l.trim().is_empty()) {
                    if let Some(rest) = line.strip_prefix("gcc ") {
                        let mut compiler = std::process::Command::new("gcc");
                        compiler
                            .args(rest.split_whitespace())
                            .current_dir(directory);
                        match compiler.status() {
                            Ok(done) => assert!(done.success(), "{line}"),
                            Err(_) => {
                                println!("skipped: there is no gcc for the rest of the block");
                                skipped = true;
                                break;
                            }
                        }
                        continue;
                    }
                    let Some((words, code)) = command(line) else {
                        assert!(line.starts_with("cargo "), "who runs this? {line}");
                        continue;
                    };
                    commands += 1;
                    let r = ran(wattle().args(&words).current_dir(directory).output());
                    assert_eq!(r.code, code, "{line}\n{}{}", r.out, r.err);
                    said.push_str(&squeezed(&r.out));
                    said.push(' ');
                }
            }
            // Nobody said it.
            ["text"] if std::mem::take(&mut skipped) => {}
            ["text"] => {
                for line in lines.iter().filter(|l| !["", "…"].contains(&l.trim())) {
                    let line = squeezed(line);
                    assert!(
                        said.contains(&line),
                        "`{line}` is not in what was printed: {said}"
                    );
                }
                said.clear();
            }
            _ => {}
        }
    }
    commands
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("the page is there")
}

#[test]
fn the_readme_is_true() {
    let page = page("README.md");
    // What is written goes to a copy of the examples.
    let s = Scratch::new();
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(root().join("examples"))
        .arg(s.path("examples"))
        .status();
    assert!(copied.is_ok_and(|c| c.success()));
    assert!(follow(&page, Path::new(&s.path(""))) >= 8);
}

#[test]
fn the_tutorial_works() {
    let s = Scratch::new();
    assert!(follow(&page("docs/tutorial.md"), Path::new(&s.path(""))) >= 10);
}

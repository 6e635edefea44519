//! `cargo run -p wattle-adversary --example audits -- FILE`
//!
//! Repeats the audits that the adversary wrote down (`adversary --audits FILE`), each line a program, a
//! question and a certificate, and compares: exit code 1 if one ends otherwise than it did.

use std::process::ExitCode;
use wattle_adversary::neighbour::Audit;
use wattle_evidence::Control;
use wattle_model::Program;
use wattle_syntax::{Language, parse};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: audits FILE");
        return ExitCode::from(2);
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(e) => {
            eprintln!("{file}: {e}");
            return ExitCode::from(2);
        }
    };
    let mut accepted = 0;
    for (n, line) in text.lines().enumerate() {
        let Some(same) = repeat(line, &mut accepted) else {
            eprintln!("line {}: no audit", n + 1);
            return ExitCode::from(2);
        };
        if !same {
            println!("line {}: it ends otherwise", n + 1);
            return ExitCode::FAILURE;
        }
    }
    println!(
        "{} audits, {accepted} accepted, as before",
        text.lines().count()
    );
    ExitCode::SUCCESS
}

/// Whether the audit ends as it did.
fn repeat(line: &str, accepted: &mut usize) -> Option<bool> {
    let a: Audit = serde_json::from_str(line).ok()?;
    let read = |text: &String| -> Option<Program> { parse(Language::Wtl, text).program };
    let program = read(&a.program)?;
    let translated = match &a.translated {
        Some(text) => Some(read(text)?),
        None => None,
    };
    *accepted += usize::from(a.accepted);
    let again = a.again(&program, translated.as_ref(), &Control::unlimited())?;
    Some(again == a.accepted)
}

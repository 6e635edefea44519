//! `cargo run -p wattle-evidence --example audits -- FILE`
//!
//! Repeats the audits that the adversary wrote down (`adversary --audits FILE`), each line a program, a
//! question and a certificate, and compares: exit code 1 if one ends otherwise than it did.

use serde::Deserialize;
use std::process::ExitCode;
use wattle_auditor::{AuditError, audit};
use wattle_evidence::{Certificate, Control, Task};
use wattle_memory::MemoryModel;
use wattle_syntax::{Language, parse};

#[derive(Deserialize)]
struct Audit {
    program: String,
    model: MemoryModel,
    question: Option<usize>,
    deadlock: bool,
    certificate: Certificate,
    accepted: bool,
}

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
    let program = parse(Language::Wtl, &a.program).program?;
    let instance = program.instance().ok()?;
    let task = Task {
        instance: &instance,
        model: a.model,
        question: a.question,
        deadlock: a.deadlock,
    };
    *accepted += usize::from(a.accepted);
    match audit(&task, &a.certificate, &Control::unlimited()) {
        Ok(_) => Some(a.accepted),
        Err(AuditError::Stopped(_)) => None,
        Err(_) => Some(!a.accepted),
    }
}

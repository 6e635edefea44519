//! Standard output is for answers, standard error for everything else. A reader that went away
//! (`wattle … | head`) ends the writing, not the program with a panic.

use super::progress;
use std::io::{IsTerminal, Write};
use wattle_evidence::{Reason, Refusal};
use wattle_report::text::Style;
use wattle_syntax::Diagnostic;

/// Writes to standard output; says whether anyone is still reading.
pub fn answer(text: &str) -> bool {
    progress::clear();
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .is_ok()
}

/// Writes to standard error.
pub fn note(text: &str) {
    progress::clear();
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
}

/// `error: FILE: reason`, then the messages.
pub fn error(file: &str, reason: &str, messages: &[String]) {
    let mut text = String::new();
    for m in messages {
        text.push_str(m);
        text.push('\n');
    }
    text.push_str(&format!("error: {file}: {reason}\n"));
    note(&text);
}

/// The place that an engine cannot treat, and what would work; empty if it is about no place.
pub fn obstacle(name: &str, text: &str, reason: &Reason) -> String {
    match reason {
        Reason::Refused(refusal) if refusal.span.is_some() => {
            shown(Diagnostic::warning(refusal.span, &refusal.why), refusal).render(name, text)
        }
        _ => String::new(),
    }
}

/// The same where it is the answer.
pub fn refusal(name: &str, text: &str, refusal: &Refusal) {
    if refusal.span.is_some() {
        let message = Diagnostic::error(refusal.span, &refusal.why);
        note(&shown(message, refusal).render(name, text));
    } else {
        error(name, &refusal.why, &[]);
    }
}

fn shown(message: Diagnostic, refusal: &Refusal) -> Diagnostic {
    match &refusal.hint {
        Some(hint) => message.hint(hint),
        None => message,
    }
}

/// Colour and width for what goes to standard output.
pub fn style() -> Style {
    let terminal = std::io::stdout().is_terminal();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
    Style {
        width: width(),
        colour: terminal && !no_colour && !dumb,
    }
}

/// `COLUMNS` if it is a number, else the terminal's width, else 120.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok();
    let given = columns.and_then(|c| c.trim().parse::<usize>().ok());
    let measured = || {
        let (width, _) = terminal_size::terminal_size()?;
        Some(usize::from(width.0))
    };
    given.or_else(measured).unwrap_or(120).clamp(40, 400)
}

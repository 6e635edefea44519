//! Standard output is for answers, standard error for everything else. A reader that went away
//! (`wattle … | head`) ends the writing, not the program with a panic.

use super::progress;
use clap::ValueEnum;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use wattle::input::{Located, Source};
use wattle_evidence::{Reason, Refusal};
use wattle_report::json::{self, DiagnosticReport, EventReport, Origin, SourceReport};
use wattle_report::text::Style;
use wattle_syntax::{Diagnostic, Severity};

/// An answer could not be written, though somebody may want to read it (a full disk).
static LOST: AtomicBool = AtomicBool::new(false);

/// Writes to standard output; says whether anyone is still reading.
pub fn answer(text: &str) -> bool {
    progress::clear();
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(e) = &written
        && e.kind() != ErrorKind::BrokenPipe
        && !LOST.swap(true, Ordering::Relaxed)
    {
        note(&format!("error: the answer could not be written: {e}\n"));
    }
    written.is_ok()
}

/// Says of events in compiled code which source they come from.
pub fn locate(source: &Source, events: &mut [EventReport]) {
    json::locate(events, &|line| {
        let (place, text) = source.code_line(line)?;
        let (file, line) = place.unzip();
        Some(SourceReport { file, line, text })
    });
}

/// Whether an answer was lost.
pub fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Writes to standard error.
pub fn note(text: &str) {
    progress::clear();
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
}

/// `error: FILE: reason`, then the messages.
pub fn error(file: &str, reason: &str, messages: &[String]) {
    note(&complaint(file, reason, messages));
}

/// The same as text.
pub fn complaint(file: &str, reason: &str, messages: &[String]) -> String {
    let mut text = String::new();
    for m in messages {
        text.push_str(m);
        text.push('\n');
    }
    text.push_str(&format!("error: {file}: {reason}\n"));
    text
}

/// Adds to an object who wrote it and which schema it keeps.
pub fn originated(command: &str, value: &mut serde_json::Value) {
    let origin = serde_json::to_value(Origin::of(command)).unwrap_or_default();
    if let (Some(object), serde_json::Value::Object(origin)) = (value.as_object_mut(), origin) {
        object.extend(origin);
    }
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
pub fn refused(refusal: &Refusal) -> Diagnostic {
    shown(Diagnostic::error(refusal.span, &refusal.why), refusal)
}

fn shown(message: Diagnostic, refusal: &Refusal) -> Diagnostic {
    match &refusal.hint {
        Some(hint) => message.hint(hint),
        None => message,
    }
}

/// A message about a text, for programs.
pub fn diagnostic(located: &Located) -> DiagnosticReport {
    let d = &located.diagnostic;
    DiagnosticReport {
        severity: match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        line: located.place.map(|(line, _)| line),
        column: located.place.map(|(_, column)| column),
        message: d.message.clone(),
        expected: d.expected.clone(),
        hint: d.hint.clone(),
    }
}

/// When answers are coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

static COLOUR: OnceLock<Colour> = OnceLock::new();

/// Decides on colour, once.
pub fn set_colour(colour: Colour) {
    let _ = COLOUR.set(colour);
}

/// Colour and width for what goes to standard output.
pub fn style() -> Style {
    let terminal = std::io::stdout().is_terminal();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
    Style {
        width: width(),
        colour: match COLOUR.get().copied().unwrap_or_default() {
            Colour::Auto => terminal && !no_colour && !dumb,
            Colour::Always => true,
            Colour::Never => false,
        },
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

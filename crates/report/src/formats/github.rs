//! Annotations of a change on GitHub: one workflow command a line.

use super::{is_broken, line, message, results};
use crate::json::FileReport;

/// The commands about a file; nothing about what holds.
pub fn annotations(file: &FileReport) -> String {
    let mut out = String::new();
    for d in &file.diagnostics {
        out += &command(d.severity, &file.file, d.line, d.column, &d.sentence());
    }
    if is_broken(file) {
        if file.diagnostics.is_empty() {
            let reason = file.worst.reason.clone().unwrap_or_default();
            out += &command("error", &file.file, None, None, &reason);
        }
        return out;
    }
    for r in results(file) {
        let level = match r.verdict {
            Some("holds") => continue,
            Some("violated") => "error",
            _ => "warning",
        };
        let line = line(r).map(|l| l as usize);
        out += &command(level, &file.file, line, None, &message(r));
    }
    out
}

/// `::error file=peterson.wtl,line=19,title=wattle::violated on TSO: …`
pub fn command(
    level: &str,
    file: &str,
    line: Option<usize>,
    column: Option<usize>,
    message: &str,
) -> String {
    let line = line.map_or(String::new(), |l| format!(",line={l}"));
    let column = column.map_or(String::new(), |c| format!(",col={c}"));
    let file = escape(file).replace(':', "%3A").replace(',', "%2C");
    format!(
        "::{level} file={file}{line}{column},title=wattle::{}\n",
        escape(message)
    )
}

fn escape(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_one_line() {
        assert_eq!(
            command("error", "a,b.wtl", Some(3), None, "50%\nmore"),
            "::error file=a%2Cb.wtl,line=3,title=wattle::50%25%0Amore\n"
        );
    }
}

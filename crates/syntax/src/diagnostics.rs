//! Errors and warnings that point into a source text. Parsers collect them; rendering (file, line,
//! the line itself, a caret, what was expected, a hint) happens here so that every language's
//! messages look the same.

use crate::Parsed;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use wattle_model::{Program, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
}

/// One message about one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub span: Span,
    /// One sentence without a full stop: what is wrong.
    pub message: String,
    /// What the parser would have accepted here.
    pub expected: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A predicate that no solver of ours can treat.
pub(crate) fn not_linear(span: Span) -> Diagnostic {
    Diagnostic::error(span, "this predicate is not linear").hint(
        "sums, differences and comparisons of variables and products with constants would work",
    )
}

impl Diagnostic {
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            span,
            message: message.into(),
            expected: None,
            hint: None,
        }
    }

    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(span, message)
        }
    }

    pub fn expected(mut self, what: impl Into<String>) -> Self {
        self.expected = Some(what.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Line and column (in characters) of the place in the text, both from 1; none if it is about no
    /// place.
    pub fn position(&self, text: &str) -> Option<(usize, usize)> {
        self.span.is_some().then(|| position(text, self.span))
    }

    /// The message as a person reads it, without colour:
    ///
    /// ```text
    /// error: unknown name `flaq`
    ///   --> peterson.wtl:6:9
    ///    |
    ///  6 |         flaq[self] = 1;
    ///    |         ^^^^
    ///    = expected: a shared variable or a register
    ///    = hint: did you mean `flag`?
    /// ```
    pub fn render(&self, file: &str, text: &str) -> String {
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut out = format!("{kind}: {}\n", self.message);
        if !self.span.is_some() {
            let _ = writeln!(out, "  --> {file}");
        } else {
            let at = locate(text, self.span);
            let (line_number, column, line) = (at.number, at.column, &at.shown);
            let gutter = line_number.to_string().len().max(2);
            let _ = writeln!(out, "{:gutter$}--> {file}:{line_number}:{column}", "");
            let _ = writeln!(out, "{:gutter$} |", "");
            let _ = writeln!(out, "{line_number:>gutter$} | {line}");
            let carets = "^".repeat(at.width.max(1));
            let _ = writeln!(out, "{:gutter$} | {:2$}{carets}", "", "", at.indent);
        }
        if let Some(e) = &self.expected {
            let _ = writeln!(out, "   = expected: {e}");
        }
        if let Some(h) = &self.hint {
            let _ = writeln!(out, "   = hint: {h}");
        }
        out
    }
}

/// Long lines are cut so that a message about a 5 MB one-line file stays readable.
const SHOWN: usize = 160;

/// A place as a message shows it.
struct Shown {
    /// Line and column (in characters), both from 1.
    number: usize,
    column: usize,
    /// The line, tabs as single spaces; of a very long one the part around the place, with dots where
    /// it was cut.
    shown: String,
    /// Where in `shown` the place is, and how much to underline, in columns of a terminal: some
    /// characters take two, some none.
    indent: usize,
    width: usize,
}

fn locate(text: &str, span: Span) -> Shown {
    let bytes = text.as_bytes();
    let start = floor_boundary(text, span.start as usize);
    let end = floor_boundary(text, span.end as usize).max(start);
    let line_start = (bytes[..start].iter())
        .rposition(|b| *b == b'\n')
        .map_or(0, |i| i + 1);
    let line_end = (bytes[start..].iter())
        .position(|b| *b == b'\n')
        .map_or(text.len(), |i| start + i);
    let before = text[line_start..start].chars().count();
    let marked = text[start..end.min(line_end)].chars().count();
    let skip = if before >= SHOWN {
        before - SHOWN / 2
    } else {
        0
    };
    let line = &text[line_start..line_end];
    let mut shown = String::from(if skip > 0 { "…" } else { "" });
    let head = shown.chars().count() + before - skip;
    let printable = |c: char| if c.width().is_none() { ' ' } else { c };
    shown.extend(line.chars().skip(skip).take(SHOWN).map(printable));
    if line.chars().nth(skip + SHOWN).is_some() {
        shown.push('…');
    }
    let columns =
        |skip: usize, take: usize| -> String { shown.chars().skip(skip).take(take).collect() };
    let marked = marked.min((skip + SHOWN).saturating_sub(before));
    let (indent, width) = (columns(0, head).width(), columns(head, marked).width());
    Shown {
        number: 1 + bytes[..line_start].iter().filter(|b| **b == b'\n').count(),
        column: 1 + before,
        width,
        shown,
        indent,
    }
}

/// Line and column of the beginning of a place, both from 1.
pub fn position(text: &str, span: Span) -> (usize, usize) {
    let place = locate(text, span);
    (place.number, place.column)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The candidate closest to `given` if it is close enough to be a likely slip of the pen.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (given.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|c| (distance(given, c), c))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, c)| c)
}

/// The question a slip of the pen is answered with.
pub fn did_you_mean<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    nearest(given, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// Edit distance, ignoring case. Long names are never near each other; this bounds the work.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().flat_map(char::to_lowercase).take(65).collect();
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).take(65).collect();
    if a.len() > 64 || b.len() > 64 {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

impl Parsed {
    /// The program if it has no errors; the diagnostics otherwise.
    pub fn into_result(self) -> Result<Program, Vec<Diagnostic>> {
        self.program.ok_or(self.diagnostics)
    }

    /// Every diagnostic as a person reads it.
    pub fn render(&self, file: &str, text: &str) -> String {
        let all = self.diagnostics.iter().map(|d| d.render(file, text));
        all.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_at_the_place() {
        let text = "shared flag;\nflaq = 1;\n";
        let d = Diagnostic::error(Span::new(13, 17, 2), "unknown name `flaq`")
            .hint("did you mean `flag`?");
        assert_eq!(
            d.render("a.wtl", text),
            "error: unknown name `flaq`\n  --> a.wtl:2:1\n   |\n 2 | flaq = 1;\n   | ^^^^\n   = hint: did you mean `flag`?\n"
        );
    }

    #[test]
    fn survives_spans_outside_the_text() {
        let d = Diagnostic::error(Span::new(900, 1000, 7), "odd");
        assert!(d.render("a.wtl", "é").contains("a.wtl:1:2"));
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{}x{}", "a".repeat(300), "b".repeat(300));
        let shown = Diagnostic::error(Span::new(300, 301, 1), "odd").render("a.wtl", &text);
        assert!(shown.contains("a.wtl:1:301"), "{shown}");
        let lines: Vec<&str> = shown.lines().collect();
        let caret = lines[4].chars().position(|c| c == '^');
        assert_eq!(lines[3].chars().position(|c| c == 'x'), caret, "{shown}");
        assert!(
            lines[3].contains("| …a") && lines[3].ends_with("b…"),
            "{shown}"
        );
    }

    #[test]
    fn wide_characters_are_underlined_as_wide_as_they_are() {
        let text = "名 = 値値;";
        let d = Diagnostic::error(Span::new(6, 12, 1), "odd");
        let shown = d.render("a.wtl", text);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[4], "   |      ^^^^", "{shown}");
        assert_eq!(d.position(text), Some((1, 5)));
    }

    #[test]
    fn nearest_forgives_one_slip() {
        assert_eq!(nearest("flaq", ["flag", "turn"]), Some("flag"));
        assert_eq!(nearest("zzzz", ["flag", "turn"]), None);
    }
}

//! A text that is open in an editor: its language, and positions as editors count them.

use serde_json::{Value, json};
use std::path::Path;
use wattle::input::{self, InputLanguage, Source, Subject};
use wattle_model::{Program, Span};
use wattle_syntax::{Diagnostic, Language, Severity};

pub struct Document {
    pub uri: String,
    pub text: String,
    pub language: InputLanguage,
    /// Goes up with every change.
    pub version: i64,
}

impl Document {
    /// The language comes from the file's name; what the editor calls it is second.
    pub fn new(uri: &str, id: &str, text: String, version: i64) -> Self {
        let language = InputLanguage::from_path(Path::new(uri))
            .or_else(|| InputLanguage::from_name(id))
            .unwrap_or(InputLanguage::Program(Language::Wtl));
        Document {
            uri: uri.to_string(),
            text,
            language,
            version,
        }
    }

    fn source(&self) -> Source {
        Source {
            name: self.uri.clone(),
            text: self.text.clone(),
            language: self.language,
            mathematical: false,
            places: Default::default(),
        }
    }

    /// The program, if the text is one.
    pub fn program(&self) -> Option<Program> {
        match input::parse(&mut self.source()).ok()?.0 {
            Subject::Program(program) => Some(program),
            Subject::System(_) => None,
        }
    }

    /// The language, if it is one that programs are written in.
    pub fn program_language(&self) -> Option<Language> {
        match self.language {
            InputLanguage::Program(language) => Some(language),
            InputLanguage::Cubicle | InputLanguage::Code => None,
        }
    }

    /// Every error and warning, as the editor wants them.
    pub fn diagnostics(&self) -> Vec<Value> {
        let found = match self.language {
            InputLanguage::Program(language) => {
                wattle_syntax::parse(language, &self.text).diagnostics
            }
            InputLanguage::Cubicle => wattle_syntax::cubicle::parse(&self.text).diagnostics,
            // No editor shows it.
            InputLanguage::Code => Vec::new(),
        };
        found.iter().map(|d| self.diagnostic(d)).collect()
    }

    fn diagnostic(&self, d: &Diagnostic) -> Value {
        let mut message = d.message.clone();
        for (word, more) in [("expected", &d.expected), ("hint", &d.hint)] {
            if let Some(more) = more {
                message.push_str(&format!("\n{word}: {more}"));
            }
        }
        let severity = match d.severity {
            Severity::Error => 1,
            Severity::Warning => 2,
        };
        json!({
            "range": self.range(d.span),
            "severity": severity,
            "source": "wattle",
            "message": message,
        })
    }

    /// A span as a range; the beginning of the text for what nobody wrote.
    pub fn range(&self, span: Span) -> Value {
        let (start, end) = match span.is_some() {
            true => (span.start as usize, span.end as usize),
            false => (0, 0),
        };
        json!({ "start": self.position(start), "end": self.position(end.max(start)) })
    }

    /// The range of the whole text.
    pub fn whole(&self) -> Value {
        json!({ "start": self.position(0), "end": self.position(self.text.len()) })
    }

    /// Line and column from 0; columns are counted in UTF-16 units.
    fn position(&self, at: usize) -> Value {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &self.text[..at];
        let line = before.matches('\n').count();
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        let column: usize = before[start..].chars().map(char::len_utf16).sum();
        json!({ "line": line, "character": column })
    }

    /// The byte a position means.
    pub fn offset(&self, line: u64, character: u64) -> usize {
        let mut start = 0;
        for _ in 0..line {
            match self.text[start..].find('\n') {
                Some(n) => start += n + 1,
                None => return self.text.len(),
            }
        }
        let mut units = 0;
        for (i, c) in self.text[start..].char_indices() {
            if units >= character || c == '\n' {
                return start + i;
            }
            units += c.len_utf16() as u64;
        }
        self.text.len()
    }

    /// The word at a byte, and whether it comes after `@`.
    pub fn word(&self, at: usize) -> Option<(&str, bool)> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let before = self.text.get(..at)?;
        let start = at - (before.len() - before.trim_end_matches(is_word).len());
        let rest = self.text.get(start..)?;
        let length = rest.len() - rest.trim_start_matches(is_word).len();
        let word = rest.get(..length).filter(|w| !w.is_empty())?;
        Some((word, self.text[..start].ends_with('@')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_as_editors_do() {
        let d = Document::new("file:///a.wtl", "wtl", "// 𝛼\nx = 1;".into(), 1);
        let at = d.text.find('=').unwrap_or(0);
        assert_eq!(d.position(at), json!({ "line": 1, "character": 2 }));
        assert_eq!(d.offset(1, 2), at);
        assert_eq!(d.offset(0, 5), d.text.find('\n').unwrap_or(0));
        assert_eq!(d.word(at - 1), Some(("x", false)));
        assert_eq!(d.offset(99, 0), d.text.len());
    }
}

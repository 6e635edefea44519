//! Tokens of the languages that look like C or Pascal, and a cursor over them that collects
//! diagnostics.

use crate::diagnostics::Diagnostic;
use wattle_model::Span;

/// Statements and parentheses nested deeper than this are refused: parsers recurse.
pub(crate) const MAX_NESTING: usize = 60;
/// Taller expressions are refused: the model's own operations on expressions recurse.
pub(crate) const MAX_HEIGHT: usize = 120;
/// After this many errors the rest of a file is not worth reporting.
pub(crate) const MAX_ERRORS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Number,
    Symbol,
    /// A string in double quotes, without them.
    Text,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'t> {
    pub kind: Kind,
    pub text: &'t str,
    pub span: Span,
}

/// What tokens a language has.
pub(crate) struct Lexis {
    /// Longer symbols before their prefixes.
    pub symbols: &'static [&'static str],
    /// Whether `// …` is a comment. `/* … */` always is.
    pub line_comments: bool,
    /// A character that may start a name, besides letters and `_`.
    pub sigil: Option<char>,
}

impl Lexis {
    /// All tokens of a text; characters that start none are reported and skipped.
    pub fn tokens<'t>(&self, text: &'t str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token<'t>> {
        let mut tokens = Vec::new();
        let mut at = 0;
        let mut line = 1;
        let mut strays = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let (kind, length) = if c.is_whitespace() {
                (None, c.len_utf8())
            } else if rest.starts_with("/*") {
                let end = rest.find("*/").map(|i| i + 2);
                if end.is_none() {
                    diagnostics.push(
                        Diagnostic::error(Span::new(at, at + 2, line), "a comment without an end")
                            .expected("`*/`"),
                    );
                }
                (None, end.unwrap_or(rest.len()))
            } else if self.line_comments && rest.starts_with("//") {
                (None, rest.find('\n').unwrap_or(rest.len()))
            } else if c.is_alphabetic() || c == '_' || Some(c) == self.sigil {
                let tail = &rest[c.len_utf8()..];
                let end = tail.find(|c: char| !(c.is_alphanumeric() || c == '_'));
                (Some(Kind::Name), c.len_utf8() + end.unwrap_or(tail.len()))
            } else if c.is_ascii_digit() {
                let end = rest.find(|c: char| !c.is_ascii_digit());
                (Some(Kind::Number), end.unwrap_or(rest.len()))
            } else if c == '"' {
                let end = rest[1..].find(['"', '\n']).unwrap_or(rest.len() - 1);
                if rest.as_bytes().get(1 + end) != Some(&b'"') {
                    let span = Span::new(at, at + 1 + end, line);
                    diagnostics
                        .push(Diagnostic::error(span, "a string without an end").expected("`\"`"));
                }
                let span = Span::new(at, at + 1 + end, line);
                tokens.push(Token {
                    kind: Kind::Text,
                    text: &rest[1..=end],
                    span,
                });
                (None, (end + 2).min(rest.len()))
            } else if let Some(s) = self.symbols.iter().find(|s| rest.starts_with(**s)) {
                (Some(Kind::Symbol), s.len())
            } else {
                strays += 1;
                if strays <= 5 {
                    let span = Span::new(at, at + c.len_utf8(), line);
                    let shown = c.escape_debug();
                    diagnostics.push(Diagnostic::error(
                        span,
                        format!("a stray character `{shown}`"),
                    ));
                }
                (None, c.len_utf8())
            };
            if let Some(kind) = kind {
                tokens.push(Token {
                    kind,
                    text: &rest[..length],
                    span: Span::new(at, at + length, line),
                });
            }
            line += rest[..length].matches('\n').count();
            at += length;
        }
        tokens.push(Token {
            kind: Kind::End,
            text: "",
            span: Span::new(text.trim_end().len(), text.trim_end().len(), line),
        });
        tokens
    }
}

/// The token as a message names it.
pub(crate) fn describe(t: Token<'_>) -> String {
    match t.kind {
        Kind::End => "the end of the file".to_string(),
        Kind::Text => "a string".to_string(),
        _ => format!("`{}`", clip(t.text)),
    }
}

/// A name short enough for a message.
pub(crate) fn clip(name: &str) -> String {
    match name.char_indices().nth(40) {
        Some((i, _)) => format!("{}…", &name[..i]),
        None => name.to_string(),
    }
}

/// Tokens taken from the left. Never empty: the last token is [`Kind::End`] and stays.
pub(crate) struct Cursor<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
    nesting: usize,
    halted: bool,
    pub diagnostics: Vec<Diagnostic>,
}

/// A message has been recorded; the caller recovers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

impl<'t> Cursor<'t> {
    pub fn new(tokens: Vec<Token<'t>>, diagnostics: Vec<Diagnostic>) -> Self {
        Cursor {
            tokens,
            next: 0,
            nesting: 0,
            halted: false,
            diagnostics,
        }
    }

    pub fn peek(&self) -> Token<'t> {
        self.ahead(0)
    }

    pub fn ahead(&self, n: usize) -> Token<'t> {
        let last = self.tokens.len() - 1;
        self.tokens[(self.next + n).min(last)]
    }

    pub fn take(&mut self) -> Token<'t> {
        let t = self.peek();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        t
    }

    /// How many tokens have been taken: loops that recover from errors see by it that they go on.
    pub fn position(&self) -> usize {
        self.next
    }

    /// The span of the token taken last.
    pub fn last_span(&self) -> Span {
        self.tokens[self.next.saturating_sub(1)].span
    }

    /// Whether a symbol or keyword is next.
    pub fn at(&self, text: &str) -> bool {
        let t = self.peek();
        matches!(t.kind, Kind::Symbol | Kind::Name) && t.text == text
    }

    pub fn at_end(&self) -> bool {
        self.peek().kind == Kind::End
    }

    pub fn eat(&mut self, text: &str) -> bool {
        let hit = self.at(text);
        if hit {
            self.take();
        }
        hit
    }

    pub fn expect(&mut self, text: &str) -> Result<Span, Reported> {
        if self.at(text) {
            return Ok(self.take().span);
        }
        Err(self.unexpected(&format!("`{text}`")))
    }

    /// A name that is none of the given reserved words.
    pub fn name(&mut self, what: &str, reserved: &[&str]) -> Result<Token<'t>, Reported> {
        let t = self.peek();
        if t.kind == Kind::Name && !reserved.contains(&t.text) {
            return Ok(self.take());
        }
        Err(self.unexpected(what))
    }

    /// A number that fits the machine.
    pub fn number(&mut self, what: &str) -> Result<i64, Reported> {
        let t = self.peek();
        if t.kind != Kind::Number {
            return Err(self.unexpected(what));
        }
        self.take();
        // Room to add and subtract without leaving the machine's numbers.
        match t.text.parse::<i64>() {
            Ok(n) if n <= i64::MAX / 4 => Ok(n),
            _ => Err(self.error(
                t.span,
                format!("the number `{}` is too large", clip(t.text)),
            )),
        }
    }

    pub fn unexpected(&mut self, expected: &str) -> Reported {
        let t = self.peek();
        let message = match t.kind {
            Kind::End => "the file ends too early".to_string(),
            _ => format!("unexpected {}", describe(t)),
        };
        self.report(Diagnostic::error(t.span, message).expected(expected))
    }

    pub fn error(&mut self, span: Span, message: impl Into<String>) -> Reported {
        self.report(Diagnostic::error(span, message))
    }

    pub fn report(&mut self, d: Diagnostic) -> Reported {
        if self.diagnostics.len() < MAX_ERRORS && !self.halted {
            self.diagnostics.push(d);
        }
        Reported
    }

    /// Goes one level deeper, if that is not too deep; [`Cursor::leave`] comes back.
    pub fn enter(&mut self) -> Result<(), Reported> {
        if self.nesting >= MAX_NESTING {
            let span = self.peek().span;
            self.error(span, format!("nested more than {MAX_NESTING} deep"));
            // Nothing more of this file: everything after it is noise.
            self.next = self.tokens.len() - 1;
            self.halted = true;
            return Err(Reported);
        }
        self.nesting += 1;
        Ok(())
    }

    pub fn leave(&mut self) {
        self.nesting -= 1;
    }
}

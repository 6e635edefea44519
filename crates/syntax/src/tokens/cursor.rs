//! A position in tokens. Its errors are values; [`super::Reader`] records them.

use super::{Kind, Token};
use crate::diagnostics::Diagnostic;
use wattle_model::Span;

/// Tokens taken from the left. Never empty: the last token is [`Kind::End`] and stays.
pub(crate) struct Cursor<'t> {
    tokens: Vec<Token<'t>>,
    next: usize,
}

type Result<T> = std::result::Result<T, Diagnostic>;

impl<'t> Cursor<'t> {
    /// Tokens that end with an end mark; one is put where there is none.
    pub fn new(mut tokens: Vec<Token<'t>>) -> Self {
        if tokens.last().is_none_or(|t| t.kind != Kind::End) {
            tokens.push(end_after(&tokens));
        }
        Cursor { tokens, next: 0 }
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

    pub fn skip_to_end(&mut self) {
        self.next = self.tokens.len() - 1;
    }

    /// Skips to one of the symbols or words (not past it); false if the end comes first.
    pub fn skip_to(&mut self, words: &[&str]) -> bool {
        while !self.at_end() && !self.at_any(words) {
            self.take();
        }
        !self.at_end()
    }

    /// The span of the token taken last.
    pub fn last_span(&self) -> Span {
        self.tokens[self.next.saturating_sub(1)].span
    }

    /// The token taken last.
    pub fn last(&self) -> Token<'t> {
        self.tokens[self.next.saturating_sub(1)]
    }

    /// Whether a symbol or keyword is next.
    pub fn at(&self, text: &str) -> bool {
        self.peek().is(text)
    }

    pub fn at_any(&self, words: &[&str]) -> bool {
        words.iter().any(|w| self.at(w))
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

    pub fn expect(&mut self, text: &str) -> Result<Span> {
        if self.at(text) {
            return Ok(self.take().span);
        }
        Err(self.unexpected(&format!("`{text}`")))
    }

    pub fn name(&mut self, wanted: &str) -> Result<Token<'t>> {
        if self.peek().kind == Kind::Name {
            return Ok(self.take());
        }
        Err(self.unexpected(wanted))
    }

    pub fn finish(&self, wanted: &str) -> Result<()> {
        if self.at_end() {
            return Ok(());
        }
        Err(self.unexpected(wanted))
    }

    pub fn unexpected(&self, wanted: &str) -> Diagnostic {
        let t = self.peek();
        let message = match t.kind {
            Kind::End => format!("{} ends too early", t.text),
            _ => format!("unexpected {}", t.shown()),
        };
        Diagnostic::error(t.span, message).expected(wanted)
    }
}

/// The end of the line on which the tokens stand.
fn end_after(tokens: &[Token<'_>]) -> Token<'static> {
    let last = tokens.last().map_or(Span::NONE, |t| t.span);
    Token {
        kind: Kind::End,
        text: "the line",
        span: Span {
            start: last.end,
            ..last
        },
    }
}

/// The tokens of every line that has any, each line with its end mark.
pub(crate) fn lines<'t>(tokens: &[Token<'t>]) -> Vec<Vec<Token<'t>>> {
    let some = &tokens[..tokens.len().saturating_sub(1)];
    let lines = some.chunk_by(|a, b| a.span.line == b.span.line);
    lines
        .map(|line| [line, &[end_after(line)]].concat())
        .collect()
}

//! A position in the tokens of a line (or of several lines joined).

use super::token::{Kind, Token, parse_number};
use crate::diagnostics::Diagnostic;
use wattle_model::Span;

pub type Result<T> = std::result::Result<T, Diagnostic>;

pub struct Cursor<'a, 't> {
    tokens: &'a [Token<'t>],
    at: usize,
}

impl<'a, 't> Cursor<'a, 't> {
    /// The tokens end with an end mark.
    pub fn new(tokens: &'a [Token<'t>]) -> Self {
        Cursor { tokens, at: 0 }
    }

    pub fn ahead(&self, n: usize) -> Token<'t> {
        let end = Token {
            kind: Kind::End,
            text: "",
            span: Span::NONE,
        };
        let last = self.tokens.last().copied().unwrap_or(end);
        self.tokens.get(self.at + n).copied().unwrap_or(last)
    }

    pub fn peek(&self) -> Token<'t> {
        self.ahead(0)
    }

    pub fn next(&mut self) -> Token<'t> {
        let t = self.peek();
        if t.kind != Kind::End {
            self.at += 1;
        }
        t
    }

    pub fn at_end(&self) -> bool {
        self.peek().kind == Kind::End
    }

    pub fn eat(&mut self, symbol: &str) -> bool {
        let found = self.peek().is(symbol);
        if found {
            self.next();
        }
        found
    }

    pub fn expect(&mut self, symbol: &str) -> Result<Token<'t>> {
        if self.peek().is(symbol) {
            return Ok(self.next());
        }
        Err(self.unexpected(&format!("`{symbol}`")))
    }

    pub fn unexpected(&self, wanted: &str) -> Diagnostic {
        let t = self.peek();
        let message = match t.kind {
            Kind::End => "the line ends too early".to_string(),
            _ => format!("unexpected {}", t.shown()),
        };
        Diagnostic::error(t.span, message).expected(wanted)
    }

    pub fn name(&mut self, wanted: &str) -> Result<Token<'t>> {
        if self.peek().kind != Kind::Name {
            return Err(self.unexpected(wanted));
        }
        Ok(self.next())
    }

    /// A number with an optional sign, if one starts here.
    pub fn number(&mut self) -> Result<Option<i64>> {
        let negative = self.peek().is("-") && self.ahead(1).kind == Kind::Number;
        if negative {
            self.next();
        }
        let t = self.peek();
        if t.kind != Kind::Number {
            return Ok(None);
        }
        self.next();
        match parse_number(t.text) {
            Some(n) if negative => Ok(Some(n.wrapping_neg())),
            Some(n) => Ok(Some(n)),
            None => Err(Diagnostic::error(t.span, "this is not a number")
                .hint("numbers are written `10`, `0x1F` or `1Fh` and fit into 64 bits")),
        }
    }

    pub fn finish(&self, wanted: &str) -> Result<()> {
        if self.at_end() {
            return Ok(());
        }
        Err(self.unexpected(wanted))
    }
}

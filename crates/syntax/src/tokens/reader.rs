//! A cursor that records messages, limits nesting and knows the words that name nothing.

use super::{Cursor, Kind, Lexis, MAX_ERRORS, MAX_NESTING, Token, clip};
use crate::diagnostics::Diagnostic;
use std::ops::{Deref, DerefMut};
use wattle_model::Span;

pub(crate) struct Reader<'t> {
    cursor: Cursor<'t>,
    reserved: &'static [&'static str],
    nesting: usize,
    halted: bool,
    pub diagnostics: Vec<Diagnostic>,
}

/// A message has been recorded; the caller recovers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported;

type Result<T> = std::result::Result<T, Reported>;

pub(crate) type Named = (String, Span);

/// A statement of a language whose statements may each have one label.
pub(crate) struct Labelled<S> {
    pub label: Option<Named>,
    pub statement: S,
    pub span: Span,
}

/// What needs no message is the cursor's.
impl<'t> Deref for Reader<'t> {
    type Target = Cursor<'t>;

    fn deref(&self) -> &Cursor<'t> {
        &self.cursor
    }
}

impl DerefMut for Reader<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.cursor
    }
}

impl<'t> Reader<'t> {
    pub fn new(lexis: &'static Lexis, reserved: &'static [&'static str], text: &'t str) -> Self {
        let mut diagnostics = Vec::new();
        let tokens = lexis.tokens(text, &mut |d| note(&mut diagnostics, d));
        Reader::over(tokens, reserved, diagnostics)
    }

    pub fn over(
        tokens: Vec<Token<'t>>,
        reserved: &'static [&'static str],
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        Reader {
            cursor: Cursor::new(tokens),
            reserved,
            nesting: 0,
            halted: false,
            diagnostics,
        }
    }

    pub fn expect(&mut self, text: &str) -> Result<Span> {
        self.cursor.expect(text).map_err(|d| self.report(d))
    }

    /// Whether the token can name something.
    pub fn names(&self, t: Token<'_>) -> bool {
        t.kind == Kind::Name && !self.reserved.contains(&t.text)
    }

    pub fn name(&mut self, what: &str) -> Result<Token<'t>> {
        if self.names(self.peek()) {
            return Ok(self.take());
        }
        Err(self.unexpected(what))
    }

    pub fn named(&mut self, what: &str) -> Result<Named> {
        let t = self.name(what)?;
        Ok((t.text.to_string(), t.span))
    }

    /// A number that fits the machine.
    pub fn number(&mut self, what: &str) -> Result<i64> {
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

    /// A number with an optional sign.
    pub fn integer(&mut self, what: &str) -> Result<i64> {
        let negative = self.eat("-");
        let n = self.number(what)?;
        Ok(if negative { -n } else { n })
    }

    /// A name or a number.
    pub fn label_name(&mut self) -> Result<Named> {
        let t = self.peek();
        if !self.names(t) && t.kind != Kind::Number {
            return Err(self.unexpected("a label"));
        }
        self.take();
        Ok((t.text.to_string(), t.span))
    }

    /// The name or number with a colon that is next.
    pub fn label_ahead(&self) -> Option<Named> {
        let t = self.peek();
        let label = self.names(t) || t.kind == Kind::Number;
        (label && self.ahead(1).is(":")).then(|| (t.text.to_string(), t.span))
    }

    /// Takes a label, if one is here.
    pub fn label(&mut self) -> Option<Named> {
        let label = self.label_ahead()?;
        self.take();
        self.take();
        Some(label)
    }

    pub fn unexpected(&mut self, expected: &str) -> Reported {
        self.refuse(expected, None)
    }

    pub fn refuse(&mut self, expected: &str, hint: Option<String>) -> Reported {
        let d = self.cursor.unexpected(expected);
        self.report(Diagnostic { hint, ..d })
    }

    pub fn error(&mut self, span: Span, message: impl Into<String>) -> Reported {
        self.report(Diagnostic::error(span, message))
    }

    pub fn report(&mut self, d: Diagnostic) -> Reported {
        if !self.halted {
            note(&mut self.diagnostics, d);
        }
        Reported
    }

    /// Goes one level deeper, if that is not too deep, and comes back.
    pub fn nested<R>(&mut self, part: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        if self.nesting >= MAX_NESTING {
            let span = self.peek().span;
            self.error(span, format!("nested more than {MAX_NESTING} deep"));
            // Nothing more of this file: everything after it is noise.
            self.skip_to_end();
            self.halted = true;
            return Err(Reported);
        }
        self.nesting += 1;
        let result = part(self);
        self.nesting -= 1;
        result
    }
}

/// Adds a message unless there are enough.
pub(crate) fn note(diagnostics: &mut Vec<Diagnostic>, d: Diagnostic) {
    if diagnostics.len() < MAX_ERRORS {
        diagnostics.push(d);
    }
}

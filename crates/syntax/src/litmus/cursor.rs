//! A position in the tokens, and what initial states and conditions have in common.

use super::syntax::{Item, Value};
use super::token::{Kind, Token};
use crate::diagnostics::Diagnostic;
use wattle_model::Span;

pub struct Cursor<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
}

pub type Result<T> = std::result::Result<T, Diagnostic>;

impl<'t> Cursor<'t> {
    /// The tokens must end with the end mark.
    pub fn new(tokens: Vec<Token<'t>>) -> Self {
        Cursor { tokens, at: 0 }
    }

    pub fn peek(&self) -> Token<'t> {
        self.ahead(0)
    }

    pub fn ahead(&self, n: usize) -> Token<'t> {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + n).min(last)]
    }

    pub fn next(&mut self) -> Token<'t> {
        let t = self.peek();
        if t.kind != Kind::End {
            self.at += 1;
        }
        t
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
            Kind::End => "the file ends too early".to_string(),
            _ => format!("unexpected {}", t.shown()),
        };
        Diagnostic::error(t.span, message).expected(wanted)
    }

    pub fn at_end(&self) -> bool {
        self.peek().kind == Kind::End
    }

    /// Skips to the symbol (not past it) or to the end.
    pub fn skip_to(&mut self, symbols: &[&str]) {
        while !self.at_end() && !symbols.iter().any(|s| self.peek().is(s)) {
            self.next();
        }
    }

    pub fn name(&mut self, wanted: &str) -> Result<(String, Span)> {
        let t = self.peek();
        if t.kind != Kind::Name {
            return Err(self.unexpected(wanted));
        }
        self.next();
        Ok((t.text.to_string(), t.span))
    }

    pub fn number(&mut self) -> Result<i64> {
        let t = self.peek();
        match t.number() {
            Some(n) if t.kind == Kind::Number => {
                self.next();
                Ok(n)
            }
            _ if t.kind == Kind::Number => Err(Diagnostic::error(
                t.span,
                "this number does not fit into 64 bits",
            )),
            _ => Err(self.unexpected("a number")),
        }
    }

    /// Whether `0:` or `P0:` starts here.
    pub fn at_thread(&self) -> bool {
        let first = self.peek();
        let thread = first.kind == Kind::Number || thread_number(first.text).is_some();
        thread && self.ahead(1).is(":")
    }

    /// `0:EAX`, `P0:EAX`, `x`, `[x]`, `t[3]`, `*x`.
    pub fn item(&mut self) -> Result<(Item, Span)> {
        let start = self.peek().span;
        if self.at_thread() {
            let t = self.next();
            let thread = t.number().or_else(|| thread_number(t.text)).unwrap_or(-1);
            self.expect(":")?;
            let r = self.peek();
            if !matches!(r.kind, Kind::Name | Kind::Percent) {
                return Err(self.unexpected("a register"));
            }
            self.next();
            let register = r.text.to_string();
            return Ok((Item::Register { thread, register }, start.to(r.span)));
        }
        self.eat("*");
        if self.eat("[") {
            let (name, _) = self.name("a location")?;
            let element = self.element()?;
            let end = self.expect("]")?;
            return Ok((Item::Cell { name, element }, start.to(end.span)));
        }
        let (name, span) = self.name("a register such as `0:EAX` or a location")?;
        let element = self.element()?;
        Ok((Item::Cell { name, element }, start.to(span)))
    }

    /// `[3]`, or nothing for element 0.
    pub fn element(&mut self) -> Result<u32> {
        if !self.eat("[") {
            return Ok(0);
        }
        let span = self.peek().span;
        let n = self.number()?;
        self.expect("]")?;
        u32::try_from(n).map_err(|_| Diagnostic::error(span, "an index is not negative"))
    }

    /// A number, an address, or another item.
    pub fn value(&mut self) -> Result<(Value, Span)> {
        let start = self.peek().span;
        if self.peek().kind == Kind::Number && !self.at_thread() {
            return Ok((Value::Number(self.number()?), start));
        }
        let address = self.eat("&");
        let bare = self.peek().kind == Kind::Name && !self.at_thread();
        if address || bare {
            let (name, span) = self.name("a number or the name of a location")?;
            let element = self.element()?;
            return Ok((Value::Address(name, element), start.to(span)));
        }
        let (item, span) = self.item()?;
        Ok((Value::Item(item), start.to(span)))
    }
}

/// The number in `P0`.
pub fn thread_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('P')?;
    let all = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    all.then(|| digits.parse().ok()).flatten()
}

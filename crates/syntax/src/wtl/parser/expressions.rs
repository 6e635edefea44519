//! Expressions, by precedence climbing. The order of binding is the model's
//! [`Op2::precedence`]: comparisons bind weaker than bit operators, as in Rust.

use super::super::ast::{Between, Ex, ExKind, Later};
use super::items::wrap_type;
use super::{Parser, Result};
use crate::Diagnostic;
use crate::tokens::Kind;
use wattle_model::{Op1, Op2, Span, validate::MAX_DEPTH};

/// How strongly comparisons bind.
const COMPARISON: u8 = 3;

impl Parser<'_, '_> {
    pub(super) fn expression(&mut self) -> Result<Ex> {
        self.deeper(|p| {
            let condition = p.binary(1)?;
            if p.formula && p.eat("->") {
                let then = p.expression()?;
                let span = condition.span.to(then.span);
                let kind = ExKind::Between(Between::Implies, condition.into(), then.into());
                return p.make(kind, span);
            }
            if !p.eat("?") {
                return Ok(condition);
            }
            let yes = p.expression()?;
            p.expect(":")?;
            let no = p.expression()?;
            let span = condition.span.to(no.span);
            p.make(ExKind::Ite(condition.into(), yes.into(), no.into()), span)
        })
    }

    /// `lo..hi`; both are sums, so that `0..N - 1` needs no parentheses.
    pub(super) fn range(&mut self, expected: &str) -> Result<(Ex, Ex)> {
        let named = matches!(self.token().kind, Kind::Number | Kind::Name | Kind::Quoted);
        if !named && !self.cursor.at_any(&["-", "("]) {
            return Err(self.unexpected(expected));
        }
        let lo = self.deeper(|p| p.binary(8))?;
        if !self.eat("..=") {
            self.expect("..")?;
        }
        let hi = self.deeper(|p| p.binary(8))?;
        Ok((lo, hi))
    }

    fn make(&mut self, kind: ExKind, span: Span) -> Result<Ex> {
        let depth = 1 + match &kind {
            ExKind::Number(_) | ExKind::SelfIndex | ExKind::Count(_) => 0,
            ExKind::Name(_, i)
            | ExKind::AddressOf(_, i)
            | ExKind::Field(_, i, _)
            | ExKind::At(_, i, _) => i.as_ref().map_or(0, |i| i.depth),
            ExKind::Seen(_, i, _, j) => {
                let both = [i, j].into_iter().flatten();
                both.map(|i| i.depth).max().unwrap_or(0)
            }
            ExKind::Memory(a) | ExKind::Unary(_, a) | ExKind::Later(_, a) => a.depth,
            ExKind::Binary(_, a, b)
            | ExKind::Between(_, a, b)
            | ExKind::Swap(a, b)
            | ExKind::FetchAdd(a, b) => a.depth.max(b.depth),
            ExKind::Ite(a, b, c) | ExKind::Cas(a, b, c) => a.depth.max(b.depth).max(c.depth),
        };
        if depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        Ok(Ex {
            kind,
            span,
            depth,
            parentheses: 0,
        })
    }

    fn binary(&mut self, weakest: u8) -> Result<Ex> {
        let left = self.operators(weakest)?;
        // In formulas `U`, `R` and `W` bind weaker than comparisons and stronger than `&&`.
        match self.between().filter(|_| weakest <= COMPARISON) {
            None => Ok(left),
            Some(_) => {
                let left = self.until(left)?;
                self.climb(left, weakest)
            }
        }
    }

    /// `left U …`, grouping to the right.
    fn until(&mut self, left: Ex) -> Result<Ex> {
        let Some(op) = self.between() else {
            return Ok(left);
        };
        self.advance();
        self.deeper(|p| {
            let right = p.operators(COMPARISON)?;
            let right = p.until(right)?;
            let span = left.span.to(right.span);
            p.make(ExKind::Between(op, left.into(), right.into()), span)
        })
    }

    fn between(&self) -> Option<Between> {
        let t = self.token();
        match t.text {
            _ if !self.formula || t.kind != Kind::Name => None,
            "U" => Some(Between::Until),
            "R" => Some(Between::Release),
            "W" => Some(Between::WeakUntil),
            _ => None,
        }
    }

    fn operators(&mut self, weakest: u8) -> Result<Ex> {
        let left = self.unary()?;
        // Up to here nothing binds as weakly as `&&`: what is between may come first.
        let left = self.climb(left, weakest.max(COMPARISON))?;
        match weakest < COMPARISON && self.between().is_none() {
            true => self.climb(left, weakest),
            false => Ok(left),
        }
    }

    fn climb(&mut self, mut left: Ex, weakest: u8) -> Result<Ex> {
        while let Some(op) = self.operator() {
            let strength = op.precedence();
            if strength < weakest {
                break;
            }
            let sign = self.advance().span;
            let right = self.binary(strength + 1)?;
            let span = left.span.to(right.span);
            left = self.make(ExKind::Binary(op, left.into(), right.into()), span)?;
            if strength == COMPARISON
                && self
                    .operator()
                    .is_some_and(|o| o.precedence() == COMPARISON)
            {
                return Err(self.report(
                    Diagnostic::error(sign, "comparisons do not chain")
                        .hint("write `a < b && b < c`, or put one side in parentheses"),
                ));
            }
        }
        Ok(left)
    }

    fn operator(&self) -> Option<Op2> {
        let t = self.token();
        const ALL: [Op2; 18] = [
            Op2::Add,
            Op2::Sub,
            Op2::Mul,
            Op2::Div,
            Op2::Rem,
            Op2::BitAnd,
            Op2::BitOr,
            Op2::BitXor,
            Op2::Shl,
            Op2::Shr,
            Op2::Eq,
            Op2::Ne,
            Op2::Lt,
            Op2::Le,
            Op2::Gt,
            Op2::Ge,
            Op2::And,
            Op2::Or,
        ];
        ALL.into_iter().find(|op| t.is(op.symbol()))
    }

    fn unary(&mut self) -> Result<Ex> {
        let t = self.token();
        let start = t.span;
        if t.kind != Kind::Symbol {
            return self.primary();
        }
        match t.text {
            "-" => {
                self.advance();
                // A sign directly before digits belongs to the number.
                if self.token().kind == Kind::Number {
                    let value = 0i64.wrapping_sub_unsigned(self.number());
                    let span = start.to(self.last_span());
                    return self.make(ExKind::Number(value), span);
                }
                self.prefixed(start, |a| ExKind::Unary(Op1::Neg, a))
            }
            "!" => {
                self.advance();
                self.prefixed(start, |a| ExKind::Unary(Op1::Not, a))
            }
            "~" => {
                self.advance();
                self.prefixed(start, |a| ExKind::Unary(Op1::BitNot, a))
            }
            "*" => {
                self.advance();
                self.prefixed(start, ExKind::Memory)
            }
            "&" => {
                self.advance();
                let name = self.name("a shared name to take the address of")?;
                let index = self.index()?;
                let span = start.to(self.last_span());
                self.make(ExKind::AddressOf(name, index), span)
            }
            _ => self.primary(),
        }
    }

    fn prefixed(&mut self, start: Span, kind: impl FnOnce(Box<Ex>) -> ExKind) -> Result<Ex> {
        let operand = self.deeper(|p| p.unary())?;
        let span = start.to(operand.span);
        self.make(kind(operand.into()), span)
    }

    fn index(&mut self) -> Result<Option<Box<Ex>>> {
        if !self.eat("[") {
            return Ok(None);
        }
        let index = self.expression()?;
        self.expect("]")?;
        Ok(Some(index.into()))
    }

    fn primary(&mut self) -> Result<Ex> {
        let t = self.token();
        let start = t.span;
        match (t.kind, t.text) {
            (Kind::Number, _) => match i64::try_from(self.number()) {
                Ok(n) => self.make(ExKind::Number(n), start),
                Err(_) => {
                    Err(self.report(Diagnostic::error(start, "this number does not fit 64 bits")))
                }
            },
            (Kind::Symbol, "(") => {
                self.advance();
                let mut inner = self.expression()?;
                self.assigned(")")?;
                inner.span = start.to(self.expect(")")?);
                inner.parentheses += 1;
                Ok(inner)
            }
            (Kind::Name, w) => self.word(w, start),
            (Kind::Quoted, _) => self.named(),
            (Kind::Symbol, "=") => Err(self.report(
                Diagnostic::error(start, "unexpected `=`")
                    .expected("an expression")
                    .hint("equality is `==`"),
            )),
            _ => {
                let failed = self.unexpected("an expression");
                if t.kind == Kind::Text {
                    let hint = "values are numbers, `true` and `false`";
                    self.diagnostics.hint_last(hint);
                }
                Err(failed)
            }
        }
    }

    /// `G e`, `F e`: such a letter directly before what it is about. Elsewhere it is a name.
    fn later(&mut self, word: &str, start: Span) -> Option<Result<Ex>> {
        let next = self.cursor.ahead(1);
        let operand = matches!(next.kind, Kind::Name | Kind::Quoted | Kind::Number)
            && (!["U", "R", "W"].contains(&next.text)
                || ["@", ".", "::", "["]
                    .iter()
                    .any(|s| self.cursor.ahead(2).is(s)))
            || next.is("(")
            || next.is("!");
        if !self.formula || !operand {
            return None;
        }
        let op = match word {
            "G" => Later::Globally,
            "F" => Later::Finally,
            "X" => {
                let d = Diagnostic::error(start, "there is no *next* (`X`) in formulas").hint(
                    "how many steps another thread takes in between means nothing; say `F` (at some time) or `U` (until)",
                );
                return Some(Err(self.report(d)));
            }
            _ => return None,
        };
        self.advance();
        Some(self.deeper(|p| {
            let operand = p.operators(COMPARISON)?;
            let span = start.to(operand.span);
            p.make(ExKind::Later(op, operand.into()), span)
        }))
    }

    fn word(&mut self, word: &str, start: Span) -> Result<Ex> {
        if let Some(read) = self.later(word, start) {
            return read;
        }
        let constant = match word {
            "true" => Some(1),
            "false" => Some(0),
            "none" => Some(-1),
            _ => None,
        };
        if let Some(c) = constant {
            self.advance();
            return self.make(ExKind::Number(c), start);
        }
        if word == "self" {
            self.advance();
            return self.make(ExKind::SelfIndex, start);
        }
        let call = self.cursor.ahead(1).is("(");
        let cast = wrap_type(word);
        match word {
            "cas" | "swap" | "fetch_add" if call => self.exchange(word, start),
            "count" if call => {
                self.advance();
                self.advance();
                let family = self.name("a family of threads")?;
                let span = start.to(self.expect(")")?);
                self.make(ExKind::Count(family), span)
            }
            "any" => Err(self.report(
                Diagnostic::error(start, "`any` may only stand alone, right after `=`")
                    .hint("choose into a register first: `r = any 0..3;`"),
            )),
            _ if call && cast.is_some() => {
                self.advance();
                self.advance();
                let inner = self.expression()?;
                let span = start.to(self.expect(")")?);
                let (bits, signed) = cast.unwrap_or((1, false));
                self.make(
                    ExKind::Unary(Op1::Wrap { bits, signed }, inner.into()),
                    span,
                )
            }
            _ if call && !super::RESERVED.contains(&word) => {
                let mut d = Diagnostic::error(start, format!("there is no function `{word}`"))
                    .expected("`cas`, `swap`, `fetch_add`, `count` or a cast such as `u8`");
                d.hint = Self::c_function(word);
                Err(self.report(d))
            }
            _ => self.named(),
        }
    }

    fn exchange(&mut self, word: &str, start: Span) -> Result<Ex> {
        self.advance();
        self.expect("(")?;
        let place = Box::new(self.expression()?);
        let mut operands = Vec::new();
        while self.eat(",") {
            operands.push(Box::new(self.expression()?));
        }
        let span = start.to(self.expect(")")?);
        let mut rest = operands.into_iter();
        let kind = match (word, rest.next(), rest.next(), rest.next()) {
            ("cas", Some(old), Some(new), None) => ExKind::Cas(place, old, new),
            ("swap", Some(value), None, None) => ExKind::Swap(place, value),
            ("fetch_add", Some(value), None, None) => ExKind::FetchAdd(place, value),
            _ => {
                let usage = match word {
                    "cas" => "`cas(place, old, new)`",
                    "swap" => "`swap(place, value)`",
                    _ => "`fetch_add(place, value)`",
                };
                return Err(self.report(
                    Diagnostic::error(span, format!("`{word}` has the wrong number of operands"))
                        .expected(usage),
                ));
            }
        };
        self.make(kind, span)
    }

    /// A name with what may follow it: an index, a register of a thread, a label.
    fn named(&mut self) -> Result<Ex> {
        let name = self.name("an expression")?;
        let start = name.span;
        let index = self.index()?;
        let kind = if self.eat("::") {
            let region = self.name("a variable in memory")?;
            ExKind::Seen(name, index, region, self.index()?)
        } else if self.eat("@") {
            ExKind::At(name, index, self.name("a label")?)
        } else if self.eat(".") {
            ExKind::Field(name, index, self.name("a register of the thread")?)
        } else {
            ExKind::Name(name, index)
        };
        let span = start.to(self.last_span());
        self.make(kind, span)
    }
}

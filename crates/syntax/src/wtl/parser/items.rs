//! Declarations: shared memory, constants, threads, properties, hints.

use super::super::ast::{
    Block, ConditionEx, CountEx, Declared, File, InitEx, Item, LengthEx, Let, PropertyEx,
    TemporalEx, ThreadEx, TypeEx,
};
use super::{Parser, Result};
use crate::Diagnostic;
use crate::diagnostics::did_you_mean;
use crate::tokens::{Kind, Token, unescape};
use wattle_model::{PropertyKind, Span};

/// Words that start a declaration and never a statement.
pub(super) const STARTS: &[&str] = &[
    "shared",
    "thread",
    "never",
    "always",
    "finally",
    "reachable",
    "ltl",
];

impl Parser<'_, '_> {
    pub(super) fn file(&mut self) -> File {
        let mut file = File::default();
        while !self.at_end() {
            let (first, before) = (self.token(), self.cursor.position());
            if self.item(&mut file).is_err() {
                let properties = ["never", "always", "finally", "reachable", "ltl", "progress"];
                file.incomplete |= !properties.iter().any(|w| first.is(w));
                self.recover();
            }
            if self.cursor.position() == before {
                // Recovery stopped on a token no declaration starts with.
                self.advance();
            }
        }
        file.incomplete |= self.broken_declaration;
        file
    }

    fn item(&mut self, file: &mut File) -> Result<()> {
        let start = self.span();
        if self.leads_to_ahead() {
            return self.leads_to(file);
        }
        let word = match self.token() {
            t if t.kind == Kind::Name => t.text,
            t if t.is("}") => {
                return Err(self.report(Diagnostic::error(start, "this `}` closes nothing")));
            }
            _ => return Err(self.unexpected("a declaration (`shared`, `thread`, `never`, …)")),
        };
        let property = match word {
            "shared" => {
                self.advance();
                file.order.push(Item::Shared);
                return self.declared(&mut file.shared);
            }
            "let" => {
                self.advance();
                let constant = self.constant()?;
                file.lets.push(constant);
                file.order.push(Item::Let);
                return Ok(());
            }
            "thread" => {
                self.advance();
                let thread = self.thread()?;
                file.threads.push(thread);
                file.order.push(Item::Thread);
                return Ok(());
            }
            "object" if self.cursor.ahead(1).kind == Kind::Text => {
                self.advance();
                let span = self.span();
                let text = unescape(self.advance().text);
                file.objects.push(super::super::ast::Name { text, span });
                file.order.push(Item::Object);
                self.expect(";")?;
                return Ok(());
            }
            "skip" | "havoc" => {
                self.advance();
                let name = self.name("the name of a function")?;
                file.skipped.push((name, word == "havoc"));
                file.order.push(Item::Skipped);
                self.expect(";")?;
                return Ok(());
            }
            "predicates" => {
                self.advance();
                file.order.push(Item::Predicates);
                return self.predicates(&mut file.predicates);
            }
            "ltl" => {
                self.advance();
                self.formula = true;
                let formula = self.condition();
                self.formula = false;
                let span = start.to(self.expect_after(formula.is_err())?);
                file.order.push(Item::Temporal);
                file.temporal.push((TemporalEx::Ltl(formula?), span));
                return Ok(());
            }
            "progress" => {
                self.advance();
                let span = start.to(self.expect(";")?);
                file.order.push(Item::Temporal);
                file.temporal.push((TemporalEx::Progress, span));
                return Ok(());
            }
            "never" => PropertyKind::Never,
            "always" => PropertyKind::Always,
            "finally" => PropertyKind::Finally,
            "reachable" => PropertyKind::Reachable,
            _ => {
                if let Some(d) = self.c_declaration(false) {
                    return Err(self.report(d));
                }
                if let Some(d) = self.c_structure() {
                    self.report(d);
                    return Ok(());
                }
                let known = STARTS
                    .iter()
                    .copied()
                    .chain(["let", "predicates", "progress"]);
                let mut d = Diagnostic::error(start, format!("unexpected {}", self.token().shown()))
                    .expected("a declaration (`shared`, `let`, `thread`, `never`, `always`, `finally`, `reachable`, `ltl`, `progress`, `predicates`)");
                let said = self.declared_elsewhere().map(String::from);
                d.hint = said.or_else(|| did_you_mean(word, known));
                return Err(self.report(d));
            }
        };
        self.advance();
        let condition = self.condition()?;
        let span = start.to(self.expect(";")?);
        file.order.push(Item::Property);
        file.properties.push(PropertyEx {
            kind: property,
            condition,
            span,
        });
        Ok(())
    }

    /// The `;` after a formula, unless the formula could not be read.
    fn expect_after(&mut self, failed: bool) -> Result<Span> {
        match failed {
            true => Ok(self.span()),
            false => self.expect(";"),
        }
    }

    /// Whether a `~>` comes before the next `;`: no other declaration has one.
    fn leads_to_ahead(&self) -> bool {
        let first = self.token();
        let declares = ["shared", "let", "thread", "predicates"];
        if first.kind == Kind::Name && declares.contains(&first.text) {
            return false;
        }
        let ends = |t: &Token<'_>| t.kind == Kind::End || [";", "{", "}"].iter().any(|s| t.is(s));
        let ahead = (0..).map(|n| self.cursor.ahead(n));
        ahead.take_while(|t| !ends(t)).any(|t| t.is("~>"))
    }

    /// `p ~> q;`
    fn leads_to(&mut self, file: &mut File) -> Result<()> {
        let start = self.span();
        let from = self.condition()?;
        self.expect("~>")?;
        let to = self.expression()?;
        let span = start.to(self.expect(";")?);
        file.order.push(Item::Temporal);
        file.temporal.push((TemporalEx::LeadsTo(from, to), span));
        Ok(())
    }

    /// `x: 0..3 = any, a[2] = {1, 2};` after its keyword.
    pub(super) fn declared(&mut self, into: &mut Vec<Declared>) -> Result<()> {
        loop {
            let name = self.name("a name to declare")?;
            let mut length = LengthEx::Scalar;
            if self.eat("[") {
                let at = self.span();
                length = if self.eat("thread") {
                    LengthEx::Thread(at)
                } else {
                    LengthEx::Array(self.expression()?)
                };
                self.expect("]")?;
            }
            let ty = if self.eat(":") {
                self.ty()?
            } else {
                TypeEx::Int
            };
            let init = if self.eat("=") {
                self.init()?
            } else {
                InitEx::Zero
            };
            into.push(Declared {
                name,
                length,
                ty,
                init,
            });
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(())
    }

    fn ty(&mut self) -> Result<TypeEx> {
        const EXPECTED: &str = "a type: `int`, `bool`, `u8`, `i16`, …, a range `lo..hi`, or the name of a thread family";
        let first = self.token();
        if first.kind == Kind::Name {
            let simple = match first.text {
                "int" => Some(TypeEx::Int),
                "bool" => Some(TypeEx::Bool),
                w => wrap_type(w).map(|(bits, signed)| TypeEx::Wrap { bits, signed }),
            };
            if let Some(ty) = simple {
                self.advance();
                return Ok(ty);
            }
        }
        if first.is("object") && self.cursor.ahead(1).is("(") {
            self.advance();
            self.advance();
            let size = self.expression()?;
            self.expect(")")?;
            return Ok(TypeEx::Object(size));
        }
        let next = self.cursor.ahead(1).kind;
        if first.is("struct") && matches!(next, Kind::Name | Kind::Quoted) {
            self.advance();
            return Ok(TypeEx::Struct(self.name("the name of a structure")?));
        }
        if matches!(first.kind, Kind::Name | Kind::Quoted) {
            // `N..M` with constants starts with a name as well.
            let next = self.cursor.ahead(1);
            let ends = [";", ",", "=", "}"];
            if next.kind != Kind::Symbol || ends.contains(&next.text) {
                return Ok(TypeEx::Family(self.name(EXPECTED)?));
            }
        }
        let (lo, hi) = self.range(EXPECTED)?;
        Ok(TypeEx::Range(lo, hi))
    }

    fn init(&mut self) -> Result<InitEx> {
        if self.eat("any") {
            return Ok(InitEx::Any);
        }
        if !self.eat("{") {
            return Ok(InitEx::All(self.expression()?));
        }
        let mut values = Vec::new();
        while !self.at("}") {
            values.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(InitEx::Each(values))
    }

    /// `name = e;` after `let`.
    pub(super) fn constant(&mut self) -> Result<Let> {
        let name = self.name("a name for the constant")?;
        self.expect("=")?;
        let value = self.expression()?;
        self.expect(";")?;
        Ok(Let { name, value })
    }

    fn thread(&mut self) -> Result<ThreadEx> {
        let start = self.last_span();
        let name = self.name("a name for the thread")?;
        let mut count = CountEx::One;
        if self.eat("[") {
            count = if self.eat("*") {
                CountEx::Any
            } else {
                CountEx::Fixed(self.expression()?)
            };
            self.expect("]")?;
        }
        let span = start.to(self.last_span());
        let mut locals = Vec::new();
        let body = self.thread_body(&mut locals)?;
        Ok(ThreadEx {
            name,
            count,
            locals,
            body,
            span,
        })
    }

    fn thread_body(&mut self, locals: &mut Vec<Declared>) -> Result<Block> {
        let open = self.expect("{")?;
        let mut statements = Vec::new();
        loop {
            if self.at("local") {
                self.advance();
                if self.declared(locals).is_err() {
                    self.broken_declaration = true;
                    self.recover();
                }
            } else if self.at("let") {
                self.statement_into(&mut statements);
            } else {
                break;
            }
        }
        let close = self.statements(open, &mut statements)?;
        Ok(Block { statements, close })
    }

    fn predicates(&mut self, into: &mut Vec<ConditionEx>) -> Result<()> {
        self.expect("{")?;
        while !self.at("}") && !self.at_end() {
            let read = self.condition().and_then(|c| {
                // The last `;` may be left out.
                if !self.at("}") {
                    self.expect(";")?;
                }
                Ok(c)
            });
            match read {
                Ok(c) => into.push(c),
                Err(_) => {
                    let before = self.cursor.position();
                    self.recover();
                    if self.cursor.position() == before {
                        break;
                    }
                }
            }
        }
        self.expect("}")?;
        Ok(())
    }

    /// `for p[i], p[j]: e`, where the part before the colon may be left out.
    fn condition(&mut self) -> Result<ConditionEx> {
        let mut indices = Vec::new();
        if self.eat("for") {
            loop {
                let family = self.name("a family of threads")?;
                self.expect("[")?;
                let index = self.name("a name for the index")?;
                self.expect("]")?;
                indices.push((family, index));
                if !self.eat(",") {
                    break;
                }
            }
            self.expect(":")?;
        }
        let expr = self.expression()?;
        Ok(ConditionEx { indices, expr })
    }
}

/// `u1` to `u63` and `i1` to `i64` (wider ones are read too; the validator refuses them).
pub(super) fn wrap_type(word: &str) -> Option<(u8, bool)> {
    let signed = match word.as_bytes().first()? {
        b'u' => false,
        b'i' => true,
        _ => return None,
    };
    let digits = &word[1..];
    if digits.starts_with('0') || digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, signed))
}

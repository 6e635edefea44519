//! Statements.

use super::super::ast::{Block, Ex, ExKind, Label, Name, Statement, StatementKind};
use super::{MAX_BLOCKS, Parser, RESERVED, Result};
use crate::Diagnostic;
use crate::diagnostics::did_you_mean;
use crate::tokens::{Kind, unescape};
use wattle_model::{Section, Span};

impl Parser<'_, '_> {
    pub(super) fn block(&mut self) -> Result<Block> {
        let open = self.expect("{")?;
        if self.blocks >= MAX_BLOCKS {
            return Err(self.report(
                Diagnostic::error(
                    open,
                    format!("blocks are nested more than {MAX_BLOCKS} deep"),
                )
                .hint("`goto` and labels need no nesting"),
            ));
        }
        self.blocks += 1;
        let mut statements = Vec::new();
        let close = self.statements(open, &mut statements);
        self.blocks -= 1;
        Ok(Block {
            statements,
            close: close?,
        })
    }

    /// Statements up to and including the closing brace.
    pub(super) fn statements(&mut self, open: Span, into: &mut Vec<Statement>) -> Result<Span> {
        loop {
            if self.at("}") {
                return Ok(self.advance().span);
            }
            if self.at_end() || self.cursor.at_any(super::items::STARTS) {
                let failed = self.unexpected("a statement, or `}` to close the block");
                let line = open.line;
                let hint = format!("the `{{` in line {line} is still open here");
                self.diagnostics.hint_last(&hint);
                return Err(failed);
            }
            self.statement_into(into);
        }
    }

    /// One statement; a broken one is skipped.
    pub(super) fn statement_into(&mut self, into: &mut Vec<Statement>) {
        let before = self.cursor.position();
        match self.statement() {
            Ok(s) => into.push(s),
            Err(_) => {
                self.recover();
                if self.cursor.position() == before && !self.at("}") {
                    self.advance();
                }
            }
        }
    }

    fn label(&mut self) -> Option<Label> {
        if !self.cursor.ahead(1).is(":") {
            return None;
        }
        let t = self.token();
        let label = match t.kind {
            Kind::Number => Label::Numbered(self.number(), t.span),
            Kind::Name if RESERVED.contains(&t.text) => return None,
            Kind::Name | Kind::Quoted => Label::Named(self.name("a label").ok()?),
            _ => return None,
        };
        self.advance();
        Some(label)
    }

    fn statement(&mut self) -> Result<Statement> {
        let mut labels = Vec::new();
        while let Some(l) = self.label() {
            labels.push(l);
        }
        let start = self.span();
        if self.at("}") && !labels.is_empty() {
            return Ok(Statement {
                labels,
                kind: StatementKind::Nothing,
                span: start,
            });
        }
        let kind = match self.statement_kind() {
            Ok(kind) => kind,
            // Jumps to the labels of a broken statement are no errors.
            Err(_) if !labels.is_empty() => {
                self.recover();
                StatementKind::Nothing
            }
            Err(e) => return Err(e),
        };
        let span = start.to(self.last_span());
        Ok(Statement { labels, kind, span })
    }

    fn statement_kind(&mut self) -> Result<StatementKind> {
        let t = self.token();
        let word = match (t.kind, t.text) {
            (Kind::Name, w) => w,
            (Kind::Symbol, "{") => return Ok(StatementKind::Block(self.block()?)),
            (Kind::Symbol, ";") => {
                return Err(self.report(
                    Diagnostic::error(t.span, "an empty statement")
                        .hint("remove the `;`, or write `skip;` for a step that does nothing"),
                ));
            }
            (Kind::Symbol, "=") if self.cursor.last().is(":") => {
                return Err(self.report(
                    Diagnostic::error(t.span, "unexpected `=`").hint("an assignment is `x = 1;`"),
                ));
            }
            _ => {
                if let Some(d) = self.increment() {
                    return Err(self.report(d));
                }
                return self.assignment();
            }
        };
        let ends = self.cursor.ahead(1).is(";");
        let kind = match word {
            "if" => {
                self.advance();
                return self.if_statement();
            }
            "while" => {
                self.advance();
                let condition = self.expression()?;
                return Ok(StatementKind::While(condition, self.body()?));
            }
            "loop" => {
                self.advance();
                return Ok(StatementKind::Loop(self.block()?));
            }
            "for" => {
                self.advance();
                if self.at("(") {
                    let d = self.c_for();
                    self.report(d);
                    return Ok(StatementKind::Skip);
                }
                let name = self.name("a name for the counter")?;
                if !self.eat("in") {
                    let failed = self.unexpected("`in lo..hi`");
                    let hint = "write `for i in 0..2 { … }` for 0, 1 and 2";
                    self.diagnostics.hint_last(hint);
                    return Err(failed);
                }
                let (lo, hi) = self.range("a range `lo..hi`")?;
                return Ok(StatementKind::For(name, lo, hi, self.block()?));
            }
            "choose" => {
                self.advance();
                let mut blocks = vec![self.block()?];
                // `or` may also be a name or a label.
                while self.at("or") && self.cursor.ahead(1).is("{") {
                    self.advance();
                    blocks.push(self.block()?);
                }
                return Ok(StatementKind::Choose(blocks));
            }
            "atomic" => {
                self.advance();
                let buffered = self.eat("buffered");
                let section = match buffered {
                    true => Section::Buffered,
                    false => Section::Drained,
                };
                if self.at("{") {
                    let block = self.block()?;
                    return Ok(match buffered {
                        true => StatementKind::AtomicBuffered(block),
                        false => StatementKind::Atomic(block),
                    });
                }
                if self.eat("begin") {
                    StatementKind::AtomicBegin(section)
                } else if !buffered && self.eat("end") {
                    StatementKind::AtomicEnd
                } else if buffered {
                    return Err(self.unexpected("`{` or `begin;`"));
                } else {
                    let failed = self.unexpected("`{`, `buffered`, `begin;` or `end;`");
                    if self.token().kind == Kind::Name {
                        let hint =
                            "what is to be one step goes into braces: `atomic { x = x + 1; }`";
                        self.diagnostics.hint_last(hint);
                    }
                    return Err(failed);
                }
            }
            "let" => {
                self.advance();
                let constant = self.constant();
                self.broken_declaration |= constant.is_err();
                return Ok(StatementKind::Let(constant?));
            }
            "local" => {
                let span = self.span();
                // Its names would be unknown in all that follows.
                self.broken_declaration = true;
                return Err(self.report(
                    Diagnostic::error(span, "registers are declared before the first statement")
                        .hint("move this line to the top of the thread"),
                ));
            }
            "return" if ends || self.cursor.ahead(2).is(";") => {
                let span = self.span();
                return Err(self.report(
                    Diagnostic::error(span, "a thread gives nothing back")
                        .hint("`stop;` ends the thread; `goto` and a label leave a piece of it"),
                ));
            }
            "skip" => self.simple(StatementKind::Skip),
            "stop" => self.simple(StatementKind::Stop),
            "break" => self.simple(StatementKind::Break),
            "continue" => self.simple(StatementKind::Continue),
            "lock" if ends => self.simple(StatementKind::Lock),
            "unlock" if ends => self.simple(StatementKind::Unlock),
            "fence" => {
                self.advance();
                if self.eat("store") {
                    StatementKind::FenceStore
                } else {
                    StatementKind::Fence
                }
            }
            "call" if matches!(self.cursor.ahead(1).kind, Kind::Name | Kind::Quoted) => {
                let (function, arguments) = self.call()?;
                StatementKind::Call(None, function, arguments)
            }
            "goto" => {
                self.advance();
                let span = self.span();
                if self.token().kind == Kind::Number {
                    StatementKind::Goto(Label::Numbered(self.number(), span))
                } else {
                    StatementKind::Goto(Label::Named(self.name("a label")?))
                }
            }
            "await" => {
                self.advance();
                StatementKind::Await(self.expression()?)
            }
            "assume" => {
                self.advance();
                StatementKind::Assume(self.expression()?)
            }
            "assert" => {
                self.advance();
                let condition = self.expression()?;
                let mut message = None;
                if self.eat(",") {
                    if self.token().kind != Kind::Text {
                        return Err(self.unexpected("a message in double quotes"));
                    }
                    message = Some(unescape(self.advance().text));
                }
                StatementKind::Assert(condition, message)
            }
            _ => {
                if let Some(d) = self.c_statement() {
                    self.report(d);
                    return Ok(StatementKind::Skip);
                }
                if let Some(d) = self.c_declaration(true).or_else(|| self.increment()) {
                    self.broken_declaration = true;
                    return Err(self.report(d));
                }
                return self.assignment();
            }
        };
        self.expect(";")?;
        Ok(kind)
    }

    /// The block of an `if` or a `while`. A statement without braces is told, and read as if it had them.
    fn body(&mut self) -> Result<Block> {
        self.assigned("{")?;
        if self.at("{") || self.slip("{").is_none_or(|h| !h.starts_with("braces")) {
            return self.block();
        }
        // It is not there, and the error says so.
        let _ = self.expect("{");
        // It nests like a block.
        if self.blocks >= MAX_BLOCKS {
            return Err(self.unexpected("`{`"));
        }
        self.blocks += 1;
        let mut statements = Vec::new();
        self.statement_into(&mut statements);
        self.blocks -= 1;
        let close = self.last_span();
        Ok(Block { statements, close })
    }

    /// `call f(a, b)`
    fn call(&mut self) -> Result<(Name, Vec<Ex>)> {
        self.advance();
        let function = self.name("the name of a function")?;
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.at(")") {
            arguments.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok((function, arguments))
    }

    fn simple(&mut self, kind: StatementKind) -> StatementKind {
        self.advance();
        kind
    }

    fn if_statement(&mut self) -> Result<StatementKind> {
        let condition = self.expression()?;
        let yes = self.body()?;
        if !self.eat("else") {
            return Ok(StatementKind::If(condition, yes, None));
        }
        if !self.at("if") {
            let no = self.body()?;
            return Ok(StatementKind::If(condition, yes, Some(no)));
        }
        // `else if` nests like a block.
        if self.blocks >= MAX_BLOCKS {
            let span = self.span();
            return Err(self.report(Diagnostic::error(
                span,
                format!("blocks are nested more than {MAX_BLOCKS} deep"),
            )));
        }
        self.blocks += 1;
        let start = self.span();
        self.advance();
        let inner = self.if_statement();
        self.blocks -= 1;
        let statement = Statement {
            labels: Vec::new(),
            kind: inner?,
            span: start.to(self.last_span()),
        };
        let no = Block {
            statements: vec![statement],
            close: self.last_span(),
        };
        Ok(StatementKind::If(condition, yes, Some(no)))
    }

    /// `place = e;`, `place = any lo..hi;` or an exchange for its effect.
    fn assignment(&mut self) -> Result<StatementKind> {
        if let Some(d) = self.operator_assignment() {
            return Err(self.report(d));
        }
        let first = self.token();
        let near = did_you_mean(first.text, RESERVED.iter().copied())
            .filter(|_| first.kind == Kind::Name && !RESERVED.contains(&first.text));
        let place = self.expression().inspect_err(|_| {
            if let Some(hint) = &near {
                self.diagnostics.hint_last(hint);
            }
        })?;
        let exchange = matches!(
            place.kind,
            ExKind::Cas(..) | ExKind::Swap(..) | ExKind::FetchAdd(..)
        );
        if exchange && self.at(";") {
            self.advance();
            return Ok(StatementKind::Effect(place));
        }
        if !self.at("=") {
            let wanted = "`=`: a statement that starts with an expression is an assignment";
            let mut d = self.cursor.unexpected(wanted);
            if near.is_some() {
                d.span = first.span;
                d.hint = near;
            } else {
                d.hint = self.beyond().map(String::from);
            }
            return Err(self.report(d));
        }
        self.advance();
        if self.eat("any") {
            let range = if self.at(";") {
                None
            } else {
                Some(self.range("a range `lo..hi`, or `;` for any value of the type")?)
            };
            self.expect(";")?;
            return Ok(StatementKind::Any(place, range));
        }
        let called = matches!(self.cursor.ahead(1).kind, Kind::Name | Kind::Quoted);
        if self.at("call") && called {
            let (function, arguments) = self.call()?;
            self.expect(";")?;
            return Ok(StatementKind::Call(Some(place), function, arguments));
        }
        let value: Ex = self.expression()?;
        self.expect(";")?;
        Ok(StatementKind::Assign(place, value))
    }
}

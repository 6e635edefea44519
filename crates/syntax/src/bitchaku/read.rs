//! Tokens to [`File`], by recursive descent along the grammar of printz-2015 §3.

use super::ast::{File, Initial, Labelled, Leaf, Named, Process, Statement};
use crate::diagnostics::{Diagnostic, nearest};
use crate::infix::{self, SYMBOLS};
use crate::tokens::{Cursor, Kind, Lexis, Reported, clip};
use wattle_model::{Expr, Span};

const LEXIS: Lexis = Lexis {
    symbols: SYMBOLS,
    line_comments: true,
    sigil: None,
};

const RESERVED: [&str; 23] = [
    "beginit",
    "endinit",
    "process",
    "store",
    "load",
    "goto",
    "flush",
    "fence",
    "abort",
    "nop",
    "if",
    "else",
    "endif",
    "assert",
    "predicate",
    "always",
    "assume",
    "begin_atomic",
    "end_atomic",
    "true",
    "false",
    "pc",
    "mod",
];

const STATEMENTS: [&str; 11] = [
    "store",
    "load",
    "goto",
    "flush",
    "fence",
    "abort",
    "nop",
    "if",
    "assume",
    "begin_atomic",
    "end_atomic",
];

type Result<T> = std::result::Result<T, Reported>;

struct Parser<'t> {
    c: Cursor<'t>,
}

pub(super) fn file(text: &str) -> (File, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let tokens = LEXIS.tokens(text, &mut diagnostics);
    let mut p = Parser {
        c: Cursor::new(tokens, diagnostics),
    };
    let mut file = File::default();
    p.file(&mut file);
    (file, p.c.diagnostics)
}

impl Parser<'_> {
    fn file(&mut self, file: &mut File) {
        if self.c.expect("beginit").is_err() {
            self.hint("a `.bit` file starts with `beginit`, the initial stores and `endinit`");
            if !self.skip_to(&["process", "assert", "predicate"]) {
                return;
            }
        } else {
            self.init(file);
        }
        while !self.c.at_end() {
            if self.c.at("process") {
                self.process(file);
            } else if self.c.at("assert") {
                self.assertion(file);
            } else if self.c.at("predicate") {
                self.predicate(file);
            } else {
                self.c
                    .unexpected("`process`, `assert`, `predicate` or the end of the file");
                self.skip_to(&["process", "assert", "predicate"]);
            }
        }
        if file.processes.is_empty() && self.c.diagnostics.is_empty() {
            self.c.unexpected("`process`");
        }
    }

    fn hint(&mut self, hint: &str) {
        if let Some(d) = self.c.diagnostics.last_mut() {
            d.hint = Some(hint.into());
        }
    }

    /// Skips to one of the words; false if the file ends first.
    fn skip_to(&mut self, words: &[&str]) -> bool {
        while !self.c.at_end() {
            if words.iter().any(|w| self.c.at(w)) {
                return true;
            }
            self.c.take();
        }
        false
    }

    fn init(&mut self, file: &mut File) {
        while !self.c.eat("endinit") {
            if self.c.at_end() || self.c.at("process") {
                self.c.unexpected("`store` or `endinit`");
                return;
            }
            let (start, before) = (self.c.peek().span, self.c.position());
            match self.initial(start) {
                Ok(i) => file.init.push(i),
                Err(Reported) => self.recover(before),
            }
        }
    }

    fn initial(&mut self, start: Span) -> Result<Initial> {
        self.c.expect("store")?;
        let variable = self.name("a shared variable")?;
        self.c.expect("=")?;
        let value = self.expr()?;
        self.c.expect(";")?;
        Ok(Initial {
            variable,
            value,
            span: start.to(self.c.last_span()),
        })
    }

    fn process(&mut self, file: &mut File) {
        let start = self.c.take().span;
        let id = self.c.number("the number of the process");
        let span = start.to(self.c.last_span());
        if id.is_ok() {
            let _ = self.c.expect(":");
        } else {
            self.recover(self.c.position());
        }
        let mut body = Vec::new();
        self.list(&mut body);
        if !(self.c.at_end()
            || ["process", "assert", "predicate"]
                .iter()
                .any(|w| self.c.at(w)))
        {
            self.c
                .unexpected("a statement, `process`, `assert`, `predicate` or the end of the file");
            self.skip_to(&["process", "assert", "predicate"]);
        }
        if let Ok(id) = id {
            file.processes.push(Process { id, span, body });
        }
    }

    /// Statements up to `else`, `endif`, `assert`, the next process or the end of the file. A bad one
    /// is skipped.
    fn list(&mut self, into: &mut Vec<Labelled>) {
        while !self.c.at_end()
            && !["else", "endif", "assert", "process"]
                .iter()
                .any(|w| self.c.at(w))
        {
            let first = self.c.peek();
            let labelled = first.kind == Kind::Number;
            let before = self.c.position();
            match self.labelled() {
                Ok(s) => into.push(s),
                Err(Reported) => {
                    self.recover(before);
                    // The label stays, so that jumps to it are no errors.
                    into.push(Labelled {
                        label: labelled.then(|| (first.text.to_string(), first.span)),
                        statement: Statement::Nop,
                        span: first.span,
                    });
                }
            }
        }
    }

    /// Skips past the next `;`, or up to something that starts afresh, but always past `before`.
    fn recover(&mut self, before: usize) {
        let stops = ["endif", "else", "assert", "process", "endinit"];
        while !self.c.at_end() {
            let fresh = stops.iter().any(|w| self.c.at(w));
            if fresh && self.c.position() > before {
                return;
            }
            if self.c.take().text == ";" {
                return;
            }
        }
    }

    fn labelled(&mut self) -> Result<Labelled> {
        let label = self.label()?;
        let t = self.c.peek();
        if label.is_some() && (t.kind == Kind::Number || self.c.ahead(1).text == ":") {
            let reported = self.c.unexpected("a statement after the label");
            self.hint("a statement has at most one label; give the second one a `nop;`");
            return Err(reported);
        }
        let start = t.span;
        self.c.enter()?;
        let statement = self.statement();
        self.c.leave();
        Ok(Labelled {
            label,
            statement: statement?,
            span: start.to(self.c.last_span()),
        })
    }

    /// `5:`, or a name and a colon.
    fn label(&mut self) -> Result<Option<Named>> {
        let t = self.c.peek();
        let named = t.kind == Kind::Name && !RESERVED.contains(&t.text);
        if self.c.ahead(1).text == ":" && (named || t.kind == Kind::Number) {
            self.c.take();
            self.c.take();
            return Ok(Some((t.text.to_string(), t.span)));
        }
        Ok(None)
    }

    fn statement(&mut self) -> Result<Statement> {
        let t = self.c.peek();
        if t.kind == Kind::Name && !RESERVED.contains(&t.text) {
            if self.c.ahead(1).text != "=" {
                let near = nearest(t.text, STATEMENTS);
                let reported = self.c.unexpected("a statement");
                if let Some(n) = near {
                    self.hint(&format!("did you mean `{n}`?"));
                }
                return Err(reported);
            }
            let local = self.name("a local variable")?;
            self.c.expect("=")?;
            let value = self.expr()?;
            self.c.expect(";")?;
            return Ok(Statement::Assign(local, value));
        }
        if t.kind != Kind::Name || !STATEMENTS.contains(&t.text) {
            return Err(self.c.unexpected("a statement"));
        }
        self.c.take();
        let statement = match t.text {
            "store" => {
                let variable = self.name("a shared variable")?;
                self.c.expect("=")?;
                Statement::Store(variable, self.expr()?)
            }
            "load" => {
                let local = self.name("a local variable")?;
                self.c.expect("=")?;
                Statement::Load(local, self.name("a shared variable")?)
            }
            "goto" => {
                let t = self.c.peek();
                if t.kind != Kind::Number && (t.kind != Kind::Name || RESERVED.contains(&t.text)) {
                    return Err(self.c.unexpected("a label"));
                }
                self.c.take();
                Statement::Goto((t.text.to_string(), t.span))
            }
            "flush" => Statement::Flush,
            "fence" => Statement::Fence,
            "nop" => Statement::Nop,
            "begin_atomic" => Statement::AtomicBegin,
            "end_atomic" => Statement::AtomicEnd,
            "assume" => Statement::Assume(self.parenthesised()?),
            "abort" => {
                self.c.expect("(")?;
                let message = self.c.peek();
                if message.kind != Kind::Text {
                    return Err(self.c.unexpected("a message in double quotes"));
                }
                self.c.take();
                self.c.expect(")")?;
                Statement::Abort(message.text.to_string())
            }
            _ => return self.branch(t.span),
        };
        self.c.expect(";")?;
        Ok(statement)
    }

    fn branch(&mut self, start: Span) -> Result<Statement> {
        let condition = self.parenthesised();
        if condition.is_err() {
            // What follows the broken condition is still a block to be read.
            while !self.c.at_end()
                && !STATEMENTS.contains(&self.c.peek().text)
                && self.c.peek().span.line == self.c.last_span().line
            {
                self.c.take();
            }
        }
        let (mut then, mut otherwise) = (Vec::new(), Vec::new());
        self.list(&mut then);
        if self.c.eat("else") {
            self.list(&mut otherwise);
        }
        if !self.c.eat("endif") {
            let reported = self.c.unexpected("`endif`");
            self.hint(&format!("it closes the `if` of line {}", start.line));
            return Err(reported);
        }
        self.c.eat(";");
        Ok(Statement::If(condition?, then, otherwise))
    }

    fn parenthesised(&mut self) -> Result<Expr<Leaf>> {
        self.c.expect("(")?;
        let e = self.expr()?;
        self.c.expect(")")?;
        Ok(e)
    }

    fn assertion(&mut self, file: &mut File) {
        let start = self.c.take().span;
        match self.always() {
            Ok(e) => file.assertions.push((e, start.to(self.c.last_span()))),
            Err(Reported) => {
                self.skip_to(&["process", "assert", "predicate"]);
            }
        }
    }

    /// `predicate(b);`, a hint for predicate abstraction.
    fn predicate(&mut self, file: &mut File) {
        let start = self.c.take().span;
        match self.parenthesised() {
            Ok(e) => {
                file.predicates.push((e, start.to(self.c.last_span())));
                self.c.eat(";");
            }
            Err(Reported) => {
                self.skip_to(&["process", "assert", "predicate"]);
            }
        }
    }

    fn always(&mut self) -> Result<Expr<Leaf>> {
        self.c.expect("(")?;
        self.c.expect("always")?;
        self.c.expect("(")?;
        let e = self.expr()?;
        self.c.expect(")")?;
        self.c.expect(")")?;
        self.c.eat(";");
        Ok(e)
    }

    fn name(&mut self, what: &str) -> Result<Named> {
        let t = self.c.name(what, &RESERVED)?;
        Ok((t.text.to_string(), t.span))
    }

    fn expr(&mut self) -> Result<Expr<Leaf>> {
        infix::expression(&mut self.c, &mut leaf)
    }
}

fn leaf(c: &mut Cursor<'_>) -> Result<Expr<Leaf>> {
    let t = c.peek();
    match (t.kind, t.text) {
        (Kind::Number, _) => Ok(Expr::Const(c.number("a number")?)),
        (_, "*") => {
            c.take();
            Ok(Expr::Atom(Leaf::Any(t.span)))
        }
        (Kind::Name, "true") => {
            c.take();
            Ok(Expr::TRUE)
        }
        (Kind::Name, "false") => {
            c.take();
            Ok(Expr::FALSE)
        }
        (Kind::Name, name) if name == "pc" || !RESERVED.contains(&name) => {
            c.take();
            if c.eat("(") {
                let i = c.number("the number of a process")?;
                c.expect(")")?;
                let span = t.span.to(c.last_span());
                return Ok(Expr::Atom(Leaf::Of(name.to_string(), i, span)));
            }
            if name == "pc" {
                let message = format!("`{}` without a process", clip(name));
                let d = Diagnostic::error(t.span, message).expected("`pc(i)`");
                return Err(c.report(d));
            }
            Ok(Expr::Atom(Leaf::Name(name.to_string(), t.span)))
        }
        _ => Err(c.unexpected("an expression")),
    }
}

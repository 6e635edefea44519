//! Tokens to [`File`], by recursive descent along calin-2016 Fig. 2.1. `proc` is `process`, the
//! semicolon after the last statement of a list is optional, and so are labels.

use super::ast::{Basic, File, Labelled, Leaf, Named, Process};
use crate::diagnostics::{Diagnostic, nearest};
use crate::infix::{self, SYMBOLS};
use crate::tokens::{Cursor, Kind, Lexis, Reported};
use wattle_model::{Expr, PropertyKind, Span};

const LEXIS: Lexis = Lexis {
    symbols: SYMBOLS,
    line_comments: true,
    sigil: None,
};

const RESERVED: [&str; 23] = [
    "program",
    "variables",
    "process",
    "proc",
    "begin",
    "end",
    "skip",
    "if",
    "then",
    "else",
    "fi",
    "while",
    "do",
    "od",
    "true",
    "false",
    "and",
    "or",
    "not",
    "mod",
    "never",
    "always",
    "fence",
];

const STATEMENTS: [&str; 4] = ["skip", "if", "while", "fence"];

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
        if self.head(file).is_err() {
            self.skip_to(&["process", "proc"]);
        }
        while !self.c.at_end() {
            if self.c.at("process") || self.c.at("proc") {
                self.process(file);
            } else if self.c.at("never") || self.c.at("always") {
                self.property(file);
            } else if self.c.at("end") && self.closes_program() {
                // Fig. 2.2 closes the program as well.
                self.c.take();
            } else {
                self.c
                    .unexpected("`process`, `never`, `always` or the end of the file");
                self.c.take();
                self.skip_to(&["process", "proc", "never", "always"]);
            }
        }
        if file.processes.is_empty() && self.c.diagnostics.is_empty() {
            self.c.unexpected("`process`");
        }
    }

    fn closes_program(&self) -> bool {
        let next = self.c.ahead(1);
        next.kind == Kind::End || next.text == "never" || next.text == "always"
    }

    fn hint(&mut self, hint: &str) {
        if let Some(d) = self.c.diagnostics.last_mut() {
            d.hint = Some(hint.into());
        }
    }

    fn skip_to(&mut self, words: &[&str]) {
        while !self.c.at_end() && !words.iter().any(|w| self.c.at(w)) {
            self.c.take();
        }
    }

    /// `program NAME variables x = y = 0, z = 1`
    fn head(&mut self, file: &mut File) -> Result<()> {
        if let Err(r) = self.c.expect("program") {
            self.hint("an `.imp` file starts with `program NAME variables x = 0, y = 0`");
            return Err(r);
        }
        self.c.name("a name for the program", &RESERVED)?;
        self.c.expect("variables")?;
        loop {
            let t = self.c.peek();
            if t.kind != Kind::Name || RESERVED.contains(&t.text) {
                return Ok(());
            }
            let mut names = Vec::new();
            let value = loop {
                names.push(self.name("a variable")?);
                self.c.expect("=")?;
                let t = self.c.peek();
                if t.kind != Kind::Name || RESERVED.contains(&t.text) {
                    break self.constant()?;
                }
            };
            file.variables.extend(names.into_iter().map(|n| (n, value)));
            let _ = self.c.eat(",") || self.c.eat(";");
        }
    }

    fn constant(&mut self) -> Result<i64> {
        if self.c.eat("true") {
            return Ok(1);
        }
        if self.c.eat("false") {
            return Ok(0);
        }
        let negative = self.c.eat("-");
        let n = self.c.number("an initial value")?;
        Ok(if negative { -n } else { n })
    }

    fn process(&mut self, file: &mut File) {
        let keyword = self.c.take();
        let name = self.name("a name for the process");
        if name.is_ok() && self.c.expect("begin").is_err() || name.is_err() {
            self.skip_to(&["begin", "process", "proc", "never", "always"]);
            self.c.eat("begin");
        }
        let mut body = Vec::new();
        self.list(&mut body);
        if !self.c.eat("end") {
            self.c.unexpected("`end`");
            self.hint(&format!(
                "it closes the process of line {}",
                keyword.span.line
            ));
            self.skip_to(&["process", "proc", "never", "always"]);
        }
        self.c.eat(";");
        let name = name.unwrap_or_else(|Reported| (String::from("?"), keyword.span));
        file.processes.push(Process { name, body });
    }

    fn at_list_end(&self) -> bool {
        let ends = [
            "end", "od", "fi", "else", "process", "proc", "never", "always",
        ];
        self.c.at_end() || ends.iter().any(|w| self.c.at(w))
    }

    /// Statements, each with a `;` that the last one may leave out. A bad one is skipped.
    fn list(&mut self, into: &mut Vec<Labelled>) {
        while !self.at_list_end() {
            let first = self.c.peek();
            let labelled = self.c.ahead(1).text == ":" && self.c.ahead(2).text != "=";
            match self.labelled() {
                Ok(s) => into.push(s),
                Err(Reported) => {
                    self.recover();
                    // The label stays, so that properties may name it.
                    into.push(Labelled {
                        label: labelled.then(|| (first.text.to_string(), first.span)),
                        basic: Basic::Skip,
                        span: first.span,
                    });
                }
            }
            if !self.c.eat(";") && !self.at_list_end() {
                self.c.unexpected("`;`");
                self.recover();
                self.c.eat(";");
            }
        }
    }

    fn recover(&mut self) {
        while !self.at_list_end() && !self.c.at(";") {
            self.c.take();
        }
    }

    fn labelled(&mut self) -> Result<Labelled> {
        let t = self.c.peek();
        let mut label = None;
        let named = t.kind == Kind::Name && !RESERVED.contains(&t.text);
        if self.c.ahead(1).text == ":" && (named || t.kind == Kind::Number) {
            self.c.take();
            self.c.take();
            label = Some((t.text.to_string(), t.span));
        }
        let start = self.c.peek().span;
        self.c.enter()?;
        let basic = self.basic();
        self.c.leave();
        Ok(Labelled {
            label,
            basic: basic?,
            span: start.to(self.c.last_span()),
        })
    }

    fn basic(&mut self) -> Result<Basic> {
        let t = self.c.peek();
        if t.kind == Kind::Name && !RESERVED.contains(&t.text) {
            if self.c.ahead(1).text != ":=" {
                let near = nearest(t.text, STATEMENTS);
                let reported = self.c.unexpected("a statement");
                if let Some(n) = near {
                    self.hint(&format!("did you mean `{n}`?"));
                } else if self.c.ahead(1).text == "=" {
                    self.hint("an assignment is written `x := …`");
                }
                return Err(reported);
            }
            let variable = self.name("a variable")?;
            self.c.expect(":=")?;
            return Ok(Basic::Assign(variable, self.expr()?));
        }
        if t.kind != Kind::Name || !STATEMENTS.contains(&t.text) {
            return Err(self.c.unexpected("a statement"));
        }
        self.c.take();
        match t.text {
            "skip" => Ok(Basic::Skip),
            "fence" => Ok(Basic::Fence),
            "if" => {
                let condition = self.expr()?;
                self.c.expect("then")?;
                let (mut then, mut otherwise) = (Vec::new(), Vec::new());
                self.list(&mut then);
                if self.c.eat("else") {
                    self.list(&mut otherwise);
                }
                self.close("fi", "if", t.span)?;
                Ok(Basic::If(condition, then, otherwise))
            }
            _ => {
                let condition = self.expr()?;
                self.c.expect("do")?;
                let mut body = Vec::new();
                self.list(&mut body);
                self.close("od", "while", t.span)?;
                Ok(Basic::While(condition, body))
            }
        }
    }

    fn close(&mut self, word: &str, of: &str, open: Span) -> Result<()> {
        if self.c.eat(word) {
            return Ok(());
        }
        let reported = self.c.unexpected(&format!("`{word}`"));
        self.hint(&format!("it closes the `{of}` of line {}", open.line));
        // The wrong one of the two was surely meant to close this.
        let _ = self.c.eat("fi") || self.c.eat("od");
        Err(reported)
    }

    fn property(&mut self, file: &mut File) {
        let keyword = self.c.take();
        let kind = match keyword.text {
            "never" => PropertyKind::Never,
            _ => PropertyKind::Always,
        };
        match self.expr() {
            Ok(e) => {
                let span = keyword.span.to(self.c.last_span());
                file.properties.push((kind, e, span));
                self.c.eat(";");
            }
            Err(Reported) => self.skip_to(&["process", "proc", "never", "always"]),
        }
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
        (Kind::Name, "true") => {
            c.take();
            Ok(Expr::TRUE)
        }
        (Kind::Name, "false") => {
            c.take();
            Ok(Expr::FALSE)
        }
        (Kind::Name, name) if !RESERVED.contains(&name) => {
            c.take();
            if !c.eat("@") {
                return Ok(Expr::Atom(Leaf::Variable(name.to_string(), t.span)));
            }
            let label = c.peek();
            if !matches!(label.kind, Kind::Name | Kind::Number) {
                return Err(c.unexpected("a label"));
            }
            c.take();
            let span = t.span.to(label.span);
            Ok(Expr::Atom(Leaf::At(
                name.to_string(),
                label.text.to_string(),
                span,
            )))
        }
        _ => Err(c.unexpected("an expression")),
    }
}

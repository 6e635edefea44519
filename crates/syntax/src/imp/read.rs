//! Tokens to [`File`], by recursive descent along calin-2016 Fig. 2.1. `proc` is `process`, the
//! semicolon after the last statement of a list is optional, and so are labels.

use super::ast::{Basic, File, Labelled, Leaf, Process};
use crate::diagnostics::{Diagnostic, did_you_mean};
use crate::infix::{self, Asserted, LEXIS};
use crate::tokens::{Kind, Reader, Reported};
use wattle_model::{Expr, PropertyKind, Span};

const RESERVED: [&str; 24] = [
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
    "assert",
    "fence",
];

const STATEMENTS: [&str; 4] = ["skip", "if", "while", "fence"];

type Result<T> = std::result::Result<T, Reported>;

/// What starts a part of a file.
const PARTS: [&str; 5] = ["process", "proc", "never", "always", "assert"];

pub(super) fn file(text: &str) -> (File, Vec<Diagnostic>) {
    let mut c = Reader::new(&LEXIS, &RESERVED, text);
    let mut file = File::default();
    parts(&mut c, &mut file);
    (file, c.diagnostics)
}

fn parts(c: &mut Reader<'_>, file: &mut File) {
    if head(c, file).is_err() {
        c.skip_to(&["process", "proc"]);
    }
    while !c.at_end() {
        if c.at("process") || c.at("proc") {
            process(c, file);
        } else if c.at("never") || c.at("always") {
            property(c, file);
        } else if c.at("assert") {
            assertion(c, file);
        } else if c.at("end") && closes_program(c) {
            // Fig. 2.2 closes the program as well.
            c.take();
        } else {
            c.unexpected("`process`, `never`, `always`, `assert` or the end of the file");
            c.take();
            c.skip_to(&PARTS);
        }
    }
    if file.processes.is_empty() && c.diagnostics.is_empty() {
        c.unexpected("`process`");
    }
}

fn closes_program(c: &Reader<'_>) -> bool {
    let next = c.ahead(1);
    next.kind == Kind::End || ["never", "always", "assert"].contains(&next.text)
}

/// `program NAME variables x = y = 0, z = 1`; `indivisible` may stand before `variables`.
fn head(c: &mut Reader<'_>, file: &mut File) -> Result<()> {
    if !c.eat("program") {
        let hint = "an `.imp` file starts with `program NAME variables x = 0, y = 0`";
        return Err(c.refuse("`program`", Some(hint.into())));
    }
    c.name("a name for the program")?;
    file.indivisible = c.eat("indivisible");
    c.expect("variables")?;
    loop {
        if !c.names(c.peek()) {
            return Ok(());
        }
        let mut names = Vec::new();
        let value = loop {
            names.push(c.named("a variable")?);
            c.expect("=")?;
            if !c.names(c.peek()) {
                break constant(c)?;
            }
        };
        file.variables.extend(names.into_iter().map(|n| (n, value)));
        let _ = c.eat(",") || c.eat(";");
    }
}

fn constant(c: &mut Reader<'_>) -> Result<i64> {
    if c.eat("true") {
        return Ok(1);
    }
    if c.eat("false") {
        return Ok(0);
    }
    c.integer("an initial value")
}

fn process(c: &mut Reader<'_>, file: &mut File) {
    let keyword = c.take();
    let name = c.named("a name for the process");
    if name.is_ok() && c.expect("begin").is_err() || name.is_err() {
        c.skip_to(&["begin", "process", "proc", "never", "always", "assert"]);
        c.eat("begin");
    }
    let mut body = Vec::new();
    list(c, &mut body);
    if !c.eat("end") {
        let hint = format!("it closes the process of line {}", keyword.span.line);
        c.refuse("`end`", Some(hint));
        c.skip_to(&PARTS);
    }
    c.eat(";");
    let name = name.unwrap_or_else(|Reported| (String::from("?"), keyword.span));
    file.processes.push(Process { name, body });
}

fn at_list_end(c: &Reader<'_>) -> bool {
    let ends = [
        "end", "od", "fi", "else", "process", "proc", "never", "always", "assert",
    ];
    c.at_end() || c.at_any(&ends)
}

/// Statements, each with a `;` that the last one may leave out. A bad one is skipped.
fn list(c: &mut Reader<'_>, into: &mut Vec<Labelled>) {
    while !at_list_end(c) {
        let (label, span) = (c.label_ahead(), c.peek().span);
        match labelled(c) {
            Ok(s) => into.push(s),
            Err(Reported) => {
                recover(c);
                // The label stays, so that properties may name it.
                into.push(Labelled {
                    label,
                    statement: Basic::Skip,
                    span,
                });
            }
        }
        if !c.eat(";") && !at_list_end(c) {
            c.unexpected("`;`");
            recover(c);
            c.eat(";");
        }
    }
}

fn recover(c: &mut Reader<'_>) {
    while !at_list_end(c) && !c.at(";") {
        c.take();
    }
}

fn labelled(c: &mut Reader<'_>) -> Result<Labelled> {
    let label = c.label();
    let start = c.peek().span;
    let statement = c.nested(basic)?;
    Ok(Labelled {
        label,
        statement,
        span: start.to(c.last_span()),
    })
}

fn basic(c: &mut Reader<'_>) -> Result<Basic> {
    let t = c.peek();
    if c.names(t) {
        let next = c.ahead(1);
        if !next.is(":=") {
            let written = next
                .is("=")
                .then(|| "an assignment is written `x := …`".into());
            let hint = did_you_mean(t.text, STATEMENTS).or(written);
            return Err(c.refuse("a statement", hint));
        }
        let variable = c.named("a variable")?;
        c.expect(":=")?;
        return Ok(Basic::Assign(variable, expr(c)?));
    }
    if t.kind != Kind::Name || !STATEMENTS.contains(&t.text) {
        return Err(c.unexpected("a statement"));
    }
    c.take();
    match t.text {
        "skip" => Ok(Basic::Skip),
        "fence" => Ok(Basic::Fence),
        "if" => {
            let condition = expr(c)?;
            c.expect("then")?;
            let (mut then, mut otherwise) = (Vec::new(), Vec::new());
            list(c, &mut then);
            if c.eat("else") {
                list(c, &mut otherwise);
            }
            close(c, "fi", "if", t.span)?;
            Ok(Basic::If(condition, then, otherwise))
        }
        _ => {
            let condition = expr(c)?;
            c.expect("do")?;
            let mut body = Vec::new();
            list(c, &mut body);
            close(c, "od", "while", t.span)?;
            Ok(Basic::While(condition, body))
        }
    }
}

fn close(c: &mut Reader<'_>, word: &str, of: &str, open: Span) -> Result<()> {
    if c.eat(word) {
        return Ok(());
    }
    let hint = format!("it closes the `{of}` of line {}", open.line);
    let reported = c.refuse(&format!("`{word}`"), Some(hint));
    // The wrong one of the two was surely meant to close this.
    let _ = c.eat("fi") || c.eat("od");
    Err(reported)
}

fn property(c: &mut Reader<'_>, file: &mut File) {
    let keyword = c.take();
    let kind = match keyword.text {
        "never" => PropertyKind::Never,
        _ => PropertyKind::Always,
    };
    match expr(c) {
        Ok(e) => {
            let span = keyword.span.to(c.last_span());
            file.properties.push((kind, e, span));
            c.eat(";");
        }
        Err(Reported) => {
            c.skip_to(&PARTS);
        }
    }
}

/// `assert(eventually(e));` and so on.
fn assertion(c: &mut Reader<'_>, file: &mut File) {
    let start = c.take().span;
    match infix::asserted(c, &mut leaf) {
        Ok(asserted) => {
            let span = start.to(c.last_span());
            match asserted {
                Asserted::Always(e) => file.properties.push((PropertyKind::Always, e, span)),
                other => file.demands.push((other, span)),
            }
            c.eat(";");
        }
        Err(Reported) => {
            c.skip_to(&PARTS);
        }
    }
}

fn expr(c: &mut Reader<'_>) -> Result<Expr<Leaf>> {
    infix::expression(c, &mut leaf)
}

fn leaf(c: &mut Reader<'_>) -> Result<Expr<Leaf>> {
    let t = c.peek();
    if !c.names(t) {
        return Err(c.unexpected("an expression"));
    }
    c.take();
    let name = t.text.to_string();
    if !c.eat("@") {
        return Ok(Expr::Atom(Leaf::Variable(name, t.span)));
    }
    let (label, end) = c.label_name()?;
    Ok(Expr::Atom(Leaf::At(name, label, t.span.to(end))))
}

//! Tokens to [`File`], by recursive descent along the grammar of printz-2015 §3.

use super::ast::{File, Hint, Initial, Instance, Labelled, Leaf, Process, Statement};
use crate::diagnostics::{Diagnostic, did_you_mean};
use crate::infix::{self, LEXIS};
use crate::tokens::{Kind, Reader, Reported};
use wattle_model::{Count, Expr, Span};

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

/// What starts a part of a file.
const PARTS: [&str; 3] = ["process", "assert", "predicate"];

pub(super) fn file(text: &str) -> (File, Vec<Diagnostic>) {
    let mut c = Reader::new(&LEXIS, &RESERVED, text);
    let mut file = File::default();
    parts(&mut c, &mut file);
    (file, c.diagnostics)
}

fn parts(c: &mut Reader<'_>, file: &mut File) {
    while c.at("predicate") {
        predicate(c, &mut file.predicates, None);
    }
    if c.eat("beginit") {
        init(c, file);
    } else {
        let hint = "a `.bit` file starts with `beginit`, the initial stores and `endinit`";
        c.refuse("`beginit`", Some(hint.into()));
        if !c.skip_to(&PARTS) {
            return;
        }
    }
    while !c.at_end() {
        if c.at("process") {
            process(c, file);
        } else if c.at("assert") {
            assertion(c, file);
        } else if c.at("predicate") {
            predicate(c, &mut file.predicates, None);
        } else {
            c.unexpected("`process`, `assert`, `predicate` or the end of the file");
            c.skip_to(&PARTS);
        }
    }
    if file.processes.is_empty() && c.diagnostics.is_empty() {
        c.unexpected("`process`");
    }
}

fn init(c: &mut Reader<'_>, file: &mut File) {
    while !c.eat("endinit") {
        if c.at_end() || c.at("process") {
            c.unexpected("`store` or `endinit`");
            return;
        }
        if c.at("predicate") {
            predicate(c, &mut file.predicates, None);
            continue;
        }
        let (start, before) = (c.peek().span, c.position());
        match initial(c, start) {
            Ok(i) => file.init.push(i),
            Err(Reported) => recover(c, before),
        }
    }
}

fn initial(c: &mut Reader<'_>, start: Span) -> Result<Initial> {
    c.expect("store")?;
    let variable = c.named("a shared variable")?;
    c.expect("=")?;
    let value = expr(c)?;
    c.expect(";")?;
    Ok(Initial {
        variable,
        value,
        span: start.to(c.last_span()),
    })
}

fn process(c: &mut Reader<'_>, file: &mut File) {
    let start = c.take().span;
    let id = c.number("the number of the process");
    let count = match id.is_ok() && c.eat("[") {
        true => instances(c),
        false => Ok(Count::One),
    };
    let span = start.to(c.last_span());
    if id.is_ok() && count.is_ok() {
        let _ = c.expect(":");
    } else {
        recover(c, c.position());
    }
    let mut body = Vec::new();
    let mut hints = (&mut file.predicates, id.as_ref().ok().copied());
    list(c, &mut body, &mut hints);
    if !c.at_end() && !c.at_any(&PARTS) {
        c.unexpected("a statement, `process`, `assert`, `predicate` or the end of the file");
        c.skip_to(&PARTS);
    }
    if let (Ok(id), Ok(count)) = (id, count) {
        file.processes.push(Process {
            id,
            count,
            span,
            body,
        });
    }
}

/// How many instances of a process there are: a number, or `*` for any number.
fn instances(c: &mut Reader<'_>) -> Result<Count> {
    if c.eat("*") {
        c.expect("]")?;
        return Ok(Count::Any);
    }
    let n = c.number("a number of instances, or `*`")?;
    let count = u32::try_from(n).ok().filter(|n| *n > 0);
    let Some(count) = count else {
        let d = Diagnostic::error(c.last_span(), "a process has at least one instance");
        return Err(c.report(d));
    };
    c.expect("]")?;
    Ok(Count::Fixed(count))
}

/// Where the predicates between statements go, and the number of the process whose locals they speak of.
type Hints<'f> = (&'f mut Vec<Hint>, Option<i64>);

/// Statements up to `else`, `endif`, `assert`, the next process or the end of the file, and the predicates
/// between them. A bad statement is skipped.
fn list(c: &mut Reader<'_>, into: &mut Vec<Labelled>, hints: &mut Hints<'_>) {
    while !c.at_end() && !c.at_any(&["else", "endif", "assert", "process"]) {
        if c.at("predicate") {
            predicate(c, hints.0, hints.1);
            continue;
        }
        let (label, span) = (c.label_ahead(), c.peek().span);
        let before = c.position();
        match labelled(c, hints) {
            Ok(s) => into.push(s),
            Err(Reported) => {
                recover(c, before);
                // The label stays, so that jumps to it are no errors.
                into.push(Labelled {
                    label,
                    statement: Statement::Nop,
                    span,
                });
            }
        }
    }
}

/// Skips past the next `;`, or up to something that starts afresh, but always past `before`.
fn recover(c: &mut Reader<'_>, before: usize) {
    let stops = ["endif", "else", "assert", "process", "endinit"];
    while !c.at_end() {
        if c.at_any(&stops) && c.position() > before {
            return;
        }
        if c.take().text == ";" {
            return;
        }
    }
}

fn labelled(c: &mut Reader<'_>, hints: &mut Hints<'_>) -> Result<Labelled> {
    let label = c.label();
    let t = c.peek();
    if label.is_some() && (t.kind == Kind::Number || c.ahead(1).is(":")) {
        let hint = "a statement has at most one label; give the second one a `nop;`";
        return Err(c.refuse("a statement after the label", Some(hint.into())));
    }
    let statement = c.nested(|c| statement(c, hints))?;
    Ok(Labelled {
        label,
        statement,
        span: t.span.to(c.last_span()),
    })
}

fn statement(c: &mut Reader<'_>, hints: &mut Hints<'_>) -> Result<Statement> {
    let t = c.peek();
    if c.names(t) {
        if !c.ahead(1).is("=") {
            let near = did_you_mean(t.text, STATEMENTS);
            return Err(c.refuse("a statement", near));
        }
        let local = c.named("a local variable")?;
        c.expect("=")?;
        let value = expr(c)?;
        c.expect(";")?;
        return Ok(Statement::Assign(local, value));
    }
    if t.kind != Kind::Name || !STATEMENTS.contains(&t.text) {
        return Err(c.unexpected("a statement"));
    }
    c.take();
    let statement = match t.text {
        "store" => {
            let variable = c.named("a shared variable")?;
            c.expect("=")?;
            Statement::Store(variable, expr(c)?)
        }
        "load" => {
            let local = c.named("a local variable")?;
            c.expect("=")?;
            Statement::Load(local, c.named("a shared variable")?)
        }
        "goto" => Statement::Goto(c.label_name()?),
        "flush" => Statement::Flush,
        "fence" => Statement::Fence,
        "nop" => Statement::Nop,
        "begin_atomic" => Statement::AtomicBegin,
        "end_atomic" => Statement::AtomicEnd,
        "assume" => Statement::Assume(parenthesised(c)?),
        "abort" => {
            c.expect("(")?;
            let message = c.peek();
            if message.kind != Kind::Text {
                return Err(c.unexpected("a message in double quotes"));
            }
            c.take();
            c.expect(")")?;
            Statement::Abort(message.text.to_string())
        }
        _ => return branch(c, t.span, hints),
    };
    c.expect(";")?;
    Ok(statement)
}

fn branch(c: &mut Reader<'_>, start: Span, hints: &mut Hints<'_>) -> Result<Statement> {
    let condition = parenthesised(c);
    if condition.is_err() {
        // What follows the broken condition is still a block to be read.
        while !c.at_end()
            && !STATEMENTS.contains(&c.peek().text)
            && c.peek().span.line == c.last_span().line
        {
            c.take();
        }
    }
    let (mut then, mut otherwise) = (Vec::new(), Vec::new());
    list(c, &mut then, hints);
    if c.eat("else") {
        list(c, &mut otherwise, hints);
    }
    if !c.eat("endif") {
        let hint = format!("it closes the `if` of line {}", start.line);
        return Err(c.refuse("`endif`", Some(hint)));
    }
    c.eat(";");
    Ok(Statement::If(condition?, then, otherwise))
}

fn parenthesised(c: &mut Reader<'_>) -> Result<Expr<Leaf>> {
    c.expect("(")?;
    let e = expr(c)?;
    c.expect(")")?;
    Ok(e)
}

fn assertion(c: &mut Reader<'_>, file: &mut File) {
    let start = c.take().span;
    match infix::asserted(c, &mut leaf) {
        Ok(a) => {
            file.assertions.push((a, start.to(c.last_span())));
            c.eat(";");
        }
        Err(Reported) => {
            c.skip_to(&PARTS);
        }
    }
}

/// `predicate(b);`, a hint for predicate abstraction.
fn predicate(c: &mut Reader<'_>, into: &mut Vec<Hint>, inside: Option<i64>) {
    let start = c.take().span;
    match parenthesised(c) {
        Ok(e) => {
            into.push((e, inside, start.to(c.last_span())));
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
    if c.eat("*") {
        return Ok(Expr::Atom(Leaf::Any(t.span)));
    }
    if !c.names(t) && !t.is("pc") {
        return Err(c.unexpected("an expression"));
    }
    c.take();
    let name = t.text.to_string();
    if c.eat("(") {
        let i = c.number("the number of a process")?;
        let instance = match c.eat(",") {
            true if c.peek().kind == Kind::Number => {
                let n = c.number("the number of an instance")?;
                Some(Instance::Number(u32::try_from(n).unwrap_or(u32::MAX)))
            }
            true => Some(Instance::Named(c.named("an instance")?.0)),
            false => None,
        };
        c.expect(")")?;
        let span = t.span.to(c.last_span());
        return Ok(Expr::Atom(Leaf::Of(name, i, instance, span)));
    }
    if t.text == "pc" {
        let d = Diagnostic::error(t.span, "`pc` without a process").expected("`pc(i)`");
        return Err(c.report(d));
    }
    Ok(Expr::Atom(Leaf::Name(name, t.span)))
}

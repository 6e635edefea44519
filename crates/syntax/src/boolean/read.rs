//! Tokens to [`File`].

use super::ast::{File, Labelled, Leaf, Process, Statement, Value};
use crate::diagnostics::Diagnostic;
use crate::flow::junction;
use crate::infix::LEXIS;
use crate::tokens::{Kind, Named, Reader, Reported};
use wattle_model::{Expr, Op1, Op2};

const RESERVED: [&str; 17] = [
    "shared",
    "local",
    "init",
    "process",
    "store",
    "load",
    "goto",
    "if",
    "nop",
    "assume",
    "begin_atomic",
    "end_atomic",
    "abort",
    "assert",
    "choose",
    "true",
    "false",
];

/// What starts a part of a file.
const PARTS: [&str; 2] = ["process", "assert"];

type Result<T> = std::result::Result<T, Reported>;

pub(super) fn file(text: &str) -> (File, Vec<Diagnostic>) {
    let mut c = Reader::new(&LEXIS, &RESERVED, text);
    let mut file = File::default();
    if head(&mut c, &mut file).is_err() {
        c.skip_to(&PARTS);
    }
    while !c.at_end() {
        let part = match c.peek().text {
            "process" => process(&mut c, &mut file),
            "assert" => assertion(&mut c, &mut file),
            _ => Err(c.unexpected("`process`, `assert` or the end of the file")),
        };
        if part.is_err() {
            c.skip_to(&PARTS);
        }
    }
    if file.processes.is_empty() && c.diagnostics.is_empty() {
        c.unexpected("`process`");
    }
    (file, c.diagnostics)
}

/// The variables and the initial values.
fn head(c: &mut Reader<'_>, file: &mut File) -> Result<()> {
    if !c.at("shared") {
        let hint = "a `.bp` file starts with `shared B_0, …;`";
        return Err(c.refuse("`shared`", Some(hint.into())));
    }
    c.take();
    file.shared = names(c)?;
    if c.eat("local") {
        file.local = names(c)?;
    }
    c.expect("init")?;
    while !c.at_end() && !c.at_any(&PARTS) {
        if c.at("assume") {
            let start = c.take().span;
            let e = parenthesised(c)?;
            file.assumed.push((e, start.to(c.last_span())));
        } else {
            c.expect("store")?;
            let name = c.named("a shared variable")?;
            c.expect("=")?;
            file.init.push((name, value(c)?));
        }
        c.expect(";")?;
    }
    Ok(())
}

/// Names up to a semicolon; there may be none.
fn names(c: &mut Reader<'_>) -> Result<Vec<Named>> {
    let mut all = Vec::new();
    while !c.eat(";") {
        if !all.is_empty() {
            c.expect(",")?;
        }
        all.push(c.named("the name of a variable")?);
    }
    Ok(all)
}

fn process(c: &mut Reader<'_>, file: &mut File) -> Result<()> {
    let start = c.take().span;
    let id = c.number("the number of the process")?;
    let span = start.to(c.last_span());
    let mut body = Vec::new();
    let read = loop {
        if c.at_end() || c.at_any(&PARTS) {
            break Ok(());
        }
        match labelled(c) {
            Ok(s) => body.push(s),
            Err(Reported) => break Err(Reported),
        }
    };
    file.processes.push(Process { id, span, body });
    read
}

fn labelled(c: &mut Reader<'_>) -> Result<Labelled> {
    let label = c.label();
    let t = c.peek();
    let statement = statement(c)?;
    c.expect(";")?;
    Ok(Labelled {
        label,
        statement,
        span: t.span.to(c.last_span()),
    })
}

fn statement(c: &mut Reader<'_>) -> Result<Statement> {
    let t = c.peek();
    if c.names(t) {
        return set(c);
    }
    c.take();
    Ok(match t.text {
        "store" => return set(c),
        "load" => {
            let local = c.named("a local variable")?;
            c.expect("=")?;
            Statement::Load(local, c.named("a shared variable")?)
        }
        "goto" => Statement::Goto(c.label_name()?),
        "if" => {
            for word in ["(", "*", ")", "goto"] {
                c.expect(word)?;
            }
            Statement::Maybe(c.label_name()?)
        }
        "nop" => Statement::Nop,
        "assume" => Statement::Assume(parenthesised(c)?),
        "begin_atomic" => Statement::AtomicBegin,
        "end_atomic" => Statement::AtomicEnd,
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
        _ => {
            let d = Diagnostic::error(t.span, format!("`{}` is no statement", t.text));
            return Err(c.report(d.expected("a statement")));
        }
    })
}

fn set(c: &mut Reader<'_>) -> Result<Statement> {
    let name = c.named("a variable")?;
    c.expect("=")?;
    Ok(Statement::Set(name, value(c)?))
}

fn value(c: &mut Reader<'_>) -> Result<Value> {
    if c.eat("*") {
        return Ok(Value::Any);
    }
    if c.eat("choose") {
        c.expect("(")?;
        let yes = test(c)?;
        c.expect(",")?;
        let no = test(c)?;
        c.expect(")")?;
        return Ok(Value::Choose(yes, no));
    }
    Ok(Value::Is(test(c)?))
}

fn assertion(c: &mut Reader<'_>, file: &mut File) -> Result<()> {
    let start = c.take().span;
    for word in ["(", "always", "("] {
        c.expect(word)?;
    }
    let e = test(c)?;
    c.expect(")")?;
    c.expect(")")?;
    c.eat(";");
    file.assertions.push((e, start.to(c.last_span())));
    Ok(())
}

fn parenthesised(c: &mut Reader<'_>) -> Result<Expr<Leaf>> {
    c.expect("(")?;
    let e = test(c)?;
    c.expect(")")?;
    Ok(e)
}

/// Alternatives of cubes; there may be thousands, so the tree is balanced.
fn test(c: &mut Reader<'_>) -> Result<Expr<Leaf>> {
    row(c, Op2::Or, "|", &mut |c| {
        row(c, Op2::And, "&", &mut literal)
    })
}

fn row<'t>(
    c: &mut Reader<'t>,
    op: Op2,
    sign: &str,
    part: &mut dyn FnMut(&mut Reader<'t>) -> Result<Expr<Leaf>>,
) -> Result<Expr<Leaf>> {
    let mut parts = vec![part(c)?];
    while c.eat(sign) {
        parts.push(part(c)?);
    }
    Ok(junction(op, parts).unwrap_or(Expr::FALSE))
}

fn literal(c: &mut Reader<'_>) -> Result<Expr<Leaf>> {
    let t = c.peek();
    if c.eat("!") {
        return Ok(Expr::unary(Op1::Not, c.nested(literal)?));
    }
    if c.eat("(") {
        let e = c.nested(test)?;
        c.expect(")")?;
        return Ok(e);
    }
    if c.eat("true") {
        return Ok(Expr::TRUE);
    }
    if c.eat("false") {
        return Ok(Expr::FALSE);
    }
    if t.kind == Kind::Number {
        return match c.number("0 or 1")? {
            0 => Ok(Expr::FALSE),
            1 => Ok(Expr::TRUE),
            n => Err(c.error(t.span, format!("{n} is no truth value"))),
        };
    }
    let (name, _) = c.named("a truth value")?;
    if name == "pc" && c.eat("(") {
        let id = c.number("the number of a process")?;
        c.expect(")")?;
        c.expect("=")?;
        let (label, _) = c.label_name()?;
        let span = t.span.to(c.last_span());
        return Ok(Expr::Atom(Leaf::At(id, label, span)));
    }
    Ok(Expr::Atom(Leaf::Name(name, t.span)))
}

//! Data lines: `name dd value`, with `! as counter` for numbers of threads.

use super::number;
use crate::diagnostics::Diagnostic;
use crate::tokens::{Cursor, Token};
use crate::x86_core::{Name, Result, Size};
use wattle_model::{FamilyId, Span};

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub size: Size,
    /// One, or those of an array.
    pub values: Vec<Value>,
    pub counter: bool,
    /// One for each thread of this family.
    pub of: Option<FamilyId>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    /// How many threads there are.
    Count,
    Any,
}

/// Arrays beyond this are refused rather than built.
const MAX_LENGTH: usize = 4096;

/// `name dd value`, `name dd value, value, …` or `name times 4 dd value`.
pub fn variable(line: &[Token<'_>], of: Option<FamilyId>) -> Result<Variable> {
    let mut c = Cursor::new(line.to_vec());
    let name = c.name("the name of a variable")?;
    c.eat(":");
    if Name::parse(name.text).is_some() || name.text == "N" || name.is_word("eip") {
        let message = format!("`{}` cannot name a variable", name.text);
        return Err(Diagnostic::error(name.span, message).hint("it already has a meaning"));
    }
    let mut times = None;
    if c.peek().is_word("times") {
        let t = c.take();
        times = match number(&mut c)?.and_then(|n| usize::try_from(n).ok()) {
            Some(n) if (1..=MAX_LENGTH).contains(&n) => Some(n),
            _ => {
                let message = format!("`times` is followed by a number from 1 to {MAX_LENGTH}");
                return Err(Diagnostic::error(t.span, message));
            }
        };
    }
    let directive = c.name("`dd`")?;
    let size = match directive.text.to_ascii_lowercase().as_str() {
        "db" => Size::Byte,
        "dw" => Size::Word,
        "dd" => Size::Dword,
        "dq" => Size::Qword,
        other => {
            let d = Diagnostic::error(directive.span, format!("unknown directive `{other}`"));
            return Err(d.expected("`dd` (32 bits), `db`, `dw` or `dq`"));
        }
    };
    let mut values = Vec::new();
    loop {
        values.push(value(&mut c)?);
        if !c.eat(",") {
            break;
        }
    }
    if let Some(n) = times {
        values = values.repeat(n);
    }
    if values.len() > MAX_LENGTH {
        let message = format!("an array has at most {MAX_LENGTH} elements");
        return Err(Diagnostic::error(name.span, message));
    }
    let mut counter = false;
    if c.eat("!") {
        for word in ["as", "counter"] {
            if !c.peek().is_word(word) {
                return Err(c.unexpected("`as counter`"));
            }
            c.take();
        }
        counter = true;
    }
    c.finish("`! as counter` or the end of the line")?;
    if counter && !matches!(values.as_slice(), [Value::Number(0) | Value::Count]) {
        let message = "a counter starts with 0 or N";
        return Err(Diagnostic::error(name.span, message));
    }
    if values.len() > 1 && of.is_some() {
        let message = "every thread has one of these, not several";
        return Err(Diagnostic::error(name.span, message).hint("give them names of their own"));
    }
    if counter && of.is_some() {
        let message = "a counter is shared by all threads";
        return Err(Diagnostic::error(name.span, message).hint("move it to `shared_data`"));
    }
    Ok(Variable {
        name: name.text.to_string(),
        size,
        values,
        counter,
        of,
        span: name.span,
    })
}

fn value(c: &mut Cursor<'_>) -> Result<Value> {
    if c.peek().is_word("N") {
        c.take();
        return Ok(Value::Count);
    }
    if c.eat("?") {
        return Ok(Value::Any);
    }
    match number(c)? {
        Some(n) => Ok(Value::Number(n)),
        None => Err(c.unexpected("a number, `N` or `?`")),
    }
}

//! Data lines: `name dd value`, with `! as counter` for numbers of threads.

use super::number;
use crate::diagnostics::Diagnostic;
use crate::tokens::{Cursor, Token};
use crate::x86_core::{Name, Result, Size};
use wattle_model::Span;

#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    pub size: Size,
    pub value: Value,
    pub counter: bool,
    /// One per thread.
    pub per_thread: bool,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    /// How many threads there are.
    Count,
    Any,
}

pub fn variable(line: &[Token<'_>], per_thread: bool) -> Result<Variable> {
    let mut c = Cursor::new(line.to_vec());
    let name = c.name("the name of a variable")?;
    c.eat(":");
    if Name::parse(name.text).is_some() || name.text == "N" || name.is_word("eip") {
        let message = format!("`{}` cannot name a variable", name.text);
        return Err(Diagnostic::error(name.span, message).hint("it already has a meaning"));
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
    let value = if c.peek().is_word("N") {
        c.take();
        Value::Count
    } else if c.eat("?") {
        Value::Any
    } else {
        match number(&mut c)? {
            Some(n) => Value::Number(n),
            None => return Err(c.unexpected("a number, `N` or `?`")),
        }
    };
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
    if counter && !matches!(value, Value::Number(0) | Value::Count) {
        let message = "a counter starts with 0 or N";
        return Err(Diagnostic::error(name.span, message));
    }
    if counter && per_thread {
        let message = "a counter is shared by all threads";
        return Err(Diagnostic::error(name.span, message).hint("move it to `shared_data`"));
    }
    Ok(Variable {
        name: name.text.to_string(),
        size,
        value,
        counter,
        per_thread,
        span: name.span,
    })
}

//! The initial state: `{ x=1; int y; 0:EAX=3; 1:RBX=y; int64_t t[2]={1,-1}; int* p=&x; }`.

use super::syntax::{Declaration, Item, Value};
use super::values::{at_thread, item, value};
use crate::diagnostics::Diagnostic;
use crate::tokens::{Cursor, Kind};
use crate::x86_core::{ENOUGH, Result, Size};
use wattle_model::Span;

/// Arrays beyond this are refused rather than built.
const MAX_LENGTH: i64 = 4096;
/// So are longer initial states.
const MAX_DECLARATIONS: usize = 1 << 14;

/// Reads from `{` to `}` and an optional `;`.
pub fn init(c: &mut Cursor<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Declaration> {
    let mut all = Vec::new();
    let open = c.peek().span;
    if let Err(d) = c.expect("{") {
        diagnostics.push(d);
        return all;
    }
    loop {
        if c.eat(";") {
            continue;
        }
        if c.eat("}") {
            break;
        }
        if diagnostics.len() >= ENOUGH || all.len() > MAX_DECLARATIONS {
            let message = "there is too much wrong here, or too much of it, to read on";
            diagnostics.push(Diagnostic::error(c.peek().span, message));
            return all;
        }
        if c.at_end() {
            let d = Diagnostic::error(c.peek().span, "the initial state is not closed");
            let hint = format!("it was opened on line {}", open.line);
            diagnostics.push(d.expected("`}`").hint(hint));
            return all;
        }
        let before = c.peek().span;
        match declaration(c) {
            Ok(d) => {
                all.push(d);
                if !c.peek().is(";") && !c.peek().is("}") {
                    diagnostics.push(c.unexpected("`;` or `}`"));
                    c.skip_to(&[";", "}"]);
                }
            }
            Err(d) => {
                diagnostics.push(d);
                c.skip_to(&[";", "}"]);
                if c.peek().span == before && !c.peek().is("}") {
                    c.take();
                }
            }
        }
    }
    c.eat(";");
    all
}

fn declaration(c: &mut Cursor<'_>) -> Result<Declaration> {
    let start = c.peek().span;
    let mut words = Vec::new();
    while c.peek().kind == Kind::Name && !at_thread(c) {
        let next = c.ahead(1);
        let more = matches!(next.kind, Kind::Name | Kind::Number) || next.is("*");
        if !more {
            break;
        }
        words.push(c.take().text);
    }
    let mut pointer = false;
    while c.eat("*") {
        pointer = true;
    }
    let array = c.peek().kind == Kind::Name && !at_thread(c) && c.ahead(1).is("[");
    let (item, span) = item(c)?;
    let (item, length) = match item {
        Item::Cell { name, element } if array => {
            let length = i64::from(element);
            if !(1..=MAX_LENGTH).contains(&length) {
                let message = format!("an array has 1 to {MAX_LENGTH} elements");
                return Err(Diagnostic::error(span, message));
            }
            (Item::Cell { name, element: 0 }, Some(element))
        }
        item => (item, None),
    };
    let mut values = Vec::new();
    if c.eat("=") {
        values = initial_values(c)?;
    }
    if let Some(n) = length
        && !values.is_empty()
        && values.len() != n as usize
    {
        let message = format!("{} values for an array of {n}", values.len());
        return Err(Diagnostic::error(span, message));
    }
    Ok(Declaration {
        item,
        ty: if pointer { None } else { type_of(&words) },
        pointer,
        length,
        values,
        span: start.to(span),
    })
}

fn initial_values(c: &mut Cursor<'_>) -> Result<Vec<(Value, Span)>> {
    if c.eat("{") {
        let mut values = Vec::new();
        while !c.peek().is("}") {
            values.push(value(c)?);
            if !c.eat(",") && !c.peek().is("}") {
                return Err(c.unexpected("`,` or `}`"));
            }
        }
        c.expect("}")?;
        return Ok(values);
    }
    if c.peek().is("ATOMIC_INIT") && c.ahead(1).is("(") {
        c.take();
        c.take();
        let value = value(c)?;
        c.expect(")")?;
        return Ok(vec![value]);
    }
    Ok(vec![value(c)?])
}

/// Bits and signedness of a C type; unknown names count as `int`.
fn type_of(words: &[&str]) -> Option<(Size, bool)> {
    if words.is_empty() {
        return None;
    }
    let has = |w: &str| words.contains(&w);
    let signed = !has("unsigned") && !words.iter().any(|w| w.starts_with("uint"));
    let any = |names: &[&str]| names.iter().any(|n| has(n));
    let size = if any(&["char", "int8_t", "uint8_t", "s8", "u8"]) {
        Size::Byte
    } else if any(&["short", "int16_t", "uint16_t", "s16", "u16"]) {
        Size::Word
    } else if any(&[
        "long",
        "int64_t",
        "uint64_t",
        "intptr_t",
        "uintptr_t",
        "s64",
        "u64",
    ]) {
        Size::Qword
    } else {
        Size::Dword
    };
    Some((size, signed))
}

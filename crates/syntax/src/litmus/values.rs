//! What initial states and conditions have in common.

use super::syntax::{Item, Value};
use crate::diagnostics::Diagnostic;
use crate::tokens::{Cursor, Kind};
use crate::x86_core::{Result, parse_number};
use wattle_model::Span;

pub fn name(c: &mut Cursor<'_>, wanted: &str) -> Result<(String, Span)> {
    let t = c.name(wanted)?;
    Ok((t.text.to_string(), t.span))
}

pub fn number(c: &mut Cursor<'_>) -> Result<i64> {
    let t = c.peek();
    if t.kind != Kind::Number {
        return Err(c.unexpected("a number"));
    }
    c.take();
    parse_number(t.text)
        .ok_or_else(|| Diagnostic::error(t.span, "this number does not fit into 64 bits"))
}

/// Whether `0:` or `P0:` starts here.
pub fn at_thread(c: &Cursor<'_>) -> bool {
    let first = c.peek();
    let thread = first.kind == Kind::Number || thread_number(first.text).is_some();
    thread && c.ahead(1).is(":")
}

/// `0:EAX`, `P0:EAX`, `x`, `[x]`, `t[3]`, `*x`.
pub fn item(c: &mut Cursor<'_>) -> Result<(Item, Span)> {
    let start = c.peek().span;
    if at_thread(c) {
        let t = c.take();
        let thread = parse_number(t.text).or_else(|| thread_number(t.text));
        let thread = thread.unwrap_or(-1);
        c.expect(":")?;
        let r = c.peek();
        if !matches!(r.kind, Kind::Name | Kind::Marked('%')) {
            return Err(c.unexpected("a register"));
        }
        c.take();
        let register = r.text.to_string();
        return Ok((Item::Register { thread, register }, start.to(r.span)));
    }
    c.eat("*");
    if c.eat("[") {
        let (name, _) = name(c, "a location")?;
        let element = element(c)?;
        let end = c.expect("]")?;
        return Ok((Item::Cell { name, element }, start.to(end)));
    }
    let (name, span) = name(c, "a register such as `0:EAX` or a location")?;
    let element = element(c)?;
    Ok((Item::Cell { name, element }, start.to(span)))
}

/// `[3]`, or nothing for element 0.
pub fn element(c: &mut Cursor<'_>) -> Result<u32> {
    if !c.eat("[") {
        return Ok(0);
    }
    let span = c.peek().span;
    let n = number(c)?;
    c.expect("]")?;
    u32::try_from(n).map_err(|_| Diagnostic::error(span, "an index is not negative"))
}

/// A number, an address, or another item.
pub fn value(c: &mut Cursor<'_>) -> Result<(Value, Span)> {
    let start = c.peek().span;
    if c.peek().kind == Kind::Number && !at_thread(c) {
        return Ok((Value::Number(number(c)?), start));
    }
    let address = c.eat("&");
    let bare = c.peek().kind == Kind::Name && !at_thread(c);
    if address || bare {
        let (name, span) = name(c, "a number or the name of a location")?;
        let element = element(c)?;
        return Ok((Value::Address(name, element), start.to(span)));
    }
    let (item, span) = item(c)?;
    Ok((Value::Item(item), start.to(span)))
}
/// The number in `P0`.
pub fn thread_number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('P')?;
    let all = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    all.then(|| digits.parse().ok()).flatten()
}

//! The columns of code: `P0 | P1 ;` and one row of instructions per `;`.

use super::condition;
use super::syntax::{Column, RawMemory, RawOperand};
use super::values::{name, number, thread_number};
use crate::diagnostics::{Diagnostic, nearest};
use crate::tokens::{Cursor, Kind, Token};
use crate::x86_core;
use crate::x86_core::{ENOUGH, Name, Result, labels, parse_number, size_keyword};
use wattle_model::Span;

const MAX_THREADS: usize = 256;

/// Reads up to the condition.
pub fn code(c: &mut Cursor<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Column> {
    let mut columns = match heads(c) {
        Ok(columns) => columns,
        Err(d) => {
            diagnostics.push(d);
            c.skip_to(&[";"]);
            c.eat(";");
            Vec::new()
        }
    };
    let broken = columns.is_empty();
    let mut locks = vec![false; columns.len()];
    while !condition::starts(c) {
        if diagnostics.len() >= ENOUGH {
            break;
        }
        let Some(row) = row(c, diagnostics) else {
            break;
        };
        if broken {
            continue;
        }
        for (i, cell) in row.iter().enumerate() {
            let Some(column) = columns.get_mut(i) else {
                if let Some(extra) = cell.first() {
                    let message =
                        format!("there are only {i} threads, but this is column {}", i + 1);
                    diagnostics.push(Diagnostic::error(extra.span, message));
                }
                continue;
            };
            if let Err(d) = instruction(&mut Cursor::new(cell.clone()), column, &mut locks[i]) {
                diagnostics.push(d);
            }
        }
    }
    columns
}

fn heads(c: &mut Cursor<'_>) -> Result<Vec<Column>> {
    c.eat(";");
    let mut columns: Vec<Column> = Vec::new();
    loop {
        let t = c.peek();
        let Some(number) = thread_number(t.text).filter(|_| t.kind == Kind::Name) else {
            return Err(c.unexpected("a thread such as `P0`"));
        };
        c.take();
        if columns.iter().any(|other| other.number == number) {
            let message = format!("there are two threads `P{number}`");
            return Err(Diagnostic::error(t.span, message));
        }
        if columns.len() >= MAX_THREADS {
            let message = format!("more than {MAX_THREADS} threads");
            return Err(Diagnostic::error(t.span, message));
        }
        columns.push(Column {
            number,
            span: t.span,
            labels: Vec::new(),
            instructions: Vec::new(),
        });
        if c.eat(";") {
            return Ok(columns);
        }
        if !c.eat("|") {
            return Err(c.unexpected("`|` or `;`"));
        }
    }
}

/// One row, cell by cell, without the separators.
fn row<'t>(c: &mut Cursor<'t>, diagnostics: &mut Vec<Diagnostic>) -> Option<Vec<Vec<Token<'t>>>> {
    let mut cells = vec![Vec::new()];
    loop {
        let t = c.peek();
        let unfinished = t.kind == Kind::End
            || (t.kind == Kind::Name && matches!(t.text, "exists" | "forall" | "locations"));
        if unfinished {
            let message = format!(
                "the row of instructions is not finished before {}",
                t.shown()
            );
            diagnostics.push(Diagnostic::error(t.span, message).expected("`;`"));
            return (t.kind != Kind::End).then_some(cells);
        }
        c.take();
        if t.is(";") {
            return Some(cells);
        }
        if t.is("|") {
            cells.push(Vec::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(t);
        }
    }
}

/// `label: lock mnemonic operands`, all parts optional.
fn instruction(c: &mut Cursor<'_>, column: &mut Column, locked: &mut bool) -> Result<()> {
    let at = column.instructions.len();
    let labels = labels(c).into_iter();
    (column.labels).extend(labels.map(|t| (t.text.to_string(), at, t.span)));
    let start = c.peek();
    if start.is_word("lock") {
        *locked = true;
        c.take();
    }
    if c.at_end() {
        // `lock` alone stands before the thread's next instruction.
        return Ok(());
    }
    let lock = (std::mem::take(locked), start.span);
    let ends = "`,`, `|` or `;` (every row ends with `;`)";
    let x = x86_core::instruction(c, lock, ends, &mut |c| {
        let (operand, span) = operand(c)?;
        Ok(((operand, span), span))
    })?;
    column.instructions.push(x);
    Ok(())
}

fn operand(c: &mut Cursor<'_>) -> Result<(RawOperand, Span)> {
    let t = c.peek();
    let size = size_keyword(c);
    // `x+4(%rip)`, `x-4(%rip)`
    let less = c.ahead(1).kind == Kind::Number && c.ahead(1).text.starts_with('-');
    let beyond = t.kind == Kind::Name && Name::parse(t.text).is_none();
    let beyond = beyond && (c.ahead(1).is("+") || less);
    if size.is_some() || c.peek().is("[") || c.peek().is("(") || c.ahead(1).is("(") || beyond {
        let (mut memory, span) = memory(c)?;
        memory.size = size;
        return Ok((RawOperand::Memory(memory), t.span.to(span)));
    }
    if t.kind == Kind::Number && c.ahead(1).is("[") {
        let (memory, span) = memory(c)?;
        return Ok((RawOperand::Memory(memory), t.span.to(span)));
    }
    match t.kind {
        Kind::Marked('%') | Kind::Name => {
            let percent = t.kind == Kind::Marked('%');
            let Some(name) = Name::parse(t.text) else {
                return Err(unknown_operand(&t));
            };
            c.take();
            Ok((RawOperand::Register { name, percent }, t.span))
        }
        Kind::Number => Ok((RawOperand::Number(number(c)?), t.span)),
        Kind::Marked('$') => {
            c.take();
            match parse_number(t.text) {
                Some(n) => Ok((RawOperand::Number(n), t.span)),
                None if t
                    .text
                    .starts_with(|ch: char| ch.is_ascii_digit() || ch == '-') =>
                {
                    Err(Diagnostic::error(
                        t.span,
                        "this number does not fit into 64 bits",
                    ))
                }
                None => Ok((RawOperand::AddressOf(t.text.to_string()), t.span)),
            }
        }
        _ => Err(c.unexpected("a register, a number or a memory operand")),
    }
}

fn unknown_operand(t: &Token<'_>) -> Diagnostic {
    let d = Diagnostic::error(t.span, format!("unknown register `{}`", t.text));
    let names = ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "EBP", "ESP"];
    match nearest(t.text, names) {
        Some(near) if t.text.len() >= 3 => d.hint(format!("did you mean `{near}`?")),
        _ => d.hint(format!("the location is written `[{}]`", t.text)),
    }
}

/// `[x]`, `(x)`, `[RBX+4]`, `8(%rax,%rbx,4)`.
fn memory(c: &mut Cursor<'_>) -> Result<(RawMemory, Span)> {
    let mut m = RawMemory::default();
    let start = c.peek().span;
    if c.peek().kind == Kind::Number {
        m.offset = number(c)?;
    } else if c.peek().kind == Kind::Name && !c.peek().is("(") && !c.peek().is("[") {
        // `x(%rip)` is the position-independent way to name `x`.
        let (name, _) = name(c, "a location")?;
        while c.eat("+") || c.peek().kind == Kind::Number {
            m.offset = m.offset.wrapping_add(number(c)?);
        }
        c.expect("(")?;
        // `t(,%rsi,4)` and `t(%rsi)` are elements of `t`.
        if c.peek().is(",") {
            base_index_scale(c, &mut m)?;
        } else if c.peek().text.eq_ignore_ascii_case("rip") {
            c.take();
        } else if Name::parse(c.peek().text).is_some() {
            m.base = register(c, &mut m)?;
        } else {
            let t = c.peek();
            return Err(
                Diagnostic::error(t.span, "only `%rip` or an index may follow a name")
                    .hint(format!("write `[{name}]` or `({name})`")),
            );
        }
        let end = c.expect(")")?;
        m.name = Some(name);
        m.percent = true;
        return Ok((m, start.to(end)));
    }
    let round = c.peek().is("(");
    if !c.eat("(") && !c.eat("[") {
        return Err(c.unexpected("`[` or `(`"));
    }
    if round && m.offset == 0 && c.ahead(1).is(",") || round && c.peek().is(",") {
        base_index_scale(c, &mut m)?;
    } else {
        sum(c, &mut m, round)?;
    }
    let end = c.expect(if round { ")" } else { "]" })?;
    Ok((m, start.to(end)))
}

/// `base, index, scale`
fn base_index_scale(c: &mut Cursor<'_>, m: &mut RawMemory) -> Result<()> {
    m.base = register(c, m)?;
    c.expect(",")?;
    let index = register(c, m)?;
    let mut scale = 1;
    if c.eat(",") {
        scale = number(c)?;
    }
    m.index = index.map(|i| (i, scale));
    Ok(())
}

fn register(c: &mut Cursor<'_>, m: &mut RawMemory) -> Result<Option<Name>> {
    let t = c.peek();
    if t.is(",") {
        return Ok(None);
    }
    let name = Name::parse(t.text).filter(|_| matches!(t.kind, Kind::Name | Kind::Marked('%')));
    match name {
        Some(_) => {
            m.percent |= t.kind == Kind::Marked('%');
            c.take();
            Ok(name)
        }
        None => Err(c.unexpected("a register")),
    }
}

/// Terms with `+` between: a name, registers, numbers, `register*number`.
fn sum(c: &mut Cursor<'_>, m: &mut RawMemory, round: bool) -> Result<()> {
    loop {
        let t = c.peek();
        let known = Name::parse(t.text);
        match t.kind {
            Kind::Number => m.offset = m.offset.wrapping_add(number(c)?),
            Kind::Name | Kind::Marked('%') if known.is_some() => {
                m.percent |= t.kind == Kind::Marked('%');
                c.take();
                let scale = if c.eat("*") { Some(number(c)?) } else { None };
                match (known, scale) {
                    (Some(n), None) if m.base.is_none() => m.base = Some(n),
                    (Some(n), scale) if m.index.is_none() => {
                        m.index = Some((n, scale.unwrap_or(1)));
                    }
                    _ => {
                        return Err(Diagnostic::error(
                            t.span,
                            "too many registers in an address",
                        ));
                    }
                }
            }
            Kind::Name if m.name.is_none() => {
                m.name = Some(t.text.to_string());
                c.take();
            }
            _ => return Err(c.unexpected("a location or a register")),
        }
        if round && c.peek().is(",") {
            c.take();
            let index = register(c, m)?;
            let scale = if c.eat(",") { number(c)? } else { 1 };
            m.index = index.map(|i| (i, scale));
            return Ok(());
        }
        if c.peek().kind == Kind::Number && c.peek().text.starts_with('-') {
            continue;
        }
        if !c.eat("+") {
            return Ok(());
        }
    }
}

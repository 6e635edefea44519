//! Lines of code as both front-ends write them: `label: lock mnemonic operands`. What an operand is,
//! each says.

use super::instruction::Instruction;
use super::mnemonic::{mnemonics, parse_mnemonic};
use super::register::Size;
use crate::diagnostics::{Diagnostic, nearest};
use crate::tokens::{Cursor, Kind, Token};
use wattle_model::Span;

pub type Result<T> = std::result::Result<T, Diagnostic>;

/// The labels in front of an instruction.
pub(crate) fn labels<'t>(c: &mut Cursor<'t>) -> Vec<Token<'t>> {
    let mut labels = Vec::new();
    while c.peek().kind == Kind::Name && c.ahead(1).is(":") {
        labels.push(c.take());
        c.take();
    }
    labels
}

/// From the mnemonic on. What stands before it starts the instruction's span; `after` is what may
/// follow an operand.
pub(crate) fn instruction<O>(
    c: &mut Cursor<'_>,
    (lock, start): (bool, Span),
    after: &str,
    operand: &mut dyn FnMut(&mut Cursor<'_>) -> Result<(O, Span)>,
) -> Result<Instruction<O>> {
    // What `pause` was called before it had a name.
    if c.peek().is_word("rep") && c.ahead(1).is_word("nop") {
        c.take();
    }
    let word = c.name("an instruction")?;
    let Some((op, suffix, source)) = parse_mnemonic(word.text) else {
        return Err(unknown_mnemonic(word));
    };
    let mut x = Instruction {
        op,
        suffix,
        source,
        lock,
        operands: Vec::new(),
        target: None,
        span: start.to(word.span),
    };
    if op.is_jump() {
        let t = c.name("a label")?;
        x.target = Some((t.text.to_string(), t.span));
        x.span = start.to(t.span);
    } else if !c.at_end() {
        loop {
            let (operand, span) = operand(c)?;
            x.operands.push(operand);
            x.span = start.to(span);
            if !c.eat(",") {
                break;
            }
        }
    }
    c.finish(after)?;
    Ok(x)
}

fn unknown_mnemonic(t: Token<'_>) -> Diagnostic {
    let d = Diagnostic::error(t.span, format!("unknown instruction {}", t.shown()));
    let all = mnemonics();
    match nearest(t.text, all.iter().map(String::as_str)) {
        Some(near) if t.text.starts_with(char::is_uppercase) => {
            d.hint(format!("did you mean `{}`?", near.to_uppercase()))
        }
        Some(near) => d.hint(format!("did you mean `{near}`?")),
        None => d.hint("see the list of instructions in the language's page"),
    }
}

/// `dword`, `DWORD PTR`, …
pub(crate) fn size_keyword(c: &mut Cursor<'_>) -> Option<Size> {
    let t = c.peek();
    let sizes = [
        ("byte", Size::Byte),
        ("word", Size::Word),
        ("dword", Size::Dword),
        ("qword", Size::Qword),
    ];
    let (_, size) = sizes.into_iter().find(|(word, _)| t.is_word(word))?;
    c.take();
    if c.peek().is_word("ptr") {
        c.take();
    }
    Some(size)
}

/// `10`, `-10`, `0x1F`, `1Fh`; numbers up to 2⁶⁴ are read modulo 2⁶⁴.
pub(crate) fn parse_number(text: &str) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    let (negative, digits) = match lower.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, lower.as_str()),
    };
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_suffix('h'));
    let value = match hex {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    } as i64;
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

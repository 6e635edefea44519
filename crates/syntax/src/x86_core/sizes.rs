//! Which operand shapes an instruction takes, and on how many bits it works.

use super::instruction::{Instruction, Operand};
use super::mnemonic::arity;
use super::register::{Name, Size};
use crate::diagnostics::Diagnostic;
use wattle_model::Span;
use wattle_x86::instruction::Op;

/// The first thing wrong with the instruction's shape.
pub fn check_shape(i: &Instruction) -> Result<(), Diagnostic> {
    let wanted = arity(i.op);
    let given = i.operands.len() + usize::from(i.target.is_some());
    if !wanted.contains(&given) {
        let message = format!(
            "this instruction takes {}, but {given} {} given",
            match (*wanted.start(), *wanted.end()) {
                (_, 0) => "no operands".to_string(),
                (1, 1) => "one operand".to_string(),
                (least, most) if least < most => format!("{least} to {most} operands"),
                (n, _) => format!("{n} operands"),
            },
            if given == 1 { "is" } else { "are" },
        );
        return Err(Diagnostic::error(i.span, message));
    }
    if i.op.is_jump() && !i.lock {
        return match i.target {
            Some(_) => Ok(()),
            None => Err(Diagnostic::error(i.span, "a jump needs a label").expected("a label")),
        };
    }
    if i.op == Op::Nop && !i.lock {
        return Ok(());
    }
    let memories = i.operands.iter().filter(|o| o.memory().is_some()).count();
    if memories > 1 {
        return Err(
            Diagnostic::error(i.span, "an instruction has at most one memory operand")
                .hint("load one of them into a register first"),
        );
    }
    if let Some(Operand::Immediate(_, span)) = i.operands.first() {
        let reads_only = matches!(i.op, Op::Cmp | Op::Test | Op::Bt | Op::Mul | Op::Imul);
        if !reads_only {
            return Err(Diagnostic::error(*span, "a number cannot be written to")
                .expected("a register or a memory operand"));
        }
        return Err(
            Diagnostic::error(*span, "the first operand cannot be a number")
                .expected("a register or a memory operand"),
        );
    }
    let second = i.operands.get(1);
    let needs_register = match i.op {
        Op::Xadd | Op::Cmpxchg => !matches!(second, Some(Operand::Register(..))),
        Op::Xchg | Op::UnlockedXchg => matches!(second, Some(Operand::Immediate(..))),
        // The second operand is a number of places or the register that counts them.
        Op::Shl | Op::Shr | Op::Sar | Op::Rol | Op::Ror => match second {
            Some(Operand::Register(n, span)) if n.text() != "CL" => {
                let d = Diagnostic::error(*span, "a shift is by a number or by `cl`");
                return Err(d.expected("a number or `cl`"));
            }
            other => matches!(other, Some(Operand::Memory(_))),
        },
        Op::Movzx | Op::Movsx => matches!(second, Some(Operand::Immediate(..))),
        _ => false,
    };
    if needs_register {
        let span = second.map_or(i.span, Operand::span);
        return Err(
            Diagnostic::error(span, "this operand must be a register").expected("a register")
        );
    }
    let into_register = match i.op {
        Op::Cmov(_) | Op::Movzx | Op::Movsx | Op::Lea => true,
        Op::Imul => i.operands.len() > 1,
        _ => false,
    };
    if into_register && !matches!(i.operands[0], Operand::Register(..)) {
        let message = match i.op {
            Op::Cmov(_) => "a conditional move writes a register",
            _ => "this instruction writes a register",
        };
        return Err(Diagnostic::error(i.operands[0].span(), message).expected("a register"));
    }
    if i.op == Op::Lea && second.and_then(Operand::memory).is_none() {
        let span = second.map_or(i.span, Operand::span);
        return Err(Diagnostic::error(span, "an address is wanted").expected("a memory operand"));
    }
    if i.lock && (!i.op.lockable() || !i.writes_memory()) {
        return Err(Diagnostic::error(
            i.span,
            "`lock` needs an instruction that reads and writes memory",
        )
        .hint("for a barrier write `mfence`"));
    }
    Ok(())
}

/// How many bits the instruction works on, if its operands say so themselves. Operands that
/// disagree are an error.
pub fn operation_size(i: &Instruction) -> Result<Option<Size>, Diagnostic> {
    if matches!(i.op, Op::Set(_)) {
        if let Some(Operand::Register(n, span)) = i.operands.first()
            && n.size != Size::Byte
        {
            return Err(wrong_size(*n, *span, Size::Byte, "`set` writes"));
        }
        return Ok(Some(Size::Byte));
    }
    match i.op {
        Op::Nop => return Ok(None),
        Op::Widen(_) | Op::Spread(_) => return Ok(None),
        Op::Movzx | Op::Movsx | Op::Lea => return written_size(i).map(Some),
        _ => {}
    }
    let keyword = i.memory().and_then(|m| m.size);
    let mut size = i.suffix;
    let mut why = "the mnemonic asks for";
    let shift = matches!(i.op, Op::Shl | Op::Shr | Op::Sar | Op::Rol | Op::Ror);
    let alike = if shift { 1 } else { i.operands.len() };
    for operand in i.operands.iter().take(alike) {
        let Operand::Register(n, span) = operand else {
            continue;
        };
        match size {
            Some(s) if s != n.size => return Err(wrong_size(*n, *span, s, why)),
            Some(_) => {}
            None => {
                size = Some(n.size);
                why = "the other operand has";
            }
        }
    }
    if let (Some(k), Some(s), Some(m)) = (keyword, size, i.memory())
        && k != s
    {
        for operand in &i.operands {
            if let Operand::Register(n, span) = operand {
                return Err(wrong_size(*n, *span, k, "the memory operand has"));
            }
        }
        let message = format!(
            "the memory operand has {} bits, the mnemonic asks for {}",
            k.bits(),
            s.bits()
        );
        return Err(Diagnostic::error(m.span, message));
    }
    Ok(size.or(keyword))
}

/// What `movzx`, `movsx` and `lea` write: a register, wider than what is read.
fn written_size(i: &Instruction) -> Result<Size, Diagnostic> {
    let Some(Operand::Register(n, span)) = i.operands.first() else {
        return Err(Diagnostic::error(
            i.span,
            "this instruction writes a register",
        ));
    };
    if let Some(size) = i.suffix.filter(|s| *s != n.size) {
        return Err(wrong_size(*n, *span, size, "the mnemonic asks for"));
    }
    if i.op == Op::Lea {
        return Ok(n.size);
    }
    let source = match i.operands.get(1) {
        Some(Operand::Register(from, at)) => match i.source {
            Some(size) if size != from.size => {
                return Err(wrong_size(*from, *at, size, "the mnemonic asks for"));
            }
            _ => Some(from.size),
        },
        Some(Operand::Memory(m)) => m.size.or(i.source),
        Some(Operand::Immediate(..)) | None => None,
    };
    if source.is_some_and(|s| s >= n.size) {
        let message = "what is extended must have fewer bits than the register";
        return Err(Diagnostic::error(*span, message));
    }
    Ok(n.size)
}

fn wrong_size(n: Name, span: Span, wanted: Size, why: &str) -> Diagnostic {
    let message = format!(
        "register `{}` has {} bits, but {why} {}",
        n.text(),
        n.size.bits(),
        wanted.bits()
    );
    Diagnostic::error(span, message).hint(format!("use `{}`", n.base.name(wanted)))
}

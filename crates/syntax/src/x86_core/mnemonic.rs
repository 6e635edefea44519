//! Mnemonics, with and without the size suffix of the AT&T syntax.

use super::register::Size;
use std::ops::RangeInclusive;
use wattle_x86::instruction::{Condition, Op, Test};

/// How many operands it takes.
pub fn arity(op: Op) -> RangeInclusive<usize> {
    match op {
        Op::Mfence | Op::Sfence | Op::Lfence | Op::Widen(_) | Op::Spread(_) => 0..=0,
        Op::Nop => 0..=1,
        Op::Inc | Op::Dec | Op::Not | Op::Neg | Op::Jmp | Op::Jcc(_) | Op::Set(_) => 1..=1,
        Op::Mul | Op::Div | Op::Idiv => 1..=1,
        Op::Shl | Op::Shr | Op::Sar | Op::Rol | Op::Ror => 1..=2,
        Op::Imul => 1..=3,
        Op::Mov
        | Op::Movzx
        | Op::Movsx
        | Op::Lea
        | Op::Xchg
        | Op::UnlockedXchg
        | Op::Xadd
        | Op::Cmpxchg
        | Op::Add
        | Op::Sub
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Adc
        | Op::Sbb
        | Op::Cmp
        | Op::Test
        | Op::Bt
        | Op::Bts
        | Op::Btr
        | Op::Btc
        | Op::Cmov(_) => 2..=2,
    }
}

const PLAIN: &[(&str, Op)] = &[
    ("mov", Op::Mov),
    ("xchg", Op::Xchg),
    ("uxch", Op::UnlockedXchg),
    ("xadd", Op::Xadd),
    ("cmpxchg", Op::Cmpxchg),
    ("add", Op::Add),
    ("sub", Op::Sub),
    ("and", Op::And),
    ("or", Op::Or),
    ("xor", Op::Xor),
    ("cmp", Op::Cmp),
    ("test", Op::Test),
    ("inc", Op::Inc),
    ("dec", Op::Dec),
    ("not", Op::Not),
    ("neg", Op::Neg),
    ("jmp", Op::Jmp),
    ("mfence", Op::Mfence),
    ("sfence", Op::Sfence),
    ("lfence", Op::Lfence),
    ("movzx", Op::Movzx),
    ("movsx", Op::Movsx),
    ("movsxd", Op::Movsx),
    ("lea", Op::Lea),
    ("adc", Op::Adc),
    ("sbb", Op::Sbb),
    ("shl", Op::Shl),
    ("sal", Op::Shl),
    ("shr", Op::Shr),
    ("sar", Op::Sar),
    ("rol", Op::Rol),
    ("ror", Op::Ror),
    ("mul", Op::Mul),
    ("imul", Op::Imul),
    ("bt", Op::Bt),
    ("bts", Op::Bts),
    ("btr", Op::Btr),
    ("btc", Op::Btc),
    ("cbw", Op::Widen(16)),
    ("cwde", Op::Widen(32)),
    ("cdqe", Op::Widen(64)),
    ("cwd", Op::Spread(16)),
    ("cdq", Op::Spread(32)),
    ("cqo", Op::Spread(64)),
    // The same for the assembler.
    ("cbtw", Op::Widen(16)),
    ("cwtl", Op::Widen(32)),
    ("cltq", Op::Widen(64)),
    ("cwtd", Op::Spread(16)),
    ("cltd", Op::Spread(32)),
    ("cqto", Op::Spread(64)),
    ("nop", Op::Nop),
    ("pause", Op::Nop),
    // herd's spellings.
    ("jlt", Op::Jcc(LESS)),
    ("jgt", Op::Jcc(LESS_OR_EQUAL.not())),
    ("movabs", Op::Mov),
    ("movt", Op::Mov),
];

const LESS: Condition = Condition::new(Test::Less);
const LESS_OR_EQUAL: Condition = Condition::new(Test::LessOrEqual);

const CONDITIONS: [(&str, Condition); 30] = [
    ("e", Condition::new(Test::Equal)),
    ("z", Condition::new(Test::Equal)),
    ("ne", Condition::new(Test::Equal).not()),
    ("nz", Condition::new(Test::Equal).not()),
    ("l", LESS),
    ("nge", LESS),
    ("ge", LESS.not()),
    ("nl", LESS.not()),
    ("le", LESS_OR_EQUAL),
    ("ng", LESS_OR_EQUAL),
    ("g", LESS_OR_EQUAL.not()),
    ("nle", LESS_OR_EQUAL.not()),
    ("b", Condition::new(Test::Below)),
    ("c", Condition::new(Test::Below)),
    ("nae", Condition::new(Test::Below)),
    ("ae", Condition::new(Test::Below).not()),
    ("nb", Condition::new(Test::Below).not()),
    ("nc", Condition::new(Test::Below).not()),
    ("be", Condition::new(Test::BelowOrEqual)),
    ("na", Condition::new(Test::BelowOrEqual)),
    ("a", Condition::new(Test::BelowOrEqual).not()),
    ("nbe", Condition::new(Test::BelowOrEqual).not()),
    ("s", Condition::new(Test::Sign)),
    ("ns", Condition::new(Test::Sign).not()),
    ("o", Condition::new(Test::Overflow)),
    ("no", Condition::new(Test::Overflow).not()),
    ("p", Condition::new(Test::Parity)),
    ("pe", Condition::new(Test::Parity)),
    ("np", Condition::new(Test::Parity).not()),
    ("po", Condition::new(Test::Parity).not()),
];

/// The operation and the sizes its suffixes name, in any case: of what it works on, and of what `movzbl`
/// and its like read.
pub fn parse_mnemonic(text: &str) -> Option<(Op, Option<Size>, Option<Size>)> {
    if text.len() > 16 {
        return None;
    }
    let text = text.to_ascii_lowercase();
    if let Some(op) = exact(&text) {
        return Some((op, None, None));
    }
    let (stem, suffix) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let size = sized(suffix)?;
    for (start, op) in [("movz", Op::Movzx), ("movs", Op::Movsx)] {
        if let Some(from) = stem.strip_prefix(start).and_then(sized) {
            return (from < size).then_some((op, Some(size), Some(from)));
        }
    }
    let op = exact(stem)?;
    let fixed = matches!(
        op,
        Op::Mfence | Op::Sfence | Op::Lfence | Op::Set(_) | Op::Widen(_) | Op::Spread(_)
    );
    let fixed = fixed || op.is_jump() || matches!(stem, "pause" | "movzx" | "movsx" | "movsxd");
    (!fixed).then_some((op, Some(size), None))
}

fn sized(suffix: &str) -> Option<Size> {
    Some(match suffix {
        "b" => Size::Byte,
        "w" => Size::Word,
        "l" => Size::Dword,
        "q" => Size::Qword,
        _ => return None,
    })
}

fn exact(text: &str) -> Option<Op> {
    if let Some((_, op)) = PLAIN.iter().find(|(name, _)| *name == text) {
        return Some(*op);
    }
    let condition = |rest: &str| {
        let found = CONDITIONS.iter().find(|(name, _)| *name == rest);
        found.map(|(_, c)| *c)
    };
    if let Some(rest) = text.strip_prefix("cmov") {
        return condition(rest).map(Op::Cmov);
    }
    if let Some(rest) = text.strip_prefix("set") {
        return condition(rest).map(Op::Set);
    }
    condition(text.strip_prefix('j')?).map(Op::Jcc)
}

/// Every mnemonic without suffix, for suggestions.
pub fn mnemonics() -> Vec<String> {
    let mut all: Vec<String> = PLAIN.iter().map(|(n, _)| (*n).to_string()).collect();
    all.push("lock".to_string());
    for (c, _) in &CONDITIONS {
        all.extend([format!("j{c}"), format!("set{c}"), format!("cmov{c}")]);
    }
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_and_conditions() {
        let plain = |op| Some((op, None, None));
        let sized = |op, size| Some((op, Some(size), None));
        assert_eq!(parse_mnemonic("MOVL"), sized(Op::Mov, Size::Dword));
        assert_eq!(parse_mnemonic("sub"), plain(Op::Sub));
        assert_eq!(parse_mnemonic("subb"), sized(Op::Sub, Size::Byte));
        assert_eq!(parse_mnemonic("sbbl"), sized(Op::Sbb, Size::Dword));
        assert_eq!(parse_mnemonic("btsq"), sized(Op::Bts, Size::Qword));
        let extended = Some((Op::Movsx, Some(Size::Qword), Some(Size::Dword)));
        assert_eq!(parse_mnemonic("movslq"), extended);
        let jl = plain(Op::Jcc(LESS));
        assert_eq!(parse_mnemonic("jl"), jl);
        assert_eq!(parse_mnemonic("JLT"), jl);
        assert_eq!(parse_mnemonic("jnl"), plain(Op::Jcc(LESS.not())));
        assert_eq!(
            parse_mnemonic("setb"),
            plain(Op::Set(Condition::new(Test::Below)))
        );
        for wrong in [
            "jmpl", "mfencel", "frob", "", "b", "é", "q", "movzlb", "cdql",
        ] {
            assert_eq!(parse_mnemonic(wrong), None, "{wrong}");
        }
    }
}

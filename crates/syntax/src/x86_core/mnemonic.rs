//! Mnemonics, with and without the size suffix of the AT&T syntax.

use super::register::Size;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    Mov,
    /// With memory always locked.
    Xchg,
    /// The exchange that is not locked even with memory (`uxch` of herd).
    UnlockedXchg,
    Xadd,
    Cmpxchg,
    Add,
    Sub,
    And,
    Or,
    Xor,
    Cmp,
    Test,
    Inc,
    Dec,
    Not,
    Neg,
    Jmp,
    Jcc(Condition),
    Set(Condition),
    Cmov(Condition),
    Mfence,
    Sfence,
    Lfence,
    Nop,
}

/// What a conditional instruction asks of the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    pub test: Test,
    pub negated: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    Equal,
    Less,
    LessOrEqual,
    Below,
    BelowOrEqual,
    Sign,
    Overflow,
    /// The low byte of the result has an even number of ones.
    Parity,
}

impl Op {
    /// How many operands it takes.
    pub fn operands(self) -> usize {
        match self {
            Op::Mfence | Op::Sfence | Op::Lfence | Op::Nop => 0,
            Op::Inc | Op::Dec | Op::Not | Op::Neg | Op::Jmp | Op::Jcc(_) | Op::Set(_) => 1,
            _ => 2,
        }
    }

    pub fn is_jump(self) -> bool {
        matches!(self, Op::Jmp | Op::Jcc(_))
    }

    /// Whether the first operand is read and written, so that `lock` makes sense.
    pub fn lockable(self) -> bool {
        matches!(
            self,
            Op::Add
                | Op::Sub
                | Op::And
                | Op::Or
                | Op::Xor
                | Op::Inc
                | Op::Dec
                | Op::Not
                | Op::Neg
                | Op::Xadd
                | Op::Xchg
                | Op::Cmpxchg
        )
    }
}

const PLAIN: [(&str, Op); 26] = [
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

impl Condition {
    const fn new(test: Test) -> Self {
        Condition {
            test,
            negated: false,
        }
    }

    const fn not(self) -> Self {
        Condition {
            test: self.test,
            negated: !self.negated,
        }
    }
}

/// The operation and the size its suffix names, in any case.
pub fn parse_mnemonic(text: &str) -> Option<(Op, Option<Size>)> {
    if text.len() > 16 {
        return None;
    }
    let text = text.to_ascii_lowercase();
    if let Some(op) = exact(&text) {
        return Some((op, None));
    }
    let (stem, suffix) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let size = match suffix {
        "b" => Size::Byte,
        "w" => Size::Word,
        "l" => Size::Dword,
        "q" => Size::Qword,
        _ => return None,
    };
    let op = exact(stem)?;
    let fixed = matches!(op, Op::Mfence | Op::Sfence | Op::Lfence | Op::Set(_));
    (!fixed && !op.is_jump() && stem != "pause").then_some((op, Some(size)))
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
        assert_eq!(parse_mnemonic("MOVL"), Some((Op::Mov, Some(Size::Dword))));
        assert_eq!(parse_mnemonic("sub"), Some((Op::Sub, None)));
        assert_eq!(parse_mnemonic("subb"), Some((Op::Sub, Some(Size::Byte))));
        let jl = Some((Op::Jcc(LESS), None));
        assert_eq!(parse_mnemonic("jl"), jl);
        assert_eq!(parse_mnemonic("JLT"), jl);
        assert_eq!(parse_mnemonic("jnl"), Some((Op::Jcc(LESS.not()), None)));
        assert_eq!(parse_mnemonic("setb").map(|m| m.1), Some(None));
        for wrong in ["jmpl", "mfencel", "frob", "", "b", "é", "q"] {
            assert_eq!(parse_mnemonic(wrong), None, "{wrong}");
        }
    }
}

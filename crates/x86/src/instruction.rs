//! Instructions whose operands have been found, destination first.

use crate::bits::{E, VarId};
use crate::graph::{BE, CF, LE, LT, OF, PF, SF, ZF};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    Mov,
    Movzx,
    Movsx,
    Lea,
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
    Adc,
    Sbb,
    Cmp,
    Test,
    Inc,
    Dec,
    Not,
    Neg,
    Shl,
    Shr,
    Sar,
    Rol,
    Ror,
    Mul,
    Imul,
    Div,
    Idiv,
    Bt,
    Bts,
    Btr,
    Btc,
    /// `cbw`, `cwde`, `cdqe`: the accumulator is extended to this many bits.
    Widen(u32),
    /// `cwd`, `cdq`, `cqo`: the data register becomes the sign of the accumulator of this many bits.
    Spread(u32),
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

impl Condition {
    pub const fn new(test: Test) -> Self {
        Condition {
            test,
            negated: false,
        }
    }

    pub const fn not(self) -> Self {
        Condition {
            test: self.test,
            negated: !self.negated,
        }
    }

    /// The flag it asks for.
    pub fn flag(self) -> VarId {
        match self.test {
            Test::Equal => ZF,
            Test::Less => LT,
            Test::LessOrEqual => LE,
            Test::Below => CF,
            Test::BelowOrEqual => BE,
            Test::Sign => SF,
            Test::Overflow => OF,
            Test::Parity => PF,
        }
    }
}

/// A general register or its low part, or its second byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub register: VarId,
    pub width: u32,
    pub high: bool,
}

#[derive(Clone, Debug)]
pub enum Operand {
    Register(Part),
    /// A number of the width the instruction works on.
    Value(E),
    Memory(Memory),
}

#[derive(Clone, Debug)]
pub struct Memory {
    /// 64 bits.
    pub address: E,
    pub bytes: u32,
}

#[derive(Clone, Debug)]
pub struct Instruction {
    pub op: Op,
    pub lock: bool,
    pub operands: Vec<Operand>,
}

impl Op {
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
                | Op::Adc
                | Op::Sbb
                | Op::Inc
                | Op::Dec
                | Op::Not
                | Op::Neg
                | Op::Bts
                | Op::Btr
                | Op::Btc
                | Op::Xadd
                | Op::Xchg
                | Op::Cmpxchg
        )
    }
}

//! Flags, one bit each, and which of them are worth keeping.
//!
//! Instead of the overflow flag alone, [`Flag::Less`] is kept where signed comparisons need it: it is
//! "sign differs from overflow", which is the sign of the *unwrapped* result.

use super::instruction::Code;
use super::mnemonic::{Condition, Op, Test};
use super::register::{Size, wrapped};
use wattle_model::{Expr, Local, Op1, Op2};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    Zero,
    Sign,
    Less,
    Carry,
    Overflow,
    Parity,
}

impl Flag {
    pub const ALL: [Flag; 6] = [
        Flag::Zero,
        Flag::Sign,
        Flag::Less,
        Flag::Carry,
        Flag::Overflow,
        Flag::Parity,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Flag::Zero => "zf",
            Flag::Sign => "sf",
            Flag::Less => "lt",
            Flag::Carry => "cf",
            Flag::Overflow => "of",
            Flag::Parity => "pf",
        }
    }
}

/// A set of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const ALL: Flags = Flags(63);

    pub fn of(flags: &[Flag]) -> Flags {
        Flags(flags.iter().fold(0, |bits, f| bits | 1 << *f as u8))
    }

    pub fn contains(self, flag: Flag) -> bool {
        self.0 >> flag as u8 & 1 == 1
    }

    pub fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Flag> {
        Flag::ALL.into_iter().filter(move |f| self.contains(*f))
    }
}

impl Condition {
    pub fn needs(self) -> Flags {
        match self.test {
            Test::Equal => Flags::of(&[Flag::Zero]),
            Test::Less => Flags::of(&[Flag::Less]),
            Test::LessOrEqual => Flags::of(&[Flag::Zero, Flag::Less]),
            Test::Below => Flags::of(&[Flag::Carry]),
            Test::BelowOrEqual => Flags::of(&[Flag::Zero, Flag::Carry]),
            Test::Sign => Flags::of(&[Flag::Sign]),
            Test::Overflow => Flags::of(&[Flag::Overflow]),
            Test::Parity => Flags::of(&[Flag::Parity]),
        }
    }

    /// The condition, given each flag's value.
    pub fn expr(self, flag: impl Fn(Flag) -> Expr<Local>) -> Expr<Local> {
        let value = match self.test {
            Test::Equal => flag(Flag::Zero),
            Test::Less => flag(Flag::Less),
            Test::LessOrEqual => either(flag(Flag::Less), flag(Flag::Zero)),
            Test::Below => flag(Flag::Carry),
            Test::BelowOrEqual => either(flag(Flag::Carry), flag(Flag::Zero)),
            Test::Sign => flag(Flag::Sign),
            Test::Overflow => flag(Flag::Overflow),
            Test::Parity => flag(Flag::Parity),
        };
        if self.negated { value.negate() } else { value }
    }
}

/// `a || b`; `x < y || x == y` becomes `x <= y`.
fn either(a: Expr<Local>, b: Expr<Local>) -> Expr<Local> {
    if let (Expr::Binary(Op2::Lt, x, y), Expr::Binary(Op2::Eq, u, v)) = (&a, &b)
        && x == u
        && y == v
    {
        return Expr::binary(Op2::Le, (**x).clone(), (**y).clone());
    }
    Expr::binary(Op2::Or, a, b)
}

impl Op {
    pub fn sets(self) -> Flags {
        match self {
            Op::Add | Op::Sub | Op::And | Op::Or | Op::Xor | Op::Cmp | Op::Test => Flags::ALL,
            Op::Neg | Op::Xadd | Op::Cmpxchg => Flags::ALL,
            Op::Inc | Op::Dec => Flags::ALL.without(Flags::of(&[Flag::Carry])),
            _ => Flags::NONE,
        }
    }

    pub fn reads(self) -> Flags {
        match self {
            Op::Jcc(c) | Op::Set(c) | Op::Cmov(c) => c.needs(),
            _ => Flags::NONE,
        }
    }
}

/// What the flags are computed from, before anything is written.
pub enum Outcome {
    Difference(Expr<Local>, Expr<Local>),
    Sum(Expr<Local>, Expr<Local>),
    /// Logic leaves carry and overflow clear.
    Logic(Expr<Local>),
}

impl Outcome {
    /// The flag in terms of the operands' old values; `None` where mathematical integers have no
    /// such flag.
    pub fn before(&self, flag: Flag, size: Option<Size>) -> Option<Expr<Local>> {
        let cut = |e: Expr<Local>| match size {
            Some(s) => wrapped(e, s, true),
            None => e,
        };
        let zero = || Expr::Const(0);
        let negative = |e| Expr::binary(Op2::Lt, e, zero());
        let sum = |a: &Expr<Local>, b: &Expr<Local>| Expr::binary(Op2::Add, a.clone(), b.clone());
        let less = |a: &Expr<Local>, b: &Expr<Local>| Expr::binary(Op2::Lt, a.clone(), b.clone());
        let difference = |a: &Expr<Local>, b: &Expr<Local>| match b {
            Expr::Const(0) => a.clone(),
            _ => Expr::binary(Op2::Sub, a.clone(), b.clone()),
        };
        Some(match (self, flag) {
            // Mathematical integers have no bytes.
            (_, Flag::Parity) if size.is_none() => return None,
            (Outcome::Difference(a, b), Flag::Parity) => even(cut(difference(a, b))),
            (Outcome::Sum(a, b), Flag::Parity) => even(cut(sum(a, b))),
            (Outcome::Logic(e), Flag::Parity) => even(e.clone()),
            (Outcome::Difference(a, b), Flag::Zero) => Expr::binary(Op2::Eq, a.clone(), b.clone()),
            (Outcome::Difference(a, b), Flag::Less) => less(a, b),
            (Outcome::Difference(a, b), Flag::Sign) if size.is_none() => less(a, b),
            (Outcome::Difference(a, Expr::Const(0)), Flag::Sign) => negative(a.clone()),
            (Outcome::Difference(a, b), Flag::Sign) => negative(cut(difference(a, b))),
            (Outcome::Sum(a, b), Flag::Zero) => Expr::binary(Op2::Eq, cut(sum(a, b)), zero()),
            (Outcome::Sum(a, b), Flag::Less) => negative(sum(a, b)),
            (Outcome::Sum(a, b), Flag::Sign) => negative(cut(sum(a, b))),
            (Outcome::Logic(e), Flag::Zero) => Expr::binary(Op2::Eq, e.clone(), zero()),
            (Outcome::Logic(e), Flag::Less | Flag::Sign) => negative(e.clone()),
            (Outcome::Logic(_), Flag::Carry | Flag::Overflow) => zero(),
            (Outcome::Difference(a, b), Flag::Carry) => below(a.clone(), b.clone(), size?),
            (Outcome::Sum(a, b), Flag::Carry) => below(cut(sum(a, b)), a.clone(), size?),
            (Outcome::Difference(a, b), Flag::Overflow) => {
                size?;
                Expr::binary(Op2::Ne, negative(cut(difference(a, b))), less(a, b))
            }
            (Outcome::Sum(a, b), Flag::Overflow) => {
                size?;
                Expr::binary(Op2::Ne, negative(cut(sum(a, b))), negative(sum(a, b)))
            }
        })
    }

    /// The flag in terms of the (signed) result, where the result is enough.
    pub fn after(&self, flag: Flag, result: &Expr<Local>, exact: bool) -> Option<Expr<Local>> {
        let zero = || Expr::Const(0);
        match (self, flag) {
            (_, Flag::Zero) => Some(Expr::binary(Op2::Eq, result.clone(), zero())),
            (_, Flag::Sign) => Some(Expr::binary(Op2::Lt, result.clone(), zero())),
            (Outcome::Logic(_), Flag::Less) => Some(Expr::binary(Op2::Lt, result.clone(), zero())),
            (_, Flag::Less) if exact => Some(Expr::binary(Op2::Lt, result.clone(), zero())),
            (Outcome::Logic(_), Flag::Carry | Flag::Overflow) => Some(zero()),
            _ => None,
        }
    }
}

/// Whether the low byte has an even number of ones: its halves are folded into one, and the bits of
/// 0x9669 say it of four bits.
fn even(e: Expr<Local>) -> Expr<Local> {
    let binary = |op, a, n| Expr::binary(op, a, Expr::Const(n));
    let high = binary(Op2::Shr, binary(Op2::BitAnd, e.clone(), 0xF0), 4);
    let half = binary(Op2::BitAnd, Expr::binary(Op2::BitXor, e, high), 15);
    let bit = Expr::binary(Op2::Shr, Expr::Const(0x9669), half);
    binary(Op2::Eq, binary(Op2::BitAnd, bit, 1), 1)
}

/// Unsigned `a < b` of two signed values.
fn below(a: Expr<Local>, b: Expr<Local>, size: Size) -> Expr<Local> {
    if size < Size::Qword {
        return Expr::binary(Op2::Lt, wrapped(a, size, false), wrapped(b, size, false));
    }
    // Unsigned 64-bit numbers do not fit; shifting both by 2⁶³ is comparing after flipping the sign.
    let flip = |e| Expr::binary(Op2::BitXor, e, Expr::Const(i64::MIN));
    Expr::binary(Op2::Lt, flip(a), flip(b))
}

/// The flags each instruction's successors may still read, before the instruction itself.
pub fn live(code: &Code, successors: &[Vec<usize>]) -> Vec<Flags> {
    let n = code.instructions.len();
    let mut predecessors: Vec<Vec<usize>> = vec![Vec::new(); n + 1];
    for (i, next) in successors.iter().enumerate() {
        for s in next {
            predecessors[*s].push(i);
        }
    }
    let mut live = vec![Flags::NONE; n + 1];
    // Each instruction is looked at again only when a successor has gained a flag.
    let mut work: Vec<usize> = (0..n).collect();
    while let Some(i) = work.pop() {
        let op = code.instructions[i].op;
        let out = after(i, &live, successors);
        let before = out.without(op.sets()).union(op.reads());
        if before != live[i] {
            live[i] = before;
            work.extend(&predecessors[i]);
        }
    }
    live
}

/// The flags live after an instruction.
pub fn after(i: usize, live: &[Flags], successors: &[Vec<usize>]) -> Flags {
    let next = successors[i].iter().map(|s| live[*s]);
    next.fold(Flags::NONE, Flags::union)
}

/// Negation in the given arithmetic.
pub fn negated(e: Expr<Local>) -> Expr<Local> {
    match e {
        Expr::Const(c) if c != i64::MIN => Expr::Const(-c),
        e => Expr::unary(Op1::Neg, e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(e: Option<Expr<Local>>) -> bool {
        e.and_then(|e| e.eval(&|_: &Local| 0).ok()) == Some(1)
    }

    /// The flags as the manual defines them, on all pairs of bytes.
    #[test]
    fn flags_of_bytes() {
        for a in i8::MIN..=i8::MAX {
            for b in i8::MIN..=i8::MAX {
                let (x, y) = (Expr::Const(i64::from(a)), Expr::Const(i64::from(b)));
                let (sum, sum_overflows) = a.overflowing_add(b);
                let (difference, difference_overflows) = a.overflowing_sub(b);
                let cases = [
                    (
                        Outcome::Sum(x.clone(), y.clone()),
                        sum,
                        (a as u8).checked_add(b as u8).is_none(),
                        sum_overflows,
                    ),
                    (
                        Outcome::Difference(x.clone(), y.clone()),
                        difference,
                        (a as u8) < b as u8,
                        difference_overflows,
                    ),
                    (
                        Outcome::Logic(Expr::binary(Op2::BitAnd, x, y)),
                        a & b,
                        false,
                        false,
                    ),
                ];
                for (outcome, result, carry, overflow) in cases {
                    let expected = [
                        (Flag::Zero, result == 0),
                        (Flag::Sign, result < 0),
                        (Flag::Less, (result < 0) != overflow),
                        (Flag::Carry, carry),
                        (Flag::Overflow, overflow),
                        (Flag::Parity, result.count_ones() % 2 == 0),
                    ];
                    let shown = Expr::Const(i64::from(result));
                    for (flag, expected) in expected {
                        let before = outcome.before(flag, Some(Size::Byte));
                        assert_eq!(value(before), expected, "{a} {b} {flag:?}");
                        if let Some(after) = outcome.after(flag, &shown, false) {
                            assert_eq!(value(Some(after)), expected, "{a} {b} {flag:?}");
                        }
                    }
                }
            }
        }
    }
}

//! Flags, from what they are computed of.

use super::{Meaning, Micro};
use crate::bits::{Bin, Cmp, E, VarId};
use crate::graph::{BE, CF, LE, LT, OF, Op as Step, PF, SF, ZF};
use crate::instruction::Condition;

/// What the flags are computed from.
pub enum Outcome {
    Difference(E, E),
    /// A difference that is kept, with its result.
    Kept(E, E, E),
    Sum(E, E),
    /// Logic leaves carry and overflow clear.
    Logic(E),
    /// Operands, result and carry of `adc` and `sbb`.
    Carried {
        a: E,
        b: E,
        result: E,
        carry: E,
        minus: bool,
    },
}

/// Whether the highest bit is set. Of bits that are put together it is one of theirs.
fn negative(e: E) -> E {
    let w = e.width();
    match e {
        E::Bin(op @ (Bin::And | Bin::Or | Bin::Xor), a, b) if w > 1 => {
            E::bin(op, negative(*a), negative(*b))
        }
        E::Not(a) if w > 1 => negative(*a).inverted(),
        e => E::test(Cmp::Slt, e, E::constant(0, w)),
    }
}

fn zero(e: E) -> E {
    let w = e.width();
    E::same(e, E::constant(0, w))
}

fn differ(a: E, b: E) -> E {
    E::bin(Bin::Xor, a, b)
}

/// Overflow of a sum or difference, from operands and result.
fn overflow(a: &E, b: &E, result: &E, minus: bool) -> E {
    let apart = E::bin(Bin::Xor, a.clone(), b.clone());
    let apart = if minus { apart } else { apart.inverted() };
    let changed = E::bin(Bin::Xor, a.clone(), result.clone());
    negative(E::bin(Bin::And, apart, changed))
}

fn both(a: E, b: E) -> E {
    E::bin(Bin::And, a, b)
}

/// Whether one number without a sign is less than another, in words that are wide enough: what is negative is
/// large there.
fn borrowed(a: &E, b: &E) -> E {
    let (low, high) = (negative(a.clone()).inverted(), negative(b.clone()));
    let less = E::test(Cmp::Slt, a.clone(), b.clone());
    let far = both(low.clone(), high.clone());
    E::or(far, both(less, E::or(low, high)))
}

/// Whether a sum is carried out of such words.
fn carried(a: &E, b: &E) -> E {
    let (one, other) = (negative(a.clone()), negative(b.clone()));
    let back = negative(E::sum(a.clone(), b.clone())).inverted();
    let far = both(one.clone(), other.clone());
    E::or(far, both(E::or(one, other), back))
}

/// Whether the low byte has an even number of ones: its halves are folded into one, and the bits of
/// 0x9669 say it of four bits.
fn even(result: &E) -> E {
    let byte = result.clone().extract(0, 8).zext(16);
    let high = E::bin(Bin::Shr, byte.clone(), E::constant(4, 16));
    let half = E::bin(Bin::Xor, byte, high);
    let half = E::bin(Bin::And, half, E::constant(15, 16));
    E::bin(Bin::Shr, E::constant(0x9669, 16), half).extract(0, 1)
}

impl Meaning<'_> {
    /// Sets every flag.
    pub fn flags_of(&mut self, outcome: Outcome) {
        if self.exact {
            return self.exact_flags(outcome);
        }
        match outcome {
            Outcome::Difference(a, b) | Outcome::Kept(a, b, _) => {
                let result = E::bin(Bin::Sub, a.clone(), b.clone());
                self.set(ZF, E::same(a.clone(), b.clone()));
                self.set(CF, E::test(Cmp::Ult, a.clone(), b.clone()));
                self.set(SF, negative(result.clone()));
                let over = match a {
                    // Only the least number has no opposite.
                    E::Const(0, w) => E::same(b.clone(), E::constant(1 << (w - 1), w)),
                    _ => overflow(&a, &b, &result, true),
                };
                self.set(OF, over);
                self.set(PF, even(&result));
                self.set(LT, E::test(Cmp::Slt, a.clone(), b.clone()));
                self.set(BE, E::test(Cmp::Ule, a.clone(), b.clone()));
                self.set(LE, E::test(Cmp::Sle, a, b));
            }
            Outcome::Sum(a, b) => {
                let result = E::sum(a.clone(), b.clone());
                let carry = E::test(Cmp::Ult, result.clone(), a.clone());
                self.general(&a, &b, result, carry, false);
            }
            Outcome::Carried {
                a,
                b,
                result,
                carry,
                minus,
            } => self.general(&a, &b, result, carry, minus),
            Outcome::Logic(result) => {
                self.set(ZF, zero(result.clone()));
                self.set(CF, E::bool(false));
                self.set(SF, negative(result.clone()));
                self.set(OF, E::bool(false));
                self.set(PF, even(&result));
                self.set(LT, negative(result.clone()));
                self.set(BE, zero(result.clone()));
                let w = result.width();
                self.set(LE, E::test(Cmp::Sle, result, E::constant(0, w)));
            }
        }
    }

    /// Mathematical integers have a zero and a sign, never overflow, and are carried as in words that are wide
    /// enough. They have no low byte whose parity could be told. Where the result is kept it is what is looked at.
    fn exact_flags(&mut self, outcome: Outcome) {
        let none = E::constant(0, 64);
        let (carry, a, b) = match outcome {
            Outcome::Difference(a, b) => (borrowed(&a, &b), a, b),
            Outcome::Kept(a, b, result) => (borrowed(&a, &b), result, none),
            Outcome::Sum(a, b) => (carried(&a, &b), E::sum(a, b), none),
            Outcome::Logic(result) => (E::bool(false), result, none),
            Outcome::Carried { .. } => return self.flags_unknown(),
        };
        let same = E::same(a.clone(), b.clone());
        let less = E::test(Cmp::Slt, a.clone(), b.clone());
        self.set(PF, E::Unknown(1));
        self.set(OF, E::bool(false));
        self.set(CF, carry.clone());
        self.set(ZF, same.clone());
        self.set(SF, less.clone());
        self.set(LT, less);
        self.set(BE, E::or(carry, same));
        self.set(LE, E::test(Cmp::Sle, a, b));
    }

    fn general(&mut self, a: &E, b: &E, result: E, carry: E, minus: bool) {
        let less = differ(negative(result.clone()), overflow(a, b, &result, minus));
        self.set(ZF, zero(result.clone()));
        self.set(CF, carry.clone());
        self.set(SF, negative(result.clone()));
        self.set(OF, overflow(a, b, &result, minus));
        self.set(PF, even(&result));
        self.set(LT, less.clone());
        self.set(BE, E::or(carry, zero(result.clone())));
        self.set(LE, E::or(less, zero(result)));
    }

    /// All flags but the carry, which stays.
    pub fn flags_but_carry(&mut self, a: &E, b: &E, result: E, minus: bool) {
        let carry = self.get(CF);
        match minus {
            true => self.flags_of(Outcome::Kept(a.clone(), b.clone(), result.clone())),
            false if self.exact => self.flags_of(Outcome::Sum(a.clone(), b.clone())),
            false => self.general(a, b, result.clone(), carry.clone(), false),
        }
        // The carry was overwritten after what it was made of was read.
        self.retract(CF);
        self.set(BE, E::or(carry, zero(result)));
    }

    /// Takes back the latest assignment of a flag.
    fn retract(&mut self, flag: VarId) {
        let written = |m: &Micro| matches!(m, Micro::Op(Step::Assign(v, _)) if *v == flag);
        if let Some(at) = self.ops.iter().rposition(written) {
            self.ops.remove(at);
        }
    }

    /// Flags of a result with a carry and an overflow of its own (`None`: undefined).
    pub fn flags_of_result(&mut self, result: E, carry: Option<E>, over: Option<E>) {
        let carry = carry.unwrap_or(E::Unknown(1));
        let over = over.unwrap_or(E::Unknown(1));
        let less = differ(negative(result.clone()), over.clone());
        self.set(ZF, zero(result.clone()));
        self.set(SF, negative(result.clone()));
        self.set(CF, carry.clone());
        self.set(OF, over);
        self.set(PF, even(&result));
        self.set(LT, less.clone());
        self.set(BE, E::or(carry, zero(result.clone())));
        self.set(LE, E::or(less, zero(result)));
    }

    /// Nothing is known of any flag.
    pub fn flags_unknown(&mut self) {
        for f in [ZF, CF, SF, OF, PF, LT, BE, LE] {
            self.set(f, E::Unknown(1));
        }
    }

    /// Only the carry is defined, and zero stays, as `bt` does.
    pub fn flags_carry_only(&mut self, carry: E) {
        self.set(CF, carry.clone());
        for f in [SF, OF, PF, LT, LE] {
            self.set(f, E::Unknown(1));
        }
        let z = self.get(ZF);
        self.set(BE, E::or(carry, z));
    }

    /// What rotating does: zero, sign and parity stay, the overflow and what depends on it are undefined.
    pub fn flags_of_rotation(&mut self, carry: E) {
        self.set(CF, carry.clone());
        for f in [OF, LT, LE] {
            self.set(f, E::Unknown(1));
        }
        let z = self.get(ZF);
        self.set(BE, E::or(carry, z));
    }

    /// A condition of the flags as they are.
    pub fn condition(&self, condition: Condition) -> E {
        let value = self.get(condition.flag());
        if condition.negated {
            value.inverted()
        } else {
            value
        }
    }
}

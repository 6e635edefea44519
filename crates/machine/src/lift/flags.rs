//! Flags, from what they are computed of.

use super::{Lift, Result};
use crate::bits::{Bin, Cmp, E};
use crate::graph::{BE, CF, LE, LT, OF, PF, SF, ZF};
use iced_x86::ConditionCode;

/// What the flags are computed from.
pub enum Outcome {
    Difference(E, E),
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

fn negative(e: E) -> E {
    let w = e.width();
    E::test(Cmp::Slt, e, E::constant(0, w))
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

impl Lift<'_> {
    /// Sets every flag.
    pub fn flags_of(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Difference(a, b) => {
                let result = E::bin(Bin::Sub, a.clone(), b.clone());
                self.set(ZF, E::same(a.clone(), b.clone()));
                self.set(CF, E::test(Cmp::Ult, a.clone(), b.clone()));
                self.set(SF, negative(result.clone()));
                self.set(OF, overflow(&a, &b, &result, true));
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
                self.set(LT, negative(result.clone()));
                self.set(BE, zero(result.clone()));
                let w = result.width();
                self.set(LE, E::test(Cmp::Sle, result, E::constant(0, w)));
            }
        }
        self.set(PF, E::Unknown(1));
    }

    fn general(&mut self, a: &E, b: &E, result: E, carry: E, minus: bool) {
        let less = differ(negative(result.clone()), overflow(a, b, &result, minus));
        self.set(ZF, zero(result.clone()));
        self.set(CF, carry.clone());
        self.set(SF, negative(result.clone()));
        self.set(OF, overflow(a, b, &result, minus));
        self.set(LT, less.clone());
        self.set(BE, E::or(carry, zero(result.clone())));
        self.set(LE, E::or(less, zero(result)));
    }

    /// All flags but the carry, which stays.
    pub fn flags_but_carry(&mut self, a: &E, b: &E, result: E, minus: bool) {
        let carry = self.get(CF);
        match minus {
            true => {
                self.flags_of(Outcome::Difference(a.clone(), b.clone()));
                // The carry was overwritten after what it was made of was read.
                self.retract(CF);
            }
            false => {
                self.general(a, b, result.clone(), carry.clone(), false);
                self.retract(CF);
                self.set(PF, E::Unknown(1));
            }
        }
        self.set(BE, E::or(carry, zero(result)));
    }

    /// Takes back the latest assignment of a flag.
    fn retract(&mut self, flag: crate::bits::VarId) {
        let written = |m: &super::Micro| matches!(m, super::Micro::Op(crate::graph::Op::Assign(v, _)) if *v == flag);
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
        self.set(PF, E::Unknown(1));
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

    /// Only the carry is defined (and zero stays, as `bt` does), or overflow with it.
    pub fn flags_carry_only(&mut self, carry: E) {
        self.set(CF, carry.clone());
        for f in [SF, OF, PF, LT, LE] {
            self.set(f, E::Unknown(1));
        }
        let z = self.get(ZF);
        self.set(BE, E::or(carry, z));
    }

    pub fn condition(&self, code: ConditionCode) -> Result<E> {
        use ConditionCode as C;
        let (flag, negated) = match code {
            C::o => (OF, false),
            C::no => (OF, true),
            C::b => (CF, false),
            C::ae => (CF, true),
            C::e => (ZF, false),
            C::ne => (ZF, true),
            C::be => (BE, false),
            C::a => (BE, true),
            C::s => (SF, false),
            C::ns => (SF, true),
            C::l => (LT, false),
            C::ge => (LT, true),
            C::le => (LE, false),
            C::g => (LE, true),
            C::p | C::np => return Err("the parity flag is not supported".into()),
            C::None => return Err("this instruction is not supported".into()),
        };
        let value = self.get(flag);
        Ok(if negated { value.inverted() } else { value })
    }
}

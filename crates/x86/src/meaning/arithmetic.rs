//! Sums, logic, shifts, products.

use super::flags::Outcome;
use super::{Meaning, Micro, Result};
use crate::bits::{Bin, Cmp, E};
use crate::graph::{self, Op as Step};
use crate::instruction::{Instruction, Op, Operand};

impl Meaning<'_> {
    pub fn compare(&mut self, i: &Instruction) -> Result<()> {
        let a = self.operand(i, 0)?;
        let b = self.operand(i, 1)?;
        match i.op {
            Op::Cmp => self.flags_of(Outcome::Difference(a, b)),
            _ => self.flags_of(Outcome::Logic(E::bin(Bin::And, a, b))),
        }
        Ok(())
    }

    /// Reads the first operand, computes, writes it; locked where the instruction says so. The flags
    /// are computed of values that the write does not change.
    fn modify(
        &mut self,
        i: &Instruction,
        change: impl FnOnce(&mut Self, E) -> Result<(E, Vec<Micro>)>,
    ) -> Result<()> {
        if !matches!(i.operands.first(), Some(Operand::Memory(_))) {
            let old = self.operand(i, 0)?;
            let (new, flags) = change(self, old)?;
            // Flags first: they are made of the operands as they were.
            self.ops.extend(flags);
            return self.write(i, 0, new);
        }
        let at = self.access(i, i.lock)?;
        self.begin(i.lock);
        let old = self.load(i, &at);
        let (new, flags) = change(self, old)?;
        self.push(Step::Store { at, value: new });
        self.end(i.lock);
        self.ops.extend(flags);
        Ok(())
    }

    /// What a piece of code pushes.
    fn aside(&mut self, make: impl FnOnce(&mut Self)) -> Vec<Micro> {
        let before = std::mem::take(&mut self.ops);
        make(self);
        std::mem::replace(&mut self.ops, before)
    }

    pub fn two_operands(&mut self, i: &Instruction) -> Result<()> {
        let b = self.operand(i, 1)?;
        self.modify(i, |s, a| {
            let (result, outcome) = match i.op {
                Op::Add => (E::sum(a.clone(), b.clone()), Outcome::Sum(a, b)),
                Op::Sub => {
                    let result = E::bin(Bin::Sub, a.clone(), b.clone());
                    (result.clone(), Outcome::Kept(a, b, result))
                }
                op => {
                    let op = match op {
                        Op::And => Bin::And,
                        Op::Or => Bin::Or,
                        _ => Bin::Xor,
                    };
                    let result = E::bin(op, a, b);
                    (result.clone(), Outcome::Logic(result))
                }
            };
            let flags = s.aside(|s| s.flags_of(outcome));
            Ok((result, flags))
        })
    }

    /// `adc` and `sbb` read the carry they overwrite.
    pub fn with_carry(&mut self, i: &Instruction) -> Result<()> {
        let b = self.operand(i, 1)?;
        let minus = i.op == Op::Sbb;
        self.modify(i, |s, a| {
            let c = s.get(graph::CF);
            let one = c.clone().zext(a.width());
            let (result, carry) = match minus {
                false => {
                    let result = E::sum(E::sum(a.clone(), b.clone()), one);
                    let less = E::test(Cmp::Ult, result.clone(), a.clone());
                    let same = E::and(c, E::same(result.clone(), a.clone()));
                    (result, E::or(less, same))
                }
                true => {
                    let difference = E::bin(Bin::Sub, a.clone(), b.clone());
                    let less = E::test(Cmp::Ult, a.clone(), b.clone());
                    let same = E::and(c, E::same(a.clone(), b.clone()));
                    (E::bin(Bin::Sub, difference, one), E::or(less, same))
                }
            };
            let result = s.keep(result, "sum");
            let carry = s.keep(carry, "carry");
            let outcome = Outcome::Carried {
                a,
                b,
                result: result.clone(),
                carry,
                minus,
            };
            let flags = s.aside(|s| s.flags_of(outcome));
            Ok((result, flags))
        })
    }

    pub fn one_operand(&mut self, i: &Instruction) -> Result<()> {
        self.modify(i, |s, a| {
            let w = a.width();
            let one = E::constant(1, w);
            let nothing = E::constant(0, w);
            Ok(match i.op {
                Op::Not => (a.inverted(), Vec::new()),
                Op::Neg => {
                    let result = a.clone().negated();
                    let outcome = Outcome::Kept(nothing, a, result.clone());
                    (result, s.aside(|s| s.flags_of(outcome)))
                }
                Op::Inc => {
                    let result = E::sum(a.clone(), one.clone());
                    let r = result.clone();
                    let flags = s.aside(|s| s.flags_but_carry(&a, &one, r, false));
                    (result, flags)
                }
                _ => {
                    let result = E::bin(Bin::Sub, a.clone(), one.clone());
                    let r = result.clone();
                    let flags = s.aside(|s| s.flags_but_carry(&a, &one, r, true));
                    (result, flags)
                }
            })
        })
    }

    pub fn shift(&mut self, i: &Instruction) -> Result<()> {
        let w = self.width(i, 0)?;
        let limit = if w == 64 { 63 } else { 31 };
        let count = match i.operands.len() {
            1 => E::constant(1, 8),
            _ => self.operand(i, 1)?.resize(8),
        };
        let count = E::bin(Bin::And, count, E::constant(limit, 8)).resize(w);
        if let Some(0) = count.as_const() {
            // Nothing changes, but 32 bits still clear the upper half.
            let value = self.operand(i, 0)?;
            return self.write(i, 0, value);
        }
        let rotate = matches!(i.op, Op::Rol | Op::Ror);
        let (fixed, wide) = (count.as_const(), u64::from(w));
        if rotate && fixed.is_none() {
            return Err("rotating by a register is not supported".into());
        }
        self.modify(i, |s, a| {
            let bit = |e: &E, k: u64| e.clone().extract(k as u32, 1);
            let top = |e: &E| e.clone().extract(w - 1, 1);
            if let (true, Some(c)) = (rotate, fixed) {
                let left = match i.op {
                    Op::Rol => c % wide,
                    _ => (wide - c % wide) % wide,
                };
                let up = E::bin(Bin::Shl, a.clone(), E::constant(left, w));
                let down = E::bin(Bin::Shr, a.clone(), E::constant(wide - left, w));
                let result = if left == 0 {
                    a
                } else {
                    E::bin(Bin::Or, up, down)
                };
                let carry = match i.op {
                    Op::Rol => bit(&result, 0),
                    _ => top(&result),
                };
                let flags = s.aside(|s| s.flags_of_rotation(carry));
                return Ok((result, flags));
            }
            let kind = match i.op {
                Op::Shl => Bin::Shl,
                Op::Shr => Bin::Shr,
                _ => Bin::Sar,
            };
            let result = E::bin(kind, a.clone(), count);
            let flags = match fixed {
                None => s.aside(|s| s.flags_unknown()),
                Some(c) => {
                    let carry = match kind {
                        Bin::Shl if c <= wide => Some(bit(&a, wide - c)),
                        Bin::Shr if c <= wide => Some(bit(&a, c - 1)),
                        Bin::Sar => Some(bit(&a, (c - 1).min(wide - 1))),
                        _ => None,
                    };
                    let over = match (kind, c, &carry) {
                        (Bin::Shl, 1, Some(carry)) => {
                            Some(E::bin(Bin::Xor, top(&result), carry.clone()))
                        }
                        (Bin::Shr, 1, _) => Some(top(&a)),
                        (Bin::Sar, 1, _) => Some(E::bool(false)),
                        _ => None,
                    };
                    let r = result.clone();
                    s.aside(|s| s.flags_of_result(r, carry, over))
                }
            };
            Ok((result, flags))
        })
    }

    pub fn multiply(&mut self, i: &Instruction) -> Result<()> {
        let signed = i.op == Op::Imul;
        let w = self.width(i, 0)?;
        if i.operands.len() >= 2 {
            let last = i.operands.len() - 1;
            let a = self.operand(i, last - 1)?;
            let b = self.operand(i, last)?.sext(w);
            self.flags_unknown();
            return self.write(i, 0, E::bin(Bin::Mul, a, b));
        }
        let b = self.operand(i, 0)?;
        let a = self.get(graph::RAX).extract(0, w);
        self.flags_unknown();
        if w == 64 {
            let (a, b) = (self.keep(a, "factor"), self.keep(b, "factor"));
            let high = self.upper_half(&a, &b, signed);
            self.set(graph::RAX, E::bin(Bin::Mul, a, b));
            self.set(graph::RDX, high);
            return Ok(());
        }
        let wide = |e: E| if signed { e.sext(2 * w) } else { e.zext(2 * w) };
        let product = E::bin(Bin::Mul, wide(a), wide(b));
        let product = self.keep(product, "product");
        if w == 8 {
            self.write_part(graph::RAX, product, false);
        } else {
            self.write_part(graph::RAX, product.clone().extract(0, w), false);
            self.write_part(graph::RDX, product.extract(w, w), false);
        }
        Ok(())
    }

    /// The upper 64 bits of a product of 128, from those of the factors' halves.
    fn upper_half(&mut self, a: &E, b: &E, signed: bool) -> E {
        let half = |e: &E, low: u32| e.clone().extract(low, 32).zext(64);
        let upper = |e: &E| half(e, 32);
        let times = |x: E, y: E| E::bin(Bin::Mul, x, y);
        let low = times(half(a, 0), half(b, 0));
        let cross = self.keep(times(upper(a), half(b, 0)), "product");
        let other = self.keep(times(half(a, 0), upper(b)), "product");
        let carried = E::sum(E::sum(upper(&low), half(&cross, 0)), half(&other, 0));
        let carried = self.keep(carried, "product");
        let mut high = E::sum(times(upper(a), upper(b)), upper(&cross));
        high = E::sum(E::sum(high, upper(&other)), upper(&carried));
        if signed {
            let zero = || E::constant(0, 64);
            for (x, y) in [(a, b), (b, a)] {
                let below = E::test(Cmp::Slt, x.clone(), zero());
                high = E::bin(Bin::Sub, high, E::ite(below, y.clone(), zero()));
            }
        }
        self.keep(high, "product")
    }

    /// Division, where the upper half of what is divided is only the extension of the lower.
    pub fn divide(&mut self, i: &Instruction) -> Result<()> {
        let signed = i.op == Op::Idiv;
        let w = self.width(i, 0)?;
        if w < 32 {
            return Err("division of 8 and 16 bits is not supported".into());
        }
        let by = self.operand(i, 0)?;
        let by = self.keep(by, "divisor");
        let a = self.get(graph::RAX).extract(0, w);
        let a = self.keep(a, "dividend");
        let upper = self.get(graph::RDX).extract(0, w);
        let wanted = match signed {
            true => E::bin(Bin::Sar, a.clone(), E::constant(u64::from(w - 1), w)),
            false => E::constant(0, w),
        };
        let why = "the upper half of what is divided is not known to be its extension";
        self.push(Step::Require(E::same(upper, wanted), why.into()));
        let nonzero = E::same(by.clone(), E::constant(0, w)).inverted();
        self.push(Step::Assert(nonzero, "division by zero".into()));
        if signed {
            let least = E::same(a.clone(), E::constant(1 << (w - 1), w));
            let minus = E::same(by.clone(), E::constant(u64::MAX, w));
            let fits = E::and(least, minus).inverted();
            self.push(Step::Assert(fits, "the quotient does not fit".into()));
        }
        let (div, rem) = match signed {
            true => (Bin::Sdiv, Bin::Srem),
            false => (Bin::Udiv, Bin::Urem),
        };
        let (q, r) = (E::bin(div, a.clone(), by.clone()), E::bin(rem, a, by));
        self.write_part(graph::RAX, q, false);
        self.write_part(graph::RDX, r, false);
        self.flags_unknown();
        Ok(())
    }

    /// `bt`, `bts`, `btr`, `btc`.
    pub fn bit(&mut self, i: &Instruction) -> Result<()> {
        let w = self.width(i, 0)?;
        let number = self.operand(i, 1)?;
        let number = self.keep(number.resize(w.max(8)).resize(w), "bit");
        let number = E::bin(Bin::And, number, E::constant(u64::from(w - 1), w));
        let at = E::bin(Bin::Shl, E::constant(1, w), number.clone());
        let carry = |a: &E| E::bin(Bin::Shr, a.clone(), number.clone()).extract(0, 1);
        if i.op == Op::Bt {
            let a = self.operand(i, 0)?;
            let carry = carry(&a);
            self.flags_carry_only(carry);
            return Ok(());
        }
        self.modify(i, |s, a| {
            let new = match i.op {
                Op::Bts => E::bin(Bin::Or, a.clone(), at),
                Op::Btr => E::bin(Bin::And, a.clone(), at.inverted()),
                _ => E::bin(Bin::Xor, a.clone(), at),
            };
            let flag = carry(&a);
            let flags = s.aside(|s| s.flags_carry_only(flag));
            Ok((new, flags))
        })
    }
}

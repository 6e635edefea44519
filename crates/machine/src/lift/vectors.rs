//! Vectors of 16 bytes as far as compilers use them to move, clear and put together words: no arithmetic.
//!
//! A register is two words of eight bytes. An access of 16 bytes is two accesses of eight in either order:
//! the architecture promises no more, and older processors do no more. That the aligned moves fault where
//! an address is not a multiple of 16 is left out.

use super::{Lift, Micro, Result};
use crate::bits::{Bin, E, VarId};
use crate::graph::{self, Access, Op};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

impl Lift<'_> {
    /// Lifts an instruction on vectors; false if it is none that is known.
    pub(super) fn vectors(&mut self, i: &Instruction) -> Result<bool> {
        use Mnemonic as M;
        // Registers of 8 bytes (MMX) are no vectors of ours.
        let known = |k: u32| match i.op_kind(k) {
            OpKind::Register => i.op_register(k).is_xmm() || i.op_register(k).is_gpr(),
            OpKind::Memory => true,
            _ => false,
        };
        let operands = match i.mnemonic() {
            M::Pshufd => 3,
            _ => 2,
        };
        if i.op_count() != operands || !known(0) || !known(1) {
            return Ok(false);
        }
        match i.mnemonic() {
            M::Movaps | M::Movups | M::Movapd | M::Movupd | M::Movdqa | M::Movdqu => {
                let value = self.vector(i, 1)?;
                self.write_vector(i, 0, value)?;
            }
            M::Movq | M::Movd => {
                let low = self.scalar(i, 1)?;
                match xmm(i, 0) {
                    Some([to, high]) => {
                        self.meaning.set(to, low.zext(64));
                        self.meaning.set(high, E::constant(0, 64));
                    }
                    None => {
                        let w = self.width(i, 0)?;
                        self.write(i, 0, low.extract(0, w))?;
                    }
                }
            }
            M::Xorps | M::Xorpd | M::Pxor => self.bitwise(i, Bin::Xor)?,
            M::Andps | M::Andpd | M::Pand => self.bitwise(i, Bin::And)?,
            M::Orps | M::Orpd | M::Por => self.bitwise(i, Bin::Or)?,
            M::Punpcklqdq | M::Unpcklpd | M::Movlhps => {
                let Some([_, high]) = xmm(i, 0) else {
                    return Ok(false);
                };
                // Only the lower half is used, but memory is read as a whole.
                let [low, _] = self.vector(i, 1)?;
                self.meaning.set(high, low);
            }
            M::Punpckldq | M::Unpcklps => {
                if xmm(i, 0).is_none() {
                    return Ok(false);
                }
                let [from, _] = self.vector(i, 1)?;
                let [to, _] = self.vector(i, 0)?;
                let pair = |low| {
                    to.clone()
                        .extract(low, 32)
                        .zext(64)
                        .insert(from.clone().extract(low, 32), 32)
                };
                self.quarters(i, [pair(0), pair(32)])?;
            }
            M::Pshufd => {
                if xmm(i, 0).is_none() {
                    return Ok(false);
                }
                let from = self.vector(i, 1)?;
                let order = i.immediate8();
                let quarter = |k: u32| {
                    let which = u32::from(order >> (2 * k) & 3);
                    from[which as usize / 2].clone().extract(which % 2 * 32, 32)
                };
                let pair = |k: u32| quarter(k).zext(64).insert(quarter(k + 1), 32);
                self.quarters(i, [pair(0), pair(2)])?;
            }
            M::Punpckhqdq | M::Unpckhpd => {
                let Some([to, high]) = xmm(i, 0) else {
                    return Ok(false);
                };
                let [_, value] = self.vector(i, 1)?;
                let (value, kept) = (self.meaning.keep(value, "half"), self.meaning.get(high));
                self.meaning.set(to, kept);
                self.meaning.set(high, value);
            }
            M::Movhlps => {
                let (Some([to, _]), Some([_, from])) = (xmm(i, 0), xmm(i, 1)) else {
                    return Ok(false);
                };
                let value = self.meaning.get(from);
                self.meaning.set(to, value);
            }
            M::Movlps | M::Movlpd | M::Movhps | M::Movhpd => {
                let half = usize::from(matches!(i.mnemonic(), M::Movhps | M::Movhpd));
                match (xmm(i, 0), xmm(i, 1)) {
                    (Some(to), None) => {
                        let value = self.operand(i, 1)?;
                        self.meaning.set(to[half], value);
                    }
                    (None, Some(from)) => {
                        let value = self.meaning.get(from[half]);
                        self.write(i, 0, value)?;
                    }
                    _ => return Ok(false),
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Writes a register of which both halves are made of what was there.
    fn quarters(&mut self, i: &Instruction, value: [E; 2]) -> Result<()> {
        let value = value.map(|v| self.meaning.keep(v, "half"));
        self.write_vector(i, 0, value)
    }

    fn bitwise(&mut self, i: &Instruction, op: Bin) -> Result<()> {
        let [c, d] = self.vector(i, 1)?;
        let [a, b] = self.vector(i, 0)?;
        // A register with itself, as compilers clear it, whatever it holds.
        let same = i.op1_kind() == OpKind::Register && i.op0_register() == i.op1_register();
        let value = match (same, op) {
            (true, Bin::Xor) => [E::constant(0, 64), E::constant(0, 64)],
            _ => [E::bin(op, a, c), E::bin(op, b, d)],
        };
        self.write_vector(i, 0, value)
    }

    /// The lower word of an operand: of a vector register, a general register or memory.
    fn scalar(&mut self, i: &Instruction, operand: u32) -> Result<E> {
        match xmm(i, operand) {
            Some([low, _]) => {
                let w = match i.mnemonic() {
                    Mnemonic::Movd => 32,
                    _ => 64,
                };
                Ok(self.meaning.get(low).extract(0, w))
            }
            None => self.operand(i, operand),
        }
    }

    fn vector(&mut self, i: &Instruction, operand: u32) -> Result<[E; 2]> {
        if let Some([low, high]) = xmm(i, operand) {
            return Ok([self.meaning.get(low), self.meaning.get(high)]);
        }
        let [low, high] = self.halves(i)?;
        if let (Some(a), Some(b)) = (self.constant(&low)?, self.constant(&high)?) {
            return Ok([a, b]);
        }
        let to = [
            self.meaning.vars.fresh(64, "low"),
            self.meaning.vars.fresh(64, "high"),
        ];
        let load = |to: VarId, at: &Access| Op::Load { to, at: at.clone() };
        let ops = [load(to[0], &low), load(to[1], &high)];
        self.in_any_order(i, ops);
        Ok(to.map(|v| self.meaning.get(v)))
    }

    fn write_vector(&mut self, i: &Instruction, operand: u32, value: [E; 2]) -> Result<()> {
        match xmm(i, operand) {
            Some(to) => {
                for (to, value) in to.into_iter().zip(value) {
                    self.meaning.set(to, value);
                }
            }
            None => {
                let at = self.halves(i)?;
                let store = |(at, value)| Op::Store { at, value };
                let [low, high] = at;
                let [a, b] = value;
                let ops = [store((low, a)), store((high, b))];
                self.in_any_order(i, ops);
            }
        }
        Ok(())
    }

    /// What nobody else can see has one order.
    fn in_any_order(&mut self, i: &Instruction, [first, second]: [Op; 2]) {
        match i.memory_base() == Register::RSP {
            true => {
                self.meaning.push(first);
                self.meaning.push(second);
            }
            false => self.meaning.ops.push(Micro::Either(vec![
                vec![first.clone(), second.clone()],
                vec![second, first],
            ])),
        }
    }

    /// The two words of a memory operand of 16 bytes.
    fn halves(&mut self, i: &Instruction) -> Result<[Access; 2]> {
        if i.memory_size().size() != 16 {
            return Err("this vector operand is not supported".into());
        }
        let half = |address: E| Access {
            address,
            bytes: 8,
            locked: false,
        };
        if i.memory_base() == Register::RIP {
            let target = i.ip_rel_memory_address();
            let both = [target, target.wrapping_add(8)];
            if both.iter().all(|t| self.read_only(*t, 8).is_some()) {
                return Ok(both.map(|t| half(E::Address(crate::bits::Base::Code, t as i64))));
            }
        }
        let address = self.address(i, false)?;
        Ok([half(address.clone()), half(address.plus(8))])
    }

    /// What a constant of the file holds.
    fn constant(&self, at: &Access) -> Result<Option<E>> {
        let E::Address(crate::bits::Base::Code, target) = at.address else {
            return Ok(None);
        };
        match self.read_only(target as u64, 8) {
            Some(value) => Ok(Some(E::constant(value, 64))),
            None => Err("reading code is not supported".into()),
        }
    }
}

/// The halves of a vector register, if the operand is one.
fn xmm(i: &Instruction, operand: u32) -> Option<[VarId; 2]> {
    let register = match i.op_kind(operand) {
        OpKind::Register => i.op_register(operand),
        _ => return None,
    };
    let number = u32::try_from(register.number()).ok().filter(|n| *n < 16)?;
    register.is_xmm().then(|| graph::vector(number))
}

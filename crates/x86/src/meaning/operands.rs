//! Operands: registers and their parts, numbers, memory.

use super::{Meaning, Result};
use crate::bits::{Bin, E, VarId};
use crate::graph::{Access, Op as Step};
use crate::instruction::{Instruction, Op, Operand};

impl Meaning<'_> {
    /// The width of an operand in bits.
    pub fn width(&self, i: &Instruction, operand: usize) -> Result<u32> {
        match i.operands.get(operand) {
            Some(Operand::Register(part)) => Ok(part.width),
            Some(Operand::Value(e)) => Ok(e.width()),
            Some(Operand::Memory(m)) if matches!(m.bytes, 1 | 2 | 4 | 8) => Ok(m.bytes * 8),
            Some(Operand::Memory(m)) => {
                Err(format!("operands of {} bytes are not supported", m.bytes))
            }
            None => Err("an operand is missing".into()),
        }
    }

    /// The value of an operand; memory is read.
    pub fn operand(&mut self, i: &Instruction, operand: usize) -> Result<E> {
        match i.operands.get(operand) {
            Some(Operand::Register(part)) => {
                let low = if part.high { 8 } else { 0 };
                Ok(self.get(part.register).extract(low, part.width))
            }
            Some(Operand::Value(e)) => Ok(e.clone()),
            Some(Operand::Memory(_)) => {
                let at = self.access(i, false)?;
                Ok(self.load(i, &at))
            }
            None => Err("an operand is missing".into()),
        }
    }

    /// Writes a register or memory.
    pub fn write(&mut self, i: &Instruction, operand: usize, value: E) -> Result<()> {
        match i.operands.get(operand) {
            Some(Operand::Register(part)) => {
                self.write_part(part.register, value, part.high);
                Ok(())
            }
            Some(Operand::Memory(_)) => {
                let at = self.access(i, false)?;
                self.push(Step::Store { at, value });
                Ok(())
            }
            Some(Operand::Value(_)) | None => Err("this operand cannot be written".into()),
        }
    }

    /// Writing 32 bits clears the rest of the register; writing less keeps it.
    pub fn write_part(&mut self, v: VarId, value: E, high: bool) {
        let whole = self.get(v);
        let value = match value.width() {
            64 => value,
            32 => value.zext(64),
            _ => whole.insert(value, if high { 8 } else { 0 }),
        };
        self.set(v, value);
    }

    /// The access to the one memory operand.
    pub fn access(&mut self, i: &Instruction, locked: bool) -> Result<Access> {
        let memory = i.operands.iter().enumerate().find_map(|(k, o)| match o {
            Operand::Memory(m) => Some((k, m)),
            Operand::Register(_) | Operand::Value(_) => None,
        });
        let Some((k, m)) = memory else {
            return Err("a memory operand is missing".into());
        };
        self.width(i, k)?;
        let mut address = m.address.clone();
        // A bit of memory whose number is in a register may be in another word.
        let bits = matches!(i.op, Op::Bt | Op::Bts | Op::Btr | Op::Btc);
        if bits && matches!(i.operands.get(1), Some(Operand::Register(_))) {
            let number = self.operand(i, 1)?.sext(64);
            let by = |n: u32| E::constant(u64::from(n.trailing_zeros()), 64);
            let word = E::bin(Bin::Sar, number, by(m.bytes * 8));
            address = E::sum(E::bin(Bin::Shl, word, by(m.bytes)), address);
        }
        Ok(Access {
            address,
            bytes: m.bytes,
            locked,
        })
    }

    /// Reads memory into a fresh variable.
    pub fn load(&mut self, i: &Instruction, at: &Access) -> E {
        let name = match i.operands.first() {
            Some(Operand::Register(part)) => self.vars.names[part.register.0 as usize].clone(),
            _ => "m".to_string(),
        };
        let to = self.vars.fresh(at.bytes * 8, &name);
        self.push(Step::Load { to, at: at.clone() });
        self.get(to)
    }
}

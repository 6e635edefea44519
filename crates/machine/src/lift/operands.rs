//! Operands: registers and their parts, numbers, memory.

use super::{Lift, Result, general};
use crate::bits::{Base, Bin, E, VarId};
use crate::graph::{self, Access, Op};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

impl Lift<'_> {
    /// The width of an operand in bits.
    pub fn width(&self, i: &Instruction, operand: u32) -> Result<u32> {
        let bytes = match i.op_kind(operand) {
            OpKind::Register => i.op_register(operand).size(),
            OpKind::Memory => i.memory_size().size(),
            OpKind::Immediate8 => 1,
            OpKind::Immediate16 | OpKind::Immediate8to16 => 2,
            OpKind::Immediate32 | OpKind::Immediate8to32 => 4,
            OpKind::Immediate64 | OpKind::Immediate8to64 | OpKind::Immediate32to64 => 8,
            _ => return Err("this operand is not supported".into()),
        };
        match bytes {
            1 | 2 | 4 | 8 => Ok(bytes as u32 * 8),
            _ => Err(format!("operands of {bytes} bytes are not supported")),
        }
    }

    /// The value of an operand; memory is read, as part of a locked instruction or not.
    pub fn operand(&mut self, i: &Instruction, operand: u32, locked: bool) -> Result<E> {
        let w = self.width(i, operand)?;
        match i.op_kind(operand) {
            OpKind::Register => self.register(i.op_register(operand)),
            OpKind::Memory => {
                let at = self.access(i, locked)?;
                self.load(i, &at)
            }
            _ => {
                let value = i.immediate(operand);
                let at = i.ip().wrapping_add(self.offsets.immediate_offset() as u64);
                if self.offsets.has_immediate() && self.image.addresses.contains(&at) {
                    let value = match w {
                        64 => value,
                        _ => value & 0xffff_ffff,
                    };
                    return Ok(self.addresses.resolve(value)?.resize(w));
                }
                Ok(E::constant(value, w))
            }
        }
    }

    pub fn register(&self, register: Register) -> Result<E> {
        let Some((v, high)) = general(register) else {
            return Err(format!("the register {register:?} is not supported").to_lowercase());
        };
        let w = register.size() as u32 * 8;
        Ok(self.get(v).extract(if high { 8 } else { 0 }, w))
    }

    /// Writes a register or memory.
    pub fn write(&mut self, i: &Instruction, operand: u32, value: E) -> Result<()> {
        match i.op_kind(operand) {
            OpKind::Register => {
                let register = i.op_register(operand);
                let Some((v, high)) = general(register) else {
                    return Err(
                        format!("the register {register:?} is not supported").to_lowercase()
                    );
                };
                self.write_part(v, value, high);
                Ok(())
            }
            OpKind::Memory => {
                let at = self.access(i, false)?;
                self.push(Op::Store { at, value });
                Ok(())
            }
            _ => Err("this operand cannot be written".into()),
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

    /// The address of the memory operand.
    pub fn address(&mut self, i: &Instruction, lea: bool) -> Result<E> {
        if !lea
            && !matches!(
                i.memory_segment(),
                Register::DS | Register::SS | Register::ES | Register::CS
            )
        {
            return Err("memory of a thread (`fs:`, `gs:`) is not supported".into());
        }
        let base = i.memory_base();
        if base == Register::RIP {
            return self.addresses.resolve(i.ip_rel_memory_address());
        }
        let displacement = i.memory_displacement64();
        let at = i
            .ip()
            .wrapping_add(self.offsets.displacement_offset() as u64);
        let absolute = base == Register::None && i.memory_index() == Register::None;
        let relocated = self.offsets.has_displacement() && self.image.addresses.contains(&at);
        let known = absolute && !self.image.relocatable && !lea;
        let mut sum = match relocated || known {
            true => self.addresses.resolve(displacement)?,
            false => E::constant(displacement, 64),
        };
        for (register, scale) in [(i.memory_index(), i.memory_index_scale()), (base, 1)] {
            if register == Register::None {
                continue;
            }
            if register.size() != 8 {
                return Err("addresses of 32 bits are not supported".into());
            }
            let value = self.register(register)?;
            let scaled = E::bin(Bin::Mul, value, E::constant(u64::from(scale), 64));
            sum = E::sum(scaled, sum);
        }
        Ok(sum)
    }

    pub fn access(&mut self, i: &Instruction, locked: bool) -> Result<Access> {
        let bytes = i.memory_size().size() as u32;
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            return Err(format!("accesses of {bytes} bytes are not supported"));
        }
        if i.memory_segment() == Register::FS
            && i.memory_base() == Register::None
            && i.memory_index() == Register::None
            && i.memory_displacement64() == 0x28
        {
            // The stack protector's secret; see `load`.
            return Ok(Access {
                address: E::Unknown(64),
                bytes,
                locked,
            });
        }
        let bits = matches!(
            i.mnemonic(),
            Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
        );
        let chosen = bits && i.op1_kind() == OpKind::Register;
        if i.memory_base() == Register::RIP && !chosen {
            let target = i.ip_rel_memory_address();
            if self.image.got.contains_key(&target) || self.read_only(target, bytes).is_some() {
                return Ok(Access {
                    address: E::Address(Base::Code, target as i64),
                    bytes,
                    locked,
                });
            }
        }
        let mut address = self.address(i, false)?;
        // A bit of memory whose number is in a register may be in another word.
        if chosen {
            let number = self.operand(i, 1, false)?.sext(64);
            let by = |n: u32| E::constant(u64::from(n.trailing_zeros()), 64);
            let word = E::bin(Bin::Sar, number, by(bytes * 8));
            address = E::sum(E::bin(Bin::Shl, word, by(bytes)), address);
        }
        Ok(Access {
            address,
            bytes,
            locked,
        })
    }

    /// Reads memory into a fresh variable.
    pub fn load(&mut self, i: &Instruction, at: &Access) -> Result<E> {
        if at.address.is_unknown() {
            return Ok(self.get(graph::CANARY).extract(0, at.bytes * 8));
        }
        if let E::Address(Base::Code, target) = at.address {
            let target = target as u64;
            if let Some(held) = self.image.got.get(&target) {
                return self.addresses.resolve(*held);
            }
            if let Some(value) = self.read_only(target, at.bytes) {
                return Ok(E::constant(value, at.bytes * 8));
            }
            return Err("reading code is not supported".into());
        }
        let name = match i.op0_kind() {
            OpKind::Register => format!("{:?}", i.op0_register().full_register()).to_lowercase(),
            _ => "m".to_string(),
        };
        let to = self.vars.fresh(at.bytes * 8, &name);
        self.push(Op::Load { to, at: at.clone() });
        Ok(self.get(to))
    }

    /// A constant of the file.
    pub(super) fn read_only(&self, address: u64, bytes: u32) -> Option<u64> {
        let s = self.image.section_at(address)?;
        if s.writable || s.code {
            return None;
        }
        let mut value = 0;
        for k in (0..u64::from(bytes)).rev() {
            let at = address.checked_add(k)?;
            if self
                .image
                .pointers
                .range(at.saturating_sub(7)..=at)
                .next()
                .is_some()
            {
                return None;
            }
            value = value << 8 | u64::from(self.image.byte(at)?);
        }
        Some(value)
    }
}

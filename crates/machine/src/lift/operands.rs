//! Operands of an image's instructions: registers, numbers, memory with its relocations.

use super::{Lift, Result, general};
use crate::bits::{Base, Bin, E};
use crate::graph;
use crate::thread::MAX_BYTES;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use wattle_x86::instruction::{self as core, Memory, Operand, Part};

impl Lift<'_> {
    /// The instruction with its operands found.
    pub(super) fn understood(
        &mut self,
        i: &Instruction,
        op: core::Op,
    ) -> Result<core::Instruction> {
        let count = if op == core::Op::Nop { 0 } else { i.op_count() };
        let operands = (0..count).map(|k| self.found(i, k));
        Ok(core::Instruction {
            op,
            lock: i.has_lock_prefix(),
            operands: operands.collect::<Result<_>>()?,
        })
    }

    fn found(&mut self, i: &Instruction, operand: u32) -> Result<Operand> {
        Ok(match i.op_kind(operand) {
            OpKind::Register => {
                let register = i.op_register(operand);
                let Some((v, high)) = general(register) else {
                    return Err(
                        format!("the register {register:?} is not supported").to_lowercase()
                    );
                };
                Operand::Register(Part {
                    register: v,
                    width: register.size() as u32 * 8,
                    high,
                })
            }
            OpKind::Memory => self.memory(i)?,
            _ => {
                let w = self.width(i, operand)?;
                let value = i.immediate(operand);
                let at = i.ip().wrapping_add(self.offsets.immediate_offset() as u64);
                if self.offsets.has_immediate() && self.image.addresses.contains(&at) {
                    let value = match w {
                        64 => value,
                        _ => value & 0xffff_ffff,
                    };
                    return Ok(Operand::Value(self.addresses.resolve(value)?.resize(w)));
                }
                Operand::Value(E::constant(value, w))
            }
        })
    }

    /// Memory; what is known to stay as it is in the file is a value.
    fn memory(&mut self, i: &Instruction) -> Result<Operand> {
        if i.mnemonic() == Mnemonic::Lea {
            let address = self.address(i, true)?;
            return Ok(Operand::Memory(Memory { address, bytes: 8 }));
        }
        let bytes = i.memory_size().size() as u32;
        if i.memory_segment() == Register::FS
            && i.memory_base() == Register::None
            && i.memory_index() == Register::None
            && i.memory_displacement64() == 0x28
            && matches!(bytes, 1 | 2 | 4 | 8)
        {
            // The stack protector's secret.
            let secret = self.meaning.get(graph::CANARY).extract(0, bytes * 8);
            return Ok(Operand::Value(secret));
        }
        let bits = matches!(
            i.mnemonic(),
            Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
        );
        let chosen = bits && i.op1_kind() == OpKind::Register;
        if self.is_thread_pointer(i) && bytes == 8 {
            return Ok(Operand::Value(Self::thread_pointer()));
        }
        if i.memory_base() == Register::RIP && !chosen {
            let target = i.ip_rel_memory_address();
            if let Some(distance) = self.image.distances.get(&target) {
                return Ok(Operand::Value(E::constant(*distance, bytes * 8)));
            }
            // A variable of another file: what it holds nobody can say.
            if self.image.externs.contains_key(&target) && i.mnemonic() == Mnemonic::Mov {
                return Ok(Operand::Value(E::Unknown(bytes * 8)));
            }
            if let Some(held) = self.image.got.get(&target) {
                return Ok(Operand::Value(self.addresses.resolve(*held)?));
            }
            if let Some(value) = self.read_only(target, bytes) {
                return Ok(Operand::Value(E::constant(value, bytes * 8)));
            }
        }
        let address = self.address(i, false)?;
        if let E::Address(Base::Code, _) = address {
            return Err("reading code is not supported".into());
        }
        Ok(Operand::Memory(Memory { address, bytes }))
    }

    /// `fs:[0]`.
    fn is_thread_pointer(&self, i: &Instruction) -> bool {
        i.memory_segment() == Register::FS
            && i.memory_base() == Register::None
            && i.memory_index() == Register::None
            && i.memory_displacement64() == 0
    }

    /// The width of an operand in bits.
    pub(super) fn width(&self, i: &Instruction, operand: u32) -> Result<u32> {
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

    /// An instruction of one operand, to read or write it.
    fn alone(&mut self, i: &Instruction, operand: u32) -> Result<core::Instruction> {
        Ok(core::Instruction {
            op: core::Op::Mov,
            lock: false,
            operands: vec![self.found(i, operand)?],
        })
    }

    /// The value of an operand; memory is read.
    pub(super) fn operand(&mut self, i: &Instruction, operand: u32) -> Result<E> {
        let alone = self.alone(i, operand)?;
        self.meaning.operand(&alone, 0)
    }

    /// Writes a register or memory.
    pub(super) fn write(&mut self, i: &Instruction, operand: u32, value: E) -> Result<()> {
        let alone = self.alone(i, operand)?;
        self.meaning.write(&alone, 0, value)
    }

    /// The address of the memory operand.
    pub(super) fn address(&mut self, i: &Instruction, lea: bool) -> Result<E> {
        let segment = i.memory_segment();
        let mut sum = match segment {
            Register::FS if !lea => {
                if self.image.thread.size > MAX_BYTES {
                    return Err(format!(
                        "variables of each thread of more than {MAX_BYTES} bytes in all are not supported"
                    ));
                }
                Self::thread_pointer()
            }
            Register::GS if !lea => {
                return Err("memory of a processor (`gs:`) is not supported".into());
            }
            _ => E::constant(0, 64),
        };
        let base = i.memory_base();
        if base == Register::RIP {
            if segment == Register::FS && !lea {
                return Err("this address of a thread's memory is not supported".into());
            }
            return self.addresses.resolve(i.ip_rel_memory_address());
        }
        let displacement = i.memory_displacement64();
        let at = i
            .ip()
            .wrapping_add(self.offsets.displacement_offset() as u64);
        let absolute = base == Register::None && i.memory_index() == Register::None;
        let relocated = self.offsets.has_displacement() && self.image.addresses.contains(&at);
        let known = absolute && !self.image.relocatable && !lea;
        let thread = segment == Register::FS && !lea;
        let displacement = match relocated || (known && !thread) {
            true => self.addresses.resolve(displacement)?,
            false => E::constant(displacement, 64),
        };
        if thread && absolute && displacement.as_const().is_none_or(|d| (d as i64) >= 0) {
            return Err("of the thread's control block only its address is known".into());
        }
        sum = E::sum(sum, displacement);
        for (register, scale) in [(i.memory_index(), i.memory_index_scale()), (base, 1)] {
            if register == Register::None {
                continue;
            }
            if register.size() != 8 {
                return Err("addresses of 32 bits are not supported".into());
            }
            let Some((v, _)) = general(register) else {
                return Err(format!("the register {register:?} is not supported").to_lowercase());
            };
            let by = E::constant(u64::from(scale), 64);
            let scaled = E::bin(Bin::Mul, self.meaning.get(v), by);
            sum = E::sum(scaled, sum);
        }
        Ok(sum)
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

//! One instruction as operations on words, as the processor does it.
//!
//! What is not listed here is refused, with the instruction; nothing is skipped. Flags that the manual
//! leaves undefined are [`E::Unknown`]. A read-modify-write without `lock` is a load, then a store;
//! `xchg` with memory is always locked; `cmpxchg` without `lock` writes the old value back when the
//! comparison fails.

mod arithmetic;
mod flags;
mod operands;
mod vectors;

use crate::bits::{E, VarId};
use crate::graph::{self, Access, Op, Vars};
use crate::image::Image;
use flags::Outcome;
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};

/// Operations of one instruction.
#[derive(Clone, Debug)]
pub enum Micro {
    Op(Op),
    /// Either the first or the second, by a condition of one bit.
    If(E, Vec<Micro>, Vec<Micro>),
    /// One of several orders, nobody says which.
    Either(Vec<Vec<Op>>),
}

/// What happens after an instruction.
#[derive(Clone, Debug)]
pub enum Next {
    Fall,
    Jump(E),
    /// Where the condition holds; else on.
    Branch(E, u64),
    Call(E),
    Return,
    /// The thread has failed here.
    Trap(String),
}

/// Turns an address of the image into an expression; the reason if it points at nothing.
pub trait Addresses {
    fn resolve(&mut self, address: u64) -> std::result::Result<E, String>;
}

pub struct Lift<'a> {
    pub image: &'a Image,
    pub addresses: &'a mut dyn Addresses,
    pub vars: &'a mut Vars,
    pub offsets: iced_x86::ConstantOffsets,
    pub ops: Vec<Micro>,
}

type Result<T> = std::result::Result<T, String>;

impl Lift<'_> {
    pub fn push(&mut self, op: Op) {
        self.ops.push(Micro::Op(op));
    }

    pub fn set(&mut self, v: VarId, e: E) {
        self.push(Op::Assign(v, e));
    }

    pub fn get(&self, v: VarId) -> E {
        self.vars.read(v)
    }

    /// A value kept for later, where what it is made of may change before.
    pub fn keep(&mut self, e: E, name: &str) -> E {
        match e {
            E::Const(..) | E::Address(..) | E::Unknown(_) => e,
            e => {
                let v = self.vars.fresh(e.width(), name);
                self.set(v, e);
                self.get(v)
            }
        }
    }

    /// Lifts one instruction.
    pub fn instruction(&mut self, i: &Instruction) -> Result<Next> {
        use Mnemonic as M;
        if i.has_xrelease_prefix() && i.mnemonic() != M::Mov || i.has_xacquire_prefix() {
            return Err("hardware lock elision is not supported".into());
        }
        if i.has_repe_prefix() && !matches!(i.mnemonic(), M::Nop | M::Pause | M::Ret | M::Endbr64) {
            return Err("`rep` is not supported here".into());
        }
        if i.has_repne_prefix() && !matches!(i.mnemonic(), M::Ret | M::Call | M::Jmp) {
            return Err("`repne` is not supported here".into());
        }
        match i.mnemonic() {
            M::Nop
            | M::Endbr64
            | M::Pause
            | M::Lfence
            | M::Prefetcht0
            | M::Prefetchw
            | M::Prefetchnta
            | M::Prefetcht1
            | M::Prefetcht2 => {}
            M::Sfence => {
                let fence = wattle_model::program::Action::Fence(wattle_model::Fence::Store);
                self.push(Op::Model(fence));
            }
            M::Mfence => self.push(Op::Fence),
            M::Mov => self.mov(i)?,
            M::Movzx => {
                let w = self.width(i, 0)?;
                let value = self.operand(i, 1, false)?.zext(w);
                self.write(i, 0, value)?;
            }
            M::Movsx | M::Movsxd => {
                let w = self.width(i, 0)?;
                let value = self.operand(i, 1, false)?.sext(w);
                self.write(i, 0, value)?;
            }
            M::Lea => {
                let w = self.width(i, 0)?;
                let value = self.address(i, true)?.resize(w);
                self.write(i, 0, value)?;
            }
            M::Add | M::Sub | M::And | M::Or | M::Xor | M::Adc | M::Sbb => self.two_operands(i)?,
            M::Cmp | M::Test => self.compare(i)?,
            M::Inc | M::Dec | M::Neg | M::Not => self.one_operand(i)?,
            M::Shl | M::Sal | M::Shr | M::Sar | M::Rol | M::Ror => self.shift(i)?,
            M::Imul | M::Mul => self.multiply(i)?,
            M::Div | M::Idiv => self.divide(i)?,
            M::Bt | M::Bts | M::Btr | M::Btc => self.bit(i)?,
            M::Xchg => self.exchange(i)?,
            M::Xadd => self.exchange_add(i)?,
            M::Cmpxchg => self.compare_exchange(i)?,
            M::Cbw | M::Cwde | M::Cdqe => {
                let w = match i.mnemonic() {
                    M::Cbw => 16,
                    M::Cwde => 32,
                    _ => 64,
                };
                let value = self.get(graph::RAX).extract(0, w / 2).sext(w);
                self.write_part(graph::RAX, value, false);
            }
            M::Cwd | M::Cdq | M::Cqo => {
                let w = match i.mnemonic() {
                    M::Cwd => 16,
                    M::Cdq => 32,
                    _ => 64,
                };
                let value = self.get(graph::RAX).extract(0, w);
                let sign = E::bin(
                    crate::bits::Bin::Sar,
                    value,
                    E::constant(u64::from(w - 1), w),
                );
                self.write_part(graph::RDX, sign, false);
            }
            M::Push => {
                let w = self.width(i, 0)?;
                if w != 64 {
                    return Err("only 64 bits are pushed".into());
                }
                let value = self.operand(i, 0, false)?;
                let value = self.keep(value, "pushed");
                self.push_word(value);
            }
            M::Pop => {
                if self.width(i, 0)? != 64 {
                    return Err("only 64 bits are popped".into());
                }
                let value = self.pop_word();
                self.write(i, 0, value)?;
            }
            M::Leave => {
                let base = self.get(graph::RBP);
                self.set(graph::RSP, base);
                let value = self.pop_word();
                self.set(graph::RBP, value);
            }
            M::Ud2 => return Ok(Next::Trap("`ud2` is reached".into())),
            M::Int3 => return Ok(Next::Trap("`int3` is reached".into())),
            M::Hlt => return Ok(Next::Trap("`hlt` is reached".into())),
            M::Ret => {
                if i.op_count() != 0 {
                    return Err("`ret` with a number is not supported".into());
                }
                return Ok(Next::Return);
            }
            M::Call => return Ok(Next::Call(self.target(i)?)),
            M::Jmp => return Ok(Next::Jump(self.target(i)?)),
            _ if i.condition_code() != ConditionCode::None => return self.conditional(i),
            _ if self.vectors(i)? => {}
            _ => return Err("this instruction is not supported".into()),
        }
        Ok(Next::Fall)
    }

    fn conditional(&mut self, i: &Instruction) -> Result<Next> {
        let condition = self.condition(i.condition_code())?;
        if i.is_jcc_short_or_near() {
            return Ok(Next::Branch(condition, i.near_branch_target()));
        }
        if i.op_count() == 1 {
            self.write(i, 0, condition.zext(8))?;
        } else if i.op_count() == 2 {
            // The operand is read whether or not it is taken, and the upper half is cleared either way.
            let new = self.operand(i, 1, false)?;
            let old = self.operand(i, 0, false)?;
            let value = E::ite(condition, new, old);
            self.write(i, 0, value)?;
        } else {
            return Err("this instruction is not supported".into());
        }
        Ok(Next::Fall)
    }

    /// Where a jump or a call goes.
    fn target(&mut self, i: &Instruction) -> Result<E> {
        match i.op_kind(0) {
            OpKind::NearBranch64 => Ok(E::Address(
                crate::bits::Base::Code,
                i.near_branch64() as i64,
            )),
            OpKind::Register | OpKind::Memory => self.operand(i, 0, false),
            _ => Err("this jump is not supported".into()),
        }
    }

    pub fn push_word(&mut self, value: E) {
        let address = self.get(graph::RSP).plus(-8);
        self.set(graph::RSP, address);
        let at = Access {
            address: self.get(graph::RSP),
            bytes: 8,
            locked: false,
        };
        self.push(Op::Store { at, value });
    }

    pub fn pop_word(&mut self) -> E {
        let to = self.vars.fresh(64, "popped");
        let at = Access {
            address: self.get(graph::RSP),
            bytes: 8,
            locked: false,
        };
        self.push(Op::Load { to, at });
        let above = self.get(graph::RSP).plus(8);
        self.set(graph::RSP, above);
        self.get(to)
    }

    fn exchange(&mut self, i: &Instruction) -> Result<()> {
        if i.op0_kind() == OpKind::Register && i.op1_kind() == OpKind::Register {
            let a = self.operand(i, 0, false)?;
            let a = self.keep(a, "swapped");
            let b = self.operand(i, 1, false)?;
            self.write(i, 0, b)?;
            return self.write(i, 1, a);
        }
        let (memory, register) = match i.op0_kind() {
            OpKind::Memory => (0, 1),
            _ => (1, 0),
        };
        let new = self.operand(i, register, false)?;
        let at = self.access(i, true)?;
        self.push(Op::Begin);
        let old = self.load(i, &at)?;
        self.push(Op::Store { at, value: new });
        self.push(Op::End);
        debug_assert_eq!(i.op_kind(memory), OpKind::Memory);
        self.write(i, register, old)
    }

    fn exchange_add(&mut self, i: &Instruction) -> Result<()> {
        let b = self.operand(i, 1, false)?;
        if i.op0_kind() == OpKind::Register {
            let a = self.operand(i, 0, false)?;
            let (a, b) = (self.keep(a, "old"), self.keep(b, "added"));
            let sum = E::sum(a.clone(), b.clone());
            self.flags_of(Outcome::Sum(a.clone(), b));
            self.write(i, 1, a)?;
            return self.write(i, 0, sum);
        }
        let at = self.access(i, i.has_lock_prefix())?;
        let locked = at.locked;
        if locked {
            self.push(Op::Begin);
        }
        let old = self.load(i, &at)?;
        let value = E::sum(old.clone(), b.clone());
        self.push(Op::Store { at, value });
        if locked {
            self.push(Op::End);
        }
        self.flags_of(Outcome::Sum(old.clone(), b));
        self.write(i, 1, old)
    }

    fn compare_exchange(&mut self, i: &Instruction) -> Result<()> {
        let w = self.width(i, 0)?;
        let new = self.operand(i, 1, false)?;
        let wanted = self.get(graph::RAX).extract(0, w);
        let locked = i.has_lock_prefix();
        let in_memory = i.op0_kind() == OpKind::Memory;
        let at = match in_memory {
            true => Some(self.access(i, locked)?),
            false => None,
        };
        if locked {
            self.push(Op::Begin);
        }
        let old = match &at {
            Some(at) => self.load(i, at)?,
            None => {
                let old = self.operand(i, 0, false)?;
                self.keep(old, "old")
            }
        };
        let equal = E::same(wanted.clone(), old.clone());
        let before = std::mem::take(&mut self.ops);
        match &at {
            Some(at) => self.push(Op::Store {
                at: at.clone(),
                value: new,
            }),
            None => self.write(i, 0, new)?,
        }
        self.flags_of(Outcome::Difference(old.clone(), old.clone()));
        let yes = std::mem::take(&mut self.ops);
        if let (Some(at), false) = (&at, locked) {
            self.push(Op::Store {
                at: at.clone(),
                value: old.clone(),
            });
        }
        self.flags_of(Outcome::Difference(wanted, old.clone()));
        self.set(graph::ZF, E::bool(false));
        self.write_part(graph::RAX, old, false);
        let no = std::mem::replace(&mut self.ops, before);
        self.ops.push(Micro::If(equal, yes, no));
        if locked {
            self.push(Op::End);
        }
        Ok(())
    }
}

/// The variable of a general register, and whether it is the second byte.
pub fn general(register: Register) -> Option<(VarId, bool)> {
    if !register.is_gpr() {
        return None;
    }
    let high = matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    );
    let number = register.full_register().number();
    Some((VarId(u32::try_from(number).ok()?), high))
}

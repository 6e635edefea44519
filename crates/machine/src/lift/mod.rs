//! Instructions of an image: where their operands are, and where control goes next. What they do is said
//! by [`Meaning`], which `.asm` programs and litmus tests use too; the stack and vectors are added here.
//!
//! What is not listed here is refused, with the instruction; nothing is skipped.

pub mod arbitrary;
mod operands;
mod scan;
mod vectors;

use crate::bits::{E, VarId};
use crate::graph::{self, Access, Op, Vars};
use crate::image::Image;
use iced_x86::{ConditionCode, ConstantOffsets, Instruction, Mnemonic, OpKind, Register};
use wattle_x86::instruction::{self as core, Condition, Test};
pub use wattle_x86::meaning::Micro;
use wattle_x86::meaning::{Meaning, Result};

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
    image: &'a Image,
    addresses: &'a mut dyn Addresses,
    offsets: ConstantOffsets,
    meaning: Meaning<'a>,
}

impl<'a> Lift<'a> {
    pub fn new(
        image: &'a Image,
        addresses: &'a mut dyn Addresses,
        vars: &'a mut Vars,
        offsets: ConstantOffsets,
    ) -> Self {
        Lift {
            image,
            addresses,
            offsets,
            meaning: Meaning::new(vars),
        }
    }

    /// What was lifted so far.
    pub fn ops(self) -> Vec<Micro> {
        self.meaning.ops
    }

    /// Lifts one instruction.
    pub fn instruction(&mut self, i: &Instruction) -> Result<Next> {
        use Mnemonic as M;
        let bytes = i.ip()..i.next_ip();
        if let Some((_, name)) = self.image.thread.elsewhere.range(bytes).next() {
            return Err(format!(
                "`{name}` is a variable of each thread that is defined elsewhere; add the file that defines it"
            ));
        }
        if i.has_xrelease_prefix() && i.mnemonic() != M::Mov || i.has_xacquire_prefix() {
            return Err("hardware lock elision is not supported".into());
        }
        // With a prefix that chooses `r8` processors take it for an exchange.
        if i.mnemonic() == M::Pause && i.len() != 2 {
            return Err("`pause` with more prefixes is not supported".into());
        }
        let repeats = i.is_string_instruction() && self.strings(i)?;
        if repeats {
            return Ok(Next::Fall);
        }
        if i.has_repe_prefix() && !matches!(i.mnemonic(), M::Nop | M::Pause | M::Ret | M::Endbr64) {
            return Err("`rep` is not supported here".into());
        }
        if i.has_repne_prefix() && !matches!(i.mnemonic(), M::Ret | M::Call | M::Jmp) {
            return Err("`repne` is not supported here".into());
        }
        match i.mnemonic() {
            M::Push => {
                if self.width(i, 0)? != 64 {
                    return Err("only 64 bits are pushed".into());
                }
                let value = self.operand(i, 0)?;
                let value = self.meaning.keep(value, "pushed");
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
                let base = self.meaning.get(graph::RBP);
                self.meaning.set(graph::RSP, base);
                let value = self.pop_word();
                self.meaning.set(graph::RBP, value);
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
            _ if i.is_jcc_short_or_near() => {
                let Some(c) = condition(i.condition_code()) else {
                    return Err("this instruction is not supported".into());
                };
                return Ok(Next::Branch(
                    self.meaning.condition(c),
                    i.near_branch_target(),
                ));
            }
            _ => match operation(i) {
                Some(op) => {
                    let instruction = self.understood(i, op)?;
                    self.meaning.instruction(&instruction)?;
                }
                None if self.vectors(i)? || self.arbitrary(i)? => {}
                None if self.scan(i)? || self.exchange_pair(i)? => {}
                None => return Err("this instruction is not supported".into()),
            },
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
            OpKind::Register | OpKind::Memory => self.operand(i, 0),
            _ => Err("this jump is not supported".into()),
        }
    }

    fn push_word(&mut self, value: E) {
        let address = self.meaning.get(graph::RSP).plus(-8);
        self.meaning.set(graph::RSP, address);
        let at = self.top();
        self.meaning.push(Op::Store { at, value });
    }

    fn pop_word(&mut self) -> E {
        let to = self.meaning.vars.fresh(64, "popped");
        let at = self.top();
        self.meaning.push(Op::Load { to, at });
        let above = self.meaning.get(graph::RSP).plus(8);
        self.meaning.set(graph::RSP, above);
        self.meaning.get(to)
    }

    /// The word on top of the stack.
    fn top(&self) -> Access {
        Access {
            address: self.meaning.get(graph::RSP),
            bytes: 8,
            locked: false,
        }
    }
}

/// What an instruction is to the core, if it is one of its own.
fn operation(i: &Instruction) -> Option<core::Op> {
    use Mnemonic as M;
    use core::Op;
    Some(match i.mnemonic() {
        M::Nop
        | M::Endbr64
        | M::Pause
        | M::Prefetcht0
        | M::Prefetchw
        | M::Prefetchnta
        | M::Prefetcht1
        | M::Prefetcht2 => Op::Nop,
        M::Lfence => Op::Lfence,
        M::Sfence => Op::Sfence,
        M::Mfence => Op::Mfence,
        M::Mov => Op::Mov,
        M::Movzx => Op::Movzx,
        M::Movsx | M::Movsxd => Op::Movsx,
        M::Lea => Op::Lea,
        M::Add => Op::Add,
        M::Sub => Op::Sub,
        M::And => Op::And,
        M::Or => Op::Or,
        M::Xor => Op::Xor,
        M::Adc => Op::Adc,
        M::Sbb => Op::Sbb,
        M::Cmp => Op::Cmp,
        M::Test => Op::Test,
        M::Inc => Op::Inc,
        M::Dec => Op::Dec,
        M::Neg => Op::Neg,
        M::Not => Op::Not,
        M::Shl | M::Sal => Op::Shl,
        M::Shr => Op::Shr,
        M::Sar => Op::Sar,
        M::Rol => Op::Rol,
        M::Ror => Op::Ror,
        M::Imul => Op::Imul,
        M::Mul => Op::Mul,
        M::Div => Op::Div,
        M::Idiv => Op::Idiv,
        M::Bt => Op::Bt,
        M::Bts => Op::Bts,
        M::Btr => Op::Btr,
        M::Btc => Op::Btc,
        M::Xchg => Op::Xchg,
        M::Xadd => Op::Xadd,
        M::Cmpxchg => Op::Cmpxchg,
        M::Cbw => Op::Widen(16),
        M::Cwde => Op::Widen(32),
        M::Cdqe => Op::Widen(64),
        M::Cwd => Op::Spread(16),
        M::Cdq => Op::Spread(32),
        M::Cqo => Op::Spread(64),
        _ => {
            let c = condition(i.condition_code())?;
            match i.op_count() {
                1 => Op::Set(c),
                2 => Op::Cmov(c),
                _ => return None,
            }
        }
    })
}

fn condition(code: ConditionCode) -> Option<Condition> {
    use ConditionCode as C;
    let (test, negated) = match code {
        C::o => (Test::Overflow, false),
        C::no => (Test::Overflow, true),
        C::b => (Test::Below, false),
        C::ae => (Test::Below, true),
        C::e => (Test::Equal, false),
        C::ne => (Test::Equal, true),
        C::be => (Test::BelowOrEqual, false),
        C::a => (Test::BelowOrEqual, true),
        C::s => (Test::Sign, false),
        C::ns => (Test::Sign, true),
        C::p => (Test::Parity, false),
        C::np => (Test::Parity, true),
        C::l => (Test::Less, false),
        C::ge => (Test::Less, true),
        C::le => (Test::LessOrEqual, false),
        C::g => (Test::LessOrEqual, true),
        C::None => return None,
    };
    Some(Condition { test, negated })
}

/// The variable of a general register, and whether it is the second byte.
fn general(register: Register) -> Option<(VarId, bool)> {
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

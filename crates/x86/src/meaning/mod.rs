//! One instruction as operations on words, as the processor does it.
//!
//! What is not listed here is refused; nothing is skipped. Flags that the manual leaves undefined are
//! [`E::Unknown`]. A read-modify-write without `lock` is a load, then a store; `xchg` with memory is
//! always locked; `cmpxchg` without `lock` writes the old value back when the comparison fails.

mod arithmetic;
mod flags;
mod operands;
#[cfg(test)]
mod tests;

use crate::bits::{Bin, E, VarId};
use crate::graph::{self, Op as Step, Vars};
use crate::instruction::{Instruction, Op, Operand};
use flags::Outcome;
use wattle_model::Fence;
use wattle_model::program::Action;

/// Operations of one instruction.
#[derive(Clone, Debug)]
pub enum Micro {
    Op(Step),
    /// Either the first or the second, by a condition of one bit.
    If(E, Vec<Micro>, Vec<Micro>),
    /// One of several orders, nobody says which.
    Either(Vec<Vec<Step>>),
}

pub type Result<T> = std::result::Result<T, String>;

pub struct Meaning<'a> {
    pub vars: &'a mut Vars,
    pub ops: Vec<Micro>,
    /// Numbers are mathematical integers in words of 64 bits: nothing wraps or overflows, and there is no parity.
    pub exact: bool,
}

impl<'a> Meaning<'a> {
    pub fn new(vars: &'a mut Vars) -> Self {
        Meaning {
            vars,
            ops: Vec::new(),
            exact: false,
        }
    }

    pub fn push(&mut self, op: Step) {
        self.ops.push(Micro::Op(op));
    }

    pub fn set(&mut self, v: VarId, e: E) {
        self.push(Step::Assign(v, e));
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

    /// Adds the operations of one instruction; jumps have none.
    pub fn instruction(&mut self, i: &Instruction) -> Result<()> {
        match i.op {
            Op::Jmp | Op::Jcc(_) | Op::Nop | Op::Lfence => {}
            Op::Sfence => self.push(Step::Model(Action::Fence(Fence::Store))),
            Op::Mfence => self.push(Step::Fence),
            Op::Mov => {
                let value = self.operand(i, 1)?;
                self.write(i, 0, value)?;
            }
            Op::Movzx => {
                let w = self.width(i, 0)?;
                let value = self.operand(i, 1)?.zext(w);
                self.write(i, 0, value)?;
            }
            Op::Movsx => {
                let w = self.width(i, 0)?;
                let value = self.operand(i, 1)?.sext(w);
                self.write(i, 0, value)?;
            }
            Op::Lea => {
                let w = self.width(i, 0)?;
                let Some(Operand::Memory(m)) = i.operands.get(1) else {
                    return Err("an address is wanted".into());
                };
                self.write(i, 0, m.address.clone().resize(w))?;
            }
            Op::Add | Op::Sub | Op::And | Op::Or | Op::Xor => self.two_operands(i)?,
            Op::Adc | Op::Sbb => self.with_carry(i)?,
            Op::Cmp | Op::Test => self.compare(i)?,
            Op::Inc | Op::Dec | Op::Neg | Op::Not => self.one_operand(i)?,
            Op::Shl | Op::Shr | Op::Sar | Op::Rol | Op::Ror => self.shift(i)?,
            Op::Imul | Op::Mul => self.multiply(i)?,
            Op::Div | Op::Idiv => self.divide(i)?,
            Op::Bt | Op::Bts | Op::Btr | Op::Btc => self.bit(i)?,
            Op::Xchg | Op::UnlockedXchg => self.exchange(i)?,
            Op::Xadd => self.exchange_add(i)?,
            Op::Cmpxchg => self.compare_exchange(i)?,
            Op::Widen(w) => {
                let value = self.get(graph::RAX).extract(0, w / 2).sext(w);
                self.write_part(graph::RAX, value, false);
            }
            Op::Spread(w) => {
                let value = self.get(graph::RAX).extract(0, w);
                let sign = E::bin(Bin::Sar, value, E::constant(u64::from(w - 1), w));
                self.write_part(graph::RDX, sign, false);
            }
            Op::Set(c) => {
                let condition = self.condition(c);
                let w = self.width(i, 0)?;
                self.write(i, 0, condition.zext(w))?;
            }
            Op::Cmov(c) => {
                // The operand is read whether or not it is taken, and the upper half is cleared either way.
                let new = self.operand(i, 1)?;
                let old = self.operand(i, 0)?;
                let value = E::ite(self.condition(c), new, old);
                self.write(i, 0, value)?;
            }
        }
        Ok(())
    }

    fn exchange(&mut self, i: &Instruction) -> Result<()> {
        if let [Operand::Register(_), Operand::Register(_)] = i.operands.as_slice() {
            let a = self.operand(i, 0)?;
            let a = self.keep(a, "swapped");
            let b = self.operand(i, 1)?;
            self.write(i, 0, b)?;
            return self.write(i, 1, a);
        }
        let register = match i.operands.first() {
            Some(Operand::Memory(_)) => 1,
            _ => 0,
        };
        let new = self.operand(i, register)?;
        let locked = i.op == Op::Xchg;
        let at = self.access(i, locked)?;
        self.begin(locked);
        let old = self.load(i, &at);
        self.push(Step::Store { at, value: new });
        self.end(locked);
        self.write(i, register, old)
    }

    fn exchange_add(&mut self, i: &Instruction) -> Result<()> {
        let b = self.operand(i, 1)?;
        if let Some(Operand::Register(_)) = i.operands.first() {
            let a = self.operand(i, 0)?;
            let (a, b) = (self.keep(a, "old"), self.keep(b, "added"));
            let sum = E::sum(a.clone(), b.clone());
            self.flags_of(Outcome::Sum(a.clone(), b));
            self.write(i, 1, a)?;
            return self.write(i, 0, sum);
        }
        let at = self.access(i, i.lock)?;
        self.begin(i.lock);
        let old = self.load(i, &at);
        let value = E::sum(old.clone(), b.clone());
        self.push(Step::Store { at, value });
        self.end(i.lock);
        self.flags_of(Outcome::Sum(old.clone(), b));
        self.write(i, 1, old)
    }

    fn compare_exchange(&mut self, i: &Instruction) -> Result<()> {
        let w = self.width(i, 0)?;
        let new = self.operand(i, 1)?;
        let wanted = self.get(graph::RAX).extract(0, w);
        let at = match i.operands.first() {
            Some(Operand::Memory(_)) => Some(self.access(i, i.lock)?),
            _ => None,
        };
        self.begin(i.lock);
        let old = match &at {
            Some(at) => self.load(i, at),
            None => {
                let old = self.operand(i, 0)?;
                self.keep(old, "old")
            }
        };
        let equal = E::same(wanted.clone(), old.clone());
        let before = std::mem::take(&mut self.ops);
        match &at {
            Some(at) => self.push(Step::Store {
                at: at.clone(),
                value: new,
            }),
            None => self.write(i, 0, new)?,
        }
        self.flags_of(Outcome::Difference(old.clone(), old.clone()));
        let yes = std::mem::take(&mut self.ops);
        if let (Some(at), false) = (&at, i.lock) {
            self.push(Step::Store {
                at: at.clone(),
                value: old.clone(),
            });
        }
        self.flags_of(Outcome::Difference(wanted, old.clone()));
        self.set(graph::ZF, E::bool(false));
        self.write_part(graph::RAX, old, false);
        let no = std::mem::replace(&mut self.ops, before);
        self.ops.push(Micro::If(equal, yes, no));
        self.end(i.lock);
        Ok(())
    }

    pub fn begin(&mut self, locked: bool) {
        if locked {
            self.push(Step::Begin);
        }
    }

    pub fn end(&mut self, locked: bool) {
        if locked {
            self.push(Step::End);
        }
    }
}

//! Where the first or the last bit of a word is set, and how many are.

use super::{Lift, Micro, Result};
use crate::bits::E;
use crate::graph::{BE, CF, LE, LT, OF, PF, SF, ZF};
use iced_x86::{Instruction, Mnemonic};

impl Lift<'_> {
    /// Lifts such an instruction; false if it is another.
    pub(super) fn scan(&mut self, i: &Instruction) -> Result<bool> {
        use Mnemonic as M;
        if !matches!(
            i.mnemonic(),
            M::Bsf | M::Bsr | M::Tzcnt | M::Lzcnt | M::Popcnt
        ) {
            return Ok(false);
        }
        let w = self.width(i, 0)?;
        let word = self.operand(i, 1)?;
        let word = self.meaning.keep(word, "word");
        let number = |n: u32| E::constant(u64::from(n), w);
        let bit = |k: u32| word.clone().extract(k, 1);
        // The last one put in front is looked at first.
        let first = |order: &mut dyn Iterator<Item = u32>, none: E, of: &dyn Fn(u32) -> E| {
            order.fold(none, |rest, k| E::ite(bit(k), of(k), rest))
        };
        let (none, value) = match i.mnemonic() {
            M::Bsf => (None, first(&mut (0..w - 1).rev(), number(w - 1), &number)),
            M::Bsr => (None, first(&mut (1..w), number(0), &number)),
            M::Tzcnt => {
                let value = first(&mut (0..w).rev(), number(w), &number);
                (Some(w), value)
            }
            M::Lzcnt => {
                let value = first(&mut (0..w), number(w), &|k| number(w - 1 - k));
                (Some(w), value)
            }
            _ => {
                let all = (0..w).map(|k| bit(k).zext(w));
                (Some(0), all.fold(number(0), E::sum))
            }
        };
        let empty = E::same(word.clone(), E::constant(0, w));
        for f in [OF, SF, PF, CF, LT, BE, LE] {
            self.meaning.set(f, E::Unknown(1));
        }
        match (i.mnemonic(), none) {
            (M::Popcnt, _) => {
                for f in [OF, SF, PF, CF, LT] {
                    self.meaning.set(f, E::bool(false));
                }
                for f in [ZF, BE, LE] {
                    self.meaning.set(f, empty.clone());
                }
                self.write(i, 0, value)?;
            }
            (_, Some(_)) => {
                self.meaning.set(CF, empty.clone());
                // Zero comes out where the bit at that end is set.
                let zero = E::same(value.clone(), E::constant(0, w));
                self.meaning.set(ZF, zero.clone());
                self.meaning.set(BE, E::or(empty, zero));
                self.write(i, 0, value)?;
            }
            // Where no bit is set, the register stays as it was.
            (_, None) => {
                self.meaning.set(ZF, empty.clone());
                let before = self.operand(i, 0)?;
                self.write(i, 0, E::ite(empty, before, value))?;
            }
        }
        Ok(true)
    }

    /// `cmpxchg8b`, `cmpxchg16b`: two registers against two words. False if it is another instruction.
    pub(super) fn exchange_pair(&mut self, i: &Instruction) -> Result<bool> {
        use crate::graph::{self, Access, Op};
        let half = match i.mnemonic() {
            Mnemonic::Cmpxchg8b => 4,
            Mnemonic::Cmpxchg16b => 8,
            _ => return Ok(false),
        };
        if !i.has_lock_prefix() {
            return Err("only with `lock`".into());
        }
        let address = self.address(i, false)?;
        let w = half * 8;
        let (rbx, rcx) = (crate::bits::VarId(3), crate::bits::VarId(1));
        let part = |s: &Self, v| s.meaning.get(v).extract(0, w);
        let (low, high) = (part(self, graph::RAX), part(self, graph::RDX));
        let (new_low, new_high) = (part(self, rbx), part(self, rcx));
        // Eight bytes are one access, sixteen are two.
        let whole = |low: E, high: E| low.zext(64).insert(high, 32);
        let at = |k: u32, bytes: u32| Access {
            address: address.clone().plus(i64::from(k)),
            bytes,
            locked: true,
        };
        self.meaning.begin(true);
        let load = |s: &mut Self, k: u32, bytes: u32| {
            let to = s.meaning.vars.fresh(bytes * 8, "old");
            s.meaning.push(Op::Load {
                to,
                at: at(k, bytes),
            });
            s.meaning.get(to)
        };
        let (old_low, old_high) = match half {
            4 => {
                let old = load(self, 0, 8);
                (old.clone().extract(0, 32), old.extract(32, 32))
            }
            _ => (load(self, 0, 8), load(self, 8, 8)),
        };
        let same = E::and(
            E::same(low, old_low.clone()),
            E::same(high, old_high.clone()),
        );
        let store = |k: u32, bytes: u32, value: E| {
            Micro::Op(Op::Store {
                at: at(k, bytes),
                value,
            })
        };
        let mut yes = match half {
            4 => vec![store(0, 8, whole(new_low, new_high))],
            _ => vec![store(0, 8, new_low), store(8, 8, new_high)],
        };
        let set = |v, e| Micro::Op(Op::Assign(v, e));
        yes.extend([ZF, BE, LE].map(|f| set(f, E::bool(true))));
        let before = std::mem::take(&mut self.meaning.ops);
        self.meaning.write_part(graph::RAX, old_low, false);
        self.meaning.write_part(graph::RDX, old_high, false);
        let mut no = std::mem::replace(&mut self.meaning.ops, before);
        let (carry, less) = (self.meaning.get(CF), self.meaning.get(LT));
        no.extend([set(ZF, E::bool(false)), set(BE, carry), set(LE, less)]);
        self.meaning.ops.push(Micro::If(same, yes, no));
        self.meaning.end(true);
        Ok(true)
    }

    /// `stos` and `movs`, also repeated a small number of times. False if it is another instruction.
    pub(super) fn strings(&mut self, i: &Instruction) -> Result<bool> {
        use crate::bits::VarId;
        use crate::graph::{Access, Op, RAX};
        use Mnemonic as M;
        /// More are refused.
        const MOST: u32 = 32;
        let (bytes, copies) = match i.mnemonic() {
            M::Stosb => (1, false),
            M::Stosw => (2, false),
            M::Stosd => (4, false),
            M::Stosq => (8, false),
            M::Movsb => (1, true),
            M::Movsw => (2, true),
            // The other `movsd` is of floating-point numbers.
            M::Movsd if i.is_string_instruction() => (4, true),
            M::Movsq => (8, true),
            _ => return Ok(false),
        };
        let (rcx, rsi, rdi) = (VarId(1), VarId(6), VarId(7));
        let at = |address: E| Access {
            address,
            bytes,
            locked: false,
        };
        let one = |s: &mut Self| {
            let value = match copies {
                true => {
                    let to = s.meaning.vars.fresh(bytes * 8, "copied");
                    let from = s.meaning.get(rsi);
                    s.meaning.push(Op::Load {
                        to,
                        at: at(from.clone()),
                    });
                    s.meaning.set(rsi, from.plus(i64::from(bytes)));
                    s.meaning.get(to)
                }
                false => s.meaning.get(RAX).extract(0, bytes * 8),
            };
            let to = s.meaning.get(rdi);
            s.meaning.push(Op::Store {
                at: at(to.clone()),
                value,
            });
            s.meaning.set(rdi, to.plus(i64::from(bytes)));
        };
        if !i.has_rep_prefix() {
            one(self);
            return Ok(true);
        }
        let done = E::same(self.meaning.get(rcx), E::constant(0, 64));
        let before = std::mem::take(&mut self.meaning.ops);
        let why = format!("only up to {MOST} repetitions, whose number is known");
        let mut rest = vec![Micro::Op(Op::Require(done.clone(), why))];
        for _ in 0..MOST {
            one(self);
            let less = self.meaning.get(rcx).plus(-1);
            self.meaning.set(rcx, less);
            let mut again = std::mem::take(&mut self.meaning.ops);
            again.append(&mut rest);
            rest = vec![Micro::If(done.clone(), Vec::new(), again)];
        }
        self.meaning.ops = before;
        self.meaning.ops.append(&mut rest);
        Ok(true)
    }
}

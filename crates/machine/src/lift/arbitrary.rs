//! Instructions that give a value nobody can foretell: clocks, random numbers, what the processor says of
//! itself, and what the system's kernel gives back. The value is any: whoever holds for all of them holds.

use super::{Lift, Micro, Result};
use crate::bits::{Base, Bin, E, VarId};
use crate::graph::{self, Op};
use crate::system;
use iced_x86::{Instruction, Mnemonic};

const RCX: VarId = VarId(1);
const RBX: VarId = VarId(3);
const R11: VarId = VarId(11);

impl Lift<'_> {
    /// Lifts such an instruction; false if it is another.
    pub(super) fn arbitrary(&mut self, i: &Instruction) -> Result<bool> {
        use Mnemonic as M;
        match i.mnemonic() {
            M::Rdtsc | M::Rdtscp | M::Rdpmc | M::Xgetbv => {
                let clock = self.any(64, "clock");
                let half = |low: u32| clock.clone().extract(low, 32).zext(64);
                self.meaning.set(graph::RAX, half(0));
                self.meaning.set(graph::RDX, half(32));
                // Which processor it is, is not any number: who needs it is refused.
                if i.mnemonic() == M::Rdtscp {
                    self.meaning.set(RCX, E::Unknown(64));
                }
            }
            // Nothing after it begins before all stores are in memory.
            M::Cpuid => {
                self.meaning.push(Op::Fence);
                for v in [graph::RAX, RBX, RCX, graph::RDX] {
                    let value = self.any(32, "cpuid").zext(64);
                    self.meaning.set(v, value);
                }
            }
            M::Rdrand | M::Rdseed => {
                let w = self.width(i, 0)?;
                let number = self.any(w, "random");
                self.write(i, 0, number)?;
                for f in [graph::ZF, graph::SF, graph::OF, graph::PF, graph::LT] {
                    self.meaning.set(f, E::bool(false));
                }
                let there = self.any(1, "there");
                self.meaning.set(graph::CF, there.clone());
                self.meaning.set(graph::BE, there);
                self.meaning.set(graph::LE, E::bool(false));
            }
            M::Syscall => {
                let v = |n: u32| self.meaning.get(VarId(n));
                let call = system::Call {
                    number: v(0),
                    operation: v(6),
                    timeout: v(10),
                };
                let mut ops = vec![Op::Require(call.harmless(), system::WHY.to_string())];
                let (failed, back, error) = call.answer(self.meaning.vars, &mut ops);
                self.meaning.ops.extend(ops.into_iter().map(Micro::Op));
                let failure = E::bin(Bin::Sub, E::constant(0, 64), error.zext(64));
                self.meaning.set(graph::RAX, E::ite(failed, failure, back));
                for v in [RCX, R11] {
                    self.meaning.set(v, E::Unknown(64));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Any value of this width.
    fn any(&mut self, width: u32, name: &str) -> E {
        let v = self.meaning.vars.fresh(width, name);
        self.meaning.push(Op::Havoc(v));
        self.meaning.get(v)
    }

    /// The thread's own word at `fs:[0]`, which holds where it is.
    pub(super) fn thread_pointer() -> E {
        E::Address(Base::Stack, crate::thread::POINTER)
    }
}

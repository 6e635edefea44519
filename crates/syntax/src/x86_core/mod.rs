//! What the two x86 front-ends share: registers, mnemonics and the translation of one thread's
//! instructions into a graph of steps.
//!
//! The semantics is x86-TSO as conchon-2017 §3 writes it, with these readings:
//! - a read-modify-write without `lock` is a load, then a buffered store (two steps);
//! - `xchg` with a memory operand is always locked;
//! - `cmpxchg` without `lock` writes the old value back when the comparison fails, as the vendor's
//!   manual says;
//! - only the flags some later instruction reads become registers, one bit each, and a comparison
//!   followed by its jump needs none; signed comparisons never look at a wrapped difference.

mod effects;
mod flags;
mod instruction;
mod lower;
mod mnemonic;
mod operands;
mod read;
mod register;
mod sizes;
mod thread;

pub use instruction::{Code, Element, Immediate, Instruction, Label, Memory, Operand, Pointer};
pub use lower::{Arithmetic, Cell, ENOUGH, Machine, lower};
pub use mnemonic::{Condition, Op};
pub use operands::address;
pub use read::Result;
pub(crate) use read::{instruction, labels, parse_number, size_keyword};
pub use register::{Base, Name, Size};
pub use sizes::{check_shape, operation_size};

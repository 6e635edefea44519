//! What the two x86 front-ends share: registers, mnemonics and the translation of one thread's
//! instructions into a graph of steps. What an instruction does is said by [`wattle_x86`], for these
//! languages and for compiled code alike.
//!
//! Only the flags some later instruction reads become registers, one bit each, and a comparison followed
//! by its jump needs none; signed comparisons never look at a wrapped difference.

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
pub use operands::address;
pub use read::Result;
pub(crate) use read::{instruction, labels, parse_number, size_keyword};
pub use register::{Base, Name, Size};
pub use sizes::{check_shape, operation_size};
pub use wattle_x86::instruction::Op;

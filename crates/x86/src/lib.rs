//! What x86 instructions do: one core for compiled code, `.asm` programs and litmus tests.
//!
//! - `bits`: expressions over words of 1 to 64 bits;
//! - `graph`: registers, flags and operations on them, and a thread as a graph of operations;
//! - `instruction`: an instruction whose operands have been found, wherever it was written down;
//! - `meaning`: the operations an instruction consists of;
//! - `words`: expressions over words in the numbers of the model.
//!
//! Whoever reads instructions says what their operands are and where memory is; what is done with them is
//! said here, once, and compared with the processor by the tests of the machine code's crate.

pub mod bits;
pub mod graph;
pub mod instruction;
pub mod meaning;
pub mod words;

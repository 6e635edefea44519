//! A mutation fuzzer for the front-ends that needs no special toolchain.
//!
//! Every input is a function of a seed and a number ([`mutate`]), so a failure is two integers until
//! it is shrunk and written out. A worker process runs the inputs; its supervisor ([`supervise`])
//! finds out which one crashed or hung it. What is checked stands in [`check`].

pub mod check;
pub mod heap;
pub mod mutate;
pub mod seeds;
pub mod shrink;
pub mod supervise;
pub mod target;
pub mod worker;

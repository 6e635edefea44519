//! Compiled code to model.
//!
//! ```text
//! file ─► image ─► lift ─► graph ─► passes ─► memory ─► emit ─► model
//! ```
//!
//! - `image`: an object, executable or archive member as bytes at addresses, names, source lines;
//! - `lift`: an instruction with its operands found, as the operations on words that [`wattle_x86`] says it
//!   consists of, exactly as the processor does it;
//! - `graph`: the functions a thread calls, inlined, as one graph of operations;
//! - `passes`: constants and copies put in, the stack made into variables, what nobody reads dropped,
//!   variables split and cut to the bits that are looked at;
//! - `memory`: what each address points at, fields and pointers;
//! - `emit`: the graph in the words of the model.

mod build;
mod computed;
mod emit;
pub mod image;
#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod judge;
mod layout;
mod lift;
mod lines;
pub mod link;
pub mod listing;
pub mod markers;
mod memory;
mod passes;
mod private;
mod shown;
mod signs;
mod split;
mod system;
mod thread;
mod together;
mod world;

pub use image::Image;
pub use link::{Filled, Unfilled, fill};

use std::fmt;
use wattle_x86::{bits, graph};

/// Why something was refused, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub what: String,
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(what: impl Into<String>) -> Problem {
        Problem {
            what: what.into(),
            hint: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint.get_or_insert(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Problem {}

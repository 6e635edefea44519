//! Wattle proves, breaks and fences concurrent programs on relaxed memory.
//!
//! ```
//! use wattle::{Options, check, Language};
//!
//! let text = "
//!     shared x, y;
//!     thread p { local a; x = 1; a = y; }
//!     thread q { local b; y = 1; b = x; }
//!     finally !(p.a == 0 && q.b == 0);
//! ";
//! let program = wattle::parse(Language::Wtl, text).program.ok_or("does not parse")?;
//! let checked = check(&program, &Options::default())?;       // TSO unless told otherwise
//! let finding = checked.findings().next().ok_or("no answer")?;
//! assert!(matches!(finding.judged.verdict, wattle::Verdict::Violated { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One program goes through [`check`]: for every memory model and every property a plan of engines
//! ([`plan`]) is run, what they answer is replayed or audited, and a [`Finding`] says the rest.

pub mod check;
mod explain;
pub mod families;
pub mod family_fences;
pub mod fences;
pub mod generate;
pub mod input;
pub mod options;
pub mod picture;
pub mod plan;
pub mod reference;
pub mod resources;
mod vacuity;
mod weaker;

pub use check::{CheckError, Checked, check, check_with};
pub use options::{Options, Order, Run, ThreadCount};
pub use wattle_evidence::{Broken, Proof, Unsound, Verdict};
pub use wattle_memory::MemoryModel;
pub use wattle_report::Finding;
pub use wattle_syntax::{Language, parse};

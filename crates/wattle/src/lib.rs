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
//! # Fences
//!
//! ```
//! use wattle::fences::{FenceOptions, fences};
//! use wattle::{Control, Language, MemoryModel, Options, Outcome};
//!
//! let text = "
//!     shared x, y;
//!     thread p { local a; x = 1; a = y; }
//!     thread q { local b; y = 1; b = x; }
//!     finally !(p.a == 0 && q.b == 0);
//! ";
//! let program = wattle::parse(Language::Wtl, text).program.ok_or("does not parse")?;
//! let wanted = FenceOptions::new(MemoryModel::Tso).in_text(Language::Wtl, text);
//! let found = fences(&program, &wanted, &Options::default(), &Control::unlimited());
//! let Outcome::Fixed { fixes, .. } = found.map_err(|e| format!("{e:?}"))?.outcome else {
//!     return Err("no fences".into());
//! };
//! assert_eq!(fixes[0].sites.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Watching and stopping
//!
//! ```
//! use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
//! use wattle::{Language, Options, Progress, Run};
//!
//! let text = "shared x; thread p[2] { x = x + 1; } finally x <= 2;";
//! let program = wattle::parse(Language::Wtl, text).program.ok_or("does not parse")?;
//! let (enough, states) = (AtomicBool::new(false), AtomicU64::new(0));
//! // Called every few milliseconds by whichever engine is at work.
//! let sink = |_engine: &'static str, p: Progress| {
//!     states.fetch_max(p.states, Ordering::Relaxed);
//!     if p.states > 1_000_000 {
//!         enough.store(true, Ordering::Relaxed);
//!     }
//! };
//! let run = Run { cancel: Some(&enough), sink: Some(&sink) };
//! let checked = wattle::check_with(&program, &Options::default(), &run)?;
//! assert_eq!(checked.findings().count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One program goes through [`check`]: for every memory model and every property a plan of engines
//! ([`plan`]) is run, what they answer is replayed or audited, and a [`Finding`] says the rest.

#![deny(missing_docs)]

mod beginnings;
mod breaker;
pub mod check;
pub mod checkpoint;
mod counting;
pub mod cubicle;
pub mod existing;
pub mod expect;
mod explain;
pub mod families;
pub mod family_fences;
pub mod fences;
pub mod generate;
pub mod input;
mod levels;
mod limited;
pub mod options;
pub mod picture;
pub mod plan;
pub mod reference;
pub mod resources;
pub mod runs;
mod small_worlds;
mod starving;
pub mod states;
mod vacuity;
mod values;
mod weaker;

pub use check::{CheckError, Checked, check, check_with};
pub use options::{Options, Order, Reduce, Run, ThreadCount};
pub use wattle_evidence::{
    Broken, Control, Progress, Proof, Reason, Scope, Stop, Task, Trace, Unsound, Verdict,
};
pub use wattle_memory::MemoryModel;
pub use wattle_model::{Counts, Instance, Program};
pub use wattle_repair::{Costs, Fix, Outcome, Site, SiteKind};
pub use wattle_report::Finding;
pub use wattle_syntax::{Language, parse};

//! What engines are asked and answer, and what is told: tasks, answers, traces, certificates, verdicts.
//!
//! An engine answers a reachability question ([`Answer`]) with a [`Trace`] or a [`Certificate`]. Only the
//! judge, in the auditor's crate, turns what it says into a [`Verdict`].

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

pub mod answer;
pub mod certificate;
pub mod control;
pub mod deadlock;
pub mod file;
pub mod fingerprint;
pub mod happens_before;
pub mod live;
pub mod minimise;
pub mod related;
pub mod task;
pub mod trace;
mod unfold;
pub mod verdict;

pub use answer::{Answer, Engine, Limits, OpenAnswer, OpenProof, Reason, Refusal};
pub use certificate::{Certificate, ClosedStates};
pub use control::{Control, Meter, Pace, Progress, Stop};
pub use file::{EvidenceFile, FileError};
pub use fingerprint::fingerprint;
pub use live::lasso::Lasso;
pub use live::{Fairness, LiveAnswer, LiveTask};
pub use minimise::minimise;
pub use task::{AnyNumber, Asked, OpenTask, Task};
pub use trace::{End, Trace, TraceError};
pub use verdict::{
    Assumption, Broken, Judged, Proof, Scope, SmallWorlds, Unchecked, Unsound, Verdict,
};

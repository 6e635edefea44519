//! Verdicts, traces, certificates, and the auditor that re-checks them.
//!
//! An engine answers a reachability question ([`Answer`]); [`judge`] replays or audits what it says
//! and only then turns it into a [`Verdict`]. The auditor shares no code with any engine.

pub mod answer;
pub mod audit;
pub mod certificate;
pub mod control;
pub mod deadlock;
pub mod file;
pub mod fingerprint;
pub mod happens_before;
pub mod judge;
pub mod minimise;
pub mod task;
pub mod trace;
mod unfold;
pub mod verdict;

pub use answer::{Answer, Engine, Limits, Reason, Refusal};
pub use audit::{
    AuditError, Audited, Solvers, audit, audit_counting, audit_crowd, audit_system, audit_with,
};
pub use certificate::{Certificate, ClosedStates};
pub use control::{Control, Meter, Pace, Progress, Stop};
pub use file::{EvidenceFile, FileError};
pub use fingerprint::fingerprint;
pub use judge::{AuditPolicy, Judged, Unchecked, Unsound, after_audit, judge};
pub use minimise::minimise;
pub use task::Task;
pub use trace::{End, Trace, TraceError};
pub use verdict::{Assumption, Broken, Proof, Scope, SmallWorlds, Verdict};

//! Verdicts, traces, certificates, and the auditor that re-checks them.
//!
//! An engine answers a reachability question ([`Answer`]); the façade replays or audits what it
//! says and only then turns it into a [`Verdict`]. Nothing here explores a state space on its own,
//! and the auditor shares no code with any engine.

pub mod answer;
pub mod certificate;
pub mod control;
pub mod task;
pub mod trace;
pub mod verdict;

pub use answer::{Answer, Engine, Limits, Reason, Refusal};
pub use certificate::Certificate;
pub use control::{Control, Progress, Stop};
pub use task::Task;
pub use trace::{End, Trace};
pub use verdict::{Broken, Proof, Scope, Verdict};

//! Verdicts: a type that cannot lie. What was only searched up to a bound is never `Holds`.

mod assumption;
mod scope;
mod shown;

pub use assumption::Assumption;
pub use shown::SmallWorlds;

use crate::answer::{Limits, Reason};
use crate::certificate::Certificate;
use crate::control::{Progress, Stop};
use crate::live::lasso::Lasso;
use crate::trace::Trace;

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Holds {
        scope: Scope,
        proof: Proof,
    },
    /// Proved, but for an assumption of the scope that nobody accepted: not a proof of the property.
    HoldsIf {
        scope: Scope,
        proof: Proof,
    },
    Violated {
        because: Broken,
    },
    Bounded {
        limits: Limits,
    },
    Undecided {
        reason: Reason,
        so_far: Progress,
    },
}

/// Why a property holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// The bad states cannot be reached.
    Certificate(Certificate),
    /// The wanted final state is reached (for `reachable`).
    Witness(Trace),
}

/// Why a property does not hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Broken {
    Trace(Trace),
    /// A fair run that goes on for ever and does not do what is demanded.
    Lasso(Lasso),
    /// A replayed run of an array-based system, line by line.
    Run(Vec<String>),
    /// The wanted final state cannot be reached (for `reachable`).
    NeverReached(Certificate),
}

/// What a verdict covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// For instance `2 threads` or `any number of threads`.
    pub threads: String,
    /// `finite` or `unbounded integers`.
    pub data: String,
    /// What was not bounded: `store buffers`, …
    pub unbounded: Vec<String>,
    /// What the proof takes for granted about the program; usually nothing.
    pub assumptions: Vec<Assumption>,
    /// Lines of the file's invariants that were proved together with the property.
    pub invariants: Vec<u32>,
}

/// An engine's evidence did not check. This is a bug in Wattle, never in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsound {
    pub engine: &'static str,
    pub what: String,
}

/// A verdict, and whether its evidence was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub verdict: Verdict,
    /// Why the evidence was not checked. Traces always are, certificates where nothing hinders it.
    pub unchecked: Option<Unchecked>,
}

impl Judged {
    /// A verdict whose evidence was checked, or that has none.
    pub fn checked(verdict: Verdict) -> Self {
        let unchecked = None;
        Judged { verdict, unchecked }
    }
}

/// Why a proof was not audited. The verdict stands, and says so: this is about what an audit costs,
/// not about the proof. An auditor that *refuses* a proof says something about the proof, and then
/// nothing is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// Nobody wanted it.
    Off,
    /// There was too much to audit, or nobody to do it.
    Unable(String),
    /// The audit ran out of its budget.
    Stopped(Stop),
    /// The proof is about a system, which was audited; that this does what the program does, was not:
    /// why.
    Translation(String),
}

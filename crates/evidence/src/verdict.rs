//! Verdicts: a type that cannot lie. What was only searched up to a bound is never `Holds`.

use crate::answer::{Limits, Reason};
use crate::certificate::Certificate;
use crate::control::Progress;
use crate::live::lasso::Lasso;
use crate::trace::Trace;
use std::fmt;

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
}

/// Something a proof takes for granted and did not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// The numbers in these variables, as the user named them, do not wrap around.
    NoWrap { variables: Vec<String> },
    /// What the file says of its constants, in a language where that is a given fact.
    Invariants,
}

impl Scope {
    /// What was not shown, and how to take it for granted, as one sentence.
    pub fn condition(&self) -> String {
        let unshown = self.assumptions.iter().map(|a| match a {
            Assumption::NoWrap { variables } => {
                let named: Vec<String> = variables.iter().map(|v| format!("`{v}`")).collect();
                format!(
                    "that {a} ({}) was not shown; `--assume no-wrap` takes it for granted",
                    named.join(", ")
                )
            }
            Assumption::Invariants => format!("that {a} was not shown"),
        });
        unshown.collect::<Vec<_>>().join("; ")
    }
}

/// As it stands after *if*: `no number wraps around`.
impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Assumption::NoWrap { .. } => f.write_str("no number wraps around"),
            Assumption::Invariants => f.write_str("the file's invariants about constants hold"),
        }
    }
}

/// How far small instances were run before a proof about any number of threads was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmallWorlds {
    /// The most threads run in an open family.
    pub threads: u32,
    /// States seen, of all instances together.
    pub states: u64,
    /// Whether every state of every instance with up to so many threads was seen.
    pub complete: bool,
    /// Why nothing could be run.
    pub not_run: Option<String>,
}

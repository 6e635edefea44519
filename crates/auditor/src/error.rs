//! What an audit found wrong, in words.

use std::fmt;
use wattle_evidence::certificate::Corrupt;
use wattle_evidence::control::Stop;
use wattle_memory::{Fault, MemoryModel};

/// Why a certificate proves nothing: which obligation does not hold, in which state, by which step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditError {
    /// It is about another memory model.
    WrongModel(MemoryModel),
    /// It cannot be read.
    Corrupt(Corrupt),
    /// An initial state is not covered.
    MissesInitial,
    /// A part of what should lead to something bad has an initial state in it.
    HasInitial { part: u64 },
    /// A bad state is in no part of what should have them all.
    MissesBad,
    /// An event leads out of it.
    NotClosed { state: u64, event: String },
    /// What it says is taken at once may not be.
    NotLocal(String),
    /// There is more to go through than anyone wants to see.
    TooMany,
    /// A state in it satisfies the target.
    Bad { state: u64 },
    /// The target has no value in a state.
    NoValue { state: u64, why: String },
    /// A step that is possible in it is a fault.
    Fault { state: u64, fault: Fault },
    /// A state in it is a deadlock.
    Deadlock { state: u64 },
    /// The reference machine does not run the program.
    Refused(String),
    /// Budget or cancellation; says nothing about the certificate.
    Stopped(Stop),
    /// The program is not robust after all.
    NotRobust,
    /// The system that the proof is about is not shown to do what the program does.
    Translation(String),
    /// Anything else a checker found wrong.
    Other(String),
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::WrongModel(m) => write!(f, "the certificate is about {m}"),
            AuditError::Corrupt(c) => write!(f, "the certificate cannot be read: {c}"),
            AuditError::NotRobust => write!(f, "the program is not robust"),
            AuditError::MissesInitial => {
                write!(f, "initial states: one is not covered")
            }
            AuditError::HasInitial { part } => {
                write!(
                    f,
                    "initial states: one is in part {part} of what leads to bad states"
                )
            }
            AuditError::MissesBad => write!(f, "bad states: one is in no part of the certificate"),
            AuditError::NotClosed { state, event } => {
                write!(f, "closed under events: {event} leads out of state {state}")
            }
            AuditError::NotLocal(what) => {
                write!(
                    f,
                    "an event that others may notice is taken at once: {what}"
                )
            }
            AuditError::TooMany => write!(f, "there is too much to go through"),
            AuditError::Bad { state } => {
                write!(f, "bad states: state {state} satisfies the target")
            }
            AuditError::NoValue { state, why } => {
                write!(
                    f,
                    "bad states: the property has no value in state {state}: {why}"
                )
            }
            AuditError::Fault { state, fault } => {
                let Fault { thread, step, kind } = fault;
                write!(
                    f,
                    "faults: step {step} of thread {thread} is one in state {state}: {kind}"
                )
            }
            AuditError::Deadlock { state } => write!(f, "deadlocks: state {state} is one"),
            AuditError::Refused(why) | AuditError::Other(why) => f.write_str(why),
            AuditError::Translation(why) => {
                write!(
                    f,
                    "its system is not shown to do what the program does: {why}"
                )
            }
            AuditError::Stopped(stop) => write!(f, "the audit was stopped: {stop}"),
        }
    }
}

impl From<Corrupt> for AuditError {
    fn from(c: Corrupt) -> Self {
        AuditError::Corrupt(c)
    }
}

impl From<Stop> for AuditError {
    fn from(stop: Stop) -> Self {
        AuditError::Stopped(stop)
    }
}

//! What engines say, and the contract they keep: an engine never prints, never exits and never
//! panics on input.

use crate::certificate::Certificate;
use crate::control::{Control, Progress, Stop};
use crate::task::Task;
use crate::trace::{End, Trace};
use wattle_model::{PropertyKind, Span};

pub trait Engine: Sync {
    fn name(&self) -> &'static str;

    /// Whether this engine can work on the task; if not, one sentence why.
    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal>;

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer;
}

/// What about the task the engine cannot treat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One sentence.
    pub why: String,
    /// Where in the source, if it is about a place.
    pub span: Span,
    /// What would work.
    pub hint: Option<String>,
}

impl Refusal {
    pub fn new(why: impl Into<String>) -> Self {
        Refusal {
            why: why.into(),
            span: Span::NONE,
            hint: None,
        }
    }

    /// The same about a place, with what would work there.
    pub fn at(self, span: Span, hint: impl Into<String>) -> Self {
        Refusal {
            span,
            hint: Some(hint.into()),
            ..self
        }
    }
}

/// An engine's answer to "can the target be reached, or a fault (or a deadlock, if asked)?".
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Yes, by this run.
    Reached {
        trace: Trace,
        effort: Progress,
    },
    /// No, and why.
    Unreachable {
        certificate: Certificate,
        effort: Progress,
    },
    /// Not within these limits; says nothing about what lies beyond.
    Bounded {
        limits: Limits,
        effort: Progress,
    },
    Undecided {
        reason: Reason,
        effort: Progress,
    },
}

/// What a search was cut off by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At most this many pending stores in a buffer.
    pub buffered_stores: u32,
    /// The loop that stores without a fence, as a person would name it (thread and line).
    pub cause: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Ran out of a budget; `stage` says in what (for instance `coherent (k = 3)`).
    Stopped { stop: Stop, stage: String },
    /// A mathematical integer outgrew the machine's 64 bits.
    MachineOverflow { place: String },
    /// The solver gave up on a query.
    SolverUnknown(String),
    /// The engine cannot treat the task.
    Refused(Refusal),
    /// Anything else, in one sentence.
    Other(String),
}

impl Reason {
    /// Ran out of a budget while doing this.
    pub fn stopped(stop: Stop, stage: impl Into<String>) -> Self {
        let stage = stage.into();
        Reason::Stopped { stop, stage }
    }
}

/// One sentence; how long it took is not part of it.
impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Stopped { stop, stage } => write!(f, "{stop} in {stage}"),
            Reason::MachineOverflow { place } => {
                write!(f, "an integer outgrew the machine's 64 bits ({place})")
            }
            Reason::SolverUnknown(what) => write!(f, "the solver gave up: {what}"),
            Reason::Refused(refusal) => write!(f, "no engine accepts the task: {}", refusal.why),
            Reason::Other(what) => f.write_str(what),
        }
    }
}

impl Answer {
    /// Whether something of the kind that was asked for can be reached, where the answer settles it. A
    /// run that ends in a fault says nothing about what is wanted to be `reachable`: another run may
    /// get there.
    pub fn settles(&self, task: &Task<'_>) -> Option<bool> {
        let question = task.question();
        let wanted = question.is_some_and(|q| q.kind == PropertyKind::Reachable);
        match self {
            Answer::Reached { trace, .. } => (!wanted || trace.end == End::Target).then_some(true),
            Answer::Unreachable { .. } => Some(false),
            Answer::Bounded { .. } | Answer::Undecided { .. } => None,
        }
    }

    pub fn effort(&self) -> Progress {
        match self {
            Answer::Reached { effort, .. }
            | Answer::Unreachable { effort, .. }
            | Answer::Bounded { effort, .. }
            | Answer::Undecided { effort, .. } => *effort,
        }
    }
}

//! What engines say, and the contract they keep: an engine never prints, never exits and never
//! panics on input.

use crate::certificate::Certificate;
use crate::control::{Control, Progress, Stop};
use crate::related::Translated;
use crate::task::{OpenTask, Task};
use crate::trace::{End, Trace};
use crate::verdict::Assumption;
use wattle_model::{Instance, PropertyKind, Span};

pub trait Engine: Sync {
    fn name(&self) -> &'static str;

    /// Whether this engine can work on the task; if not, one sentence why.
    fn accepts(&self, task: &Task<'_>) -> Result<(), Refusal>;

    fn run(&self, task: &Task<'_>, control: &Control<'_>) -> Answer;

    /// The same for any number of threads; most engines are for a fixed number.
    fn accepts_open(&self, _: &OpenTask<'_>) -> Result<(), Refusal> {
        Err(Refusal::new("it is for a fixed number of threads"))
    }

    fn run_open(&self, task: &OpenTask<'_>, _: &Control<'_>) -> OpenAnswer {
        OpenAnswer::Undecided {
            reason: match self.accepts_open(task) {
                Err(refusal) => Reason::Refused(refusal),
                Ok(()) => Reason::Other("it is for a fixed number of threads".into()),
            },
            effort: Progress::default(),
        }
    }
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

    /// Nobody proves that any number of threads is free of deadlock.
    pub fn no_open_deadlocks() -> Self {
        Refusal::new(
            "deadlocks are looked for with a fixed number of threads (such as `--threads t=3`), and \
             not proved absent for any number",
        )
    }

    /// The same with the hint in the sentence.
    pub fn with_its_hint(self) -> Self {
        let why = match &self.hint {
            Some(hint) => format!("{} ({hint})", self.why),
            None => self.why.clone(),
        };
        Refusal { why, ..self }
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

/// An engine's answer to the same about any number of threads.
#[derive(Clone, Debug)]
pub enum OpenAnswer {
    /// Yes, by this run of an instance that has threads enough.
    Reached {
        instance: Box<Instance>,
        trace: Trace,
        effort: Progress,
    },
    /// Yes, by a run with so many threads of what was made of the program: an instance of the program
    /// itself has to show it.
    Suspected {
        threads: u32,
        effort: Progress,
    },
    /// Yes, by this run of an array-based system, line by line.
    Ran {
        lines: Vec<String>,
        effort: Progress,
    },
    /// No, and why.
    Unreachable {
        proof: OpenProof,
        effort: Progress,
    },
    Undecided {
        reason: Reason,
        effort: Progress,
    },
}

/// Why nothing bad can be reached, whatever the number of threads.
#[derive(Clone, Debug)]
pub struct OpenProof {
    pub certificate: Certificate,
    /// What it takes for granted about the program.
    pub assumptions: Vec<Assumption>,
    /// What the certificate is about, where that is not the program itself.
    pub translated: Option<Box<Translated>>,
    /// What the system claims of itself (by number, not of constants alone) and was proved as well.
    pub claims: Vec<usize>,
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

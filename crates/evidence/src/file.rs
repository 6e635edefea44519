//! Evidence in a file: a trace or a certificate, with the question it answers. JSON.
//!
//! ```json
//! {"format": "wattle-trace", "version": 1, "program": "5f0c…", "threads": {"p": 3},
//!  "model": "tso", "question": 0, "deadlock": false, "evidence": { … }}
//! ```
//!
//! `program` is the [`fingerprint`] of the instance; `threads` are the counts that were not the
//! program's own; `any` the families that were given any number of threads (for a proof about any
//! number, `program` is the fingerprint of the array-based system, or of the instance whose threads
//! stand for all); `question` is the number of the property, counted from 0 (null: only assertions
//! and faults were looked for).

use crate::certificate::Certificate;
use crate::fingerprint::{fingerprint, fingerprint_of_system};
use crate::live::lasso::Lasso;
use crate::live::{Fairness, LiveTask};
use crate::task::Task;
use crate::trace::Trace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_model::{Counts, Crowd, Instance};

const VERSION: u32 = 1;

/// What can be kept in a file.
pub trait Kept: Serialize + for<'de> Deserialize<'de> {
    const FORMAT: &'static str;
}

impl Kept for Trace {
    const FORMAT: &'static str = "wattle-trace";
}

impl Kept for Lasso {
    const FORMAT: &'static str = "wattle-lasso";
}

impl Kept for Certificate {
    const FORMAT: &'static str = "wattle-certificate";
}

/// Evidence and what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceFile<E> {
    format: String,
    version: u32,
    /// The fingerprint of the instance.
    pub program: String,
    #[serde(default)]
    pub threads: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<String>,
    pub model: MemoryModel,
    pub question: Option<usize>,
    #[serde(default)]
    pub deadlock: bool,
    /// For a demand on runs: its number and what was assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<(usize, Fairness)>,
    pub evidence: E,
}

/// Why a file is not the evidence asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileError {
    NotJson(String),
    WrongFormat {
        found: String,
        expected: &'static str,
    },
    WrongVersion(u32),
    OtherProgram,
    NoQuestion(usize),
    /// It is about no demand on runs that the program has.
    NoDemand,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::NotJson(why) => write!(f, "it cannot be read: {why}"),
            FileError::WrongFormat { found, expected } => {
                write!(f, "it is a `{found}` file; a `{expected}` file is needed")
            }
            FileError::WrongVersion(v) => {
                write!(f, "it has version {v}; this Wattle reads version {VERSION}")
            }
            FileError::OtherProgram => write!(
                f,
                "it is about another program (or the program was changed since it was written)"
            ),
            FileError::NoDemand => write!(
                f,
                "it is about no demand on runs that the program has (`--progress` adds one)"
            ),
            FileError::NoQuestion(q) => {
                write!(f, "it answers property {}, which the program lacks", q + 1)
            }
        }
    }
}

impl<E: Kept> EvidenceFile<E> {
    pub fn new(task: &Task<'_>, counts: &Counts, evidence: E) -> Self {
        EvidenceFile {
            format: E::FORMAT.to_string(),
            version: VERSION,
            program: fingerprint(task.instance),
            threads: counts.0.clone(),
            any: Vec::new(),
            model: task.model,
            question: task.question,
            deadlock: task.deadlock,
            live: None,
            evidence,
        }
    }

    /// Evidence about a demand on runs.
    pub fn of_live(task: &LiveTask<'_>, counts: &Counts, evidence: E) -> Self {
        let live = Some((task.demand, task.fairness));
        let file = Self::new(&task.faults(), counts, evidence);
        EvidenceFile { live, ..file }
    }

    /// The demand the evidence is about, if it is about one of the instance's.
    pub fn live_task<'i>(&self, instance: &'i Instance) -> Result<LiveTask<'i>, FileError> {
        if fingerprint(instance) != self.program {
            return Err(FileError::OtherProgram);
        }
        let (demand, fairness) = self.live.ok_or(FileError::NoDemand)?;
        if demand >= instance.demands.len() {
            return Err(FileError::NoDemand);
        }
        Ok(LiveTask {
            instance,
            model: self.model,
            demand,
            fairness,
        })
    }

    /// Evidence about any number of threads, as an array-based system.
    pub fn of_system(
        system: &ArraySystem,
        counts: &Counts,
        any: Vec<String>,
        model: MemoryModel,
        question: Option<usize>,
        evidence: E,
    ) -> Self {
        let program = fingerprint_of_system(system);
        Self::of_any(program, counts, any, model, question, evidence)
    }

    /// Evidence about any number of threads that nothing tells apart.
    pub fn of_crowd(
        crowd: &Crowd,
        counts: &Counts,
        any: Vec<String>,
        model: MemoryModel,
        question: Option<usize>,
        evidence: E,
    ) -> Self {
        let program = fingerprint(&crowd.instance);
        Self::of_any(program, counts, any, model, question, evidence)
    }

    fn of_any(
        program: String,
        counts: &Counts,
        any: Vec<String>,
        model: MemoryModel,
        question: Option<usize>,
        evidence: E,
    ) -> Self {
        EvidenceFile {
            format: E::FORMAT.to_string(),
            version: VERSION,
            program,
            threads: counts.0.clone(),
            any,
            model,
            question,
            deadlock: false,
            live: None,
            evidence,
        }
    }

    /// Whether it is about this system.
    pub fn is_about(&self, system: &ArraySystem) -> Result<(), FileError> {
        match fingerprint_of_system(system) == self.program {
            true => Ok(()),
            false => Err(FileError::OtherProgram),
        }
    }

    /// Whether it is about this crowd.
    pub fn is_about_crowd(&self, crowd: &Crowd) -> Result<(), FileError> {
        match fingerprint(&crowd.instance) == self.program {
            true => Ok(()),
            false => Err(FileError::OtherProgram),
        }
    }

    pub fn to_json(&self) -> String {
        // The types have string keys only and no failing serialisers.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn from_json(text: &str) -> Result<Self, FileError> {
        #[derive(Deserialize)]
        struct Header {
            format: String,
            version: u32,
        }
        let not_json = |e: serde_json::Error| FileError::NotJson(e.to_string());
        let header: Header = serde_json::from_str(text).map_err(not_json)?;
        if header.format != E::FORMAT {
            return Err(FileError::WrongFormat {
                found: header.format,
                expected: E::FORMAT,
            });
        }
        if header.version != VERSION {
            return Err(FileError::WrongVersion(header.version));
        }
        serde_json::from_str(text).map_err(not_json)
    }

    pub fn counts(&self) -> Counts {
        Counts(self.threads.clone())
    }

    /// The question the evidence answers, if the instance is the one it is about.
    pub fn task<'i>(&self, instance: &'i Instance) -> Result<Task<'i>, FileError> {
        if fingerprint(instance) != self.program {
            return Err(FileError::OtherProgram);
        }
        if let Some(q) = self.question.filter(|q| *q >= instance.questions.len()) {
            return Err(FileError::NoQuestion(q));
        }
        Ok(Task {
            instance,
            model: self.model,
            question: self.question,
            deadlock: self.deadlock,
        })
    }
}

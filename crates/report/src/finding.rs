//! Everything there is to say about one property under one memory model.

use crate::why::Why;
use std::sync::Arc;
use wattle_evidence::{
    Broken, End, Fairness, Judged, Lasso, LiveTask, Proof, Scope, SmallWorlds, Task, Trace, Verdict,
};
use wattle_memory::MemoryModel;
use wattle_model::Instance;

#[derive(Clone, Debug)]
pub struct Finding {
    pub model: MemoryModel,
    /// Number of the property among the instance's questions.
    pub question: Option<usize>,
    pub deadlock: bool,
    /// For a demand on runs.
    pub live: Option<Live>,
    /// The property as written; without one only assertions and faults were looked for.
    pub property: Option<String>,
    /// What was asked about; a verdict that holds says in its own scope what it covers.
    pub scope: Scope,
    pub judged: Judged,
    /// The engine that answered.
    pub engine: &'static str,
    pub seconds: f64,
    pub states: u64,
    pub peak_memory: u64,
    /// The instance that the run is of, where any number of threads was asked about.
    pub shown: Option<Arc<Instance>>,
    /// For traces that relaxed memory makes possible.
    pub why: Option<Why>,
    /// How far small instances were run, for proofs about any number of threads.
    pub small_worlds: Option<SmallWorlds>,
    /// The weaker memory model that the proof is about, where that answers for this one.
    pub proved_under: Option<MemoryModel>,
    /// Sentences a person should know before believing the verdict.
    pub warnings: Vec<String>,
}

/// Which demand, and what was taken for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Live {
    /// Number of the demand among the instance's.
    pub demand: usize,
    pub fairness: Fairness,
}

impl Finding {
    /// The demand this answers about the instance.
    pub fn live_task<'i>(&self, instance: &'i Instance) -> Option<LiveTask<'i>> {
        let live = self.live?;
        Some(LiveTask {
            instance,
            model: self.model,
            demand: live.demand,
            fairness: live.fairness,
        })
    }

    /// The run without end that shows it, if one does.
    pub fn lasso(&self) -> Option<&Lasso> {
        match &self.judged.verdict {
            Verdict::Violated {
                because: Broken::Lasso(lasso),
            } => Some(lasso),
            _ => None,
        }
    }

    /// The question this answers about the instance.
    pub fn task<'i>(&self, instance: &'i Instance) -> Task<'i> {
        Task {
            instance,
            model: self.model,
            question: self.question,
            deadlock: self.deadlock,
        }
    }

    /// The instance that a run is of: its own, or the one that all were asked about.
    pub fn instance<'f>(&'f self, all: Option<&'f Instance>) -> Option<&'f Instance> {
        self.shown.as_deref().or(all)
    }

    /// What a violation is one of, if it is not the property's: a fault or a deadlock, by its name.
    pub fn other_violation(&self) -> Option<String> {
        match &self.judged.verdict {
            Verdict::Violated {
                because: Broken::Trace(trace),
            } => match &trace.end {
                End::Target => None,
                End::Fault(fault) => Some(fault.kind.to_string()),
                End::Deadlock => Some("deadlock".into()),
            },
            Verdict::Violated {
                because: Broken::Run(_) | Broken::NeverReached(_) | Broken::Lasso(_),
            }
            | Verdict::Holds { .. }
            | Verdict::HoldsIf { .. }
            | Verdict::Bounded { .. }
            | Verdict::Undecided { .. } => None,
        }
    }

    /// The run that shows it, if a run does.
    pub fn trace(&self) -> Option<&Trace> {
        match &self.judged.verdict {
            Verdict::Violated {
                because: Broken::Trace(trace),
            }
            | Verdict::Holds {
                proof: Proof::Witness(trace),
                ..
            } => Some(trace),
            _ => None,
        }
    }
}

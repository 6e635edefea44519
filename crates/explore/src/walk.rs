//! A way through a program: where it begins, and which of the possible events was chosen each time.
//!
//! Ways are lists of numbers, so that they fit into an address; what they mean is worked out anew by
//! replaying them. Programs that are looked at by hand are not run for long.

use serde::{Deserialize, Serialize};
use wattle_evidence::{End, EvidenceFile, Task, Trace};
use wattle_memory::reference::{self, Refusal, ReplayError, Snapshot};
use wattle_memory::{Event, Fault, MemoryModel, Start};
use wattle_model::{Counts, Instance};

/// What is walked through.
pub struct Subject<'s> {
    /// The file's name and text, to be shown.
    pub name: String,
    pub text: String,
    pub instance: &'s Instance,
    pub counts: Counts,
    pub model: MemoryModel,
    /// The properties as written, in the order of the instance's questions.
    pub properties: Vec<String>,
}

/// A way: the number of the initial state, and the numbers of the choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    pub start: usize,
    pub choices: Vec<usize>,
}

/// A way that was gone.
#[derive(Debug)]
pub struct Walk {
    pub way: Way,
    pub start: Start,
    pub events: Vec<Event>,
    /// The states passed, the initial one first.
    pub states: Vec<Snapshot>,
    /// What the last event was, if it was one that ends the run.
    pub fault: Option<Fault>,
    /// What can happen now.
    pub next: Vec<Event>,
}

/// Longer ways are not replayed for every click.
pub const LONGEST: usize = 5_000;

impl Subject<'_> {
    /// Every initial state.
    pub fn starts(&self) -> Result<Vec<Start>, Refusal> {
        reference::starts(self.instance)
    }

    /// Goes a way as far as it can be gone.
    pub fn walk(&self, way: &Way) -> Result<Walk, String> {
        let starts = self.starts().map_err(|r| r.to_string())?;
        let at = way.start.min(starts.len().saturating_sub(1));
        let start = starts.get(at).ok_or("the program has no initial state")?;
        let mut walk = Walk {
            way: Way {
                start: at,
                choices: Vec::new(),
            },
            start: start.clone(),
            events: Vec::new(),
            states: Vec::new(),
            fault: None,
            next: Vec::new(),
        };
        let gone = reference::choose(
            self.instance,
            self.model,
            start,
            way.choices.iter().copied().take(LONGEST),
        );
        let gone = gone.map_err(|e| error(&e))?;
        walk.way.choices = way.choices[..gone.events.len()].to_vec();
        walk.events = gone.events;
        walk.states = gone.states;
        walk.fault = gone.fault;
        walk.next = gone.next;
        Ok(walk)
    }

    /// The way that a run goes.
    pub fn way_of(&self, trace: &Trace) -> Result<Way, String> {
        let starts = self.starts().map_err(|r| r.to_string())?;
        let start = starts.iter().position(|s| *s == trace.start);
        let start = start.ok_or("the run does not begin in an initial state of this program")?;
        let choices = reference::choices_of(self.instance, self.model, &trace.start, &trace.events);
        let choices = choices.map_err(|e| error(&e))?;
        Ok(Way { start, choices })
    }

    /// The question whose answer the last state of a walk is, if it is one.
    pub fn decided(&self, walk: &Walk) -> Option<usize> {
        let questions = 0..self.instance.questions.len();
        questions.into_iter().find(|q| self.shows(walk, *q))
    }

    /// Whether the last state is one that a question is about.
    pub fn shows(&self, walk: &Walk, question: usize) -> bool {
        let task = self.task(Some(question));
        self.trace(walk).check(&task).is_ok()
    }

    pub(crate) fn task(&self, question: Option<usize>) -> Task<'_> {
        Task {
            instance: self.instance,
            model: self.model,
            question,
            deadlock: false,
        }
    }

    /// The walk as a run to keep.
    pub fn trace(&self, walk: &Walk) -> Trace {
        Trace {
            model: self.model,
            start: walk.start.clone(),
            events: walk.events.clone(),
            end: match &walk.fault {
                Some(fault) => End::Fault(fault.clone()),
                None => End::Target,
            },
        }
    }

    /// The walk as a file for `wattle replay` and `wattle explore --trace`. One that shows nothing is about no
    /// question.
    pub fn file(&self, walk: &Walk) -> String {
        let task = self.task(self.decided(walk));
        EvidenceFile::new(&task, &self.counts, self.trace(walk)).to_json()
    }
}

fn error(e: &ReplayError) -> String {
    match e {
        ReplayError::NotInitial => "it does not begin in an initial state".into(),
        ReplayError::NotEnabled { index, .. } => {
            format!("event {} is not possible there", index + 1)
        }
        ReplayError::AfterFault { index } => format!("event {index} is a fault and ends the run"),
        ReplayError::Refused(r) => r.to_string(),
    }
}

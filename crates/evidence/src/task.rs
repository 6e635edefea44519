//! What an engine is asked.

use crate::answer::Refusal;
use wattle_memory::{Fault, FaultKind, MemoryModel};
use wattle_model::array::ArraySystem;
use wattle_model::instance::Question;
use wattle_model::{Instance, Program};

/// One question about one instance under one memory model. Faults (failed assertions among them)
/// are looked for unless the question is about a state to be reached; a deadlock only on request.
#[derive(Clone, Copy, Debug)]
pub struct Task<'i> {
    pub instance: &'i Instance,
    pub model: MemoryModel,
    /// Index into the instance's questions; without one only faults (and deadlock) are looked for.
    pub question: Option<usize>,
    pub deadlock: bool,
}

impl<'i> Task<'i> {
    pub fn question(&self) -> Option<&'i Question> {
        self.instance.questions.get(self.question?)
    }

    /// Whether a fault answers the question ([`Question::minds_faults`]).
    pub fn minds_faults(&self) -> bool {
        self.question().is_none_or(Question::minds_faults)
    }

    /// Whether a run with this fault just ends: it answers nothing. A number that outgrew the machine
    /// is no fault of the program.
    pub fn ends_at(&self, fault: &Fault) -> bool {
        !self.minds_faults() && fault.kind != FaultKind::MachineOverflow
    }

    /// Refuses instances one of whose states takes too much work to expand: it has a slot for
    /// everything, and every thread makes at least one more of it. `most` is slots times threads.
    pub fn is_narrow(&self, most: usize) -> Result<(), Refusal> {
        let (threads, cells) = (&self.instance.threads, self.instance.cells.len());
        let registers = threads.iter().map(|t| 2 + t.registers.len());
        let slots = cells + registers.sum::<usize>();
        if slots.saturating_mul(threads.len()) > most {
            let threads = threads.len();
            let why = format!(
                "{threads} threads and {cells} cells are too many to search state by state"
            );
            return Err(Refusal::new(why));
        }
        Ok(())
    }
}

/// A question about a program under one memory model, in one of its two forms.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// The number of threads is fixed.
    Fixed(Task<'a>),
    /// Any number of threads.
    Open(OpenTask<'a>),
}

impl<'a> From<&Task<'a>> for Asked<'a> {
    fn from(task: &Task<'a>) -> Self {
        Asked::Fixed(*task)
    }
}

impl<'a> From<&OpenTask<'a>> for Asked<'a> {
    fn from(task: &OpenTask<'a>) -> Self {
        Asked::Open(*task)
    }
}

/// The same question for any number of threads.
#[derive(Clone, Copy, Debug)]
pub struct OpenTask<'a> {
    pub of: AnyNumber<'a>,
    pub model: MemoryModel,
    /// Index into the program's properties; a system has only its unsafe states.
    pub question: Option<usize>,
    pub deadlock: bool,
}

/// What has any number of threads.
#[derive(Clone, Copy, Debug)]
pub enum AnyNumber<'a> {
    /// Those of its families whose number is open.
    Program(&'a Program),
    System(&'a ArraySystem),
}

impl OpenTask<'_> {
    /// The question about an instance of the program.
    pub fn on<'i>(&self, instance: &'i Instance) -> Task<'i> {
        Task {
            instance,
            model: self.model,
            question: self.question,
            deadlock: self.deadlock,
        }
    }
}

//! What an engine is asked.

mod asked;
mod narrow;
mod open;

pub use asked::Asked;
pub use open::{AnyNumber, OpenTask};

use wattle_memory::{Fault, FaultKind, MemoryModel};
use wattle_model::Instance;
use wattle_model::instance::Question;

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

    /// Whether the answer depends on pending stores.
    pub fn sees_buffers(&self) -> bool {
        self.question().is_some_and(|q| q.target.sees_buffers())
    }

    /// Whether a run with this fault just ends: it answers nothing. A number that outgrew the machine
    /// is no fault of the program.
    pub fn ends_at(&self, fault: &Fault) -> bool {
        !self.minds_faults() && fault.kind != FaultKind::MachineOverflow
    }
}

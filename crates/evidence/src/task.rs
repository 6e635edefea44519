//! What an engine is asked.

use crate::answer::Refusal;
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

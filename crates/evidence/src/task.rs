//! What an engine is asked.

use crate::answer::Refusal;
use wattle_memory::MemoryModel;
use wattle_model::Instance;
use wattle_model::instance::Question;

/// One question about one instance under one memory model. Faults (failed assertions among them)
/// are always looked for; a deadlock only on request.
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

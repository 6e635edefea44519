//! What an engine is asked.

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
}

//! The two forms of questions, for engines; and one put to an instance.

use super::{OpenTask, Task};
use wattle_model::Instance;

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

//! Questions about any number of threads.

use super::Task;
use wattle_memory::MemoryModel;
use wattle_model::array::ArraySystem;
use wattle_model::{Instance, Program};

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

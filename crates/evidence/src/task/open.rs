//! Questions about any number of threads.

use wattle_memory::MemoryModel;
use wattle_model::Program;
use wattle_model::array::ArraySystem;

/// A question about any number of threads under one memory model.
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

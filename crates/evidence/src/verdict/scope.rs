//! What a verdict about one instance covers.

use super::Scope;
use crate::task::Task;
use wattle_memory::MemoryModel;

impl Scope {
    /// What a verdict about the task covers.
    pub fn of(task: &Task<'_>) -> Self {
        let threads = match task.instance.threads.len() {
            1 => "1 thread".to_string(),
            n => format!("{n} threads"),
        };
        let data = match task.instance.is_finite() {
            true => "finite",
            false => "unbounded integers",
        };
        let buffers = (task.model != MemoryModel::Sc).then(|| "store buffers".to_string());
        Scope {
            threads,
            data: data.to_string(),
            unbounded: buffers.into_iter().collect(),
            assumptions: Vec::new(),
            invariants: Vec::new(),
        }
    }
}

//! Deadlock: states from which no progress can be reached, though some thread has not ended.
//!
//! The search runs without chaining, so that every edge is one event and what counts as progress can
//! be asked event by event. Edges are made again from the stored states rather than kept.

use crate::explicit::Explicit;
use wattle_evidence::{Answer, Control, Progress, Task};
use wattle_memory::reference::Refusal;

pub fn search(
    engine: &Explicit,
    task: &Task<'_>,
    control: &Control<'_>,
    effort: Progress,
) -> Result<Answer, Refusal> {
    crate::certificate::proof(engine, task, control, effort)
}

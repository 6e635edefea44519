//! All that may be taken at once where states are looked at.

use super::terms::Terms;
use super::{Local, Reduction, cut_cycles};
use wattle_evidence::task::Task;

impl Reduction {
    /// As much as may be, if buffers have the content `exact`. Deadlocks are looked for event by event,
    /// and so is what threads see of their pending stores.
    pub fn most(task: &Task<'_>, exact: bool) -> Self {
        let mut reduction = Reduction::none(task);
        if task.deadlock || task.sees_buffers() {
            return reduction;
        }
        let terms = Terms::of(task);
        for t in 0..task.instance.threads.len() {
            let thread = &task.instance.threads[t];
            let mut local: Vec<Local> = (0..thread.locations.len())
                .map(|l| terms.locality(t, l))
                .collect();
            cut_cycles(thread, &mut local);
            reduction.local[t] = local;
            reduction.free[t] = terms.free(t);
            if exact {
                reduction.private[t] = terms.private(t);
            }
        }
        reduction
    }
}

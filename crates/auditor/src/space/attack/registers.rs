//! What a search for attacks takes at once.

use super::super::local::seen::Seen;
use super::super::local::{Local, Reduction, cut_cycles, is_determined};
use wattle_evidence::task::Task;
use wattle_model::graph::Action;
use wattle_model::instance::Address;
use wattle_model::{Fence, RegisterId};

impl Reduction {
    /// Steps that touch no memory, wait for nothing and are not seen, and those inside atomic blocks.
    pub fn of_registers(task: &Task<'_>, seen: &Seen<'_>) -> Self {
        let mut reduction = Reduction::none(task);
        let locals = reduction.local.iter_mut().enumerate();
        for (thread, (t, local)) in task.instance.threads.iter().zip(locals) {
            for (l, out) in thread.outgoing.iter().enumerate() {
                let mut steps = out.iter().map(|s| thread.step(*s));
                let own = steps.all(|s| on_registers(&s.action) && seen.is_unseen(t, s));
                local[l] = match is_determined(thread, out) {
                    true if thread.atomic[l] || own => Local::Step,
                    // What is enabled among steps on registers is settled by the thread's own.
                    false if own && !thread.atomic[l] && !out.is_empty() => Local::Choice,
                    true | false => Local::No,
                };
            }
            cut_cycles(thread, local);
        }
        reduction
    }
}

fn on_registers(action: &Action<RegisterId, Address>) -> bool {
    match action {
        Action::Skip
        | Action::Assign { .. }
        | Action::Havoc { .. }
        | Action::Assume(_)
        | Action::Assert { .. }
        | Action::Fence(Fence::Store) => true,
        Action::Load { .. }
        | Action::Store { .. }
        | Action::Fence(Fence::Full)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => false,
    }
}

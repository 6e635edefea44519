//! A set of states that a certificate gives, and what it claims to leave out.

use super::local::terms::Terms;
use super::local::{Local, Reduction, cut_cycles};
use super::{AuditError, Audited, Buffer, Space, exact_bounds, moves};
use wattle_evidence::certificate::{ClosedStates, Coded, Shortened};
use wattle_evidence::control::Control;
use wattle_evidence::task::Task;
use wattle_memory::content::Content;
use wattle_memory::reference::State;
use wattle_memory::{Exact, Layout};

/// Checks a given set of states.
pub fn closed<L: Coded>(
    task: &Task<'_>,
    set: &ClosedStates,
    control: &Control<'_>,
) -> Result<Audited, AuditError> {
    let alone = moves::alone(task.instance)?;
    let reduction = Reduction::claimed(task, &set.shortened)?;
    let bounds = exact_bounds(task.instance);
    let mut space = Space::<L, Exact>::new(task, &alone, &bounds, reduction, control)?;
    set.for_each_row(|row| {
        space.poll(0)?;
        let state = L::decode(task.instance, row)?;
        space.admit(state)
    })?;
    space.begin()?;
    space.run()?;
    Ok(Audited { checked: set.len() })
}

impl<L: Layout, C: Content<Value = i64>> Space<'_, L, C> {
    /// A state of a given set.
    fn admit(&mut self, state: State<Buffer<L, C>>) -> Result<(), AuditError> {
        let added = self.fitting(|space| {
            let row = space.pack(&state)?;
            Ok(space.rows.insert(&row))
        })?;
        if added.1 {
            let row = self.rows.row(added.0).to_vec();
            self.look(&row, added.0)?;
        }
        Ok(())
    }
}

impl Reduction {
    /// What a certificate claims, if it is true.
    fn claimed(task: &Task<'_>, claims: &Shortened) -> Result<Self, AuditError> {
        let mut reduction = Reduction::none(task);
        if claims.local.iter().all(Vec::is_empty) && claims.private.iter().all(Vec::is_empty) {
            return Ok(reduction);
        }
        let wrong = |what: &str| Err(AuditError::NotLocal(what.to_string()));
        let threads = &task.instance.threads;
        if claims.local.len() != threads.len() || claims.private.len() != threads.len() {
            return wrong("it is about another number of threads");
        }
        if task.sees_buffers() {
            return wrong("the question sees pending stores");
        }
        if task.deadlock {
            return wrong("deadlocks are looked for event by event");
        }
        let terms = Terms::of(task);
        for (t, thread) in threads.iter().enumerate() {
            for l in &claims.local[t] {
                let l = l.index();
                let locality = match l < thread.locations.len() {
                    true => terms.locality(t, l),
                    false => Local::No,
                };
                if locality == Local::No {
                    let line = thread.locations.get(l).map_or(0, |l| l.span.line);
                    return wrong(&format!("location {l} of {} (line {line})", thread.name));
                }
                reduction.local[t][l] = locality;
            }
            reduction.free[t] = terms.free(t);
            let mut cut = reduction.local[t].clone();
            cut_cycles(thread, &mut cut);
            if cut != reduction.local[t] {
                return wrong(&format!("a cycle of {}", thread.name));
            }
            for c in &claims.private[t] {
                if c.index() >= task.instance.cells.len() || !terms.may_be_private(t, *c) {
                    return wrong(&format!("stores of {} to {c}", thread.name));
                }
                reduction.private[t].insert(*c);
            }
        }
        Ok(reduction)
    }
}

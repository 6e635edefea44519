//! Atomic blocks inside lock regions, opened.
//!
//! For robustness such a block adds nothing to the region around it. While a thread holds the lock no
//! other store reaches memory and no other block or region begins, so whatever is before (after) one
//! access of the region by way of such an event is before (after) the whole region. All a block can add
//! is to keep other threads' loads out of its middle. Suppose a run of the program with blocks, under
//! TSO or PSO, has an acyclic relation without that rule, and a cycle with it: then a chain of loads of
//! one other thread leads from an access of a block to an access of the same block (other events would
//! make a cycle with the region, and so would a store of that thread that served the first load from its
//! buffer). The first load sees a store of the block, so it comes after the block; loads happen in
//! program order, so the last one does too; and it cannot be before a store of the block. So a program
//! is robust if it is with these blocks opened: a fence (the buffer must be empty where a block begins)
//! and then plain accesses, whose stores may reach memory at once as before. The opened program has
//! more runs, and may be blamed where the program is not.

use super::{Instance, Thread};
use crate::graph::{Action, Fence};
use crate::ids::LocationId;
use std::borrow::Cow;

/// Whether the thread may hold the lock at a location, and whether it may not.
fn held(thread: &Thread) -> Vec<[bool; 2]> {
    let mut seen = vec![[false; 2]; thread.locations.len()];
    let mut work: Vec<(LocationId, bool)> = vec![(thread.entry, false)];
    while let Some((l, locked)) = work.pop() {
        if std::mem::replace(&mut seen[l.index()][usize::from(locked)], true) {
            continue;
        }
        for s in thread.outgoing(l) {
            let step = thread.step(*s);
            let after = match step.action {
                Action::Lock => true,
                Action::Unlock => false,
                _ => locked,
            };
            work.push((step.target, after));
        }
    }
    seen
}

impl Instance {
    /// The program with atomic blocks inside lock regions opened; `None` if a block is both inside a
    /// region and outside, depending on the path that leads there.
    pub fn with_nested_blocks_opened(&self) -> Option<Cow<'_, Instance>> {
        let mut opened = Cow::Borrowed(self);
        for (t, thread) in self.threads.iter().enumerate() {
            let held = held(thread);
            let begins = |s: &super::Step| matches!(s.action, Action::AtomicBegin);
            let nested = |l: LocationId| held[l.index()][1];
            if !thread.steps.iter().any(|s| begins(s) && nested(s.source)) {
                continue;
            }
            let blocks = (0..thread.locations.len()).filter(|l| thread.atomic[*l]);
            let mut edges = blocks.chain(
                thread
                    .steps
                    .iter()
                    .filter(|s| begins(s))
                    .map(|s| s.source.index()),
            );
            if edges.any(|l| held[l] == [true; 2]) {
                return None;
            }
            let thread = &mut opened.to_mut().threads[t];
            for step in &mut thread.steps {
                if !held[step.source.index()][1] {
                    continue;
                }
                match step.action {
                    Action::AtomicBegin => step.action = Action::Fence(Fence::Full),
                    Action::AtomicEnd => step.action = Action::Skip,
                    _ => {}
                }
            }
            for (atomic, held) in thread.atomic.iter_mut().zip(&held) {
                *atomic &= !held[1];
            }
        }
        Some(opened)
    }
}

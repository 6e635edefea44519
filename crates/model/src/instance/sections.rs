//! Lock regions that are atomic blocks in all but name.
//!
//! While a thread holds the lock the others neither load, nor let stores reach memory, nor enter atomic
//! blocks. If nothing inside the region waits for others and the question sees nothing of what the region
//! does, it is the same as an atomic block that begins with an empty buffer.
//!
//! *Why.* What others do meanwhile (registers, stores into their buffers, fences with nothing pending) is not
//! noticed by the holder, and does not notice it: all of it could have happened before the lock was taken. So
//! every state with somebody inside has the same looks as one with nobody inside, and every run whose regions are
//! complete has one with the same ends in which regions are not interrupted. In such a region it does not matter when
//! its stores reach memory: only the holder looks, and it finds them in its buffer; they are there when it
//! unlocks, which waits for that. The regions can be left from everywhere inside, so no run ends there unless by a
//! fault, or by going round for ever.

use super::{Fact, Instance, Question, Thread};
use crate::graph::{Action, Section};
use crate::{Expr, LocationId, RegisterId, StepId, ThreadId};

impl Instance {
    /// The program with its lock regions as atomic blocks, if there are some and all of them can be taken for
    /// that. Everything keeps its number.
    pub fn with_regions_as_blocks(&self, question: Option<&Question>) -> Option<Instance> {
        if !self.locks() {
            return None;
        }
        let mut seen = Seen::default();
        if let Some(q) = question
            && !q.only_final
        {
            seen.add(&q.target);
        }
        let mut blocks = self.clone();
        for (t, thread) in self.threads.iter().enumerate() {
            let inside = region(thread)?;
            let all = thread.steps.iter().enumerate();
            let mut own = all.filter(|(_, s)| inside[s.source.index()] || inside[s.target.index()]);
            if own.any(|(_, s)| seen.changes(ThreadId::new(t), s)) {
                return None;
            }
            let block = &mut blocks.threads[t];
            for step in &mut block.steps {
                match step.action {
                    Action::Lock => step.action = Action::AtomicBegin(Section::Drained),
                    Action::Unlock => step.action = Action::AtomicEnd,
                    Action::Skip
                    | Action::Assign { .. }
                    | Action::Havoc { .. }
                    | Action::Assume(_)
                    | Action::Assert { .. }
                    | Action::Load { .. }
                    | Action::Store { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd => {}
                }
            }
            for (l, inside) in inside.iter().enumerate() {
                block.atomic[l] |= inside;
                block.direct[l] |= inside;
            }
        }
        Some(blocks)
    }
}

/// The locations of a thread where it holds the lock, if nothing waits there and the region is entered and
/// left by the lock only.
fn region(thread: &Thread) -> Option<Vec<bool>> {
    let inside = thread.inside_regions();
    for step in &thread.steps {
        let (from, to) = (inside[step.source.index()], inside[step.target.index()]);
        let fits = match &step.action {
            Action::Lock => !from && to,
            Action::Unlock => from && !to,
            Action::AtomicBegin(_) | Action::AtomicEnd => !from && !to,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_) => from == to,
        };
        if !fits {
            return None;
        }
    }
    let stuck = |l: usize| inside[l] && may_block(thread, &thread.outgoing[l]);
    let begins = inside[thread.entry.index()];
    (!begins && !(0..inside.len()).any(stuck)).then_some(inside)
}

/// Whether all steps of a location may be shut: they are assumptions, and not two that exclude each
/// other.
fn may_block(thread: &Thread, out: &[StepId]) -> bool {
    let mut conditions: Vec<&Expr<RegisterId>> = Vec::new();
    for s in out {
        match &thread.step(*s).action {
            Action::Assume(e) => conditions.push(e),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => return false,
        }
    }
    let opposite = |a: &Expr<RegisterId>| {
        let not = a.clone().negate();
        conditions.iter().any(|b| **b == not)
    };
    !conditions.iter().any(|a| opposite(a))
}

/// What a question sees.
#[derive(Default)]
struct Seen {
    cells: Vec<std::ops::Range<usize>>,
    registers: Vec<(ThreadId, RegisterId)>,
    places: Vec<(ThreadId, Vec<LocationId>)>,
}

impl Seen {
    fn add(&mut self, e: &Expr<Fact>) {
        e.for_each_atom(&mut |fact| match fact {
            Fact::Cell(c) | Fact::Seen(_, c) => self.cells.push(c.index()..c.index() + 1),
            Fact::CellAt {
                base,
                length,
                index,
            } => {
                self.cells
                    .push(base.index()..base.index() + *length as usize);
                self.add(index);
            }
            Fact::Register(t, r) => self.registers.push((*t, *r)),
            Fact::At(t, at) => self.places.push((*t, at.clone())),
        });
    }

    fn changes(&self, t: ThreadId, step: &super::Step) -> bool {
        let crosses = |(u, at): &(ThreadId, Vec<LocationId>)| {
            *u == t && at.contains(&step.source) != at.contains(&step.target)
        };
        let changes = match &step.action {
            Action::Assign { register, .. }
            | Action::Havoc { register, .. }
            | Action::Load { register, .. } => self.registers.contains(&(t, *register)),
            Action::Store { place, .. } => {
                let cells = place.extent();
                let meets = |c: &std::ops::Range<usize>| c.start < cells.end && cells.start < c.end;
                self.cells.iter().any(meets)
            }
            Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => false,
        };
        changes || self.places.iter().any(crosses)
    }
}

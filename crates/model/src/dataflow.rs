//! What an action reads and writes, and which registers matter where.

use crate::expr::Expr;
use crate::graph::Action;
use crate::ids::RegisterId;
use crate::instance::{Address, Thread};

impl<A, P> Action<A, P> {
    /// The register whose value is replaced.
    pub fn written(&self) -> Option<RegisterId> {
        match self {
            Action::Assign { register, .. }
            | Action::Havoc { register, .. }
            | Action::Load { register, .. } => Some(*register),
            Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => None,
        }
    }

    /// The memory operand, of a load or a store.
    pub fn place(&self) -> Option<&P> {
        match self {
            Action::Load { place, .. } | Action::Store { place, .. } => Some(place),
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => None,
        }
    }

    pub fn loaded(&self) -> Option<&P> {
        self.place().filter(|_| self.written().is_some())
    }

    pub fn stored(&self) -> Option<&P> {
        self.place().filter(|_| self.written().is_none())
    }

    /// The expression that is evaluated, besides one in the memory operand.
    pub fn evaluated(&self) -> Option<&Expr<A>> {
        match self {
            Action::Assign { value, .. } | Action::Store { value, .. } => Some(value),
            Action::Assume(e) | Action::Assert { condition: e, .. } => Some(e),
            Action::Skip
            | Action::Havoc { .. }
            | Action::Load { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => None,
        }
    }
}

impl Address {
    /// The cells it may be.
    pub fn extent(&self) -> std::ops::Range<usize> {
        match self {
            Address::Cell(c) => c.index()..c.index() + 1,
            Address::Computed { base, length, .. } => base.index()..base.index() + *length as usize,
        }
    }
}

impl Action<RegisterId, Address> {
    /// The registers that are read, each as often as it occurs.
    pub fn for_each_read(&self, visit: &mut dyn FnMut(RegisterId)) {
        let index = match self.place() {
            Some(Address::Computed { index, .. }) => Some(index),
            Some(Address::Cell(_)) | None => None,
        };
        for e in self.evaluated().into_iter().chain(index) {
            e.for_each_atom(&mut |r| visit(*r));
        }
    }
}

impl Thread {
    /// Per location, per register: whether its value may still be read, by a later step or by whoever
    /// looks at it there (`observed`). The classic backward analysis: a register that no path reads
    /// before writing it is dead, and states that differ only in dead registers are one state.
    pub fn live(&self, observed: Vec<Vec<bool>>) -> Vec<Vec<bool>> {
        let mut live = observed;
        let mut incoming = vec![Vec::new(); self.locations.len()];
        for step in &self.steps {
            incoming[step.target.index()].push(step);
        }
        // Every step contributes what it reads even if what follows it never changes.
        let mut waiting = vec![true; self.locations.len()];
        let mut work: Vec<usize> = (0..self.locations.len()).collect();
        while let Some(l) = work.pop() {
            waiting[l] = false;
            let after = live[l].clone();
            for step in &incoming[l] {
                let mut before = after.clone();
                if let Some(r) = step.action.written() {
                    before[r.index()] = false;
                }
                step.action.for_each_read(&mut |r| before[r.index()] = true);
                let source = step.source.index();
                let mut changed = false;
                for (known, new) in live[source].iter_mut().zip(before) {
                    changed |= new && !*known;
                    *known |= new;
                }
                if changed && !waiting[source] {
                    waiting[source] = true;
                    work.push(source);
                }
            }
        }
        live
    }
}

//! Which register and which memory an action touches.

use crate::graph::Action;
use crate::ids::RegisterId;

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
}

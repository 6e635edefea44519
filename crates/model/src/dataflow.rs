//! What an action reads.

use crate::expr::Expr;
use crate::graph::Action;
use crate::ids::RegisterId;
use crate::instance::Address;

impl<A, P> Action<A, P> {
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

//! Threads as control-flow graphs. The same shapes serve the program as written (leaves speak of
//! `self`, families and regions) and its instances (leaves are registers, places are cells).

use crate::expr::Expr;
use crate::ids::{LocationId, RegisterId};
use crate::span::Span;
use crate::ty::Type;
use serde::Serialize;

/// A node of a thread's graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Location {
    /// Names the user gave it; a location may carry several.
    pub labels: Vec<String>,
    /// The statement that starts here; a fence put before this text runs at this location.
    #[serde(skip)]
    pub span: Span,
}

/// An edge of a thread's graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step<A, P> {
    pub source: LocationId,
    pub target: LocationId,
    pub action: Action<A, P>,
    #[serde(skip)]
    pub span: Span,
}

/// What a step does. `A` is what register expressions speak of, `P` names memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Action<A, P> {
    Skip,
    Assign {
        register: RegisterId,
        value: Expr<A>,
    },
    /// Any value of the range (inclusive), or of the register's type.
    Havoc {
        register: RegisterId,
        range: Option<(i64, i64)>,
    },
    /// Enabled only if the condition is true.
    Assume(Expr<A>),
    /// A false condition is a violation.
    Assert {
        condition: Expr<A>,
        message: Option<String>,
    },
    Load {
        register: RegisterId,
        place: P,
    },
    /// A buffered store; inside a drained atomic block it writes memory directly.
    Store {
        place: P,
        value: Expr<A>,
    },
    Fence(Fence),
    /// Until the matching end no other thread has an event.
    AtomicBegin(Section),
    AtomicEnd,
    /// Needs an empty buffer and nobody holding the lock; until `Unlock` no other thread loads and no
    /// other thread's store reaches memory. The others may compute on registers and put stores into
    /// their buffers.
    Lock,
    /// Needs an empty buffer; enabled only for the holder.
    Unlock,
}

impl<A, P> Action<A, P> {
    /// The register that gets any value of a range, or of its type.
    pub fn chosen(&self) -> Option<(RegisterId, Option<(i64, i64)>)> {
        match self {
            Action::Havoc { register, range } => Some((*register, *range)),
            Action::Skip
            | Action::Assign { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => None,
        }
    }

    /// The atomic block after it, if there was this one before.
    pub fn section_after(&self, before: Option<Section>) -> Option<Section> {
        match self {
            Action::AtomicBegin(section) => Some(*section),
            Action::AtomicEnd => None,
            Action::Skip
            | Action::Assign { .. }
            | Action::Havoc { .. }
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Store { .. }
            | Action::Fence(_)
            | Action::Lock
            | Action::Unlock => before,
        }
    }
}

/// What an atomic block does with the thread's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Section {
    /// It begins with an empty buffer and its stores write memory at once (x86's `lock` prefix).
    Drained,
    /// It waits for no buffer, and stores inside are buffered like any other (dan-2013, Semantics 1
    /// and 2). The thread's own entries may drain inside.
    Buffered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Fence {
    /// Waits until the thread's buffers are empty.
    Full,
    /// Orders earlier stores before later ones; nothing to do under SC and TSO.
    Store,
}

/// A thread's local variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Register<I> {
    pub name: String,
    pub ty: Type,
    pub init: I,
    #[serde(skip)]
    pub span: Span,
}

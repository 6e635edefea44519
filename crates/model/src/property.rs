//! What must never, always or finally hold.

mod sees;

use crate::expr::Expr;
use crate::ids::{FamilyId, IndexId, RegionId, RegisterId};
use crate::span::Span;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    pub kind: PropertyKind,
    pub condition: Condition,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum PropertyKind {
    /// No reachable state satisfies the condition for any choice of its index variables.
    Never,
    /// Every reachable state satisfies it for all choices.
    Always,
    /// Every final state (all threads ended, buffers empty) satisfies it for all choices.
    Finally,
    /// Some final state satisfies it for some choice.
    Reachable,
}

impl PropertyKind {
    pub fn keyword(self) -> &'static str {
        match self {
            PropertyKind::Never => "never",
            PropertyKind::Always => "always",
            PropertyKind::Finally => "finally",
            PropertyKind::Reachable => "reachable",
        }
    }
}

/// An expression over observations, with the index variables it quantifies: variables of one family
/// stand for *different* threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub indices: Vec<IndexVariable>,
    pub expr: Expr<Observation>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexVariable {
    pub name: String,
    pub family: FamilyId,
}

/// What a condition can see of a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Observation {
    /// The value in memory (not in a buffer) of a region's element; scalars have index 0.
    Cell(RegionId, Box<Expr<Observation>>),
    /// The value that the thread would load from a region's element: its newest pending store there, else memory.
    Seen(ThreadRef, RegionId, Box<Expr<Observation>>),
    /// The value in memory at a flat address.
    Memory(Box<Expr<Observation>>),
    /// The flat address of a region's first element.
    AddressOf(RegionId),
    Register(ThreadRef, RegisterId),
    /// The thread is at a location with this label.
    At(ThreadRef, String),
    /// The index the variable stands for.
    Index(IndexId),
    /// How many threads the family has.
    Count(FamilyId),
}

/// One thread of a family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadRef {
    pub family: FamilyId,
    pub index: ThreadIndex,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadIndex {
    Number(u32),
    Variable(IndexId),
}

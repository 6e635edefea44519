//! A program as its author wrote it: families of threads, named memory, properties.

mod named;

use crate::expr::Expr;
use crate::graph;
use crate::ids::{FamilyId, LocationId, RegionId, RegisterId};
use crate::property::{Condition, Property};
use crate::span::Span;
use crate::temporal::Temporal;
use crate::ty::Type;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub regions: Vec<Region>,
    pub families: Vec<Family>,
    pub properties: Vec<Property>,
    /// Demands on whole runs, beside the properties, which are about single states.
    pub temporal: Vec<Temporal>,
    /// Hints for predicate abstraction; no engine needs them for soundness.
    pub predicates: Vec<Condition>,
}

/// A named piece of shared memory. Regions lie one after the other in the flat address space, in
/// declaration order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub name: String,
    pub length: Length,
    pub ty: Type,
    pub init: Init,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Scalar,
    Array(u32),
    /// One element per thread of the family.
    PerThread(FamilyId),
}

/// Initial values. Expressions may use `self` (in a register: the thread's index; in an array: the
/// element's index), counts and addresses, but no registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    All(Expr<Local>),
    Each(Vec<Expr<Local>>),
    /// Any value of the type.
    Any,
}

impl Default for Init {
    fn default() -> Self {
        Init::All(Expr::Const(0))
    }
}

/// Threads that run the same graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Family {
    pub name: String,
    pub count: Count,
    pub registers: Vec<Register>,
    pub locations: Vec<graph::Location>,
    pub steps: Vec<Step>,
    pub entry: LocationId,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// `thread p { … }`: one thread, referred to without an index.
    One,
    /// `thread p[3] { … }`
    Fixed(u32),
    /// `thread p[*] { … }`
    Any,
}

/// What a register expression speaks of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Local {
    Register(RegisterId),
    /// The thread's index in its family.
    SelfIndex,
    /// How many threads the family has.
    Count(FamilyId),
    /// The flat address of a region's first element.
    AddressOf(RegionId),
}

/// A memory operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An element of a region; an index outside is a fault. Scalars have index 0.
    Region(RegionId, Expr<Local>),
    /// A flat address.
    Memory(Expr<Local>),
}

pub type Register = graph::Register<Init>;
pub type Step = graph::Step<Local, Place>;
pub type Action = graph::Action<Local, Place>;

impl Program {
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    pub fn family(&self, id: FamilyId) -> &Family {
        &self.families[id.index()]
    }
}

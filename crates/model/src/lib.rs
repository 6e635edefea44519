//! What a program is.
//!
//! A [`Program`] is what an author wrote: families of threads, each a control-flow graph, over named
//! shared memory, with properties. An [`Instance`] is a program with the number of threads fixed
//! and every name resolved to a number: the form that machines and engines read. Nothing here knows
//! a surface language, a memory model or an engine.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

mod accesses;
pub mod array;
pub mod canonical;
mod casts;
pub mod counted;
mod crowd;
mod dataflow;
pub mod domain;
pub mod expr;
pub mod graph;
pub mod ids;
pub mod instance;
mod liveness;
pub mod print;
pub mod program;
pub mod property;
mod renumbered;
pub mod span;
pub mod temporal;
pub mod ty;
mod unwrapped;
pub mod validate;
pub mod waiting;

pub use counted::CountedCrowd;
pub use crowd::{Crowd, NotAlike, Roles};
pub use domain::{Domain, NoValue, Numbers, Valued};
pub use expr::{ArithmeticError, Expr, Op1, Op2};
pub use graph::{Fence, Location, Section};
pub use ids::{CellId, FamilyId, IndexId, LocationId, RegionId, RegisterId, StepId, ThreadId};
pub use instance::{Counts, Instance, InstanceError};
pub use program::{Count, Family, Init, Length, Local, Place, Program, Region};
pub use property::{
    Condition, IndexVariable, Observation, Property, PropertyKind, ThreadIndex, ThreadRef,
};
pub use span::Span;
pub use temporal::{Formula, Temporal, TemporalKind};
pub use ty::Type;
pub use validate::{Invalid, validate};

//! A program with the number of threads fixed and every name resolved: flat cells, one graph per
//! thread, properties over concrete threads. Machines and engines for a fixed number of threads
//! read only this.
//!
//! Location and step numbers are those of the thread's family, so evidence about an instance can be
//! shown in the program's own words.

mod build;
mod demands;
mod error;
mod locks;
mod parts;
mod sections;

pub use build::balanced;
pub use error::InstanceError;

use crate::expr::Expr;
use crate::graph::{self, Action, Location, Section};
use crate::ids::{CellId, FamilyId, LocationId, RegionId, RegisterId, StepId, ThreadId};
use crate::property::PropertyKind;
use crate::span::Span;
use crate::temporal::Formula;
use crate::ty::Type;
use serde::Serialize;
use std::collections::BTreeMap;

/// Past these sizes an instance is refused rather than built.
pub const MAX_CELLS: u64 = 1 << 20;
pub const MAX_THREADS: u64 = 1 << 14;
pub const MAX_STEPS: u64 = 1 << 22;
pub const MAX_CONDITION: u64 = 1 << 18;

/// Thread counts that override the program's own, by family name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(pub BTreeMap<String, u32>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    pub cells: Vec<Cell>,
    pub threads: Vec<Thread>,
    pub questions: Vec<Question>,
    /// What runs must do in the long run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub demands: Vec<Demand>,
    /// Hints for predicate abstraction.
    pub predicates: Vec<Expr<Fact>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// `x` or `x[3]`.
    pub name: String,
    pub region: RegionId,
    pub element: u32,
    /// Never [`Type::Thread`].
    pub ty: Type,
    pub init: Initial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Initial {
    Value(i64),
    /// Any value of the type.
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// `p` for a single thread, `p0`, `p1`, … in a family.
    pub name: String,
    pub family: FamilyId,
    pub index: u32,
    pub registers: Vec<Register>,
    pub locations: Vec<Location>,
    pub steps: Vec<Step>,
    pub entry: LocationId,
    /// Steps leaving each location, in order.
    #[serde(skip)]
    pub outgoing: Vec<Vec<StepId>>,
    /// Locations inside an atomic block (after its begin, before its end).
    #[serde(skip)]
    pub atomic: Vec<bool>,
    /// Those inside a drained one: stores write memory at once.
    pub direct: Vec<bool>,
}

pub type Register = graph::Register<Initial>;
pub type Step = graph::Step<RegisterId, Address>;

/// A memory operand with names resolved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Address {
    Cell(CellId),
    /// Cell `base + index`; an index outside `0..length` is a fault.
    Computed {
        base: CellId,
        length: u32,
        index: Expr<RegisterId>,
    },
}

/// A property as a reachability question: can `target` become true (in a final state, if
/// `only_final`)? For [`PropertyKind::Reachable`] reaching it is the good news, else the bad.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    pub kind: PropertyKind,
    pub target: Expr<Fact>,
    pub only_final: bool,
    #[serde(skip)]
    pub span: Span,
}

/// A demand on runs with every name resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Demand {
    pub kind: DemandKind,
    #[serde(skip)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum DemandKind {
    /// Every run satisfies it.
    Formula(Formula<Expr<Fact>>),
    /// No thread stays in one of its traps for ever ([`crate::waiting`]).
    Progress,
}

/// What a question can see of a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Fact {
    /// The value in memory.
    Cell(CellId),
    /// The value in memory at `base + index`; outside `0..length` the question has no answer in
    /// that state and the machine reports a fault.
    CellAt {
        base: CellId,
        length: u32,
        index: Box<Expr<Fact>>,
    },
    /// The value that the thread would load from the cell: its newest pending store there, else memory.
    Seen(ThreadId, CellId),
    Register(ThreadId, RegisterId),
    /// The thread is at one of these locations (sorted).
    At(ThreadId, Vec<LocationId>),
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

impl Thread {
    /// A step that begins a buffered atomic block, which not every engine treats.
    pub fn buffered_section(&self) -> Option<&Step> {
        let begins = |s: &&Step| s.action == Action::AtomicBegin(Section::Buffered);
        self.steps.iter().find(begins)
    }

    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.index()]
    }

    pub fn outgoing(&self, at: LocationId) -> &[StepId] {
        &self.outgoing[at.index()]
    }

    /// A thread has ended where no step leaves.
    pub fn ended(&self, at: LocationId) -> bool {
        self.outgoing[at.index()].is_empty()
    }
}

impl Question {
    /// Whether a fault anywhere answers the question. Not if a final state is looked for: runs with a
    /// fault have none, and what other runs do does not matter to one that gets there.
    pub fn minds_faults(&self) -> bool {
        self.kind != PropertyKind::Reachable
    }
}

impl Expr<Fact> {
    /// Whether it depends on pending stores ([`Fact::Seen`]). Few engines look there.
    pub fn sees_buffers(&self) -> bool {
        let mut sees = false;
        self.for_each_atom(&mut |fact| {
            sees |= match fact {
                Fact::Seen(..) => true,
                Fact::CellAt { index, .. } => index.sees_buffers(),
                Fact::Cell(_) | Fact::Register(..) | Fact::At(..) => false,
            }
        });
        sees
    }
}

impl Instance {
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.index()]
    }

    pub fn cell(&self, id: CellId) -> &Cell {
        &self.cells[id.index()]
    }

    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.threads.len()).map(ThreadId::new)
    }

    /// Whether every cell and register has finitely many values by its type.
    pub fn is_finite(&self) -> bool {
        let cells = self.cells.iter().map(|c| c.ty);
        let registers = self
            .threads
            .iter()
            .flat_map(|t| t.registers.iter().map(|r| r.ty));
        cells.chain(registers).all(|ty| ty.bounds().is_some())
    }
}

//! Array-based systems: transition systems over scalars and arrays indexed by threads, for any
//! number of threads (the Cubicle-W form).
//!
//! Meaning of the parts, for a number N of threads named 1..N:
//!
//! - A cell that is not weak is written and read at once. A weak cell is shared memory under the
//!   memory model: the acting thread writes it through its buffer and reads its newest own buffered
//!   value, else memory. All weak reads of one transition happen at one moment; its weak writes form
//!   one buffer entry and reach memory together. A transition that both reads and writes weak cells
//!   is atomic: it needs an empty buffer and writes memory directly.
//! - `init` holds for every choice of threads for its parameters, equal ones included. What it does
//!   not determine may start with any value of its type.
//! - A bad condition (`unsafe`) holds if *different* threads satisfy it. `p @ X` in it is p's view in
//!   that very state; a weak cell without a reader is its value in memory.
//! - The parameters of a transition are different threads; `forall_other` and `exists_other` range over all
//!   threads that are not parameters, those that are bound already too.
//! - `assumed` conditions (`invariant` in the surface language) are claimed never to hold. One that
//!   speaks only of what never changes (constants, and cells that no transition writes and of which `init` says
//!   nothing) is an axiom about the system; any other must be proved like `unsafe`.
//! - A cell of thread type holds one of 1..N, or 0, nobody: only if `init` excludes all. So it is ordered.

mod display;
mod making;
mod order;
mod visit;

use crate::span::Span;
use serde::{Deserialize, Serialize};

/// Number of a declared type.
pub type TypeIndex = u16;
/// Number of a declared cell (scalar or array).
pub type ArrayIndex = u16;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArraySystem {
    pub types: Vec<TypeDecl>,
    pub cells: Vec<CellDecl>,
    /// A fixed number of threads (`number_procs`), or any number.
    pub threads: Option<u32>,
    pub init: Quantified,
    pub assumed: Vec<Quantified>,
    pub bad: Vec<Quantified>,
    pub transitions: Vec<Transition>,
}

/// `type t = A | B`; without constructors an abstract type whose values can only be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeDecl {
    pub name: String,
    pub constructors: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CellType {
    Bool,
    Int,
    Real,
    /// A thread.
    Thread,
    Declared(TypeIndex),
}

/// A scalar (`arity` 0) or an array indexed by up to three threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellDecl {
    pub name: String,
    pub arity: u8,
    pub ty: CellType,
    pub weak: bool,
    /// Never written.
    pub constant: bool,
    #[serde(skip)]
    pub span: Span,
}

/// A formula under thread parameters: for all (init) or for some different ones (bad, assumed).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantified {
    pub params: Vec<String>,
    pub body: Formula,
    #[serde(skip)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    pub name: String,
    pub params: Vec<String>,
    /// The parameter that acts, if there is one.
    pub actor: Option<u8>,
    pub fence: Option<FenceKind>,
    pub guard: Formula,
    pub updates: Vec<Update>,
    #[serde(skip)]
    pub span: Span,
}

/// A fence in a guard: the buffer is empty, or (`Store`) earlier stores stay before later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FenceKind {
    Full,
    Store,
}

/// A thread in scope: parameters first, then `forall_other` or case variables, innermost last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ThreadTerm {
    Param(u8),
    /// `#1`, `#2`, …
    Constant(u16),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Formula {
    And(Vec<Formula>),
    Or(Vec<Formula>),
    Atom(Literal),
    /// All threads that are no parameters, or some. The body sees one more. Only in guards and branches.
    Others {
        all: bool,
        variable: String,
        body: Box<Formula>,
    },
}

impl Formula {
    pub const TRUE: Formula = Formula::And(Vec::new());

    pub fn is_true(&self) -> bool {
        matches!(self, Formula::And(fs) if fs.iter().all(Formula::is_true))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Literal {
    pub left: Term,
    pub op: Comparison,
    pub right: Term,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Term {
    Bool(bool),
    /// A constructor of a declared type, by its number.
    Constructor(TypeIndex, u16),
    Thread(ThreadTerm),
    /// A cell of any type but a number.
    Read(Access),
    /// A number: Σ coefficient · cell + constant.
    Sum {
        parts: Vec<(i64, Access)>,
        constant: i64,
    },
}

/// One cell named by threads. The reader of a weak cell is the acting thread unless stated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Access {
    pub cell: ArrayIndex,
    pub args: Vec<ThreadTerm>,
    pub reader: Option<ThreadTerm>,
}

/// `A[i,j] := …`: the first branch whose condition holds gives the value; if none does, the cell
/// keeps its value. A plain assignment is one branch without condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    pub cell: ArrayIndex,
    pub index: Vec<UpdateIndex>,
    pub branches: Vec<Branch>,
    #[serde(skip)]
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdateIndex {
    /// Every thread; conditions and values see it as one more thread variable.
    Each(String),
    At(ThreadTerm),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Branch {
    pub condition: Formula,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    Term(Term),
    /// Any value of the cell's type.
    Any,
}

impl ArraySystem {
    pub fn cell(&self, index: ArrayIndex) -> &CellDecl {
        &self.cells[usize::from(index)]
    }

    /// How many values the type has, if finitely many and they are not threads.
    pub fn values(&self, ty: CellType) -> Option<u32> {
        match ty {
            CellType::Bool => Some(2),
            CellType::Declared(t) => {
                let n = self.types[usize::from(t)].constructors.len();
                (n > 0).then_some(u32::try_from(n).unwrap_or(u32::MAX))
            }
            CellType::Int | CellType::Real | CellType::Thread => None,
        }
    }

    /// Whether some cell is weak: only then do memory models differ.
    pub fn has_weak_cells(&self) -> bool {
        self.cells.iter().any(|c| c.weak)
    }

    /// Whether the transition reads a weak cell (guard, case conditions or values).
    pub fn reads_weak(&self, t: &Transition) -> bool {
        let mut found = false;
        t.for_each_access(&mut |a| found |= self.cell(a.cell).weak);
        found
    }

    pub fn writes_weak(&self, t: &Transition) -> bool {
        t.updates.iter().any(|u| self.cell(u.cell).weak)
    }

    /// A transition that reads and writes weak cells is atomic, like a locked x86 instruction.
    pub fn is_atomic(&self, t: &Transition) -> bool {
        self.reads_weak(t) && self.writes_weak(t)
    }

    /// Whether the formula speaks of cells only that never change.
    pub fn only_constants(&self, f: &Formula) -> bool {
        let mut all = true;
        f.for_each_access(&mut |a| all &= self.never_changes(a.cell));
        all
    }

    /// A constant, or a cell that no transition writes and of which `init` says nothing: what is claimed of it
    /// can only be meant as what it begins with.
    fn never_changes(&self, cell: ArrayIndex) -> bool {
        let mut updates = self.transitions.iter().flat_map(|t| &t.updates);
        let mut told = false;
        self.init
            .body
            .for_each_access(&mut |a| told |= a.cell == cell);
        self.cell(cell).constant || !told && updates.all(|u| u.cell != cell)
    }
}

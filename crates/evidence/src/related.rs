//! How an array-based system is related to the program it was made from, in the words of whoever made
//! it. A hint for the auditor, which checks it.

mod met;

pub use met::{Excludes, Met, Stored};

use wattle_model::FamilyId;
use wattle_model::array::ArraySystem;

/// What a constructor of the system stands for: a number, or an amount of threads: more than none and
/// fewer than all, all of them, or what has lost count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constant {
    Number(i64),
    LessThanNone,
    SomeThreads,
    AllThreads,
    MoreThanAll,
}

impl Constant {
    pub fn number(self) -> Option<i64> {
        match self {
            Constant::Number(n) => Some(n),
            Constant::LessThanNone
            | Constant::SomeThreads
            | Constant::AllThreads
            | Constant::MoreThanAll => None,
        }
    }
}

/// The least and the greatest value, as far as there are such.
pub type Bounds = (Option<i64>, Option<i64>);

/// How cells of the system hold a variable of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// One of these, as a constructor of [`Relation::constants`].
    Few { cell: u16, values: Vec<Constant> },
    /// A number, within these bounds as far as there are any.
    Number { cell: u16, bounds: Bounds },
    /// A thread of the family, unless the flag says that there is none (−1).
    Thread {
        cell: u16,
        none: u16,
        family: FamilyId,
    },
    /// As many threads as elements are true.
    Counter { cell: u16 },
}

impl Held {
    pub fn cells(&self) -> Vec<u16> {
        match self {
            Held::Few { cell, .. } | Held::Number { cell, .. } | Held::Counter { cell } => {
                vec![*cell]
            }
            Held::Thread { cell, none, .. } => vec![*cell, *none],
        }
    }
}

/// An array-based system made of a program, and what it has to do with it.
#[derive(Clone, Debug)]
pub struct Translated {
    pub system: ArraySystem,
    pub relation: Relation,
}

/// What the cells of a system mean in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relation {
    /// For each family, the cell of its threads' locations; constructors are locations.
    pub locations: Vec<u16>,
    /// The cell that says which family a thread is of; constructors are families.
    pub family: Option<u16>,
    /// The flag of threads that had a fault.
    pub broken: Option<u16>,
    /// The type of constants, and what each constructor is.
    pub constants: (u16, Vec<Constant>),
    /// For each family its registers, in cells indexed by threads.
    pub registers: Vec<Vec<Held>>,
    /// For each family and location, between which bounds its registers are while a thread is there.
    pub within: Vec<Vec<Vec<Bounds>>>,
    /// For each region its elements; one for all of them where threads index it.
    pub regions: Vec<Vec<Held>>,
}

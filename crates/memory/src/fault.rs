//! What can go wrong while a step runs.

mod shown;

use serde::{Deserialize, Serialize};
use wattle_model::{ArithmeticError, StepId, ThreadId};

/// A step that could not be completed, and why. The state before it is the last one of its run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fault {
    pub thread: ThreadId,
    pub step: StepId,
    pub kind: FaultKind,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind<V = i64> {
    /// An `assert` whose condition is false.
    Assertion {
        message: Option<String>,
    },
    /// An index outside its array, or an address outside memory.
    IndexOutOfRange {
        index: V,
        length: u32,
    },
    /// A value outside the declared range of the register or cell it is put into.
    ValueOutOfRange {
        value: V,
        lo: i64,
        hi: i64,
    },
    DivisionByZero,
    /// Shift by a negative amount or by 64 or more.
    ShiftOutOfRange,
    /// The machine's 64 bits were too few for a mathematical integer. The program is not to blame:
    /// an engine that meets this has no verdict.
    MachineOverflow,
}

impl<V> From<ArithmeticError> for FaultKind<V> {
    fn from(e: ArithmeticError) -> Self {
        match e {
            ArithmeticError::DivisionByZero => FaultKind::DivisionByZero,
            ArithmeticError::Overflow => FaultKind::MachineOverflow,
            ArithmeticError::ShiftOutOfRange => FaultKind::ShiftOutOfRange,
        }
    }
}

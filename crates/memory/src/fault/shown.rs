//! Faults in words.

use super::FaultKind;

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FaultKind::Assertion { message: Some(m) } => write!(f, "assertion failed: {m}"),
            FaultKind::Assertion { message: None } => write!(f, "assertion failed"),
            FaultKind::IndexOutOfRange { index, length } => {
                write!(f, "index {index} outside an array of {length}")
            }
            FaultKind::ValueOutOfRange { value, lo, hi } => {
                write!(f, "value {value} outside its range {lo}..{hi}")
            }
            FaultKind::DivisionByZero => write!(f, "division by zero"),
            FaultKind::ShiftOutOfRange => {
                write!(f, "shift by a negative amount or by 64 or more")
            }
            FaultKind::MachineOverflow => write!(f, "arithmetic overflow of the 64-bit machine"),
        }
    }
}

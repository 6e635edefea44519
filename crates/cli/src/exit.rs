//! Exit codes, in one place.

use std::process::ExitCode;
use wattle::{Finding, Unsound, Verdict};

/// From best to worst: with several results the greatest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// 0: it holds.
    Holds,
    /// 3: proved only under an assumption, bounded, out of budget, or no engine.
    Undecided,
    /// 1: it does not hold.
    Violated,
    /// 2: the command line or an input is wrong.
    Input,
    /// 4: our own evidence did not check.
    Unsound,
}

impl Exit {
    pub fn code(self) -> i32 {
        match self {
            Exit::Holds => 0,
            Exit::Violated => 1,
            Exit::Input => 2,
            Exit::Undecided => 3,
            Exit::Unsound => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        // All of them are small.
        ExitCode::from(exit.code() as u8)
    }
}

impl From<&Result<Finding, Unsound>> for Exit {
    fn from(result: &Result<Finding, Unsound>) -> Exit {
        match result {
            Err(_) => Exit::Unsound,
            Ok(finding) => match finding.judged.verdict {
                Verdict::Holds { .. } => Exit::Holds,
                Verdict::Violated { .. } => Exit::Violated,
                Verdict::HoldsIf { .. } | Verdict::Bounded { .. } | Verdict::Undecided { .. } => {
                    Exit::Undecided
                }
            },
        }
    }
}

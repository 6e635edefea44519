//! Verdicts in words.

use super::{Assumption, Scope, Unchecked, Unsound};
use std::fmt;

impl Scope {
    /// What was not shown, and how to take it for granted, as one sentence.
    pub fn condition(&self) -> String {
        let unshown = self.assumptions.iter().map(|a| match a {
            Assumption::NoWrap { variables } => {
                let named: Vec<String> = variables.iter().map(|v| format!("`{v}`")).collect();
                format!(
                    "that {a} ({}) was not shown; `--assume no-wrap` takes it for granted",
                    named.join(", ")
                )
            }
            Assumption::AtMost { .. } => {
                "with more, numbers that wrap around may be taken for one another".into()
            }
            Assumption::Invariants => format!("that {a} was not shown"),
        });
        unshown.collect::<Vec<_>>().join("; ")
    }
}

/// As it stands after *if*: `no number wraps around`.
impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Assumption::NoWrap { .. } => f.write_str("no number wraps around"),
            Assumption::AtMost { threads } => write!(f, "there are at most {threads} threads"),
            Assumption::Invariants => {
                f.write_str("the file's invariants about what never changes hold")
            }
        }
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the evidence of engine `{}` did not check: {}\n\
             This is a bug in Wattle; nothing is claimed about the program. Please report it with \
             the input file and the command.",
            self.engine, self.what
        )
    }
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unchecked::Off => f.write_str("switched off"),
            Unchecked::Unable(why) => f.write_str(why),
            Unchecked::Translation(why) => write!(f, "the translation is not validated: {why}"),
            Unchecked::Stopped(stop) => write!(f, "{stop}"),
        }
    }
}

/// How far small instances were run before a proof about any number of threads was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SmallWorlds {
    /// The most threads run in an open family.
    pub threads: u32,
    /// States seen, of all instances together.
    pub states: u64,
    /// Whether every state of every instance with up to so many threads was seen.
    pub complete: bool,
    /// Why nothing could be run.
    pub not_run: Option<String>,
}

//! What a program says of compiled code; whoever reads the code fills the holes.

use wattle_model::program::Action;
use wattle_model::{Expr, Local, RegionId, RegisterId, Span};

/// What a program says of compiled code. Its calls are holes in the graphs: see [`as_hole`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Files, as they are named in the text.
    pub objects: Vec<(String, Span)>,
    /// Regions that are memory of the code.
    pub memory: Vec<Memory>,
    pub calls: Vec<Call>,
    /// Functions the files lack that do nothing to memory; true if any number comes back.
    pub skipped: Vec<(String, bool)>,
}

/// `shared l: object(8);`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// A place holder: its type is settled when the code is known, its initial values are bytes.
    pub region: RegionId,
    pub size: Size,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    Bytes(u64),
    /// Of a structure with this name.
    Struct(String),
}

/// `r = call f(&l, &n[self], 3);`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub function: String,
    pub function_span: Span,
    pub arguments: Vec<Expr<Local>>,
    pub result: Option<RegisterId>,
    pub span: Span,
}

const HOLE: &str = "\u{0}call ";

/// A step that stands for a call.
pub(super) fn hole(number: usize) -> Action {
    Action::Assert {
        condition: Expr::TRUE,
        message: Some(format!("{HOLE}{number}")),
    }
}

/// The number of the call a step stands for.
pub fn as_hole(action: &Action) -> Option<usize> {
    match action {
        Action::Assert {
            message: Some(m), ..
        } => m.strip_prefix(HOLE)?.parse().ok(),
        _ => None,
    }
}

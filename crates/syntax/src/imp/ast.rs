//! What an `.imp` file says, before names are resolved.

use crate::infix::Asserted;
use crate::tokens::Named;
use wattle_model::{Expr, PropertyKind, Span};

#[derive(Default)]
pub(super) struct File {
    /// Assignments and conditions are one step each, with all they load.
    pub indivisible: bool,
    pub variables: Vec<(Named, i64)>,
    pub processes: Vec<Process>,
    pub properties: Vec<(PropertyKind, Expr<Leaf>, Span)>,
    /// About whole runs.
    pub demands: Vec<(Asserted<Leaf>, Span)>,
}

pub(super) struct Process {
    pub name: Named,
    pub body: Vec<Labelled>,
}

pub(super) type Labelled = crate::tokens::Labelled<Basic>;

pub(super) enum Basic {
    Skip,
    Fence,
    Assign(Named, Expr<Leaf>),
    If(Expr<Leaf>, Vec<Labelled>, Vec<Labelled>),
    While(Expr<Leaf>, Vec<Labelled>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    Variable(String, Span),
    /// `P@l`, in properties.
    At(String, String, Span),
}

//! What a `.bp` file says, before names are resolved.

use crate::tokens::Named;
use wattle_model::{Expr, Span};

#[derive(Default)]
pub(super) struct File {
    pub shared: Vec<Named>,
    pub local: Vec<Named>,
    pub init: Vec<(Named, Value)>,
    /// What holds at the beginning.
    pub assumed: Vec<(Expr<Leaf>, Span)>,
    pub processes: Vec<Process>,
    pub assertions: Vec<(Expr<Leaf>, Span)>,
}

pub(super) struct Process {
    pub id: i64,
    pub span: Span,
    pub body: Vec<Labelled>,
}

pub(super) type Labelled = crate::tokens::Labelled<Statement>;

pub(super) enum Statement {
    /// `store B = v` and `T = v`: which of the two it is the name says.
    Set(Named, Value),
    Load(Named, Named),
    Goto(Named),
    /// `if (*) goto l`
    Maybe(Named),
    Nop,
    Assume(Expr<Leaf>),
    AtomicBegin,
    AtomicEnd,
    Abort(String),
}

pub(super) enum Value {
    Is(Expr<Leaf>),
    Any,
    Choose(Expr<Leaf>, Expr<Leaf>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    Name(String, Span),
    /// `pc(i) = l`
    At(i64, String, Span),
}

//! What a `.bit` file says, before names are resolved.

use crate::tokens::Named;
use wattle_model::{Expr, Span};

#[derive(Default)]
pub(super) struct File {
    pub init: Vec<Initial>,
    pub processes: Vec<Process>,
    pub assertions: Vec<(Expr<Leaf>, Span)>,
    pub predicates: Vec<(Expr<Leaf>, Span)>,
}

pub(super) struct Initial {
    pub variable: Named,
    pub value: Expr<Leaf>,
    pub span: Span,
}

pub(super) struct Process {
    pub id: i64,
    pub span: Span,
    pub body: Vec<Labelled>,
}

pub(super) type Labelled = crate::tokens::Labelled<Statement>;

pub(super) enum Statement {
    Store(Named, Expr<Leaf>),
    /// `load l = X`
    Load(Named, Named),
    Assign(Named, Expr<Leaf>),
    Goto(Named),
    Flush,
    Fence,
    Abort(String),
    Nop,
    Assume(Expr<Leaf>),
    AtomicBegin,
    AtomicEnd,
    If(Expr<Leaf>, Vec<Labelled>, Vec<Labelled>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    Name(String, Span),
    /// `*`: any truth value.
    Any(Span),
    /// `pc(i)`, or a local variable `x(i)`.
    Of(String, i64, Span),
}

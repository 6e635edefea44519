//! What a `.bit` file says, before names are resolved.

use crate::infix::Asserted;
use crate::tokens::Named;
use wattle_model::{Count, Expr, Span};

#[derive(Default)]
pub(super) struct File {
    pub init: Vec<Initial>,
    pub processes: Vec<Process>,
    pub assertions: Vec<(Asserted<Leaf>, Span)>,
    pub predicates: Vec<Hint>,
}

/// A predicate, with the number of the process in which it stands, if it stands in one.
pub(super) type Hint = (Expr<Leaf>, Option<i64>, Span);

pub(super) struct Initial {
    pub variable: Named,
    pub value: Expr<Leaf>,
    pub span: Span,
}

pub(super) struct Process {
    pub id: i64,
    pub count: Count,
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
    /// `pc(i)`, or a local variable `x(i)`; of one of several instances: `pc(i, k)`.
    Of(String, i64, Option<Instance>, Span),
}

/// Which instance of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Instance {
    Number(u32),
    /// Any; different names are different instances.
    Named(String),
}

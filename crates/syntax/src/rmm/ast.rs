//! What a `.rmm` file says, before names are resolved.

use crate::tokens::Named;
use wattle_model::{Expr, Span};

#[derive(Default)]
pub(super) struct File {
    pub forbidden: Vec<Row>,
    pub predicates: Vec<Expr<Leaf>>,
    pub globals: Vec<Declaration>,
    pub processes: Vec<Process>,
}

/// A forbidden tuple: a label per process, or `*`.
pub(super) struct Row {
    pub labels: Vec<(Option<String>, Span)>,
    pub span: Span,
}

#[derive(Clone)]
pub(super) struct Declaration {
    pub name: String,
    pub span: Span,
    /// `None` is `*`: any value of the domain.
    pub init: Option<i64>,
    pub domain: Domain,
}

/// `None` is all integers.
pub(super) type Domain = Option<(i64, i64)>;

pub(super) struct Process {
    pub span: Span,
    pub count: u32,
    pub data: Vec<Declaration>,
    pub registers: Vec<Declaration>,
    pub body: Vec<Labelled>,
}

pub(super) type Labelled = crate::tokens::Labelled<Statement>;

pub(super) enum Statement {
    Nop,
    /// `read: $r := x`
    Load(Named, Location),
    /// `read: x = e`: waits until the value is there.
    Await(Location, Expr<Leaf>),
    Write(Location, Expr<Leaf>),
    /// `slocked write`: ordered with the stores around it.
    OrderedWrite(Location, Expr<Leaf>),
    Cas(Location, Expr<Leaf>, Expr<Leaf>),
    Fence,
    StoreFence,
    LoadFence,
    Assign(Named, Expr<Leaf>),
    Assume(Expr<Leaf>),
    If(Expr<Leaf>, Box<Labelled>, Option<Box<Labelled>>),
    While(Expr<Leaf>, Box<Labelled>),
    Goto(Named),
    Either(Vec<Vec<Labelled>>),
    Locked(Vec<Vec<Labelled>>),
    Block(Vec<Labelled>),
}

pub(super) enum Location {
    Global(Named),
    Mine(Named),
    /// Of the `k`-th other process.
    Other(Named, u32),
    /// A flat address.
    At(Expr<Leaf>, Span),
}

/// What expressions speak of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    Register(String, Span),
    /// One's own process number.
    Me,
    /// The number of the `k`-th other process.
    Other(u32),
}

//! What a file says, before names and types are known.

use wattle_model::Span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct File {
    pub types: Vec<(Name, Vec<Name>)>,
    pub cells: Vec<Cell>,
    pub threads: Option<(u32, Span)>,
    pub init: Vec<Block>,
    pub invariants: Vec<Block>,
    pub bad: Vec<Block>,
    pub transitions: Vec<Transition>,
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub name: Name,
    pub indices: Vec<Name>,
    pub ty: Name,
    pub weak: bool,
    pub constant: bool,
}

/// `init`, `unsafe` or `invariant` with its parameters.
#[derive(Clone, Debug)]
pub struct Block {
    pub params: Vec<Name>,
    pub body: Expr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Transition {
    pub name: Name,
    pub params: Vec<Name>,
    pub bracketed: Option<usize>,
    pub guard: Option<Expr>,
    pub updates: Vec<Update>,
}

#[derive(Clone, Debug)]
pub struct Update {
    pub writer: Option<Name>,
    pub cell: Name,
    pub index: Vec<Name>,
    pub value: UpdateValue,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum UpdateValue {
    Plain(Right),
    /// Conditions (`None` is `_`) with values.
    Case(Vec<(Option<Expr>, Right)>),
}

#[derive(Clone, Debug)]
pub enum Right {
    Term(Term),
    Any,
}

#[derive(Clone, Debug)]
pub enum Expr {
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Term, Op, Term, Span),
    Forall(Name, Box<Expr>),
    Fence(FenceWord, Option<Name>, Span),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceWord {
    Full,
    Store,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A sum of parts, each with its sign.
#[derive(Clone, Debug)]
pub struct Term {
    pub parts: Vec<(i64, Factor)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Factor {
    Number(i64),
    Real(i64),
    /// A name with its index and reader.
    Named {
        reader: Option<Name>,
        name: Name,
        index: Vec<Name>,
    },
}

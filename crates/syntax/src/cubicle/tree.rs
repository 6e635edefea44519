//! What a file says, before names and types are known.

use wattle_model::Span;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

/// `predicate name (x, y) { … }`: a formula with names to be filled in.
#[derive(Clone, Debug)]
pub struct Predicate {
    pub name: Name,
    pub params: Vec<Name>,
    pub body: Expr,
}

#[derive(Clone, Debug, Default)]
pub struct File {
    pub predicates: Vec<Predicate>,
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
    Truth(bool),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Implies(Box<Expr>, Box<Expr>),
    Equivalent(Box<Expr>, Box<Expr>),
    If(Box<[Expr; 3]>),
    Compare(Term, Op, Term, Span),
    Quantified(Quantifier, Vec<Name>, Box<Expr>),
    Fence(FenceWord, Option<Name>, Span),
    /// A predicate with what is put in for its parameters.
    Call(Name, Vec<Term>),
}

/// The variables of one quantifier are different threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantifier {
    pub all: bool,
    /// Only threads that are not in scope already.
    pub other: bool,
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

impl Op {
    pub fn negated(self) -> Op {
        match self {
            Op::Eq => Op::Ne,
            Op::Ne => Op::Eq,
            Op::Lt => Op::Ge,
            Op::Le => Op::Gt,
            Op::Gt => Op::Le,
            Op::Ge => Op::Lt,
        }
    }

    pub fn orders(self) -> bool {
        !matches!(self, Op::Eq | Op::Ne)
    }
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
    /// A real: numerator and denominator.
    Real(i64, i64),
    /// A name with its index and reader.
    Named {
        reader: Option<Name>,
        name: Name,
        index: Vec<Name>,
    },
}

impl File {
    /// Every factor of every term.
    pub fn for_each_factor(&self, visit: &mut impl FnMut(&Factor)) {
        let blocks = self.init.iter().chain(&self.invariants).chain(&self.bad);
        blocks.for_each(|b| b.body.for_each_factor(visit));
        (self.predicates.iter()).for_each(|p| p.body.for_each_factor(visit));
        for t in &self.transitions {
            (t.guard.iter()).for_each(|g| g.for_each_factor(visit));
            for u in &t.updates {
                match &u.value {
                    UpdateValue::Plain(r) => r.for_each_factor(visit),
                    UpdateValue::Case(list) => {
                        for (condition, r) in list {
                            (condition.iter()).for_each(|c| c.for_each_factor(visit));
                            r.for_each_factor(visit);
                        }
                    }
                }
            }
        }
    }
}

impl Right {
    fn for_each_factor(&self, visit: &mut impl FnMut(&Factor)) {
        match self {
            Right::Term(t) => t.parts.iter().for_each(|(_, f)| visit(f)),
            Right::Any => {}
        }
    }
}

impl Expr {
    fn for_each_factor(&self, visit: &mut impl FnMut(&Factor)) {
        match self {
            Expr::Truth(_) | Expr::Fence(..) => {}
            Expr::Not(e) | Expr::Quantified(_, _, e) => e.for_each_factor(visit),
            Expr::And(list) | Expr::Or(list) => {
                list.iter().for_each(|e| e.for_each_factor(visit));
            }
            Expr::Implies(a, b) | Expr::Equivalent(a, b) => {
                a.for_each_factor(visit);
                b.for_each_factor(visit);
            }
            Expr::If(parts) => parts.iter().for_each(|e| e.for_each_factor(visit)),
            Expr::Compare(a, _, b, _) => {
                let both = a.parts.iter().chain(&b.parts);
                both.for_each(|(_, f)| visit(f));
            }
            Expr::Call(_, given) => {
                let parts = given.iter().flat_map(|t| &t.parts);
                parts.for_each(|(_, f)| visit(f));
            }
        }
    }
}

//! The text as a tree, names not yet resolved.

use wattle_model::{Op1, Op2, PropertyKind, Section, Span};

#[derive(Clone, Debug)]
pub(super) struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(super) struct Ex {
    pub kind: ExKind,
    pub span: Span,
    /// Height of the tree; limited by the parser.
    pub depth: u32,
    /// How many pairs are around it.
    pub parentheses: u32,
}

#[derive(Clone, Debug)]
pub(super) enum ExKind {
    Number(i64),
    /// A name, with an index if it is an array.
    Name(Name, Option<Box<Ex>>),
    SelfIndex,
    Count(Name),
    AddressOf(Name, Option<Box<Ex>>),
    /// `*(e)`
    Memory(Box<Ex>),
    /// `p.r`, `p[i].r`
    Field(Name, Option<Box<Ex>>, Name),
    /// `p::x`, `p[i]::x[e]`: what the thread sees of a region.
    Seen(Name, Option<Box<Ex>>, Name, Option<Box<Ex>>),
    /// `p@label`, `p[i]@label`
    At(Name, Option<Box<Ex>>, Name),
    Unary(Op1, Box<Ex>),
    Binary(Op2, Box<Ex>, Box<Ex>),
    Ite(Box<Ex>, Box<Ex>, Box<Ex>),
    Cas(Box<Ex>, Box<Ex>, Box<Ex>),
    Swap(Box<Ex>, Box<Ex>),
    FetchAdd(Box<Ex>, Box<Ex>),
    /// `G e`, `F e`; only in formulas.
    Later(Later, Box<Ex>),
    /// `e U e`, `e R e`, `e W e`, `e -> e`; only in formulas.
    Between(Between, Box<Ex>, Box<Ex>),
}

impl Ex {
    /// What it is made of, from left to right.
    pub fn parts(&self) -> Vec<&Ex> {
        match &self.kind {
            ExKind::Number(_) | ExKind::SelfIndex | ExKind::Count(_) => Vec::new(),
            ExKind::Name(_, i)
            | ExKind::AddressOf(_, i)
            | ExKind::Field(_, i, _)
            | ExKind::At(_, i, _) => i.iter().map(|i| &**i).collect(),
            ExKind::Seen(_, i, _, j) => i.iter().chain(j).map(|e| &**e).collect(),
            ExKind::Memory(a) | ExKind::Unary(_, a) | ExKind::Later(_, a) => vec![a],
            ExKind::Binary(_, a, b)
            | ExKind::Between(_, a, b)
            | ExKind::Swap(a, b)
            | ExKind::FetchAdd(a, b) => vec![a, b],
            ExKind::Ite(a, b, c) | ExKind::Cas(a, b, c) => vec![a, b, c],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Later {
    Globally,
    Finally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    Until,
    Release,
    WeakUntil,
    Implies,
}

#[derive(Clone, Debug)]
pub(super) enum TypeEx {
    Int,
    Bool,
    Range(Ex, Ex),
    Wrap {
        bits: u8,
        signed: bool,
    },
    Family(Name),
    /// `object(8)`: bytes that compiled code works on.
    Object(Ex),
    /// `struct name`: the same, the size from debug information.
    Struct(Name),
}

#[derive(Clone, Debug)]
pub(super) enum InitEx {
    Zero,
    All(Ex),
    Each(Vec<Ex>),
    Any,
}

#[derive(Clone, Debug)]
pub(super) enum LengthEx {
    Scalar,
    /// `[thread]`
    Thread(Span),
    /// A constant or a family.
    Array(Ex),
}

/// One name of a `shared` or `local` declaration.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub name: Name,
    pub length: LengthEx,
    pub ty: TypeEx,
    pub init: InitEx,
}

#[derive(Clone, Debug)]
pub(super) struct Let {
    pub name: Name,
    pub value: Ex,
}

#[derive(Clone, Debug)]
pub(super) enum CountEx {
    One,
    Any,
    Fixed(Ex),
}

#[derive(Clone, Debug)]
pub(super) struct ThreadEx {
    pub name: Name,
    pub count: CountEx,
    pub locals: Vec<Declared>,
    pub body: Block,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub statements: Vec<Statement>,
    /// The closing brace.
    pub close: Span,
}

#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub labels: Vec<Label>,
    pub kind: StatementKind,
    /// Without the labels.
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum Label {
    Named(Name),
    /// For jumps only; not part of the model.
    Numbered(u64, Span),
}

#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    /// Labels at the end of a block.
    Nothing,
    Let(Let),
    Skip,
    Stop,
    Assign(Ex, Ex),
    /// `x = any lo..hi`
    Any(Ex, Option<(Ex, Ex)>),
    If(Ex, Block, Option<Block>),
    While(Ex, Block),
    Loop(Block),
    For(Name, Ex, Ex, Block),
    Break,
    Continue,
    Goto(Label),
    Await(Ex),
    Assume(Ex),
    Assert(Ex, Option<String>),
    Choose(Vec<Block>),
    Block(Block),
    Fence,
    FenceStore,
    Atomic(Block),
    /// `atomic buffered { … }`
    AtomicBuffered(Block),
    AtomicBegin(Section),
    AtomicEnd,
    Lock,
    Unlock,
    /// `call f(a, b);`, `r = call f(a, b);`
    Call(Option<Ex>, Name, Vec<Ex>),
    /// `cas(…);` for its effect alone.
    Effect(Ex),
}

#[derive(Clone, Debug)]
pub(super) struct ConditionEx {
    /// `for p[i], q[j]:`
    pub indices: Vec<(Name, Name)>,
    pub expr: Ex,
}

#[derive(Clone, Debug)]
pub(super) struct PropertyEx {
    pub kind: PropertyKind,
    pub condition: ConditionEx,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub(super) enum TemporalEx {
    Ltl(ConditionEx),
    /// `p ~> q`
    LeadsTo(ConditionEx, Ex),
    Progress,
}

/// What a declaration belongs to; there it is the next one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// One or more.
    Shared,
    Let,
    Thread,
    Property,
    Temporal,
    /// None or more.
    Predicates,
    Object,
    Skipped,
}

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub order: Vec<Item>,
    pub lets: Vec<Let>,
    pub shared: Vec<Declared>,
    pub threads: Vec<ThreadEx>,
    pub properties: Vec<PropertyEx>,
    pub temporal: Vec<(TemporalEx, Span)>,
    pub predicates: Vec<ConditionEx>,
    /// `object "x.o";`
    pub objects: Vec<Name>,
    /// `skip f;` and `havoc f;`: functions the object files lack.
    pub skipped: Vec<(Name, bool)>,
    /// A declaration could not be read: what names mean is not fully known.
    pub incomplete: bool,
}

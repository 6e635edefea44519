//! What a litmus test says, before names have a meaning.

use crate::x86_core::{Instruction, Name, Size};
use wattle_model::Span;

/// A register of a thread or a memory location, as conditions and initial states name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Register { thread: i64, register: String },
    Cell { name: String, element: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Number(i64),
    /// The address of a location's element.
    Address(String, u32),
    /// What another item holds.
    Item(Item),
}

#[derive(Clone, Debug)]
pub struct Declaration {
    pub item: Item,
    /// Bits and signedness a type name asks for; `None` for pointers and unknown types.
    pub ty: Option<(Size, bool)>,
    pub pointer: bool,
    /// Number of elements of an array.
    pub length: Option<u32>,
    pub values: Vec<(Value, Span)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Proposition {
    Atom {
        left: Item,
        right: Value,
        equal: bool,
        span: Span,
    },
    Not(Box<Proposition>),
    And(Vec<Proposition>),
    Or(Vec<Proposition>),
    Implies(Box<Proposition>, Box<Proposition>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Exists,
    NotExists,
    Forall,
}

impl Quantifier {
    /// As a test writes it.
    pub fn keyword(self) -> &'static str {
        match self {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Question {
    pub quantifier: Quantifier,
    pub proposition: Proposition,
    pub locations: Vec<(Item, Span)>,
    pub filter: Option<Proposition>,
    pub span: Span,
}

/// One column of code.
#[derive(Clone, Debug)]
pub struct Column {
    pub number: i64,
    pub span: Span,
    pub labels: Vec<(String, usize, Span)>,
    pub instructions: Vec<RawInstruction>,
}

/// Operands in the order written.
pub type RawInstruction = Instruction<(RawOperand, Span)>;

#[derive(Clone, Debug)]
pub enum RawOperand {
    Register {
        name: Name,
        percent: bool,
    },
    Number(i64),
    /// `$x`
    AddressOf(String),
    Memory(RawMemory),
}

#[derive(Clone, Debug, Default)]
pub struct RawMemory {
    pub name: Option<String>,
    pub base: Option<Name>,
    pub index: Option<(Name, i64)>,
    pub offset: i64,
    pub size: Option<Size>,
    pub percent: bool,
}

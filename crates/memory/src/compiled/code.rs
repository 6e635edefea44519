//! Steps and conditions, compiled to read packed states.

use super::buffer::Buffer;
use super::pack::Field;
use crate::fault::FaultKind;
use wattle_model::{ArithmeticError, Expr, Op1, Op2, StepId, Type};

/// An expression over packed states.
#[derive(Clone, Debug)]
pub enum Code {
    Const(i64),
    /// A register, or a cell in memory.
    Field(Field),
    /// Whether the location in the field is one of these.
    At {
        location: Field,
        inside: Box<[bool]>,
    },
    /// The same for at most 64 locations, as bits.
    AtOneOf(Field, u64),
    /// Whether certain bits of a word are these, for any of several words and bits.
    Match(Box<[Match]>),
    /// Conditions joined by `||`, or by `&&`.
    Any(Box<[Code]>),
    All(Box<[Code]>),
    /// The cell in memory at `base + index`.
    CellAt {
        base: u32,
        length: u32,
        index: Box<Code>,
    },
    /// The cell as the thread with this buffer would load it.
    Seen {
        buffer: Box<Buffer>,
        cell: u32,
    },
    /// `field op constant`: most conditions are of this kind.
    Compare(Op2, Field, i64),
    Unary(Op1, Box<Code>),
    Binary(Op2, Box<Code>, Box<Code>),
    Ite(Box<Code>, Box<Code>, Box<Code>),
}

/// Some bits of a word of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    word: u32,
    mask: u64,
    bits: u64,
}

impl Match {
    fn field(field: Field, raw: u64) -> Code {
        let (word, mask) = field.bits();
        let bits = raw << mask.trailing_zeros();
        let word = word as u32;
        Code::Match(Box::new([Match { word, mask, bits }]))
    }

    /// Both, if they are about one word and no bit is asked for twice.
    fn and(self, other: Match) -> Option<Match> {
        let apart = self.word == other.word && self.mask & other.mask == 0;
        apart.then_some(Match {
            word: self.word,
            mask: self.mask | other.mask,
            bits: self.bits | other.bits,
        })
    }

    #[inline]
    fn holds(self, state: &[u64]) -> bool {
        state[self.word as usize] & self.mask == self.bits
    }
}

/// A fault without its words, cheap to pass up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    Assertion,
    Index { index: i64, length: u32 },
    Value { value: i64, lo: i64, hi: i64 },
    Arithmetic(ArithmeticError),
}

impl Flaw {
    pub fn is_machine_limit(self) -> bool {
        self == Flaw::Arithmetic(ArithmeticError::Overflow)
    }

    pub fn kind(self, message: Option<&str>) -> FaultKind {
        match self {
            Flaw::Assertion => FaultKind::Assertion {
                message: message.map(str::to_string),
            },
            Flaw::Index { index, length } => FaultKind::IndexOutOfRange { index, length },
            Flaw::Value { value, lo, hi } => FaultKind::ValueOutOfRange { value, lo, hi },
            Flaw::Arithmetic(e) => e.into(),
        }
    }
}

/// Boxed on its way up, so that the common case fits two registers.
impl From<ArithmeticError> for Box<Flaw> {
    #[cold]
    fn from(e: ArithmeticError) -> Self {
        Box::new(Flaw::Arithmetic(e))
    }
}

impl Code {
    /// Compiles an expression, given code for its leaves.
    pub fn new<A>(e: &Expr<A>, leaf: &dyn Fn(&A) -> Code) -> Code {
        let sub = |e: &Expr<A>| Box::new(Code::new(e, leaf));
        match e {
            Expr::Const(c) => Code::Const(*c),
            Expr::Atom(a) => leaf(a),
            Expr::Unary(op, a) => Code::Unary(*op, sub(a)),
            Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
                let (any, mut parts) = (*op == Op2::Or, Vec::new());
                for part in [*sub(a), *sub(b)] {
                    match part {
                        Code::Any(more) if any => parts.extend(more),
                        Code::All(more) if !any => parts.extend(more),
                        one @ (Code::Const(_)
                        | Code::Field(_)
                        | Code::At { .. }
                        | Code::AtOneOf(..)
                        | Code::Match(_)
                        | Code::Any(_)
                        | Code::All(_)
                        | Code::CellAt { .. }
                        | Code::Seen { .. }
                        | Code::Compare(..)
                        | Code::Unary(..)
                        | Code::Binary(..)
                        | Code::Ite(..)) => parts.push(one),
                    }
                }
                join(any, parts)
            }
            Expr::Binary(op, a, b) => match (*sub(a), *sub(b)) {
                (Code::Field(f), Code::Const(c)) if *op == Op2::Eq && f.bits().1 != 0 => {
                    match f.encode(c) {
                        Some(raw) => Match::field(f, raw),
                        None => Code::Const(0),
                    }
                }
                (Code::Field(f), Code::Const(c)) if op.precedence() == 3 => {
                    Code::Compare(*op, f, c)
                }
                (a, b) => Code::Binary(*op, Box::new(a), Box::new(b)),
            },
            Expr::Ite(c, a, b) => Code::Ite(sub(c), sub(a), sub(b)),
        }
    }

    /// Whether a location, or one of several, is in the field.
    pub fn at_one_of(location: Field, bits: u64) -> Code {
        if bits.is_power_of_two() && location.bits().1 != 0 {
            return Match::field(location, u64::from(bits.trailing_zeros()));
        }
        Code::AtOneOf(location, bits)
    }

    /// The value in a state. The simplest and most frequent codes need no call.
    #[inline]
    pub fn eval(&self, state: &[u64], cells: &[Field]) -> Result<i64, Box<Flaw>> {
        match self {
            Code::Const(c) => Ok(*c),
            Code::Field(f) => Ok(f.get(state)),
            Code::Compare(op, f, c) => Ok(compare(*op, f.get(state), *c)),
            Code::Match(any) => Ok(i64::from(any.iter().any(|m| m.holds(state)))),
            other @ (Code::At { .. }
            | Code::AtOneOf(..)
            | Code::Any(_)
            | Code::All(_)
            | Code::CellAt { .. }
            | Code::Seen { .. }
            | Code::Unary(..)
            | Code::Binary(..)
            | Code::Ite(..)) => other.eval_any(state, cells),
        }
    }

    /// What is about to be cut to its low bits; see `Op2::apply_modular`.
    fn modular(&self, state: &[u64], cells: &[Field]) -> Result<i64, Box<Flaw>> {
        if let Code::Binary(op @ (Op2::Add | Op2::Sub | Op2::Mul), a, b) = self {
            return Ok(op.apply_modular(a.modular(state, cells)?, b.modular(state, cells)?)?);
        }
        if let Code::Binary(op @ Op2::Shl, a, b) = self {
            return Ok(op.apply_modular(a.modular(state, cells)?, b.eval(state, cells)?)?);
        }
        self.eval(state, cells)
    }

    /// `&&`, `||` and `?:` look only at what they need.
    fn eval_any(&self, state: &[u64], cells: &[Field]) -> Result<i64, Box<Flaw>> {
        Ok(match self {
            Code::Const(c) => *c,
            Code::Field(f) => f.get(state),
            Code::At { location, inside } => i64::from(inside[location.index(state)]),
            Code::AtOneOf(location, bits) => (bits >> location.raw(state) & 1) as i64,
            Code::Match(any) => i64::from(any.iter().any(|m| m.holds(state))),
            Code::Any(parts) => {
                for part in parts {
                    if part.eval(state, cells)? != 0 {
                        return Ok(1);
                    }
                }
                0
            }
            Code::All(parts) => {
                for part in parts {
                    let value = match part {
                        Code::AtOneOf(location, bits) => (bits >> location.raw(state) & 1) as i64,
                        part @ (Code::Const(_)
                        | Code::Field(_)
                        | Code::At { .. }
                        | Code::Match(_)
                        | Code::Any(_)
                        | Code::All(_)
                        | Code::CellAt { .. }
                        | Code::Seen { .. }
                        | Code::Compare(..)
                        | Code::Unary(..)
                        | Code::Binary(..)
                        | Code::Ite(..)) => part.eval(state, cells)?,
                    };
                    if value == 0 {
                        return Ok(0);
                    }
                }
                1
            }
            Code::Compare(op, f, c) => compare(*op, f.get(state), *c),
            Code::CellAt {
                base,
                length,
                index,
            } => {
                let index = index.eval(state, cells)?;
                cells[cell(*base, *length, index)? as usize].get(state)
            }
            Code::Seen { buffer, cell } => {
                let field = cells[*cell as usize];
                match buffer.newest(state, *cell) {
                    Some(raw) => field.decode(raw),
                    None => field.get(state),
                }
            }
            Code::Unary(op @ Op1::Wrap { .. }, a) => op.apply(a.modular(state, cells)?)?,
            Code::Unary(op, a) => op.apply(a.eval(state, cells)?)?,
            Code::Binary(op, a, b) => op.apply(a.eval(state, cells)?, b.eval(state, cells)?)?,
            Code::Ite(c, a, b) => {
                let chosen = if c.eval(state, cells)? != 0 { a } else { b };
                chosen.eval(state, cells)?
            }
        })
    }
}

/// Joined conditions, with those that only compare bits in one. None of these can fail, so it does not
/// matter that neighbours are joined first.
fn join(any: bool, parts: Vec<Code>) -> Code {
    let mut joined: Vec<Code> = Vec::with_capacity(parts.len());
    for part in parts {
        let both = match (joined.last(), &part) {
            (Some(Code::Match(a)), Code::Match(b)) if any => Some([&a[..], &b[..]].concat()),
            (Some(Code::Match(a)), Code::Match(b)) => match (&a[..], &b[..]) {
                ([a], [b]) => a.and(*b).map(|both| vec![both]),
                _ => None,
            },
            _ => None,
        };
        match both {
            Some(both) => {
                joined.pop();
                joined.push(Code::Match(both.into()));
            }
            None => joined.push(part),
        }
    }
    if let [Code::Match(only)] = &joined[..] {
        Code::Match(only.clone())
    } else if any {
        Code::Any(joined.into())
    } else {
        Code::All(joined.into())
    }
}

#[inline]
fn compare(op: Op2, a: i64, b: i64) -> i64 {
    i64::from(match op {
        Op2::Eq => a == b,
        Op2::Ne => a != b,
        Op2::Lt => a < b,
        Op2::Le => a <= b,
        Op2::Gt => a > b,
        Op2::Ge => a >= b,
        // Nothing else is compiled to a comparison.
        Op2::Add
        | Op2::Sub
        | Op2::Mul
        | Op2::Div
        | Op2::Rem
        | Op2::BitAnd
        | Op2::BitOr
        | Op2::BitXor
        | Op2::Shl
        | Op2::Shr
        | Op2::And
        | Op2::Or => false,
    })
}

/// Element `index` of the cells from `base`.
#[inline]
pub fn cell(base: u32, length: u32, index: i64) -> Result<u32, Box<Flaw>> {
    match u32::try_from(index) {
        Ok(i) if i < length => Ok(base + i),
        _ => Err(Box::new(Flaw::Index { index, length })),
    }
}

#[derive(Clone, Debug)]
pub enum Target {
    Cell(u32),
    Computed { base: u32, length: u32, index: Code },
}

/// Where a value goes, and what its type lets in.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    pub field: Field,
    pub ty: Type,
    /// Values between these need no second look at the type.
    pub plain: (i64, i64),
    pub number: u32,
}

#[derive(Clone, Debug)]
pub enum Op {
    /// Skip, or a fence that has nothing to wait for.
    Nothing,
    Assign(Register, Code),
    Havoc(Register, i64, i64),
    Assume(Code),
    Assert(Code),
    /// `guarded` if somebody else may hold the lock.
    Load {
        register: Register,
        place: Target,
        guarded: bool,
    },
    /// Into the buffer.
    Put(Target, Code),
    /// Into memory at once; `guarded` if somebody else may hold the lock.
    Write {
        place: Target,
        value: Code,
        guarded: bool,
    },
    /// Waits until the buffer is empty.
    Fence,
    StoreFence,
    AtomicBegin {
        drained: bool,
    },
    AtomicEnd,
    Lock,
    Unlock,
}

impl Op {
    /// The first and the last value to choose from.
    #[inline]
    pub fn choices(&self) -> (i64, i64) {
        if let Op::Havoc(_, lo, hi) = self {
            (*lo, *hi)
        } else {
            (0, 0)
        }
    }
}

/// A step: what it does, where it leads, and which one it is in the program.
#[derive(Clone, Debug)]
pub struct Edge {
    pub op: Op,
    pub target: u32,
    pub step: StepId,
}

/// Everything about one location of a thread.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub edges: Vec<Edge>,
    /// The one enabled step here may be chained to the step before.
    pub local: bool,
    /// Nothing here is anybody else's business, but several steps may be enabled.
    pub choice: bool,
    /// It depends on a computed address whether it is.
    pub perhaps: bool,
    pub atomic: bool,
    /// Bits to keep per word; empty if no register is dead here.
    pub keep: Vec<(u32, u64)>,
}

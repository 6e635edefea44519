//! Expressions over words of 1 to 64 bits, with the processor's wrap-around.
//!
//! Every node has a width. The constructors simplify as they build: constants are folded, what is cut
//! out of what was put in is found again, comparisons of sums with constants lose the sum. What comes
//! out is equal to what went in for every value of the variables; a test compares the two on random
//! expressions. [`E::Unknown`] is a value nobody can name (an undefined flag): whatever needs it is
//! unknown too, and a program in which one is needed is refused.

mod simplify;
#[cfg(test)]
mod tests;

use simplify::{fold, holds};
use std::collections::BTreeSet;
use std::fmt;

/// A variable of a thread: a machine register, a flag, a word of the stack, a value just read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);

/// What an address points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    /// The thread's stack as it was when the thread began.
    Stack,
    /// A shared object there is one of.
    Object(usize),
    /// The thread's own element of an object with one element for each thread.
    Own(usize),
    /// An element of an object that has several, by number.
    Element(usize, u32),
    /// A place in the code: return addresses, functions.
    Code,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bin {
    Add,
    Sub,
    Mul,
    Udiv,
    Urem,
    Sdiv,
    Srem,
    And,
    Or,
    Xor,
    /// A shift by the width or more gives 0.
    Shl,
    Shr,
    /// A shift by the width or more gives the sign everywhere.
    Sar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cmp {
    Eq,
    Ne,
    Ult,
    Ule,
    Slt,
    Sle,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum E {
    Const(u64, u32),
    Var(VarId, u32),
    /// Base and offset: 64 bits.
    Address(Base, i64),
    Not(Box<E>),
    Bin(Bin, Box<E>, Box<E>),
    /// One bit.
    Cmp(Cmp, Box<E>, Box<E>),
    Zext(Box<E>, u32),
    Sext(Box<E>, u32),
    /// `width` bits from bit `low`.
    Extract(Box<E>, u32, u32),
    /// The first with the second in place of its bits from `low`.
    Insert(Box<E>, Box<E>, u32),
    Ite(Box<E>, Box<E>, Box<E>),
    Unknown(u32),
}

/// The stack pointer a thread begins with is a multiple of this.
pub const STACK_ALIGNMENT: u64 = 4096;

pub fn mask(width: u32) -> u64 {
    if width >= 64 {
        u64::MAX
    } else {
        (1u64 << width) - 1
    }
}

pub fn signed(value: u64, width: u32) -> i64 {
    let shift = 64 - width.clamp(1, 64);
    ((value << shift) as i64) >> shift
}

impl E {
    pub fn constant(value: u64, width: u32) -> E {
        E::Const(value & mask(width), width)
    }

    pub fn bool(value: bool) -> E {
        E::Const(u64::from(value), 1)
    }

    pub fn width(&self) -> u32 {
        match self {
            E::Const(_, w)
            | E::Var(_, w)
            | E::Zext(_, w)
            | E::Sext(_, w)
            | E::Extract(_, _, w)
            | E::Unknown(w) => *w,
            E::Address(..) => 64,
            E::Cmp(..) => 1,
            E::Not(a) | E::Bin(_, a, _) | E::Insert(a, _, _) | E::Ite(_, a, _) => a.width(),
        }
    }

    pub fn as_const(&self) -> Option<u64> {
        match self {
            E::Const(c, _) => Some(*c),
            _ => None,
        }
    }

    pub fn is_unknown(&self) -> bool {
        matches!(self, E::Unknown(_))
    }

    pub fn is_true(&self) -> bool {
        *self == E::Const(1, 1)
    }

    pub fn is_false(&self) -> bool {
        *self == E::Const(0, 1)
    }

    /// How many nodes it has.
    pub fn size(&self) -> usize {
        1 + self.parts().into_iter().map(E::size).sum::<usize>()
    }

    /// What an expression is made of.
    pub fn parts(&self) -> Vec<&E> {
        match self {
            E::Var(..) | E::Const(..) | E::Address(..) | E::Unknown(_) => vec![],
            E::Not(a) | E::Zext(a, _) | E::Sext(a, _) | E::Extract(a, _, _) => vec![a],
            E::Bin(_, a, b) | E::Cmp(_, a, b) | E::Insert(a, b, _) => vec![a, b],
            E::Ite(c, a, b) => vec![c, a, b],
        }
    }

    /// The expression and everything it is made of.
    pub fn for_each(&self, visit: &mut impl FnMut(&E)) {
        visit(self);
        self.parts().into_iter().for_each(|p| p.for_each(visit));
    }

    pub fn for_each_var(&self, visit: &mut impl FnMut(VarId)) {
        self.for_each(&mut |e| {
            if let E::Var(v, _) = e {
                visit(*v);
            }
        });
    }

    pub fn vars(&self) -> BTreeSet<VarId> {
        let mut all = BTreeSet::new();
        self.for_each_var(&mut |v| {
            all.insert(v);
        });
        all
    }

    pub fn mentions(&self, v: VarId) -> bool {
        let mut found = false;
        self.for_each_var(&mut |w| found |= v == w);
        found
    }

    /// The expression with variables replaced, simplified.
    pub fn replace(&self, with: &impl Fn(VarId) -> Option<E>) -> E {
        match self {
            E::Var(v, _) => with(*v).unwrap_or_else(|| self.clone()),
            _ => self.rebuilt(&|p| p.replace(with)),
        }
    }

    /// The expression of other parts, simplified.
    pub fn rebuilt(&self, part: &impl Fn(&E) -> E) -> E {
        match self {
            E::Var(..) | E::Const(..) | E::Address(..) | E::Unknown(_) => self.clone(),
            E::Not(a) => part(a).inverted(),
            E::Bin(op, a, b) => E::bin(*op, part(a), part(b)),
            E::Cmp(op, a, b) => E::test(*op, part(a), part(b)),
            E::Zext(a, w) => part(a).zext(*w),
            E::Sext(a, w) => part(a).sext(*w),
            E::Extract(a, low, w) => part(a).extract(*low, *w),
            E::Insert(a, b, low) => part(a).insert(part(b), *low),
            E::Ite(c, a, b) => E::ite(part(c), part(a), part(b)),
        }
    }

    /// An upper bound of the unsigned value.
    pub fn most(&self) -> u64 {
        let all = mask(self.width());
        match self {
            E::Const(c, _) => *c,
            E::Zext(a, _) => a.most(),
            E::Bin(Bin::And, a, b) => a.most().min(b.most()),
            E::Bin(Bin::Or | Bin::Xor, a, b) => {
                let top = 64 - (a.most() | b.most()).leading_zeros();
                mask(top.max(1)).min(all)
            }
            E::Bin(Bin::Add, a, b) => match a.most().checked_add(b.most()) {
                Some(sum) if sum <= all => sum,
                _ => all,
            },
            E::Bin(Bin::Mul, a, b) => match a.most().checked_mul(b.most()) {
                Some(p) if p <= all => p,
                _ => all,
            },
            E::Bin(Bin::Shr, a, b) => match b.as_const() {
                Some(c) if c < 64 => a.most() >> c,
                _ => a.most(),
            },
            E::Bin(Bin::Shl, a, b) => match b.as_const() {
                Some(c) if c < u64::from(a.most().leading_zeros()) && (a.most() << c) <= all => {
                    a.most() << c
                }
                _ => all,
            },
            E::Bin(Bin::Udiv | Bin::Urem, a, b) => match (self, b.as_const()) {
                (E::Bin(Bin::Urem, ..), Some(c)) if c > 0 => a.most().min(c - 1),
                (E::Bin(Bin::Udiv, ..), Some(c)) if c > 0 => a.most() / c,
                _ => a.most(),
            },
            E::Ite(_, a, b) => a.most().max(b.most()),
            E::Insert(a, b, low) => {
                let top = 64 - (a.most() | b.most() << low).leading_zeros();
                mask(top.max(1)).min(all)
            }
            E::Extract(a, 0, _) => a.most().min(all),
            _ => all,
        }
    }

    /// The value where variables have these values; for tests and for initial bytes.
    pub fn eval(&self, of: &impl Fn(VarId) -> u64) -> Option<u64> {
        let w = self.width();
        Some(match self {
            E::Const(c, _) => *c,
            E::Var(v, w) => of(*v) & mask(*w),
            E::Address(..) | E::Unknown(_) => return None,
            E::Not(a) => !a.eval(of)? & mask(w),
            E::Bin(op, a, b) => fold(*op, a.eval(of)?, b.eval(of)?, w)? & mask(w),
            E::Cmp(op, a, b) => u64::from(holds(*op, a.eval(of)?, b.eval(of)?, a.width())),
            E::Zext(a, _) => a.eval(of)?,
            E::Sext(a, _) => signed(a.eval(of)?, a.width()) as u64 & mask(w),
            E::Extract(a, low, w) => (a.eval(of)? >> low) & mask(*w),
            E::Insert(a, b, low) => {
                let field = mask(b.width()) << low;
                a.eval(of)? & !field | b.eval(of)? << low
            }
            E::Ite(c, a, b) => match c.eval(of)? {
                0 => b.eval(of)?,
                _ => a.eval(of)?,
            },
        })
    }
}

/// Whether nothing of the one is ever part of the other.
pub fn apart(p: Base, q: Base) -> bool {
    let object = |b: Base| match b {
        Base::Object(o) | Base::Own(o) | Base::Element(o, _) => Some(o),
        Base::Stack | Base::Code => None,
    };
    match (p, q) {
        (Base::Element(a, i), Base::Element(b, j)) => a != b || i != j,
        (Base::Stack, Base::Stack) | (Base::Code, Base::Code) => false,
        _ => object(p) != object(q) || object(p).is_none(),
    }
}

impl fmt::Display for E {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            E::Const(c, w) => write!(f, "{}", signed(*c, *w)),
            E::Var(v, _) => write!(f, "v{}", v.0),
            E::Address(b, o) => write!(f, "&{b:?}+{o}"),
            E::Not(a) => write!(f, "~{a}"),
            E::Bin(op, a, b) => write!(f, "({op:?} {a} {b})"),
            E::Cmp(op, a, b) => write!(f, "({op:?} {a} {b})"),
            E::Zext(a, w) => write!(f, "u{w}({a})"),
            E::Sext(a, w) => write!(f, "i{w}({a})"),
            E::Extract(a, l, w) => write!(f, "{a}[{l}+{w}]"),
            E::Insert(a, b, l) => write!(f, "({a} with {b} at {l})"),
            E::Ite(c, a, b) => write!(f, "({c} ? {a} : {b})"),
            E::Unknown(_) => write!(f, "?"),
        }
    }
}

//! Expressions over words of 1 to 64 bits, with the processor's wrap-around.
//!
//! Every node has a width. The constructors simplify as they build: constants are folded, what is cut
//! out of what was put in is found again, comparisons of sums with constants lose the sum. What comes
//! out is equal to what went in for every value of the variables; a test compares the two on random
//! expressions. [`E::Unknown`] is a value nobody can name (an undefined flag): whatever needs it is
//! unknown too, and a program in which one is needed is refused.

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
        match self {
            E::Const(..) | E::Var(..) | E::Address(..) | E::Unknown(_) => 1,
            E::Not(a) | E::Zext(a, _) | E::Sext(a, _) | E::Extract(a, _, _) => 1 + a.size(),
            E::Bin(_, a, b) | E::Cmp(_, a, b) | E::Insert(a, b, _) => 1 + a.size() + b.size(),
            E::Ite(c, a, b) => 1 + c.size() + a.size() + b.size(),
        }
    }

    pub fn for_each_var(&self, visit: &mut impl FnMut(VarId)) {
        match self {
            E::Var(v, _) => visit(*v),
            E::Const(..) | E::Address(..) | E::Unknown(_) => {}
            E::Not(a) | E::Zext(a, _) | E::Sext(a, _) | E::Extract(a, _, _) => {
                a.for_each_var(visit)
            }
            E::Bin(_, a, b) | E::Cmp(_, a, b) | E::Insert(a, b, _) => {
                a.for_each_var(visit);
                b.for_each_var(visit);
            }
            E::Ite(c, a, b) => {
                c.for_each_var(visit);
                a.for_each_var(visit);
                b.for_each_var(visit);
            }
        }
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
            E::Const(..) | E::Address(..) | E::Unknown(_) => self.clone(),
            E::Not(a) => a.replace(with).inverted(),
            E::Bin(op, a, b) => E::bin(*op, a.replace(with), b.replace(with)),
            E::Cmp(op, a, b) => E::test(*op, a.replace(with), b.replace(with)),
            E::Zext(a, w) => a.replace(with).zext(*w),
            E::Sext(a, w) => a.replace(with).sext(*w),
            E::Extract(a, low, w) => a.replace(with).extract(*low, *w),
            E::Insert(a, b, low) => a.replace(with).insert(b.replace(with), *low),
            E::Ite(c, a, b) => E::ite(c.replace(with), a.replace(with), b.replace(with)),
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
            E::Extract(a, 0, _) => a.most().min(all),
            _ => all,
        }
    }

    pub fn inverted(self) -> E {
        let w = self.width();
        match self {
            E::Const(c, w) => E::constant(!c, w),
            E::Not(a) => *a,
            E::Cmp(op, a, b) => match op {
                Cmp::Eq => E::Cmp(Cmp::Ne, a, b),
                Cmp::Ne => E::Cmp(Cmp::Eq, a, b),
                Cmp::Ult => E::Cmp(Cmp::Ule, b, a),
                Cmp::Ule => E::Cmp(Cmp::Ult, b, a),
                Cmp::Slt => E::Cmp(Cmp::Sle, b, a),
                Cmp::Sle => E::Cmp(Cmp::Slt, b, a),
            },
            E::Unknown(_) => E::Unknown(w),
            e => E::Not(Box::new(e)),
        }
    }

    pub fn negated(self) -> E {
        let w = self.width();
        E::bin(Bin::Sub, E::constant(0, w), self)
    }

    pub fn sum(a: E, b: E) -> E {
        E::bin(Bin::Add, a, b)
    }

    pub fn plus(self, c: i64) -> E {
        let w = self.width();
        E::bin(Bin::Add, self, E::constant(c as u64, w))
    }

    pub fn bin(op: Bin, a: E, b: E) -> E {
        let w = a.width();
        debug_assert_eq!(w, b.width(), "{op:?} of {a:?} and {b:?}");
        if let (E::Const(x, _), E::Const(y, _)) = (&a, &b)
            && let Some(value) = fold(op, *x, *y, w)
        {
            return E::constant(value, w);
        }
        // Nothing times or and anything is nothing, known or not.
        if matches!(op, Bin::And | Bin::Mul) && (a.as_const() == Some(0) || b.as_const() == Some(0))
        {
            return E::constant(0, w);
        }
        if a.is_unknown() || b.is_unknown() {
            return E::Unknown(w);
        }
        // Constants to the right.
        let commutes = matches!(op, Bin::Add | Bin::Mul | Bin::And | Bin::Or | Bin::Xor);
        let (a, b) = match (commutes, &a, &b) {
            (true, E::Const(..), _) => (b, a),
            (true, a0, E::Address(..)) if !matches!(a0, E::Address(..)) => (b, a),
            _ => (a, b),
        };
        match (op, a, b) {
            (Bin::Add | Bin::Sub | Bin::Or | Bin::Xor, a, E::Const(0, _)) => a,
            (Bin::Shl | Bin::Shr | Bin::Sar, a, E::Const(0, _)) => a,
            (Bin::Add, E::Address(base, off), E::Const(c, _)) => {
                E::Address(base, off.wrapping_add(c as i64))
            }
            (Bin::Sub, E::Address(base, off), E::Const(c, _)) => {
                E::Address(base, off.wrapping_sub(c as i64))
            }
            (Bin::Sub, E::Address(p, x), E::Address(q, y)) if p == q => {
                E::constant(x.wrapping_sub(y) as u64, 64)
            }
            // The stack is aligned where a thread begins.
            (Bin::And, E::Address(Base::Stack, off), E::Const(c, _))
                if is_mask(!c) && !c < STACK_ALIGNMENT =>
            {
                E::Address(Base::Stack, off & c as i64)
            }
            (Bin::Sub, a, b) if a == b => E::constant(0, w),
            (Bin::Xor, a, b) if a == b => E::constant(0, w),
            (Bin::And | Bin::Or, a, b) if a == b => a,
            (Bin::Sub, a, E::Const(c, _)) => E::bin(Bin::Add, a, E::constant(c.wrapping_neg(), w)),
            (Bin::Add, E::Bin(Bin::Add, x, k), E::Const(c, _)) if k.as_const().is_some() => {
                let k = k.as_const().unwrap_or(0);
                E::bin(Bin::Add, *x, E::constant(k.wrapping_add(c), w))
            }
            (Bin::Add, E::Bin(Bin::Sub, k, x), E::Const(c, _)) if k.as_const().is_some() => {
                let k = k.as_const().unwrap_or(0);
                E::bin(Bin::Sub, E::constant(k.wrapping_add(c), w), *x)
            }
            // (x - y) + y and the like.
            (Bin::Add, E::Bin(Bin::Sub, x, y), b) if *y == b => *x,
            (Bin::Add, a, E::Bin(Bin::Sub, x, y)) if *y == a => *x,
            (Bin::Sub, E::Bin(Bin::Add, x, y), b) if *y == b => *x,
            (Bin::Sub, E::Bin(Bin::Add, x, y), b) if *x == b => *y,
            // An address keeps its base on the left of sums.
            (Bin::Add, E::Bin(Bin::Add, x, y), E::Const(c, _)) if matches!(*x, E::Address(..)) => {
                let moved = E::bin(Bin::Add, *x, E::constant(c, w));
                E::bin(Bin::Add, moved, *y)
            }
            (Bin::Add, a, E::Bin(Bin::Add, x, k)) if k.as_const().is_some() => {
                let inner = E::bin(Bin::Add, a, *x);
                E::bin(Bin::Add, inner, *k)
            }
            (Bin::Add, E::Bin(Bin::Add, x, k), b) if k.as_const().is_some() => {
                let inner = E::bin(Bin::Add, *x, b);
                E::bin(Bin::Add, inner, *k)
            }
            (Bin::And, a, E::Const(c, _)) if a.most() & !c == 0 && is_mask(c) => a,
            (Bin::And, E::Bin(Bin::And, x, k), E::Const(c, _)) if k.as_const().is_some() => {
                let k = k.as_const().unwrap_or(0);
                E::bin(Bin::And, *x, E::constant(k & c, w))
            }
            (Bin::And, E::Zext(x, _), E::Const(c, _)) => {
                let inner = x.width();
                E::bin(Bin::And, *x, E::constant(c, inner)).zext(w)
            }
            (Bin::And, E::Insert(whole, part, low), E::Const(c, _))
                if c & !(mask(part.width()) << low) == 0 && low == 0 =>
            {
                let part = (*part).zext(w);
                drop(whole);
                E::bin(Bin::And, part, E::constant(c, w))
            }
            (Bin::Or, _, E::Const(c, _)) if c == mask(w) => E::constant(c, w),
            (Bin::Xor, a, E::Const(c, _)) if c == mask(w) => a.inverted(),
            (Bin::Xor, E::Bin(Bin::Xor, x, k), E::Const(c, _)) if k.as_const().is_some() => {
                let k = k.as_const().unwrap_or(0);
                E::bin(Bin::Xor, *x, E::constant(k ^ c, w))
            }
            (Bin::Mul, a, E::Const(1, _)) => a,
            (Bin::Mul, a, E::Const(c, _)) if c.is_power_of_two() => {
                E::bin(Bin::Shl, a, E::constant(u64::from(c.trailing_zeros()), w))
            }
            (Bin::Udiv | Bin::Sdiv, a, E::Const(1, _)) => a,
            (Bin::Udiv, a, E::Const(c, _)) if c.is_power_of_two() => {
                E::bin(Bin::Shr, a, E::constant(u64::from(c.trailing_zeros()), w))
            }
            (Bin::Urem, a, E::Const(c, _)) if c.is_power_of_two() => {
                E::bin(Bin::And, a, E::constant(c - 1, w))
            }
            (Bin::Shl | Bin::Shr, _, E::Const(c, _)) if c >= u64::from(w) => E::constant(0, w),
            (Bin::Shl, E::Bin(Bin::Shl, x, k), E::Const(c, _)) if k.as_const().is_some() => {
                match k.as_const().unwrap_or(0).saturating_add(c) {
                    sum if sum >= u64::from(w) => E::constant(0, w),
                    sum => E::bin(Bin::Shl, *x, E::constant(sum, w)),
                }
            }
            (Bin::Shr, E::Zext(x, _), E::Const(c, _)) => {
                let inner = x.width();
                match c >= u64::from(inner) {
                    true => E::constant(0, w),
                    false => E::bin(Bin::Shr, *x, E::constant(c, inner)).zext(w),
                }
            }
            // A word put together from two halves.
            (Bin::Or, E::Bin(Bin::Shl, x, k), E::Zext(y, _)) if x.as_const() == Some(0) => {
                drop(k);
                (*y).zext(w)
            }
            // Doing it to one bit is deciding.
            (Bin::And, a, E::Const(1, 1)) => a,
            (op, E::Zext(x, _), E::Zext(y, _))
                if matches!(op, Bin::And | Bin::Or | Bin::Xor) && x.width() == y.width() =>
            {
                E::bin(op, *x, *y).zext(w)
            }
            (op, a, b) => E::Bin(op, Box::new(a), Box::new(b)),
        }
    }

    pub fn test(op: Cmp, a: E, b: E) -> E {
        let w = a.width();
        debug_assert_eq!(w, b.width(), "{op:?} of {a:?} and {b:?}");
        if let (E::Const(x, _), E::Const(y, _)) = (&a, &b) {
            return E::bool(holds(op, *x, *y, w));
        }
        if a.is_unknown() || b.is_unknown() {
            return E::Unknown(1);
        }
        if a == b {
            return E::bool(matches!(op, Cmp::Eq | Cmp::Ule | Cmp::Sle));
        }
        match op {
            Cmp::Eq => return equal(a, b),
            Cmp::Ne => return equal(a, b).inverted(),
            Cmp::Ult | Cmp::Ule | Cmp::Slt | Cmp::Sle => {}
        }
        // Both without the sign bit: one order for both readings.
        let half = mask(w) >> 1;
        let op = match op {
            Cmp::Slt if a.most() <= half && b.most() <= half => Cmp::Ult,
            Cmp::Sle if a.most() <= half && b.most() <= half => Cmp::Ule,
            op => op,
        };
        match (op, a, b) {
            (Cmp::Ult, _, E::Const(0, _)) => E::bool(false),
            (Cmp::Ule, E::Const(0, _), _) => E::bool(true),
            (Cmp::Ult, a, E::Const(c, _)) if a.most() < c => E::bool(true),
            (Cmp::Ule, a, E::Const(c, _)) if a.most() <= c => E::bool(true),
            (Cmp::Ult, E::Const(c, _), a) if a.most() <= c => E::bool(false),
            (Cmp::Ule, E::Const(c, _), a) if a.most() < c => E::bool(false),
            (Cmp::Ult, a, E::Const(1, _)) => equal(a, E::constant(0, w)),
            (Cmp::Ule, a, E::Const(0, _)) => equal(a, E::constant(0, w)),
            (Cmp::Ult, E::Const(0, _), a) => equal(a, E::constant(0, w)).inverted(),
            (Cmp::Ule, E::Const(1, _), a) => equal(a, E::constant(0, w)).inverted(),
            (Cmp::Ult, E::Zext(x, _), E::Zext(y, _)) if x.width() == y.width() => {
                E::test(Cmp::Ult, *x, *y)
            }
            (Cmp::Ule, E::Zext(x, _), E::Zext(y, _)) if x.width() == y.width() => {
                E::test(Cmp::Ule, *x, *y)
            }
            (op @ (Cmp::Ult | Cmp::Ule), E::Zext(x, _), E::Const(c, _)) if c <= mask(x.width()) => {
                let inner = x.width();
                E::test(op, *x, E::constant(c, inner))
            }
            (op @ (Cmp::Ult | Cmp::Ule), E::Const(c, _), E::Zext(x, _)) if c <= mask(x.width()) => {
                let inner = x.width();
                E::test(op, E::constant(c, inner), *x)
            }
            (op @ (Cmp::Slt | Cmp::Sle), E::Sext(x, _), E::Const(c, w))
                if signed(signed_cut(c, x.width()), x.width()) == signed(c, w) =>
            {
                let inner = x.width();
                E::test(op, *x, E::constant(c, inner))
            }
            (op, a, b) => E::Cmp(op, Box::new(a), Box::new(b)),
        }
    }

    pub fn same(a: E, b: E) -> E {
        E::test(Cmp::Eq, a, b)
    }

    /// Of one bit.
    pub fn and(a: E, b: E) -> E {
        E::bin(Bin::And, a, b)
    }

    pub fn or(a: E, b: E) -> E {
        E::bin(Bin::Or, a, b)
    }

    pub fn zext(self, w: u32) -> E {
        if self.width() == w {
            return self;
        }
        match self {
            E::Const(c, _) => E::Const(c, w),
            E::Unknown(_) => E::Unknown(w),
            E::Zext(a, _) => a.zext(w),
            E::Extract(a, 0, n) if a.width() == w && a.most() <= mask(n) => *a,
            e => E::Zext(Box::new(e), w),
        }
    }

    pub fn sext(self, w: u32) -> E {
        if self.width() == w {
            return self;
        }
        match self {
            E::Const(c, n) => E::constant(signed(c, n) as u64, w),
            E::Unknown(_) => E::Unknown(w),
            E::Sext(a, _) => a.sext(w),
            e if e.most() <= mask(e.width()) >> 1 => e.zext(w),
            e => E::Sext(Box::new(e), w),
        }
    }

    /// The low bits, or the value with zeros above.
    pub fn resize(self, w: u32) -> E {
        match self.width() > w {
            true => self.extract(0, w),
            false => self.zext(w),
        }
    }

    pub fn extract(self, low: u32, w: u32) -> E {
        if low == 0 && self.width() == w {
            return self;
        }
        match self {
            E::Const(c, _) => E::constant(c.checked_shr(low).unwrap_or(0), w),
            E::Unknown(_) => E::Unknown(w),
            E::Zext(a, _) => {
                let n = a.width();
                if low >= n {
                    E::constant(0, w)
                } else if low + w <= n {
                    a.extract(low, w)
                } else if low == 0 {
                    a.zext(w)
                } else {
                    E::Extract(Box::new(E::Zext(a, low + w)), low, w)
                }
            }
            E::Sext(a, _) if low + w <= a.width() => a.extract(low, w),
            E::Sext(a, _) if low == 0 => a.sext(w),
            E::Extract(a, under, _) => a.extract(under + low, w),
            E::Insert(whole, part, at) => {
                let end = at + part.width();
                if low + w <= at || low >= end {
                    whole.extract(low, w)
                } else if low >= at && low + w <= end {
                    part.extract(low - at, w)
                } else if low == 0 && at + part.width() <= w {
                    whole.extract(0, w).insert(*part, at)
                } else {
                    E::Extract(Box::new(E::Insert(whole, part, at)), low, w)
                }
            }
            E::Bin(op @ (Bin::And | Bin::Or | Bin::Xor), a, b) => {
                E::bin(op, a.extract(low, w), b.extract(low, w))
            }
            E::Bin(op @ (Bin::Add | Bin::Sub | Bin::Mul), a, b)
                if low == 0 && !matches!(*a, E::Address(..)) && !matches!(*b, E::Address(..)) =>
            {
                E::bin(op, a.extract(0, w), b.extract(0, w))
            }
            E::Bin(Bin::Shl, a, k) if low == 0 && k.as_const().is_some() => {
                match k.as_const().unwrap_or(0) {
                    k if k >= u64::from(w) => E::constant(0, w),
                    k => E::bin(Bin::Shl, a.extract(0, w), E::constant(k, w)),
                }
            }
            E::Bin(Bin::Shr, a, k)
                if k.as_const()
                    .is_some_and(|k| k + u64::from(low + w) <= u64::from(a.width())) =>
            {
                let k = k.as_const().unwrap_or(0) as u32;
                a.extract(low + k, w)
            }
            E::Not(a) => a.extract(low, w).inverted(),
            E::Ite(c, a, b) => E::ite(*c, a.extract(low, w), b.extract(low, w)),
            e => E::Extract(Box::new(e), low, w),
        }
    }

    pub fn insert(self, part: E, low: u32) -> E {
        let w = self.width();
        let n = part.width();
        if n == w {
            return part;
        }
        let field = mask(n) << low;
        match (self, part) {
            (E::Const(c, _), E::Const(p, _)) => E::constant(c & !field | p << low, w),
            (E::Zext(a, _), p) if low == 0 && a.width() <= n => p.zext(w),
            (E::Const(c, _), p) if low == 0 && c & !field == 0 => p.zext(w),
            (E::Insert(whole, _, at), p) if at == low && part_width_is(&p, n) => {
                (*whole).insert(p, low)
            }
            (whole, E::Extract(x, at, _)) if at == low && *x == whole => whole,
            (whole, p) => E::Insert(Box::new(whole), Box::new(p), low),
        }
    }

    pub fn ite(c: E, a: E, b: E) -> E {
        debug_assert_eq!(a.width(), b.width());
        let w = a.width();
        match (c, a, b) {
            (E::Const(1, _), a, _) => a,
            (E::Const(_, _), _, b) => b,
            (_, a, b) if a == b => a,
            (E::Unknown(_), _, _) => E::Unknown(w),
            (c, E::Const(1, 1), E::Const(0, 1)) => c,
            (c, E::Const(0, 1), E::Const(1, 1)) => c.inverted(),
            (E::Not(c), a, b) => E::ite(*c, b, a),
            (c, a, b) => E::Ite(Box::new(c), Box::new(a), Box::new(b)),
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

fn signed_cut(c: u64, width: u32) -> u64 {
    c & mask(width)
}

fn part_width_is(p: &E, n: u32) -> bool {
    p.width() == n
}

fn is_mask(c: u64) -> bool {
    c & c.wrapping_add(1) == 0
}

/// `None` for a division without a result.
fn fold(op: Bin, x: u64, y: u64, w: u32) -> Option<u64> {
    let (sx, sy) = (signed(x, w), signed(y, w));
    let wide = y >= u64::from(w);
    Some(match op {
        Bin::Add => x.wrapping_add(y),
        Bin::Sub => x.wrapping_sub(y),
        Bin::Mul => x.wrapping_mul(y),
        Bin::Udiv => x.checked_div(y)?,
        Bin::Urem => x.checked_rem(y)?,
        Bin::Sdiv => sx.checked_div(sy)? as u64,
        Bin::Srem => sx.checked_rem(sy)? as u64,
        Bin::And => x & y,
        Bin::Or => x | y,
        Bin::Xor => x ^ y,
        Bin::Shl if wide => 0,
        Bin::Shl => x << y,
        Bin::Shr if wide => 0,
        Bin::Shr => x >> y,
        Bin::Sar if wide => (sx >> 63) as u64,
        Bin::Sar => (sx >> y) as u64,
    })
}

fn holds(op: Cmp, x: u64, y: u64, w: u32) -> bool {
    let (sx, sy) = (signed(x, w), signed(y, w));
    match op {
        Cmp::Eq => x == y,
        Cmp::Ne => x != y,
        Cmp::Ult => x < y,
        Cmp::Ule => x <= y,
        Cmp::Slt => sx < sy,
        Cmp::Sle => sx <= sy,
    }
}

/// Equality of two different expressions that are not both constants.
fn equal(a: E, b: E) -> E {
    let w = a.width();
    let (a, b) = match a {
        E::Const(..) => (b, a),
        _ => (a, b),
    };
    match (a, b) {
        (E::Address(p, x), E::Address(q, y)) if p == q => E::bool(x == y),
        // Different elements may be the same one: a thread's own and one by number.
        (E::Address(p, x), E::Address(q, y)) if apart(p, q) && x >= 0 && y >= 0 => E::bool(false),
        (E::Address(_, x), E::Const(0, _)) if x >= 0 => E::bool(false),
        (E::Bin(Bin::Add, x, k), E::Const(c, _)) if k.as_const().is_some() => {
            let k = k.as_const().unwrap_or(0);
            E::same(*x, E::constant(c.wrapping_sub(k), w))
        }
        (E::Bin(Bin::Add, x, k), E::Bin(Bin::Add, y, m)) if k == m => E::same(*x, *y),
        (E::Bin(Bin::Add, x, k), E::Bin(Bin::Add, y, m))
            if k.as_const().is_some() && m.as_const().is_some() =>
        {
            let (k, m) = (k.as_const().unwrap_or(0), m.as_const().unwrap_or(0));
            E::same(*x, E::bin(Bin::Add, *y, E::constant(m.wrapping_sub(k), w)))
        }
        (E::Bin(Bin::Sub, k, x), E::Const(c, _)) if k.as_const().is_some() => {
            let k = k.as_const().unwrap_or(0);
            E::same(*x, E::constant(k.wrapping_sub(c), w))
        }
        (E::Bin(Bin::Sub | Bin::Xor, x, y), E::Const(0, _)) => E::same(*x, *y),
        (E::Bin(Bin::Xor, x, k), E::Const(c, _)) if k.as_const().is_some() => {
            let k = k.as_const().unwrap_or(0);
            E::same(*x, E::constant(k ^ c, w))
        }
        (E::Not(x), E::Const(c, _)) if w > 1 => E::same(*x, E::constant(!c, w)),
        (E::Zext(x, _), E::Const(c, _)) => match c <= mask(x.width()) {
            true => {
                let inner = x.width();
                E::same(*x, E::constant(c, inner))
            }
            false => E::bool(false),
        },
        (E::Sext(x, _), E::Const(c, w)) => {
            let inner = x.width();
            match signed(c & mask(inner), inner) == signed(c, w) {
                true => E::same(*x, E::constant(c, inner)),
                false => E::bool(false),
            }
        }
        (E::Zext(x, _), E::Zext(y, _)) if x.width() == y.width() => E::same(*x, *y),
        (E::Sext(x, _), E::Sext(y, _)) if x.width() == y.width() => E::same(*x, *y),
        (E::Ite(c, x, y), E::Const(k, _)) if x.as_const().is_some() && y.as_const().is_some() => {
            match (x.as_const() == Some(k), y.as_const() == Some(k)) {
                (true, true) => E::bool(true),
                (true, false) => *c,
                (false, true) => c.inverted(),
                (false, false) => E::bool(false),
            }
        }
        (a, E::Const(1, 1)) => a,
        (a, E::Const(0, 1)) => a.inverted(),
        (a, E::Const(c, _)) if c > a.most() => E::bool(false),
        (E::Bin(Bin::And, x, k), E::Const(c, _)) if k.as_const().is_some_and(|k| c & !k != 0) => {
            drop(x);
            E::bool(false)
        }
        (a, b) if b < a && !matches!(b, E::Const(..)) => E::Cmp(Cmp::Eq, Box::new(b), Box::new(a)),
        (a, b) => E::Cmp(Cmp::Eq, Box::new(a), Box::new(b)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    const OPS: [Bin; 13] = [
        Bin::Add,
        Bin::Sub,
        Bin::Mul,
        Bin::Udiv,
        Bin::Urem,
        Bin::Sdiv,
        Bin::Srem,
        Bin::And,
        Bin::Or,
        Bin::Xor,
        Bin::Shl,
        Bin::Shr,
        Bin::Sar,
    ];
    const TESTS: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Ult, Cmp::Ule, Cmp::Slt, Cmp::Sle];

    fn number(rng: &mut SmallRng) -> u64 {
        let n: u64 = rng.random();
        match rng.random_range(0..4) {
            0 => n & 3,
            1 => (n & 3).wrapping_neg(),
            2 => 1 << (n & 63),
            _ => n,
        }
    }

    /// An expression as the constructors make it, and as it is written.
    fn random(rng: &mut SmallRng, w: u32, depth: u32) -> (E, E) {
        let leaf = depth == 0 || rng.random_range(0..5) == 0;
        if leaf {
            let e = match rng.random_range(0..3) {
                0 => E::constant(number(rng), w),
                _ => E::Var(VarId(w * 4 + rng.random_range(0..3)), w),
            };
            return (e.clone(), e);
        }
        let pair = |rng: &mut SmallRng, w| (random(rng, w, depth - 1), random(rng, w, depth - 1));
        let widths = [1, 8, 16, 32, 64];
        match rng.random_range(0..8) {
            0..3 => {
                let op = OPS[rng.random_range(0..OPS.len())];
                let ((a, x), (b, y)) = pair(rng, w);
                (E::bin(op, a, b), E::Bin(op, Box::new(x), Box::new(y)))
            }
            3 => {
                let (a, x) = random(rng, w, depth - 1);
                (a.inverted(), E::Not(Box::new(x)))
            }
            4 if w == 1 => {
                let op = TESTS[rng.random_range(0..6)];
                let v = widths[rng.random_range(0..5)];
                let ((a, x), (b, y)) = pair(rng, v);
                (E::test(op, a, b), E::Cmp(op, Box::new(x), Box::new(y)))
            }
            4 | 5 => {
                let wider: Vec<u32> = widths.into_iter().filter(|v| *v > w).collect();
                let narrower: Vec<u32> = widths.into_iter().filter(|v| *v < w).collect();
                if !wider.is_empty() && rng.random() {
                    let v = wider[rng.random_range(0..wider.len())];
                    let low = rng.random_range(0..=v - w);
                    let (a, x) = random(rng, v, depth - 1);
                    (a.extract(low, w), E::Extract(Box::new(x), low, w))
                } else if narrower.is_empty() {
                    random(rng, w, depth - 1)
                } else {
                    let v = narrower[rng.random_range(0..narrower.len())];
                    let (a, x) = random(rng, v, depth - 1);
                    match rng.random() {
                        true => (a.zext(w), E::Zext(Box::new(x), w)),
                        false => (a.sext(w), E::Sext(Box::new(x), w)),
                    }
                }
            }
            6 if w > 8 => {
                let low = rng.random_range(0..=w - 8);
                let (a, x) = random(rng, w, depth - 1);
                let (b, y) = random(rng, 8, depth - 1);
                (a.insert(b, low), E::Insert(Box::new(x), Box::new(y), low))
            }
            _ => {
                let (c, z) = random(rng, 1, depth - 1);
                let ((a, x), (b, y)) = pair(rng, w);
                let raw = E::Ite(Box::new(z), Box::new(x), Box::new(y));
                (E::ite(c, a, b), raw)
            }
        }
    }

    #[test]
    fn simplified_means_the_same() {
        let mut rng = SmallRng::seed_from_u64(7);
        let mut compared = 0;
        for _ in 0..60_000 {
            let w = [1, 8, 16, 32, 64][rng.random_range(0..5)];
            let (simple, raw) = random(&mut rng, w, 4);
            assert_eq!(simple.width(), raw.width(), "{raw} became {simple}");
            for _ in 0..4 {
                let values: Vec<u64> = (0..300).map(|_| number(&mut rng)).collect();
                let of = |v: VarId| values[v.0 as usize];
                if let Some(value) = raw.eval(&of) {
                    assert_eq!(simple.eval(&of), Some(value), "{raw} became {simple}");
                    assert!(
                        value <= raw.most() && value <= simple.most(),
                        "{raw}: {simple}"
                    );
                    compared += 1;
                }
            }
        }
        assert!(compared > 100_000, "{compared}");
    }
}

//! The constructors: what comes out is equal to what went in, and simpler where that is seen.

use super::{Base, Bin, Cmp, E, STACK_ALIGNMENT, apart, mask, signed};

impl E {
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
            // Each part of a word for itself.
            (Bin::And | Bin::Or | Bin::Xor, E::Insert(whole, part, low), E::Const(c, _)) => {
                let n = part.width();
                let part = E::bin(op, *part, E::constant(c >> low, n));
                E::bin(op, *whole, E::constant(c & !(mask(n) << low), w)).insert(part, low)
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
            // The upper part of a word put together from parts.
            (Bin::Shr, a @ E::Insert(..), E::Const(c, _))
                if !matches!(a.clone().extract(c as u32, w - c as u32), E::Extract(..)) =>
            {
                a.extract(c as u32, w - c as u32).zext(w)
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
            // One bit: with a sign it is 0 or −1.
            Cmp::Ult if w == 1 => return E::and(a.inverted(), b),
            Cmp::Ule if w == 1 => return E::or(a.inverted(), b),
            Cmp::Slt if w == 1 => return E::and(a, b.inverted()),
            Cmp::Sle if w == 1 => return E::or(a, b.inverted()),
            Cmp::Ult | Cmp::Ule | Cmp::Slt | Cmp::Sle => {}
        }
        if let Some(low) = seam(&a, &b) {
            return in_order(op, a, b, low);
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
                } else if low <= at && end <= low + w {
                    whole.extract(low, w).insert(*part, at - low)
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
            // What is added to the upper part alone does not come from below.
            E::Bin(Bin::Add, a, k)
                if low > 0
                    && !matches!(*a, E::Address(..))
                    && k.as_const().is_some_and(|k| k & mask(low) == 0) =>
            {
                let k = k.as_const().unwrap_or(0) >> low;
                E::bin(Bin::Add, a.extract(low, w), E::constant(k, w))
            }
            // What is added to a word put together from parts, with the carry from below.
            E::Bin(Bin::Add, a, k)
                if low > 0 && matches!(*a, E::Insert(..)) && k.as_const().is_some() =>
            {
                let k = k.as_const().unwrap_or(0);
                let room = E::constant(mask(low) - (k & mask(low)), low);
                let carry = E::test(Cmp::Ult, room, a.clone().extract(0, low)).zext(w);
                let upper = E::bin(Bin::Add, a.extract(low, w), E::constant(k >> low, w));
                E::bin(Bin::Add, upper, carry)
            }
            E::Bin(Bin::Shl, a, k) if low > 0 && k.as_const().is_some() => {
                match k.as_const().unwrap_or(0) {
                    k if k >= u64::from(low + w) => E::constant(0, w),
                    k if k <= u64::from(low) => a.extract(low - k as u32, w),
                    k => E::Extract(
                        Box::new(E::Bin(
                            Bin::Shl,
                            a.clone(),
                            Box::new(E::constant(k, a.width())),
                        )),
                        low,
                        w,
                    ),
                }
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
            // All of what was put there before is overwritten.
            (E::Insert(whole, old, at), p) if at == low && old.width() <= n => {
                (*whole).insert(p, low)
            }
            (whole, E::Const(0, _)) if whole.most() < 1 << low => whole,
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
}

fn signed_cut(c: u64, width: u32) -> u64 {
    c & mask(width)
}

fn is_mask(c: u64) -> bool {
    c & c.wrapping_add(1) == 0
}

/// `None` for a division without a result.
pub(super) fn fold(op: Bin, x: u64, y: u64, w: u32) -> Option<u64> {
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

pub(super) fn holds(op: Cmp, x: u64, y: u64, w: u32) -> bool {
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
        // Different elements may be the same one: a thread's own and one by number. At different offsets
        // they may, too: one past the end of an object is where the next one begins.
        (E::Address(p, x), E::Address(q, y)) if apart(p, q) && x == y => E::bool(false),
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
        // Words put together from parts are the same if all parts are.
        (a, b) if seam(&a, &b).is_some() => {
            let low = seam(&a, &b).unwrap_or(0);
            let upper = E::same(
                a.clone().extract(low, w - low),
                b.clone().extract(low, w - low),
            );
            E::and(upper, E::same(a.extract(0, low), b.extract(0, low)))
        }
        (a, E::Const(c, _)) if c > a.most() => E::bool(false),
        (E::Bin(Bin::And, x, k), E::Const(c, _)) if k.as_const().is_some_and(|k| c & !k != 0) => {
            drop(x);
            E::bool(false)
        }
        (a, b) if b < a && !matches!(b, E::Const(..)) => E::Cmp(Cmp::Eq, Box::new(b), Box::new(a)),
        (a, b) => E::Cmp(Cmp::Eq, Box::new(a), Box::new(b)),
    }
}

/// Where both words are put together from an upper part and what is below, one of them being no constant:
/// the lowest bit of the upper part.
fn seam(a: &E, b: &E) -> Option<u32> {
    let top = |e: &E| match e {
        E::Insert(below, part, low) => {
            let whole = low + part.width() == below.width() && below.most() <= mask(*low);
            whole.then_some(*low)
        }
        _ => None,
    };
    match (top(a), top(b)) {
        (Some(x), Some(y)) => (x == y).then_some(x),
        (x, None) if b.as_const().is_some() => x,
        (None, y) if a.as_const().is_some() => y,
        _ => None,
    }
}

/// An order of words, by the upper parts first; those below have no sign.
fn in_order(op: Cmp, a: E, b: E, low: u32) -> E {
    let w = a.width();
    let (strict, below) = match op {
        Cmp::Ult => (Cmp::Ult, Cmp::Ult),
        Cmp::Ule => (Cmp::Ult, Cmp::Ule),
        Cmp::Slt => (Cmp::Slt, Cmp::Ult),
        Cmp::Sle => (Cmp::Slt, Cmp::Ule),
        Cmp::Eq | Cmp::Ne => return E::test(op, a, b),
    };
    let upper = |e: &E| e.clone().extract(low, w - low);
    let less = E::test(strict, upper(&a), upper(&b));
    let same = E::same(upper(&a), upper(&b));
    let rest = E::test(below, a.extract(0, low), b.extract(0, low));
    E::or(less, E::and(same, rest))
}

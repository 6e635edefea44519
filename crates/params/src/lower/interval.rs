//! Intervals of integers, and what operators make of them.

use wattle_model::{Expr, Op1, Op2, Type};

/// Both ends included; no end is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub lo: Option<i128>,
    pub hi: Option<i128>,
}

/// Bounds beyond this are none; sums and products of what is within fit the machine.
const LARGE: i128 = 1 << 63;

impl Interval {
    pub const ALL: Interval = Interval { lo: None, hi: None };

    pub fn of(lo: i64, hi: i64) -> Self {
        Interval {
            lo: Some(i128::from(lo)),
            hi: Some(i128::from(hi)),
        }
    }

    fn new(lo: Option<i128>, hi: Option<i128>) -> Self {
        let small = |v: &i128| v.abs() <= LARGE;
        Interval {
            lo: lo.filter(small),
            hi: hi.filter(small),
        }
    }

    pub fn join(self, other: Interval) -> Self {
        Interval {
            lo: self.lo.zip(other.lo).map(|(a, b)| a.min(b)),
            hi: self.hi.zip(other.hi).map(|(a, b)| a.max(b)),
        }
    }

    /// Whether all of it lies within.
    pub fn inside(self, other: Interval) -> bool {
        let low = other.lo.is_none_or(|b| self.lo.is_some_and(|a| a >= b));
        let high = other.hi.is_none_or(|b| self.hi.is_some_and(|a| a <= b));
        low && high
    }

    /// What of it is less than the other, or not more.
    pub fn below(self, other: Interval, strictly: bool) -> Self {
        let most = other.hi.map(|v| v - i128::from(strictly));
        Interval {
            lo: self.lo,
            hi: match (self.hi, most) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
        }
    }

    /// What of it is more than the other, or not less.
    pub fn above(self, other: Interval, strictly: bool) -> Self {
        self.negated().below(other.negated(), strictly).negated()
    }

    /// Without the other, if that is one number at an end.
    pub fn without(self, other: Interval) -> Self {
        let Some((one, last)) = other.ends() else {
            return self;
        };
        let (mut lo, mut hi) = (self.lo, self.hi);
        if one == last && lo == Some(one) {
            lo = Some(one + 1);
        }
        if one == last && hi == Some(one) {
            hi = Some(one - 1);
        }
        Interval { lo, hi }
    }

    pub fn is_empty(self) -> bool {
        self.ends().is_some_and(|(lo, hi)| lo > hi)
    }

    /// What lies within; all of the other if nothing does.
    pub fn within(self, other: Interval) -> Self {
        let both = |a: Option<i128>, b: Option<i128>, f: fn(i128, i128) -> i128| match (a, b) {
            (Some(a), Some(b)) => Some(f(a, b)),
            (a, b) => a.or(b),
        };
        let cut = Interval {
            lo: both(self.lo, other.lo, i128::max),
            hi: both(self.hi, other.hi, i128::min),
        };
        match (cut.lo, cut.hi) {
            (Some(a), Some(b)) if a > b => other,
            _ => cut,
        }
    }

    pub fn plus(self, other: Interval) -> Self {
        let add = |a: Option<i128>, b: Option<i128>| a.zip(b).map(|(a, b)| a + b);
        Interval::new(add(self.lo, other.lo), add(self.hi, other.hi))
    }

    fn negated(self) -> Self {
        Interval::new(self.hi.map(|v| -v), self.lo.map(|v| -v))
    }

    pub fn times(self, k: i64) -> Self {
        let k = i128::from(k);
        let by = |v: Option<i128>| v.and_then(|v| v.checked_mul(k));
        match k {
            0 => Interval::of(0, 0),
            k if k > 0 => Interval::new(by(self.lo), by(self.hi)),
            _ => Interval::new(by(self.hi), by(self.lo)),
        }
    }

    fn ends(self) -> Option<(i128, i128)> {
        self.lo.zip(self.hi)
    }
}

/// What a type can store.
pub fn of_type(ty: Type) -> Interval {
    ty.bounds()
        .map_or(Interval::ALL, |(lo, hi)| Interval::of(lo, hi))
}

/// Bounds of an expression.
pub fn value<A>(e: &Expr<A>, leaf: &dyn Fn(&A) -> Interval) -> Interval {
    let of = |e: &Expr<A>| value(e, leaf);
    match e {
        Expr::Const(c) => Interval::of(*c, *c),
        Expr::Atom(a) => leaf(a),
        Expr::Unary(op, a) => match op {
            Op1::Neg => of(a).negated(),
            Op1::Not => Interval::of(0, 1),
            // ~x = −x − 1
            Op1::BitNot => of(a).negated().plus(Interval::of(-1, -1)),
            Op1::Wrap { bits, signed } => {
                let (bits, signed) = (*bits, *signed);
                let (what, all) = (of(a), of_type(Type::Wrap { bits, signed }));
                if what.inside(all) { what } else { all }
            }
        },
        Expr::Binary(op, a, b) => binary(*op, of(a), of(b)),
        Expr::Ite(_, a, b) => of(a).join(of(b)),
    }
}

fn binary(op: Op2, a: Interval, b: Interval) -> Interval {
    let natural = |v: Interval| v.lo.is_some_and(|lo| lo >= 0);
    match op {
        Op2::Add => a.plus(b),
        Op2::Sub => a.plus(b.negated()),
        Op2::Mul => match a.ends().zip(b.ends()) {
            Some(((a, b), (c, d))) => {
                let all = [(a, c), (a, d), (b, c), (b, d)];
                let all = all.map(|(x, y)| x.checked_mul(y));
                let known = |v: Option<i128>| v.filter(|_| all.iter().all(Option::is_some));
                let each = || all.iter().flatten().copied();
                Interval::new(known(each().min()), known(each().max()))
            }
            None => Interval::ALL,
        },
        // Towards zero: nothing grows.
        Op2::Div => match a.ends() {
            Some((lo, hi)) => {
                let most = lo.abs().max(hi.abs());
                Interval::new(
                    Some(if natural(a) && natural(b) { 0 } else { -most }),
                    Some(most),
                )
            }
            None => Interval::ALL,
        },
        Op2::Rem => match b.ends() {
            Some((lo, hi)) => {
                let most = (lo.abs().max(hi.abs()) - 1).max(0);
                Interval::new(Some(if natural(a) { 0 } else { -most }), Some(most))
            }
            None => Interval::ALL,
        },
        Op2::BitAnd if natural(a) && natural(b) => {
            let hi = match (a.hi, b.hi) {
                (Some(x), Some(y)) => Some(x.min(y)),
                (x, y) => x.or(y),
            };
            Interval::new(Some(0), hi)
        }
        Op2::BitOr | Op2::BitXor if natural(a) && natural(b) => {
            let all = a.hi.zip(b.hi).and_then(|(x, y)| {
                let wide = u128::try_from(x.max(y)).ok()?;
                i128::try_from(wide.checked_add(1)?.checked_next_power_of_two()? - 1).ok()
            });
            Interval::new(Some(0), all)
        }
        Op2::Shr if natural(a) => Interval::new(Some(0), a.hi),
        Op2::BitAnd | Op2::BitOr | Op2::BitXor | Op2::Shl | Op2::Shr => Interval::ALL,
        Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => {
            Interval::of(0, 1)
        }
    }
}

//! Between which numbers the value of an expression lies, where it has one.

use super::{System, Var};
use wattle_model::{Expr, Op1, Op2, Type};

pub(super) struct Bounds<'s> {
    system: &'s System<'s>,
    /// What integers without bounds are kept in.
    plain: Option<(i128, i128)>,
    /// What may be chosen.
    pub chosen: Option<(i64, i64)>,
}

type Interval = Option<(i128, i128)>;

/// Numbers past this are as good as without bounds.
const FAR: i128 = 1 << 100;

impl<'s> Bounds<'s> {
    pub fn new(system: &'s System<'s>, plain: Interval) -> Self {
        let chosen = None;
        Bounds {
            system,
            plain,
            chosen,
        }
    }

    pub fn of(&self, e: &Expr<Var>) -> Interval {
        let found = match e {
            Expr::Const(c) => Some((i128::from(*c), i128::from(*c))),
            Expr::Atom(var) => self.variable(*var),
            Expr::Unary(op, a) => unary(*op, self.of(a)),
            Expr::Binary(op, a, b) => binary(*op, self.of(a), self.of(b)),
            Expr::Ite(_, a, b) => {
                let ((a, b), (c, d)) = (self.of(a)?, self.of(b)?);
                Some((a.min(c), b.max(d)))
            }
        };
        found.filter(|(lo, hi)| *lo >= -FAR && *hi <= FAR)
    }

    fn variable(&self, var: Var) -> Interval {
        let wide = |(lo, hi): (i64, i64)| (i128::from(lo), i128::from(hi));
        match self.system.variable(var) {
            Some(v) => v.ty.bounds().map(wide).or(self.plain),
            None => self.chosen.map(wide),
        }
    }
}

fn unary(op: Op1, a: Interval) -> Interval {
    match op {
        Op1::Not => Some((0, 1)),
        Op1::Neg => a.map(|(lo, hi)| (-hi, -lo)),
        Op1::BitNot => a.map(|(lo, hi)| (-hi - 1, -lo - 1)),
        Op1::Wrap { bits, signed } => {
            let (lo, hi) = Type::Wrap { bits, signed }.bounds()?;
            let (lo, hi) = (i128::from(lo), i128::from(hi));
            match a {
                Some((a, b)) if lo <= a && b <= hi => Some((a, b)),
                _ => Some((lo, hi)),
            }
        }
    }
}

fn binary(op: Op2, a: Interval, b: Interval) -> Interval {
    match op {
        Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => {
            return Some((0, 1));
        }
        // A number that is not negative leaves nothing but some of its bits.
        Op2::BitAnd => {
            let least = |i: Interval| i.filter(|(lo, _)| *lo >= 0).map(|(_, hi)| hi);
            if let Some(most) = [least(a), least(b)].into_iter().flatten().min() {
                return Some((0, most));
            }
        }
        Op2::Add
        | Op2::Sub
        | Op2::Mul
        | Op2::Div
        | Op2::Rem
        | Op2::BitOr
        | Op2::BitXor
        | Op2::Shl
        | Op2::Shr => {}
    }
    let ((al, ah), (bl, bh)) = (a?, b?);
    let corners = |f: &dyn Fn(i128, i128) -> Option<i128>| {
        let all = [f(al, bl)?, f(al, bh)?, f(ah, bl)?, f(ah, bh)?];
        Some((*all.iter().min()?, *all.iter().max()?))
    };
    match op {
        Op2::Add => Some((al + bl, ah + bh)),
        Op2::Sub => Some((al - bh, ah - bl)),
        Op2::Mul => corners(&|x, y| x.checked_mul(y)),
        Op2::Div => {
            let most = al.abs().max(ah.abs());
            let least = if al >= 0 && bl >= 0 { 0 } else { -most };
            Some((least, most))
        }
        Op2::Rem => {
            let most = (bl.abs().max(bh.abs()) - 1).max(0);
            let least = if al >= 0 { 0 } else { -most };
            Some((least, if ah <= 0 { 0 } else { most }))
        }
        Op2::BitAnd | Op2::BitOr | Op2::BitXor => {
            let far = [al, ah, bl, bh].map(|v| if v < 0 { -v - 1 } else { v });
            let most = far.into_iter().max()?;
            let filled = (1i128 << (128 - most.leading_zeros())) - 1;
            let least = if al >= 0 && bl >= 0 { 0 } else { -filled - 1 };
            Some((least, filled))
        }
        Op2::Shl => {
            let by = |s: i128| u32::try_from(s.clamp(0, 63)).ok();
            corners(&|x, s| x.checked_mul(1i128.checked_shl(by(s)?)?))
        }
        Op2::Shr => corners(&|x, s| Some(x >> s.clamp(0, 63))),
        Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => {
            Some((0, 1))
        }
    }
}

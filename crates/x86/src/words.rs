//! Words in the numbers of the model.
//!
//! A word of less than 64 bits is the number it has unsigned, or signed where that is asked for; a word of
//! 64 bits is the number it has signed, because the model's numbers have a sign.

use crate::bits::{Bin, Cmp, E, VarId, mask, signed};
use std::collections::BTreeMap;
use wattle_model::{Expr, Local, Op1, Op2, RegisterId};

pub type M = Expr<Local>;

fn wrap(e: M, width: u32, signed: bool) -> M {
    Expr::unary(
        Op1::Wrap {
            bits: width as u8,
            signed,
        },
        e,
    )
}

pub fn binary(op: Op2, a: M, b: M) -> M {
    Expr::binary(op, a, b)
}

/// Who says what variables are in the model turns expressions into the model's.
pub trait Words {
    /// A variable as a number, or why it is none.
    fn variable(&self, v: VarId) -> Result<M, String>;

    /// Whether a variable of less than 64 bits is a number with a sign.
    fn signed(&self, v: VarId) -> bool;

    /// Whether numbers are mathematical integers, which are never cut.
    fn exact(&self) -> bool {
        false
    }

    /// A comparison of addresses, where these are no numbers.
    fn pointers(&self, _op: Cmp, _a: &E, _b: &E) -> Option<Result<M, String>> {
        None
    }

    /// A number that is cut to its width by where it goes.
    fn outer(&self, e: &E, sign: bool) -> Result<M, String> {
        match e {
            // Sums and differences of narrower words are far from what the model's numbers can hold.
            // One bit goes to a place of 0 and 1, which cuts nothing.
            E::Bin(op @ (Bin::Add | Bin::Sub), a, b) if (2..64).contains(&e.width()) => {
                self.ring(*op, a, b, sign)
            }
            _ => self.read(e, sign),
        }
    }

    /// A sum, difference or product before it is cut.
    fn ring(&self, op: Bin, a: &E, b: &E, sign: bool) -> Result<M, String> {
        let w = a.width();
        let x = self.read(a, sign)?;
        Ok(match (op, b.as_const()) {
            // Adding a large number is taking a small one away.
            (Bin::Add, Some(c)) if signed(c, w) < 0 && signed(c, w) > i64::MIN && w > 1 => {
                binary(Op2::Sub, x, Expr::Const(-signed(c, w)))
            }
            (Bin::Add, _) => binary(Op2::Add, x, self.read(b, sign)?),
            (Bin::Sub, _) => binary(Op2::Sub, x, self.read(b, sign)?),
            (_, _) => binary(Op2::Mul, x, self.read(b, sign)?),
        })
    }

    /// Whether an expression comes with a sign.
    fn natural(&self, e: &E) -> bool {
        match e {
            E::Var(v, _) => self.signed(*v),
            E::Bin(Bin::Sar | Bin::Sdiv | Bin::Srem, ..) | E::Sext(..) => true,
            E::Bin(Bin::Shr | Bin::Udiv | Bin::Urem, ..) => false,
            E::Bin(_, a, b) => self.natural(a) || self.natural(b),
            E::Ite(_, a, b) => self.natural(a) || self.natural(b),
            E::Not(a) => self.natural(a),
            _ => false,
        }
    }

    /// The number without a sign, or of 64 bits with one.
    fn number(&self, e: &E) -> Result<M, String> {
        self.read(e, false)
    }

    /// The number with a sign, of one bit too: 0 or −1.
    fn with_sign(&self, e: &E) -> Result<M, String> {
        match e.width() {
            1 => Ok(binary(Op2::Sub, Expr::Const(0), self.read(e, false)?)),
            _ => self.read(e, true),
        }
    }

    /// The number an expression is, read with or without a sign; 64 bits always have one, one bit never.
    fn read(&self, e: &E, sign: bool) -> Result<M, String> {
        let w = e.width();
        let sign = w == 64 || (sign && w > 1);
        Ok(match e {
            E::Const(c, w) if sign => Expr::Const(signed(*c, *w)),
            E::Const(c, _) => Expr::Const(*c as i64),
            E::Var(v, _) => {
                let register = self.variable(*v)?;
                match w == 64 || w == 1 || self.signed(*v) == sign {
                    true => register,
                    false => wrap(register, w, sign),
                }
            }
            E::Address(..) => return Err("an address is used as a number".to_string()),
            E::Unknown(_) => return Err("a value is used that the code never defines".to_string()),
            E::Not(a) if w == 1 => self.read(a, false)?.negate(),
            E::Not(a) if sign => Expr::unary(Op1::BitNot, self.read(a, true)?),
            E::Not(a) => binary(Op2::Sub, Expr::Const(mask(w) as i64), self.read(a, false)?),
            E::Bin(op, a, b) => return self.binary(*op, a, b, sign),
            E::Cmp(op, a, b) => return self.comparison(*op, a, b),
            E::Zext(a, _) => self.read(a, false)?,
            E::Sext(a, _) => {
                let m = self.with_sign(a)?;
                if sign { m } else { wrap(m, w, false) }
            }
            E::Extract(a, low, _) => {
                let m = self.read(a, self.natural(a))?;
                let m = match low {
                    0 => m,
                    low => binary(Op2::Shr, m, Expr::Const(i64::from(*low))),
                };
                wrap(m, w, sign)
            }
            E::Insert(a, b, low) => {
                let field = mask(b.width()) << low;
                let rest = !field & mask(w);
                let kept = binary(Op2::BitAnd, self.read(a, false)?, Expr::Const(rest as i64));
                let part = match low + b.width() == 64 {
                    true => self.with_sign(b)?,
                    false => self.read(b, false)?,
                };
                let part = match low {
                    0 => part,
                    low => binary(Op2::Shl, part, Expr::Const(i64::from(*low))),
                };
                let m = binary(Op2::BitOr, kept, part);
                if sign && w < 64 { wrap(m, w, true) } else { m }
            }
            E::Ite(c, a, b) => Expr::ite(
                self.read(c, false)?,
                self.read(a, sign)?,
                self.read(b, sign)?,
            ),
        })
    }

    fn binary(&self, op: Bin, a: &E, b: &E, sign: bool) -> Result<M, String> {
        let w = a.width();
        let cut = |m: M| match self.exact() {
            true => m,
            false => wrap(m, w, sign),
        };
        let fixed = b.as_const();
        let most = if sign { mask(w) >> 1 } else { mask(w) };
        let amount = || "a shift by this amount is not supported".to_string();
        Ok(match op {
            Bin::Add | Bin::Mul => {
                let exact = match op {
                    Bin::Add => a.most().checked_add(b.most()),
                    _ => a.most().checked_mul(b.most()),
                };
                let m = self.ring(op, a, b, sign)?;
                // A large number may have become a small one that is taken away.
                let added = fixed.is_none_or(|c| signed(c, w) >= 0);
                let fits = added && exact.is_some_and(|s| s <= most);
                if fits { m } else { cut(m) }
            }
            Bin::Sub => cut(self.ring(op, a, b, sign)?),
            Bin::And if w == 1 => binary(Op2::And, self.read(a, false)?, self.read(b, false)?),
            Bin::Or if w == 1 => binary(Op2::Or, self.read(a, false)?, self.read(b, false)?),
            Bin::Xor if w == 1 => binary(Op2::Ne, self.read(a, false)?, self.read(b, false)?),
            // Low bits are the same with and without a sign.
            Bin::And if fixed.is_some_and(|c| c <= mask(w) >> 1) => {
                let c = Expr::Const(fixed.unwrap_or(0) as i64);
                let whole = match a {
                    E::Extract(whole, 0, _) => whole,
                    a => a,
                };
                binary(Op2::BitAnd, self.read(whole, self.natural(whole))?, c)
            }
            Bin::And => binary(Op2::BitAnd, self.read(a, sign)?, self.read(b, sign)?),
            Bin::Or => binary(Op2::BitOr, self.read(a, sign)?, self.read(b, sign)?),
            Bin::Xor => binary(Op2::BitXor, self.read(a, sign)?, self.read(b, sign)?),
            Bin::Shl => {
                if b.most() >= 64 {
                    return Err(amount());
                }
                let m = binary(Op2::Shl, self.read(a, sign)?, self.read(b, false)?);
                let fits = fixed.is_some_and(|c| c < 63 && a.most() <= most >> c);
                if fits { m } else { cut(m) }
            }
            Bin::Shr if w < 64 => {
                if b.most() >= 64 {
                    return Err(amount());
                }
                let m = binary(Op2::Shr, self.read(a, false)?, self.read(b, false)?);
                let fits = !sign || fixed.is_some_and(|c| c > 0);
                if fits { m } else { cut(m) }
            }
            Bin::Shr => match fixed {
                Some(c) if c > 0 && c < 64 => {
                    let m = binary(Op2::Shr, self.read(a, true)?, Expr::Const(c as i64));
                    binary(Op2::BitAnd, m, Expr::Const((u64::MAX >> c) as i64))
                }
                _ if a.most() <= i64::MAX as u64 && b.most() < 64 => {
                    binary(Op2::Shr, self.read(a, true)?, self.read(b, true)?)
                }
                _ => return Err("a shift of 64 bits by a register is not supported".to_string()),
            },
            // The one bit is the sign.
            Bin::Sar if w == 1 => self.read(a, false)?,
            Bin::Sdiv | Bin::Srem if w == 1 => {
                return Err("a division of single bits is not supported".to_string());
            }
            Bin::Sar => {
                if b.most() >= 64 {
                    return Err(amount());
                }
                let m = binary(Op2::Shr, self.read(a, true)?, self.read(b, false)?);
                if sign { m } else { cut(m) }
            }
            Bin::Udiv | Bin::Urem => {
                let small = |e: &E| e.most() <= i64::MAX as u64;
                if !small(a) || !small(b) {
                    return Err("an unsigned division of 64 bits is not supported".to_string());
                }
                let op = if op == Bin::Udiv { Op2::Div } else { Op2::Rem };
                let m = binary(op, self.read(a, false)?, self.read(b, false)?);
                if sign && w < 64 { cut(m) } else { m }
            }
            Bin::Sdiv | Bin::Srem => {
                let op = if op == Bin::Sdiv { Op2::Div } else { Op2::Rem };
                let m = binary(op, self.read(a, true)?, self.read(b, true)?);
                if sign { m } else { cut(m) }
            }
        })
    }

    fn comparison(&self, op: Cmp, a: &E, b: &E) -> Result<M, String> {
        let w = a.width();
        let (op, a, b) = match op {
            // The one bit is the sign: 1 is less than 0.
            Cmp::Slt if w == 1 => (Cmp::Ult, b, a),
            Cmp::Sle if w == 1 => (Cmp::Ule, b, a),
            op => (op, a, b),
        };
        if let Some(told) = self.pointers(op, a, b) {
            return told;
        }
        let flip = |m: M| binary(Op2::BitXor, m, Expr::Const(i64::MIN));
        let small = |e: &E| e.most() <= i64::MAX as u64;
        let (sign, flipped) = match op {
            Cmp::Eq | Cmp::Ne => (self.natural(a) || self.natural(b), false),
            Cmp::Ult | Cmp::Ule => (false, w == 64 && !(small(a) && small(b))),
            Cmp::Slt | Cmp::Sle => (true, false),
        };
        let (mut x, mut y) = (self.read(a, sign)?, self.read(b, sign)?);
        if flipped {
            // Next to a constant it is told in terms of its sign, which engines understand.
            let strict = op == Cmp::Ult;
            match (x.as_const(), y.as_const()) {
                (None, Some(k)) => return Ok(below(x, k, strict)),
                (Some(k), None) => {
                    return Ok(Expr::unary(Op1::Not, below(y, k, !strict)));
                }
                (None, None) | (Some(_), Some(_)) => (x, y) = (flip(x), flip(y)),
            }
        }
        let op = match op {
            Cmp::Eq => Op2::Eq,
            Cmp::Ne => Op2::Ne,
            Cmp::Ult | Cmp::Slt => Op2::Lt,
            Cmp::Ule | Cmp::Sle => Op2::Le,
        };
        Ok(binary(op, x, y))
    }
}

/// Whether `m`, as a number of 64 bits without a sign, is less than `k` (or equal to it).
fn below(m: M, k: i64, strict: bool) -> M {
    let op = if strict { Op2::Lt } else { Op2::Le };
    let positive = binary(Op2::Le, Expr::Const(0), m.clone());
    let less = binary(op, m, Expr::Const(k));
    binary(if k < 0 { Op2::Or } else { Op2::And }, positive, less)
}

/// Panics if an expression has another value in the model's arithmetic than this, as a number with a sign or
/// without: for tests.
pub fn agrees(e: &E, of: &impl Fn(VarId) -> u64, value: u64) {
    struct Signs(u64);
    impl Words for Signs {
        fn variable(&self, v: VarId) -> Result<M, String> {
            Ok(Expr::Atom(Local::Register(RegisterId(v.0))))
        }

        // Some variables have a sign, by chance.
        fn signed(&self, v: VarId) -> bool {
            (u64::from(v.0) ^ self.0).is_multiple_of(3)
        }
    }
    let mut widths = BTreeMap::new();
    e.for_each(&mut |part| {
        if let E::Var(v, w) = part {
            widths.insert(v.0, *w);
        }
    });
    let signs = Signs(value);
    for sign in [false, true] {
        // Some things are refused; what is not refused is right.
        let Ok(said) = signs.read(e, sign) else {
            return;
        };
        let read = |value: u64, width: u32, sign: bool| match sign && width > 1 {
            true => signed(value, width),
            false => (value & mask(width)) as i64,
        };
        let got = said.eval(&|l: &Local| match l {
            Local::Register(r) => {
                let v = VarId(r.0);
                read(of(v), widths[&r.0], signs.signed(v))
            }
            _ => 0,
        });
        assert_eq!(got, Ok(read(value, e.width(), sign)), "{e} is {said:?}");
    }
}

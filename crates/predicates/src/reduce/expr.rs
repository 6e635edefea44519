//! Register expressions and conditions as linear terms and formulas.
//!
//! A value is a list of cases, each a condition and a linear term: `?:` and comparisons used as
//! numbers split. What is not linear is refused. Arithmetic is mathematical, as the language says;
//! the 64 bits of the reference machine are a limit of its own that a replay would meet.

use wattle_logic::{Formula, Int, Term, and, divides, eq, ge, gt, ite, le, lt, ne, not, or};
use wattle_model::{Expr, Op1, Op2, Type};

/// More cases than this for one expression are refused.
const MAX_CASES: usize = 64;

pub type Cases = Vec<(Formula, Term)>;

/// Why something is not linear (or not enough so), and what would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    pub why: String,
    pub hint: &'static str,
}

impl Unfit {
    pub fn new(why: impl Into<String>, hint: &'static str) -> Self {
        let why = why.into();
        Unfit { why, hint }
    }
}

/// What leaves stand for, and what is kept of numbers that are cast.
pub trait Leaves<A> {
    fn leaf(&self, a: &A) -> Result<Term, Unfit>;

    /// The low bits of each.
    fn cast(&self, _ty: Type, _cases: Cases) -> Result<Cases, Unfit> {
        let why = "it wraps numbers around, which is not linear";
        Err(Unfit::new(why, NO_WRAP))
    }
}

impl<A, F: Fn(&A) -> Result<Term, Unfit>> Leaves<A> for F {
    fn leaf(&self, a: &A) -> Result<Term, Unfit> {
        self(a)
    }
}

pub type Leaf<'l, A> = dyn Leaves<A> + 'l;

const LINEAR: &str = "sums, differences, products with a constant, comparisons, `?:`, remainders by a \
                      constant that are compared with one, and remainders by 2 to 32 would work";
pub const NO_WRAP: &str = "a range such as `0..255` or `int` would work; `--engine explicit` treats types \
                       that wrap around";
const FEWER: &str = "splitting the expression over several assignments would work";

/// The expression's value, by cases that exclude each other and leave nothing out.
pub fn values<A>(e: &Expr<A>, leaf: &Leaf<'_, A>) -> Result<Cases, Unfit> {
    Ok(match e {
        Expr::Const(c) => vec![(Formula::True, Term::constant(*c))],
        Expr::Atom(a) => vec![(Formula::True, leaf.leaf(a)?)],
        Expr::Unary(Op1::Neg, a) => scale(values(a, leaf)?, -1, 0),
        Expr::Unary(Op1::BitNot, a) => scale(values(a, leaf)?, -1, -1),
        Expr::Unary(Op1::Wrap { bits, signed }, a) => {
            let (bits, signed) = (*bits, *signed);
            few(leaf.cast(Type::Wrap { bits, signed }, values(a, leaf)?)?)?
        }
        Expr::Binary(Op2::Add, a, b) => pairs(a, b, leaf, &|x, y| Ok(x + y))?,
        Expr::Binary(Op2::Sub, a, b) => pairs(a, b, leaf, &|x, y| Ok(x - y))?,
        Expr::Binary(Op2::Mul, a, b) => pairs(a, b, leaf, &product)?,
        Expr::Binary(Op2::Rem, a, b) if modulus(b).is_some() => {
            remainders(values(a, leaf)?, modulus(b).unwrap_or(1))?
        }
        Expr::Binary(Op2::BitAnd, a, b) if mask(b).is_some() => {
            residues(values(a, leaf)?, mask(b).unwrap_or(1))?
        }
        Expr::Binary(op, a, b) if !op.is_logical() => {
            let why = || {
                let why = format!("the operator `{}` is not linear", op.symbol());
                Unfit::new(why, LINEAR)
            };
            pairs(a, b, leaf, &|x, y| {
                let (x, y) = (number(&x).ok_or_else(why)?, number(&y).ok_or_else(why)?);
                let value = op
                    .apply(x, y)
                    .map_err(|e| Unfit::new(e.to_string(), LINEAR))?;
                Ok(Term::constant(value))
            })?
        }
        Expr::Ite(c, a, b) => {
            let c = truth(c, leaf)?;
            let mut cases = under(&c, values(a, leaf)?);
            cases.extend(under(&not(&c), values(b, leaf)?));
            few(cases)?
        }
        Expr::Unary(Op1::Not, _) | Expr::Binary(..) => {
            let f = truth(e, leaf)?;
            let one = vec![(Formula::True, Term::constant(1))];
            let mut cases = under(&f, one);
            let zero = vec![(Formula::True, Term::constant(0))];
            cases.extend(under(&not(&f), zero));
            cases
        }
    })
}

/// Whether the expression is not zero.
pub fn truth<A>(e: &Expr<A>, leaf: &Leaf<'_, A>) -> Result<Formula, Unfit> {
    Ok(match e {
        Expr::Const(c) => Formula::from(*c != 0),
        Expr::Unary(Op1::Not, a) => not(&truth(a, leaf)?),
        Expr::Binary(Op2::And, a, b) => and([truth(a, leaf)?, truth(b, leaf)?]),
        Expr::Binary(Op2::Or, a, b) => or([truth(a, leaf)?, truth(b, leaf)?]),
        // A remainder that is only compared with a constant needs no cases, so any divisor will do.
        Expr::Binary(op @ (Op2::Eq | Op2::Ne), a, b)
            if remainder(a).is_some() && b.as_const().is_some() =>
        {
            let same = remainder_is(a, b.as_const().unwrap_or(0), leaf)?;
            if *op == Op2::Eq { same } else { not(&same) }
        }
        Expr::Binary(op @ (Op2::Eq | Op2::Ne), a, b)
            if remainder(b).is_some() && a.as_const().is_some() =>
        {
            let same = remainder_is(b, a.as_const().unwrap_or(0), leaf)?;
            if *op == Op2::Eq { same } else { not(&same) }
        }
        Expr::Binary(op, a, b) if op.is_logical() => {
            let compare: fn(Term, Term) -> Formula = match op {
                Op2::Eq => eq,
                Op2::Ne => ne,
                Op2::Lt => lt,
                Op2::Le => le,
                Op2::Gt => gt,
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
                | Op2::Ge
                | Op2::And
                | Op2::Or => ge,
            };
            let (a, b) = (values(a, leaf)?, values(b, leaf)?);
            let mut parts = Vec::new();
            for (g, x) in &a {
                for (h, y) in &b {
                    let holds = compare(x.clone(), y.clone());
                    parts.push(and([g.clone(), h.clone(), holds]));
                }
            }
            or(parts)
        }
        Expr::Ite(c, a, b) => ite(&truth(c, leaf)?, &truth(a, leaf)?, &truth(b, leaf)?),
        e @ (Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..)) => {
            let cases = values(e, leaf)?;
            or(cases.into_iter().map(|(g, t)| and([g, ne(t, 0)])))
        }
    })
}

/// `a % m` with a constant divisor.
fn remainder<A>(e: &Expr<A>) -> Option<(&Expr<A>, i64)> {
    match e {
        Expr::Binary(Op2::Rem, a, m) => {
            let m = m.as_const().filter(|m| *m >= 2)?;
            Some((a, m))
        }
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => None,
    }
}

/// Whether the remainder is this number; it has the sign of the dividend.
fn remainder_is<A>(e: &Expr<A>, r: i64, leaf: &Leaf<'_, A>) -> Result<Formula, Unfit> {
    let Some((a, m)) = remainder(e) else {
        return Ok(Formula::False);
    };
    if r.unsigned_abs() >= m.unsigned_abs() {
        // The dividend may still be something we do not treat.
        values(a, leaf)?;
        return Ok(Formula::False);
    }
    let cases = values(a, leaf)?.into_iter().map(|(guard, t)| {
        let divided = divides(m, t.clone() - r);
        let sign = match r.signum() {
            0 => Formula::True,
            1 => ge(t, 0),
            _ => le(t, 0),
        };
        and([guard, divided, sign])
    });
    Ok(or(cases))
}

/// Remainders by more than this are refused where their value is needed: each is two cases.
const MAX_MODULUS: i64 = 32;

fn modulus<A>(e: &Expr<A>) -> Option<i64> {
    e.as_const().filter(|m| (2..=MAX_MODULUS).contains(m))
}

/// The power of two whose remainders a constant masks out.
fn mask<A>(e: &Expr<A>) -> Option<i64> {
    let m = e.as_const()?.checked_add(1)?;
    (m & (m - 1) == 0 && (2..=MAX_MODULUS).contains(&m)).then_some(m)
}

/// The remainder counted from zero.
fn residues(cases: Cases, m: i64) -> Result<Cases, Unfit> {
    let mut out = Vec::new();
    for (guard, t) in cases {
        for r in 0..m {
            let here = divides(m, t.clone() - r);
            out.push((and([guard.clone(), here]), Term::constant(r)));
        }
    }
    out.retain(|(g, _)| *g != Formula::False);
    few(out)
}

/// The remainder has the sign of the dividend.
fn remainders(cases: Cases, m: i64) -> Result<Cases, Unfit> {
    let mut out = Vec::new();
    for (guard, t) in cases {
        for r in 0..m {
            let up = and([ge(t.clone(), 0), divides(m, t.clone() - r)]);
            out.push((and([guard.clone(), up]), Term::constant(r)));
            let down = and([lt(t.clone(), 0), divides(m, t.clone() + r)]);
            out.push((and([guard.clone(), down]), Term::constant(-r)));
        }
    }
    out.retain(|(g, _)| *g != Formula::False);
    few(out)
}

fn number(t: &Term) -> Option<i64> {
    t.as_constant().and_then(Int::to_i64)
}

fn product(x: Term, y: Term) -> Result<Term, Unfit> {
    match (x.as_constant(), y.as_constant()) {
        (Some(k), _) => Ok(y.scaled(k)),
        (_, Some(k)) => Ok(x.scaled(k)),
        _ => {
            let why = "it multiplies two variables, which is not linear";
            Err(Unfit::new(why, LINEAR))
        }
    }
}

fn scale(cases: Cases, k: i64, plus: i64) -> Cases {
    let scaled = |t: Term| t.scaled(&Int::from(k)) + Term::constant(plus);
    cases.into_iter().map(|(g, t)| (g, scaled(t))).collect()
}

fn under(c: &Formula, cases: Cases) -> Cases {
    let guarded = cases.into_iter().map(|(g, t)| (and([c.clone(), g]), t));
    guarded.filter(|(g, _)| *g != Formula::False).collect()
}

fn few(cases: Cases) -> Result<Cases, Unfit> {
    if cases.len() > MAX_CASES {
        let why = format!("an expression has more than {MAX_CASES} cases");
        return Err(Unfit::new(why, FEWER));
    }
    Ok(cases)
}

fn pairs<A>(
    a: &Expr<A>,
    b: &Expr<A>,
    leaf: &Leaf<'_, A>,
    combine: &dyn Fn(Term, Term) -> Result<Term, Unfit>,
) -> Result<Cases, Unfit> {
    let (a, b) = (values(a, leaf)?, values(b, leaf)?);
    let mut cases = Vec::new();
    for (g, x) in &a {
        for (h, y) in &b {
            let guard = and([g.clone(), h.clone()]);
            if guard != Formula::False {
                cases.push((guard, combine(x.clone(), y.clone())?));
            }
        }
    }
    few(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with a constant, a remainder is what the machine says it is, for divisors of any size.
    #[test]
    fn remainders_compared_with_constants() {
        for m in [2, 7, 100] {
            for v in -230..230 {
                for r in [-m - 1, -m, 1 - m, -3, -1, 0, 1, 5, m - 1, m] {
                    let value = |_: &()| Ok(Term::constant(v));
                    let rem = Expr::binary(Op2::Rem, Expr::Atom(()), Expr::Const(m));
                    for (op, wanted) in [(Op2::Eq, v % m == r), (Op2::Ne, v % m != r)] {
                        let there = Expr::binary(op, rem.clone(), Expr::Const(r));
                        let back = Expr::binary(op, Expr::Const(r), rem.clone());
                        for e in [there, back] {
                            let f = truth(&e, &value).expect("linear enough");
                            assert_eq!(f, Formula::from(wanted), "{v} % {m} against {r}");
                        }
                    }
                }
            }
        }
    }
}

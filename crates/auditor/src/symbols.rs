//! The domain of symbols: values are linear terms over integers, a question has both answers.
//!
//! [`Symbols::explore`] runs the rules once for every list of answers. What was answered, and the
//! definitions that operators need besides (`a = m·q + r`), is the condition of the path. Operators
//! mean what they mean for numbers, exactly, or are refused: integers are mathematical here, and a
//! machine that overflows has no verdict. Where no linear term says it, variables that have few
//! values are tried one by one.
//!
//! *Every run of the machine is a path*: give the variables the values of the machine's state; the
//! rules ask the same questions in the same order, the path with the machine's answers has a true
//! condition (the definitions determine the other variables), and its result has the machine's
//! values. *Every path is a run*: the other way round. The tests of this module drive both domains
//! with random programs.

mod known;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use wattle_logic::{Formula, Int, Term, Var, and, eq, ge, iff, le, lt, ne, not, or};
use wattle_model::{ArithmeticError, Domain, NoValue, Op1, Op2, Valued};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    Number(Term),
    /// 1 where the formula holds, else 0.
    Truth(Formula),
    /// Any of these numbers; without a bound, all on that side. One of them once it is settled.
    OneOf(Option<i64>, Option<i64>),
}

impl From<Var> for Value {
    fn from(v: Var) -> Self {
        Value::Number(v.into())
    }
}

/// An operator that the solver has no words for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLinear(pub String);

/// Something that may happen, and when.
#[derive(Clone, Debug)]
pub struct Path<T> {
    pub when: Vec<Formula>,
    pub then: T,
}

/// More answers than this on one path, or paths of one step, are refused.
const MOST: usize = 4096;

#[derive(Clone, Debug, Default)]
pub struct Symbols {
    next: u32,
    /// What is known, and what has been answered and defined on this path.
    path: Vec<Formula>,
    known: FxHashSet<Formula>,
    few: BTreeMap<Var, Vec<i64>>,
    ranges: BTreeMap<Var, (i64, i64)>,
    /// Quotient and remainder by a number, towards zero or counted from a least remainder; and truth as a
    /// number. The same question gets the same variables on every path.
    quotients: BTreeMap<(Term, Int, Option<Int>), (Var, Var)>,
    truths: BTreeMap<Formula, Var>,
    definitions: FxHashSet<Formula>,
    /// The answers of this path so far; the first of them are given.
    given: Vec<bool>,
    answers: Vec<bool>,
    /// No question may be asked: whoever does is noted, and what it computes thrown away.
    straight: bool,
    asked: bool,
}

impl Symbols {
    pub fn fresh(&mut self) -> Var {
        self.next += 1;
        Var(self.next)
    }

    /// From now on this holds.
    pub fn know(&mut self, fact: Formula) {
        for f in fact.conjuncts() {
            if self.known.insert(f.clone()) {
                self.path.push(f.clone());
            }
        }
    }

    /// The variable is known to have one of these values.
    pub fn few(&mut self, v: Var, values: Vec<i64>) {
        if let (Some(lo), Some(hi)) = (values.iter().min(), values.iter().max()) {
            self.range(v, *lo, *hi);
        }
        self.few.insert(v, values);
    }

    /// The variable is known to lie between.
    pub fn range(&mut self, v: Var, lo: i64, hi: i64) {
        let (a, b) = self.ranges.get(&v).copied().unwrap_or((lo, hi));
        self.ranges.insert(v, (lo.max(a), hi.min(b)));
    }

    /// Between which bounds the term lies, if that is known.
    fn bounds(&self, t: &Term) -> Option<(Int, Int)> {
        let mut sum = (t.constant_part().clone(), t.constant_part().clone());
        for (v, a) in t.coeffs() {
            let (lo, hi) = self.ranges.get(v)?;
            let (x, y) = (a * &Int::from(*lo), a * &Int::from(*hi));
            sum.0 = &sum.0 + (&x).min(&y);
            sum.1 = &sum.1 + (&x).max(&y);
        }
        Some(sum)
    }

    /// From now on this holds, by the choice of a variable's value.
    fn define(&mut self, definition: Formula) {
        self.definitions
            .extend(definition.conjuncts().iter().cloned());
        self.know(definition);
    }

    /// What the variables of operators are, on every path: for all values of the others there are some
    /// for these.
    pub fn definitions(&self) -> Vec<Formula> {
        let mut all: Vec<Formula> = self.definitions.iter().cloned().collect();
        all.sort_unstable();
        all
    }

    /// Everything that may come of it, each with its condition.
    pub fn explore<T>(
        &mut self,
        mut run: impl FnMut(&mut Symbols) -> T,
    ) -> Result<Vec<Path<T>>, NotLinear> {
        let (path, known) = (self.path.len(), self.known.clone());
        let mut all = Vec::new();
        self.given.clear();
        loop {
            self.answers.clear();
            let then = run(self);
            let when = self.path.split_off(path);
            self.known.clone_from(&known);
            if self.answers.len() > MOST || all.len() > MOST {
                return Err(NotLinear("a step has too many ways".into()));
            }
            all.push(Path { when, then });
            self.given.clone_from(&self.answers);
            while self.given.last() == Some(&false) {
                self.given.pop();
            }
            match self.given.last_mut() {
                Some(last) => *last = false,
                None => return Ok(all),
            }
        }
    }

    /// Whether it holds: on this path.
    pub fn decide(&mut self, question: Formula) -> bool {
        let no = not(&question);
        if question == Formula::True || self.known.contains(&question) {
            return true;
        }
        if question == Formula::False || self.known.contains(&no) {
            return false;
        }
        if self.straight {
            self.asked = true;
            return true;
        }
        let given = self.given.get(self.answers.len()).copied();
        let answer = given.unwrap_or(true);
        self.answers.push(answer);
        self.know(if answer { question } else { no });
        answer
    }

    pub fn formula(&mut self, v: &Value) -> Formula {
        match v {
            Value::Truth(f) => f.clone(),
            Value::Number(_) | Value::OneOf(..) => ne(self.term(v.clone()), 0),
        }
    }

    pub fn term(&mut self, v: Value) -> Term {
        match v {
            Value::Number(t) => t,
            Value::Truth(Formula::True) => Term::constant(1),
            Value::Truth(Formula::False) => Term::constant(0),
            Value::Truth(f) => {
                let v = match self.truths.get(&f) {
                    Some(v) => *v,
                    None => self.fresh(),
                };
                self.truths.insert(f.clone(), v);
                self.few(v, vec![0, 1]);
                self.define(and([ge(v, 0), le(v, 1), iff(&f, &eq(v, 1))]));
                v.into()
            }
            Value::OneOf(lo, hi) => {
                let v = self.fresh();
                self.know(and(lo.map(|lo| ge(v, lo))));
                self.know(and(hi.map(|hi| le(v, hi))));
                v.into()
            }
        }
    }

    /// The term as a number, trying the values of its variables one by one.
    fn number(&mut self, t: &Term) -> Option<i64> {
        let mut rest = t.clone();
        for (v, _) in t.coeffs() {
            let values = self.few.get(v)?.clone();
            let (last, others) = values.split_last()?;
            let found = others.iter().find(|c| self.decide(eq(*v, **c)));
            let value = *found.unwrap_or(last);
            self.know(eq(*v, value));
            rest = rest.subst(&|w| (w == *v).then(|| Term::constant(value)));
        }
        rest.as_constant().and_then(Int::to_i64)
    }

    /// `a = m·q + r`, with `r` as the caller demands.
    fn divided(&mut self, a: &Term, m: &Int, from: Option<Int>) -> (Var, Var) {
        let key = (a.clone(), m.clone(), from);
        let (q, r) = match self.quotients.get(&key) {
            Some(known) => *known,
            None => (self.fresh(), self.fresh()),
        };
        self.quotients.insert(key, (q, r));
        self.define(eq(a.clone(), Term::monomial(m.clone(), q) + Term::from(r)));
        (q, r)
    }

    /// Quotient rounded towards zero, and remainder with the sign of the dividend.
    fn truncated(&mut self, a: &Term, m: &Int) -> (Term, Term) {
        let (q, r) = self.divided(a, m, None);
        let m = m.abs();
        self.define(or([
            and([ge(a.clone(), 0), ge(r, 0), lt(r, m.clone())]),
            and([lt(a.clone(), 0), le(r, 0), lt(-Term::from(r), m)]),
        ]));
        (q.into(), r.into())
    }

    /// Quotient rounded down, and the remainder counted from `lo`.
    fn floored(&mut self, a: &Term, m: &Int, lo: &Int) -> (Term, Term) {
        let (q, r) = self.divided(a, m, Some(lo.clone()));
        self.define(and([ge(r, lo.clone()), lt(r, lo + m)]));
        (q.into(), r.into())
    }

    /// The low bits of it. All 64 are a number with a sign, of `u64` too.
    fn wrapped(&mut self, a: &Term, bits: u8, signed: bool) -> Term {
        let bits = bits.clamp(1, 64);
        let m = power(u32::from(bits));
        let lo = match signed || bits == 64 {
            true => -power(u32::from(bits) - 1),
            false => Int::ZERO,
        };
        if let Some(c) = a.as_constant() {
            return Term::constant((c - &lo).mod_floor(&m) + &lo);
        }
        let inside = |(least, most): (Int, Int)| lo <= least && most < &lo + &m;
        if self.bounds(a).is_some_and(inside) {
            return a.clone();
        }
        self.floored(a, &m, &lo).1
    }

    fn arithmetic(&mut self, op: Op2, a: Term, b: Term) -> Valued<Symbols> {
        let refused = || NoValue::Refused(NotLinear(format!("`{}` is not linear", op.symbol())));
        let (x, y) = (a.as_constant().cloned(), b.as_constant().cloned());
        let linear = match (op, &x, &y) {
            (Op2::Add, ..) => Some(&a + &b),
            (Op2::Sub, ..) => Some(&a - &b),
            (Op2::Mul, Some(k), _) => Some(b.scaled(k)),
            (Op2::Mul, _, Some(k)) => Some(a.scaled(k)),
            (Op2::Div | Op2::Rem, _, _) if self.decide(eq(b.clone(), 0)) => {
                return Err(ArithmeticError::DivisionByZero.into());
            }
            (Op2::Div, None, Some(m)) => Some(self.truncated(&a, m).0),
            (Op2::Rem, None, Some(m)) => Some(self.truncated(&a, m).1),
            (Op2::Shl | Op2::Shr, ..) if !self.within(&Value::Number(b.clone()), 0, 63) => {
                return Err(ArithmeticError::ShiftOutOfRange.into());
            }
            (Op2::Shl, _, Some(s)) => Some(a.scaled(&shift(s))),
            (Op2::Shr, None, Some(s)) => Some(self.floored(&a, &shift(s), &Int::ZERO).0),
            (Op2::BitAnd, None, Some(k)) if is_low(k) => self.common(&a, k),
            (Op2::BitAnd, Some(k), None) if is_low(k) => self.common(&b, k),
            _ => None,
        };
        if let Some(t) = linear {
            return Ok(Value::Number(t));
        }
        if let (Some(a), Some(b)) = (self.number(&a), self.number(&b)) {
            return Ok(Value::Number(Term::constant(op.apply(a, b)?)));
        }
        let (other, k) = match (x, y) {
            (None, Some(k)) => (a, k),
            (Some(k), None) => (b, k),
            _ => return Err(refused()),
        };
        let all = &other + &Term::constant(k.clone());
        Ok(Value::Number(match (op, self.common(&other, &k)) {
            (Op2::BitAnd, Some(common)) => common,
            (Op2::BitOr, Some(common)) => all - common,
            (Op2::BitXor, Some(common)) => all - common.scaled(&Int::from(2)),
            _ => return Err(refused()),
        }))
    }

    /// `a & k` for any number `k`: a run of ones in it is what is below its end without what is below its
    /// beginning.
    fn common(&mut self, a: &Term, k: &Int) -> Option<Term> {
        let k = k.to_i64()?;
        // Ones of `k` or, where they have no end, its zeros.
        let mut ones = if k < 0 { !k } else { k };
        let mut sum = Term::constant(0);
        while ones != 0 {
            let from = ones.trailing_zeros();
            let to = from + (ones >> from).trailing_ones();
            sum = sum + self.wrapped(a, to as u8, false);
            if from > 0 {
                sum = sum - self.wrapped(a, from as u8, false);
            }
            ones &= i64::MAX.checked_shl(to).unwrap_or(0);
        }
        Some(if k < 0 { a - &sum } else { sum })
    }
}

/// Whether it is 0, −1 or 1…1 in binary.
fn is_low(k: &Int) -> bool {
    (k.to_i64()).is_some_and(|k| k & k.wrapping_add(1) == 0)
}

fn power(bits: u32) -> Int {
    Int::from(1i128 << bits)
}

/// 2 to the power of a shift's amount.
fn shift(by: &Int) -> Int {
    power(by.to_i64().and_then(|s| u32::try_from(s).ok()).unwrap_or(0))
}

impl Domain for Symbols {
    type Value = Value;
    type Refusal = NotLinear;

    fn constant(&mut self, c: i64) -> Value {
        Value::Number(Term::constant(c))
    }

    fn unary(&mut self, op: Op1, a: Value) -> Valued<Self> {
        Ok(match op {
            Op1::Not => Value::Truth(not(&self.formula(&a))),
            Op1::Neg => Value::Number(-self.term(a)),
            Op1::BitNot => Value::Number(-self.term(a) - 1),
            Op1::Wrap { bits, signed } => {
                let a = self.term(a);
                Value::Number(self.wrapped(&a, bits, signed))
            }
        })
    }

    fn binary(&mut self, op: Op2, a: Value, b: Value) -> Valued<Self> {
        let truths = match (&a, &b) {
            (Value::Truth(f), Value::Truth(g)) => Some((f.clone(), g.clone())),
            _ => None,
        };
        Ok(Value::Truth(match (op, truths) {
            (Op2::And, _) => and([self.formula(&a), self.formula(&b)]),
            (Op2::Or, _) => or([self.formula(&a), self.formula(&b)]),
            (Op2::BitAnd, Some((f, g))) => and([f, g]),
            (Op2::BitOr, Some((f, g))) => or([f, g]),
            (Op2::BitXor | Op2::Ne, Some((f, g))) => not(&iff(&f, &g)),
            (Op2::Eq, Some((f, g))) => iff(&f, &g),
            (Op2::Eq, None) => eq(self.term(a), self.term(b)),
            (Op2::Ne, None) => ne(self.term(a), self.term(b)),
            (Op2::Lt, _) => lt(self.term(a), self.term(b)),
            (Op2::Le, _) => le(self.term(a), self.term(b)),
            (Op2::Gt, _) => lt(self.term(b), self.term(a)),
            (Op2::Ge, _) => le(self.term(b), self.term(a)),
            (
                Op2::Add
                | Op2::Sub
                | Op2::Mul
                | Op2::Div
                | Op2::Rem
                | Op2::BitAnd
                | Op2::BitOr
                | Op2::BitXor
                | Op2::Shl
                | Op2::Shr,
                _,
            ) => {
                let (a, b) = (self.term(a), self.term(b));
                return self.arithmetic(op, a, b);
            }
        }))
    }

    fn truth(&mut self, v: &Value) -> bool {
        let holds = self.formula(v);
        self.decide(holds)
    }

    fn within(&mut self, v: &Value, lo: i64, hi: i64) -> bool {
        let t = self.term(v.clone());
        self.decide(and([ge(t.clone(), lo), le(t, hi)]))
    }

    /// The right operand is a formula beside the left one, unless it asks questions or has no value:
    /// then the left one comes first.
    fn lazy<E>(
        &mut self,
        settles: bool,
        left: Value,
        mut right: impl FnMut(&mut Self) -> Result<Value, E>,
    ) -> Result<Value, E> {
        let left = self.formula(&left);
        let (outer, length) = ((self.straight, self.asked), self.path.len());
        (self.straight, self.asked) = (true, false);
        let beside = right(self);
        let alone = !self.asked;
        (self.straight, self.asked) = outer;
        match beside {
            Ok(right) if alone => {
                let right = self.formula(&right);
                return Ok(Value::Truth(match settles {
                    true => or([left, right]),
                    false => and([left, right]),
                }));
            }
            _ => {
                for f in self.path.split_off(length) {
                    self.known.remove(&f);
                }
            }
        }
        if self.decide(left) == settles {
            return Ok(Value::Truth(settles.into()));
        }
        let right = right(self)?;
        Ok(Value::Truth(self.formula(&right)))
    }

    fn settle(&mut self, v: Value) -> Value {
        Value::Number(self.term(v))
    }
}

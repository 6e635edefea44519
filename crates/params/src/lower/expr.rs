//! Expressions as formulas and linear terms. What depends on a condition is split into alternatives
//! that exclude each other.

use super::amount::{Amount, Share, fits};
use super::interval::{Interval, of_type};
use super::{Lowering, Refused, equal, refuse};
use wattle_model::array::{Access, Formula, Term, ThreadTerm};
use wattle_model::{Expr, Op1, Op2, RegionId, Span, Type};

/// Σ coefficient · cell + constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Linear {
    pub parts: Vec<(i64, Access)>,
    pub constant: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    None,
    Is(ThreadTerm),
    /// The thread in a cell, unless the flag says there is none.
    Held {
        cell: Access,
        none: Access,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Val {
    Number(Linear),
    Thread(Identity),
    /// A number of threads.
    Share(Share),
    /// The counter's value before this transition, plus a little.
    Counter {
        region: RegionId,
        delta: i64,
    },
}

pub type Alternatives = Vec<(Vec<Formula>, Val)>;

pub(super) const FALSE: Formula = Formula::Or(Vec::new());
/// More alternatives than this are refused.
const MOST: usize = 256;

impl Linear {
    pub fn constant(c: i64) -> Self {
        Linear {
            parts: Vec::new(),
            constant: c,
        }
    }

    pub fn cell(a: Access) -> Self {
        Linear {
            parts: vec![(1, a)],
            constant: 0,
        }
    }

    /// The one cell it is, if it is one.
    pub fn as_cell(&self) -> Option<&Access> {
        match (&self.parts[..], self.constant) {
            ([(1, a)], 0) => Some(a),
            _ => None,
        }
    }

    fn scaled(&self, k: i64) -> Option<Linear> {
        let parts = self
            .parts
            .iter()
            .map(|(c, a)| Some((c.checked_mul(k)?, a.clone())))
            .collect::<Option<Vec<_>>>()?;
        Some(Linear {
            parts,
            constant: self.constant.checked_mul(k)?,
        })
    }

    fn plus(&self, other: &Linear) -> Option<Linear> {
        let mut parts = self.parts.clone();
        for (c, a) in &other.parts {
            match parts.iter_mut().find(|(_, b)| b == a) {
                Some((k, _)) => *k += c,
                None => parts.push((*c, a.clone())),
            }
        }
        parts.retain(|(c, _)| *c != 0);
        Some(Linear {
            parts,
            constant: self.constant.checked_add(other.constant)?,
        })
    }

    pub fn term(&self) -> Term {
        Term::Sum {
            parts: self.parts.clone(),
            constant: self.constant,
        }
    }
}

/// Names for leaves.
pub type Leaf<'l, A> = dyn Fn(&A) -> Result<Val, Refused> + 'l;

impl Lowering<'_> {
    /// The value of an expression, by cases.
    pub(super) fn value<A>(
        &self,
        e: &Expr<A>,
        leaf: &Leaf<'_, A>,
        span: Span,
    ) -> Result<Alternatives, Refused> {
        let out = match e {
            Expr::Const(c) => vec![(Vec::new(), Val::Number(Linear::constant(*c)))],
            Expr::Atom(a) => vec![(Vec::new(), leaf(a)?)],
            Expr::Unary(Op1::Not, _) => self.both(e, leaf, span)?,
            Expr::Unary(op, a) => {
                let mut out = Vec::new();
                for (g, v) in self.spread(self.value(a, leaf, span)?)? {
                    let result = match op {
                        Op1::Neg => number(&v, span)?.scaled(-1).map(Val::Number),
                        // ~x = −x − 1
                        Op1::BitNot | Op1::Not => {
                            let negative = number(&v, span)?.scaled(-1);
                            let less = negative.and_then(|n| n.plus(&Linear::constant(-1)));
                            less.map(Val::Number)
                        }
                        Op1::Wrap { bits, signed } => Some(self.wrapped(v, *bits, *signed, span)?),
                    };
                    out.push((g, result.ok_or_else(|| too_large(span))?));
                }
                out
            }
            Expr::Binary(op, ..) if op.is_logical() => self.both(e, leaf, span)?,
            Expr::Binary(op, a, b) => self.arithmetic(*op, a, b, leaf, span)?,
            Expr::Ite(c, a, b) => {
                let mut out = Vec::new();
                for (positive, branch) in [(true, a), (false, b)] {
                    let condition = self.truth(c, leaf, positive, span)?;
                    for (mut g, v) in self.value(branch, leaf, span)? {
                        g.insert(0, condition.clone());
                        out.push((g, v));
                    }
                }
                out
            }
        };
        match out.len() > MOST {
            true => Err(refuse(
                span,
                "this expression has too many cases",
                "split it into several statements",
            )),
            false => Ok(out),
        }
    }

    /// A cast. Where it may change the number it is refused, unless it is the arithmetic of one
    /// wrap-around type, which is taken not to wrap.
    fn wrapped(&self, v: Val, bits: u8, signed: bool, span: Span) -> Result<Val, Refused> {
        let l = match v {
            Val::Number(l) => l,
            Val::Share(s) if s.counts() && fits(bits, signed) => return Ok(v),
            Val::Counter { .. } | Val::Thread(Identity::Is(_)) if fits(bits, signed) => {
                return Ok(v);
            }
            Val::Share(_) | Val::Counter { .. } | Val::Thread(_) => {
                return Err(refuse(
                    span,
                    format!("a number of threads, or a thread, is cut off to {bits} bits"),
                    "fix the number of threads",
                ));
            }
        };
        let ty = Type::Wrap { bits, signed };
        if l.parts.is_empty() {
            let cut = ty.admit(l.constant).unwrap_or(l.constant);
            return Ok(Val::Number(Linear::constant(cut)));
        }
        let cells = l.parts.iter();
        let range = cells.fold(Interval::of(l.constant, l.constant), |sum, (k, a)| {
            let one = self.bounds.get(&a.cell).copied();
            sum.plus(one.unwrap_or(Interval::ALL).times(*k))
        });
        if range.inside(of_type(ty)) {
            return Ok(Val::Number(l));
        }
        let types = |cell: u16| self.types.get(&cell).copied();
        if l.parts.iter().all(|(_, a)| types(a.cell) == Some(ty)) {
            let names = l.parts.iter().map(|(_, a)| self.named(a.cell));
            self.may_wrap.borrow_mut().extend(names);
            return Ok(Val::Number(l));
        }
        Err(refuse(
            span,
            format!("a number that may not fit is cut off to {bits} bits"),
            "give the number a small range, or fix the number of threads",
        ))
    }

    fn arithmetic<A>(
        &self,
        op: Op2,
        a: &Expr<A>,
        b: &Expr<A>,
        leaf: &Leaf<'_, A>,
        span: Span,
    ) -> Result<Alternatives, Refused> {
        let (left, right) = (self.value(a, leaf, span)?, self.value(b, leaf, span)?);
        // A counter plus or minus a constant stays a counter.
        if let ([(g, Val::Counter { region, delta })], [(h, Val::Number(l))]) =
            (&left[..], &right[..])
            && l.parts.is_empty()
            && matches!(op, Op2::Add | Op2::Sub)
        {
            let sign = if op == Op2::Add { 1 } else { -1 };
            let delta = delta + sign * l.constant;
            if (-1..=1).contains(&delta) {
                let guards = g.iter().chain(h).cloned().collect();
                return Ok(vec![(
                    guards,
                    Val::Counter {
                        region: *region,
                        delta,
                    },
                )]);
            }
        }
        let mut out = Vec::new();
        for (g, v) in self.spread(left)? {
            for (h, w) in self.spread(right.clone())? {
                if let Some(amounts) = counted(op, &v, &w) {
                    let guards: Vec<Formula> = g.iter().chain(&h).cloned().collect();
                    out.extend(amounts.into_iter().map(|a| (guards.clone(), a.into())));
                    continue;
                }
                let (x, y) = (number(&v, span)?, number(&w, span)?);
                let constants = x.parts.is_empty() && y.parts.is_empty();
                let result = match op {
                    op if constants => {
                        let folded = op.apply(x.constant, y.constant);
                        folded.ok().map(Linear::constant)
                    }
                    Op2::Add => x.plus(&y),
                    Op2::Sub => y.scaled(-1).and_then(|n| x.plus(&n)),
                    Op2::Mul if x.parts.is_empty() => y.scaled(x.constant),
                    Op2::Mul if y.parts.is_empty() => x.scaled(y.constant),
                    Op2::Mul
                    | Op2::Div
                    | Op2::Rem
                    | Op2::BitAnd
                    | Op2::BitOr
                    | Op2::BitXor
                    | Op2::Shl
                    | Op2::Shr
                    | Op2::Eq
                    | Op2::Ne
                    | Op2::Lt
                    | Op2::Le
                    | Op2::Gt
                    | Op2::Ge
                    | Op2::And
                    | Op2::Or => {
                        return Err(refuse(
                            span,
                            format!(
                                "`{}` of unbounded numbers cannot be treated for any number of threads",
                                op.symbol()
                            ),
                            "give the numbers a small range, or fix the number of threads",
                        ));
                    }
                };
                let result = result.ok_or_else(|| too_large(span))?;
                out.push((g.iter().chain(&h).cloned().collect(), Val::Number(result)));
            }
        }
        Ok(out)
    }

    /// 1 where the condition holds, 0 where it does not.
    fn both<A>(
        &self,
        e: &Expr<A>,
        leaf: &Leaf<'_, A>,
        span: Span,
    ) -> Result<Alternatives, Refused> {
        Ok(vec![
            (
                vec![self.truth(e, leaf, true, span)?],
                Val::Number(Linear::constant(1)),
            ),
            (
                vec![self.truth(e, leaf, false, span)?],
                Val::Number(Linear::constant(0)),
            ),
        ])
    }

    /// Finite cells as their constants, one alternative each.
    fn spread(&self, list: Alternatives) -> Result<Alternatives, Refused> {
        let mut out = Vec::new();
        for (g, v) in list {
            let finite = match &v {
                Val::Number(l) => l
                    .as_cell()
                    .filter(|a| self.few.contains_key(&a.cell))
                    .cloned(),
                Val::Thread(_) | Val::Share(_) | Val::Counter { .. } => None,
            };
            match finite {
                None => out.push((g, v)),
                Some(a) => {
                    for c in &self.few[&a.cell] {
                        let mut guards = g.clone();
                        guards.push(self.is_value(&a, *c));
                        out.push((guards, (*c).into()));
                    }
                }
            }
        }
        Ok(out)
    }

    pub(super) fn is_value(&self, a: &Access, c: Amount) -> Formula {
        let domain = &self.few[&a.cell];
        match self.finite(c).filter(|_| domain.contains(&c)) {
            Some(v) => equal(Term::Read(a.clone()), v),
            None => FALSE,
        }
    }

    /// The condition (or its negation) as a formula.
    pub(super) fn truth<A>(
        &self,
        e: &Expr<A>,
        leaf: &Leaf<'_, A>,
        positive: bool,
        span: Span,
    ) -> Result<Formula, Refused> {
        match e {
            Expr::Const(c) => Ok(if (*c != 0) == positive {
                Formula::TRUE
            } else {
                FALSE
            }),
            Expr::Unary(Op1::Not, a) => self.truth(a, leaf, !positive, span),
            Expr::Binary(op @ (Op2::And | Op2::Or), a, b) => {
                let parts = vec![
                    self.truth(a, leaf, positive, span)?,
                    self.truth(b, leaf, positive, span)?,
                ];
                Ok(match (*op == Op2::And) == positive {
                    true => Formula::And(parts).simplified(),
                    false => Formula::Or(parts),
                })
            }
            Expr::Binary(op, a, b) if op.is_logical() => {
                let (left, right) = (self.value(a, leaf, span)?, self.value(b, leaf, span)?);
                let mut cases = Vec::new();
                for (g, v) in &left {
                    for (h, w) in &right {
                        let literal = self.compare(*op, v, w, positive, span)?;
                        let mut all: Vec<Formula> = g.iter().chain(h).cloned().collect();
                        all.push(literal);
                        cases.push(Formula::And(all).simplified());
                    }
                }
                Ok(Formula::Or(cases).simplified())
            }
            other @ (Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..)) => {
                let zero = Val::Number(Linear::constant(0));
                let mut cases = Vec::new();
                for (g, v) in self.value(other, leaf, span)? {
                    let literal = self.compare(Op2::Ne, &v, &zero, positive, span)?;
                    let mut all = g;
                    all.push(literal);
                    cases.push(Formula::And(all).simplified());
                }
                Ok(Formula::Or(cases).simplified())
            }
        }
    }
}

fn number(v: &Val, span: Span) -> Result<Linear, Refused> {
    match v {
        Val::Number(l) => Ok(l.clone()),
        Val::Thread(_) => Err(refuse(
            span,
            "arithmetic on a thread identifier",
            "identifiers can be copied, compared and used as indexes; count with a number instead",
        )),
        Val::Share(_) => Err(refuse(
            span,
            "arithmetic on a number of threads",
            "it can be compared with 0 and with the number of threads, and counted up or down by one; or fix the number of threads",
        )),
        Val::Counter { .. } => Err(refuse(
            span,
            "a counter can only be reset, counted up or down by one, and compared with 0 and with the number of threads",
            "use an ordinary number",
        )),
    }
}

impl From<Amount> for Val {
    fn from(a: Amount) -> Self {
        match a {
            Amount::Number(c) => Val::Number(Linear::constant(c)),
            Amount::Threads(share) => Val::Share(share),
        }
    }
}

/// One more or one less than an amount of threads: one of these.
fn counted(op: Op2, v: &Val, w: &Val) -> Option<Vec<Amount>> {
    let one = |v: &Val| match v {
        Val::Number(l) if l.parts.is_empty() => l.constant,
        Val::Number(_) | Val::Thread(_) | Val::Share(_) | Val::Counter { .. } => 0,
    };
    let (share, more) = match (op == Op2::Add, op == Op2::Sub, v, w) {
        (true, _, Val::Share(s), k) | (true, _, k, Val::Share(s)) => (s, one(k)),
        (_, true, Val::Share(s), k) => (s, one(k).saturating_neg()),
        (true | false, true | false, ..) => return None,
    };
    match more {
        1 => Some(share.plus_one()),
        -1 => Some(share.less_one()),
        _ => None,
    }
}

pub(super) fn no_counter(span: Span) -> Refused {
    refuse(
        span,
        "a number of threads is compared with something else than 0 and all threads",
        "what counts threads begins as `= count(…)` or is `! as counter`; compare that with 0 or `count(…)`, or fix the number of threads",
    )
}

fn too_large(span: Span) -> Refused {
    refuse(
        span,
        "the numbers here are too large",
        "use smaller constants",
    )
}

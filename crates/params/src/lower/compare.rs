//! Comparisons of values: numbers, threads, amounts of threads.

use super::amount::{Amount, Share};
use super::expr::{FALSE, Identity, Linear, Val, no_counter};
use super::{Lowering, Refused, different, equal, refuse};
use std::cmp::Ordering;
use wattle_model::array::{Access, Comparison, Formula, Literal, Term};
use wattle_model::{Op2, Span};

impl Lowering<'_> {
    pub(super) fn compare(
        &self,
        op: Op2,
        v: &Val,
        w: &Val,
        positive: bool,
        span: Span,
    ) -> Result<Formula, Refused> {
        let op = match (op, positive) {
            (op, true) => op,
            (Op2::Eq, false) => Op2::Ne,
            (Op2::Ne, false) => Op2::Eq,
            (Op2::Lt, false) => Op2::Ge,
            (Op2::Le, false) => Op2::Gt,
            (Op2::Gt, false) => Op2::Le,
            (Op2::Ge, false) => Op2::Lt,
            (op, false) => op,
        };
        match (v, w) {
            (Val::Thread(a), Val::Thread(b)) => self.compare_threads(op, a, b, span),
            (Val::Share(a), Val::Share(b)) => known(op, a.compared(*b), span),
            (Val::Share(a), Val::Number(l)) => self.compare_share(op, *a, l, span),
            (Val::Number(l), Val::Share(a)) => self.compare_share(flipped(op), *a, l, span),
            (Val::Thread(a), Val::Number(l)) | (Val::Number(l), Val::Thread(a)) => {
                let (eq, ne) = (op == Op2::Eq, op == Op2::Ne);
                match l.parts.is_empty() && (eq || ne) {
                    true if l.constant == -1 => self.compare_threads(op, a, &Identity::None, span),
                    _ => Err(refuse(
                        span,
                        "a thread identifier is compared with a number",
                        "compare it with `self`, `none` or another identifier",
                    )),
                }
            }
            (Val::Number(x), Val::Number(y)) => self.compare_numbers(op, x, y, span),
            (Val::Thread(_), Val::Share(_)) | (Val::Share(_), Val::Thread(_)) => {
                Err(no_counter(span))
            }
            (Val::Counter { .. }, _) | (_, Val::Counter { .. }) => Err(refuse(
                span,
                "a counter is compared in the middle of a step",
                "load it into a register first",
            )),
        }
    }

    /// An amount of threads compared with a number.
    fn compare_share(
        &self,
        op: Op2,
        share: Share,
        l: &Linear,
        span: Span,
    ) -> Result<Formula, Refused> {
        if let Some(a) = l.as_cell().filter(|a| self.few.contains_key(&a.cell)) {
            let mut cases = Vec::new();
            for c in &self.few[&a.cell] {
                let rest = self.compare_amounts(flipped(op), *c, &Val::Share(share), span)?;
                cases.push(Formula::And(vec![self.is_value(a, *c), rest]).simplified());
            }
            return Ok(Formula::Or(cases).simplified());
        }
        let order = match (l.parts.is_empty(), l.constant, share) {
            (true, c, Share::Negative) if c >= 0 => Some(Ordering::Less),
            (true | false, _, Share::Negative) => None,
            // At least one thread is counted, and there is one.
            (true, c, Share::Some | Share::All | Share::More) if c <= 0 => Some(Ordering::Greater),
            (true, 1, Share::More) => Some(Ordering::Greater),
            (true, 1, Share::Some | Share::All) if matches!(op, Op2::Lt | Op2::Ge) => {
                Some(Ordering::Greater)
            }
            (true | false, _, Share::Some | Share::All | Share::More) => None,
        };
        known(op, order, span)
    }

    /// One value of a finite cell compared with something.
    fn compare_amounts(&self, op: Op2, c: Amount, w: &Val, span: Span) -> Result<Formula, Refused> {
        self.compare(op, &c.into(), w, true, span)
    }

    /// Whether a finite cell holds numbers only.
    fn plain(&self, a: &Access) -> bool {
        self.few[&a.cell].iter().all(|c| c.number().is_some())
    }

    fn compare_numbers(
        &self,
        op: Op2,
        x: &Linear,
        y: &Linear,
        span: Span,
    ) -> Result<Formula, Refused> {
        if x.parts.is_empty() && y.parts.is_empty() {
            let holds = op.apply(x.constant, y.constant).is_ok_and(|v| v != 0);
            return Ok(if holds { Formula::TRUE } else { FALSE });
        }
        let finite = |l: &Linear| {
            l.as_cell()
                .filter(|a| self.few.contains_key(&a.cell))
                .cloned()
        };
        match (finite(x), finite(y)) {
            (Some(a), Some(b))
                if matches!(op, Op2::Eq | Op2::Ne) && self.plain(&a) && self.plain(&b) =>
            {
                let (a, b) = (Term::Read(a), Term::Read(b));
                Ok(if op == Op2::Eq {
                    equal(a, b)
                } else {
                    different(a, b)
                })
            }
            (Some(a), _) => {
                let mut cases = Vec::new();
                for c in &self.few[&a.cell] {
                    let y = Val::Number(y.clone());
                    let rest = self.compare_amounts(op, *c, &y, span)?;
                    if rest != FALSE {
                        cases.push(Formula::And(vec![self.is_value(&a, *c), rest]).simplified());
                    }
                }
                Ok(Formula::Or(cases).simplified())
            }
            (None, Some(_)) => self.compare_numbers(flipped(op), y, x, span),
            (None, None) => {
                let (left, op, right) = match op {
                    Op2::Eq => (x, Comparison::Eq, y),
                    Op2::Ne => (x, Comparison::Ne, y),
                    Op2::Lt => (x, Comparison::Lt, y),
                    Op2::Le => (x, Comparison::Le, y),
                    Op2::Gt => (y, Comparison::Lt, x),
                    Op2::Ge => (y, Comparison::Le, x),
                    other @ (Op2::Add
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
                    | Op2::Or) => return Err(not_compared(other, span)),
                };
                Ok(Formula::Atom(Literal {
                    left: left.term(),
                    op,
                    right: right.term(),
                }))
            }
        }
    }

    fn compare_threads(
        &self,
        op: Op2,
        a: &Identity,
        b: &Identity,
        span: Span,
    ) -> Result<Formula, Refused> {
        let positive = match op {
            Op2::Eq => true,
            Op2::Ne => false,
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
            | Op2::Lt
            | Op2::Le
            | Op2::Gt
            | Op2::Ge
            | Op2::And
            | Op2::Or => {
                let (Identity::Is(a), Identity::Is(b)) = (a, b) else {
                    return Err(refuse(
                        span,
                        "thread identifiers are ordered",
                        "only `self` and index variables can be ordered; compare others with `==`",
                    ));
                };
                let (a, b) = (Term::Thread(*a), Term::Thread(*b));
                let (left, op, right) = match op {
                    Op2::Lt => (a, Comparison::Lt, b),
                    Op2::Le => (a, Comparison::Le, b),
                    Op2::Gt => (b, Comparison::Lt, a),
                    Op2::Ge => (b, Comparison::Le, a),
                    other @ (Op2::Add
                    | Op2::Sub
                    | Op2::Mul
                    | Op2::Div
                    | Op2::Rem
                    | Op2::BitAnd
                    | Op2::BitOr
                    | Op2::BitXor
                    | Op2::Shl
                    | Op2::Shr
                    | Op2::Eq
                    | Op2::Ne
                    | Op2::And
                    | Op2::Or) => return Err(not_compared(other, span)),
                };
                return Ok(Formula::Atom(Literal { left, op, right }));
            }
        };
        let flag = |none: &Access, value: bool| equal(Term::Read(none.clone()), Term::Bool(value));
        let same = |l: Term, r: Term| {
            if positive {
                equal(l, r)
            } else {
                different(l, r)
            }
        };
        Ok(match (a, b) {
            (Identity::None, Identity::None) => {
                if positive {
                    Formula::TRUE
                } else {
                    FALSE
                }
            }
            (Identity::None, Identity::Is(_)) | (Identity::Is(_), Identity::None) => {
                if positive {
                    FALSE
                } else {
                    Formula::TRUE
                }
            }
            (Identity::None, Identity::Held { none, .. })
            | (Identity::Held { none, .. }, Identity::None) => flag(none, positive),
            (Identity::Is(a), Identity::Is(b)) => same(Term::Thread(*a), Term::Thread(*b)),
            (Identity::Is(t), Identity::Held { cell, none })
            | (Identity::Held { cell, none }, Identity::Is(t)) => {
                let literal = same(Term::Read(cell.clone()), Term::Thread(*t));
                match positive {
                    true => Formula::And(vec![flag(none, false), literal]),
                    false => Formula::Or(vec![
                        flag(none, true),
                        Formula::And(vec![flag(none, false), literal]),
                    ]),
                }
            }
            (Identity::Held { cell: c, none: n }, Identity::Held { cell: d, none: m }) => {
                let literal = same(Term::Read(c.clone()), Term::Read(d.clone()));
                let somebody = Formula::And(vec![flag(n, false), flag(m, false), literal]);
                match positive {
                    true => Formula::Or(vec![
                        Formula::And(vec![flag(n, true), flag(m, true)]),
                        somebody,
                    ]),
                    false => Formula::Or(vec![
                        Formula::And(vec![flag(n, true), flag(m, false)]),
                        Formula::And(vec![flag(n, false), flag(m, true)]),
                        somebody,
                    ]),
                }
            }
        })
    }
}

/// The comparison with both sides exchanged.
fn flipped(op: Op2) -> Op2 {
    match op {
        Op2::Lt => Op2::Gt,
        Op2::Le => Op2::Ge,
        Op2::Gt => Op2::Lt,
        Op2::Ge => Op2::Le,
        same @ (Op2::Add
        | Op2::Sub
        | Op2::Mul
        | Op2::Div
        | Op2::Rem
        | Op2::BitAnd
        | Op2::BitOr
        | Op2::BitXor
        | Op2::Shl
        | Op2::Shr
        | Op2::Eq
        | Op2::Ne
        | Op2::And
        | Op2::Or) => same,
    }
}

/// A comparison whose sides are in this order, if that is known.
fn known(op: Op2, order: Option<Ordering>, span: Span) -> Result<Formula, Refused> {
    let order = order.ok_or_else(|| no_counter(span))?;
    let holds = match op {
        Op2::Eq => order.is_eq(),
        Op2::Ne => order.is_ne(),
        Op2::Lt => order.is_lt(),
        Op2::Le => order.is_le(),
        Op2::Gt => order.is_gt(),
        Op2::Ge => order.is_ge(),
        other @ (Op2::Add
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
        | Op2::Or) => return Err(not_compared(other, span)),
    };
    Ok(if holds { Formula::TRUE } else { FALSE })
}

fn not_compared(op: Op2, span: Span) -> Refused {
    refuse(
        span,
        format!("`{}` where a comparison is expected", op.symbol()),
        "compare with `==`, `<` and the like",
    )
}

//! What the names of a file mean, and expressions that need no memory: constants, lengths, ranges,
//! initial values.

use super::super::ast::{Ex, ExKind, Name};
use super::refuse;
use crate::Diagnostic;
use crate::wtl::Collector;
use std::collections::HashMap;
use wattle_model::{Count, Expr, FamilyId, Length, Local, Observation, Op1, Op2, RegionId, Type};

/// A register expression, and whether a named constant went into it. Only those are folded: what
/// the author spelled out stays as it is.
#[derive(Clone, Debug)]
pub(super) struct Value<A = Local> {
    pub expr: Expr<A>,
    pub named: bool,
}

impl<A> Value<A> {
    pub fn spelled(expr: Expr<A>) -> Self {
        Value { expr, named: false }
    }

    pub fn named(value: i64) -> Self {
        Value {
            expr: Expr::Const(value),
            named: true,
        }
    }

    pub fn unary(op: Op1, a: Self) -> Self {
        if let (true, Some(c)) = (a.named, a.expr.as_const())
            && let Ok(v) = op.apply(c)
        {
            return Value::named(v);
        }
        Value {
            named: a.named,
            expr: Expr::unary(op, a.expr),
        }
    }

    pub fn binary(op: Op2, a: Self, b: Self) -> Self {
        let named = a.named || b.named;
        if let (true, Some(x), Some(y)) = (named, a.expr.as_const(), b.expr.as_const())
            && let Ok(v) = op.apply(x, y)
        {
            return Value::named(v);
        }
        Value {
            expr: Expr::binary(op, a.expr, b.expr),
            named,
        }
    }

    pub fn ite(c: Self, a: Self, b: Self) -> Self {
        let named = c.named || a.named || b.named;
        match c.expr.as_const() {
            Some(0) if c.named => b,
            Some(_) if c.named => a,
            _ => Value {
                expr: Expr::ite(c.expr, a.expr, b.expr),
                named,
            },
        }
    }
}

/// The constants of a thread that are in scope.
pub(super) type Constants = HashMap<String, Value>;

/// Names declared outside of threads.
#[derive(Default)]
pub(super) struct Names {
    pub constants: HashMap<String, i64>,
    pub regions: HashMap<String, RegionId>,
    pub families: HashMap<String, FamilyId>,
    /// By region.
    pub shapes: Vec<(Length, Type)>,
    /// By family.
    pub counts: Vec<Count>,
}

impl Names {
    /// The region, with whether it is an array.
    pub fn region(&self, name: &str) -> Option<(RegionId, bool)> {
        let id = *self.regions.get(name)?;
        let shape = self.shapes.get(id.index());
        Some((id, shape.is_some_and(|s| s.0 != Length::Scalar)))
    }

    pub fn family(&self, name: &Name, report: &mut Collector) -> Option<FamilyId> {
        let found = self.families.get(&name.text).copied();
        if found.is_none() {
            let d = refuse::no_family(self, name, report);
            report.push(d);
        }
        found
    }

    /// An expression of constants, `self`, counts and addresses. `inner` knows constants of the
    /// thread.
    pub fn fixed(&self, e: &Ex, inner: &Constants, report: &mut Collector) -> Option<Value> {
        let wrong = |report: &mut Collector, d: Diagnostic| {
            report.push(d);
            None
        };
        match &e.kind {
            ExKind::SelfIndex => Some(Value::spelled(Expr::Atom(Local::SelfIndex))),
            ExKind::Name(name, None) => {
                let global = || self.constants.get(&name.text).map(|c| Value::named(*c));
                let found = inner.get(&name.text).cloned().or_else(global);
                found.or_else(|| wrong(report, refuse::not_constant(self, name, report)))
            }
            ExKind::Name(_, Some(_))
            | ExKind::Memory(_)
            | ExKind::Field(..)
            | ExKind::Seen(..)
            | ExKind::At(..)
            | ExKind::Cas(..)
            | ExKind::Swap(..)
            | ExKind::FetchAdd(..)
            | ExKind::Later(..)
            | ExKind::Between(..) => wrong(report, refuse::reads(e)),
            ExKind::Count(_) | ExKind::AddressOf(..) => {
                self.outside(e, report, |report, e| self.fixed(e, inner, report))
            }
            ExKind::Number(_) | ExKind::Unary(..) | ExKind::Binary(..) | ExKind::Ite(..) => {
                computed(e, |e| self.fixed(e, inner, report))
            }
        }
    }

    /// What means the same everywhere: how many threads, where memory lies.
    pub fn outside<A: Outside>(
        &self,
        e: &Ex,
        report: &mut Collector,
        part: impl FnOnce(&mut Collector, &Ex) -> Option<Value<A>>,
    ) -> Option<Value<A>> {
        let atom = |a| Some(Value::spelled(Expr::Atom(a)));
        let (name, index) = match &e.kind {
            ExKind::Count(f) => return atom(A::count(self.family(f, report)?)),
            ExKind::AddressOf(name, index) => (name, index),
            _ => return None,
        };
        let base = match self.region(&name.text) {
            None => Err(refuse::no_address(name)),
            Some((_, false)) if index.is_some() => Err(refuse::element(name.span, name, false)),
            Some((region, _)) => Ok(A::address_of(region)),
        };
        let base = base.map_or_else(
            |d| {
                report.push(d);
                None
            },
            atom,
        );
        match index {
            None => base,
            Some(i) => {
                let i = part(report, i);
                Some(Value::binary(Op2::Add, base?, i?))
            }
        }
    }

    /// A number known now.
    pub fn number(&self, e: &Ex, inner: &Constants, report: &mut Collector) -> Option<i64> {
        let known = constant(&self.fixed(e, inner, report)?.expr);
        if known.is_none() {
            report.push(refuse::not_known(e));
        }
        known
    }
}

/// An operator, after its operands, all of which are looked at.
pub(super) fn computed<A>(
    e: &Ex,
    mut part: impl FnMut(&Ex) -> Option<Value<A>>,
) -> Option<Value<A>> {
    Some(match &e.kind {
        ExKind::Number(n) => Value::spelled(Expr::Const(*n)),
        ExKind::Unary(op, a) => Value::unary(*op, part(a)?),
        ExKind::Binary(op, a, b) => {
            let (a, b) = (part(a), part(b));
            Value::binary(*op, a?, b?)
        }
        ExKind::Ite(c, a, b) => {
            let (c, a, b) = (part(c), part(a), part(b));
            Value::ite(c?, a?, b?)
        }
        _ => return None,
    })
}

/// Leaves that mean the same everywhere.
pub(super) trait Outside {
    fn address_of(region: RegionId) -> Self;
    fn count(family: FamilyId) -> Self;
}

impl Outside for Local {
    fn address_of(region: RegionId) -> Self {
        Local::AddressOf(region)
    }

    fn count(family: FamilyId) -> Self {
        Local::Count(family)
    }
}

impl Outside for Observation {
    fn address_of(region: RegionId) -> Self {
        Observation::AddressOf(region)
    }

    fn count(family: FamilyId) -> Self {
        Observation::Count(family)
    }
}

/// The value of an expression without leaves.
pub(super) fn constant<A>(e: &Expr<A>) -> Option<i64> {
    let mut leaves = false;
    e.for_each_atom(&mut |_| leaves = true);
    if leaves {
        return None;
    }
    e.eval(&|_: &A| 0).ok()
}

//! What the names of a file mean, and expressions that need no memory: constants, lengths, ranges,
//! initial values.

use super::super::ast::{Ex, ExKind, Name};
use super::refuse;
use crate::Diagnostic;
use crate::wtl::Collector;
use std::collections::HashMap;
use wattle_model::{Count, Expr, FamilyId, Length, Local, Op1, Op2, RegionId, Type};

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
        let expr = Expr::unary(op, a.expr);
        Value { expr, ..a }.folded()
    }

    pub fn binary(op: Op2, a: Self, b: Self) -> Self {
        let (expr, named) = (Expr::binary(op, a.expr, b.expr), a.named || b.named);
        Value { expr, named }.folded()
    }

    fn folded(self) -> Self {
        match constant(&self.expr) {
            Some(value) if self.named => Value::named(value),
            _ => self,
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
                let index = e.parts().first().and_then(|i| self.fixed(i, inner, report));
                self.outside(e, index, LOCAL, report)
            }
            ExKind::Number(_) | ExKind::Unary(..) | ExKind::Binary(..) | ExKind::Ite(..) => {
                computed(e, |e| self.fixed(e, inner, report))
            }
        }
    }

    /// What means the same everywhere: how many threads, where memory lies. `index` is what the brackets hold.
    pub fn outside<A>(
        &self,
        e: &Ex,
        index: Option<Value<A>>,
        (address_of, count): Outside<A>,
        report: &mut Collector,
    ) -> Option<Value<A>> {
        let atom = |a| Value::spelled(Expr::Atom(a));
        let (name, indexed) = match &e.kind {
            ExKind::Count(f) => return Some(atom(count(self.family(f, report)?))),
            ExKind::AddressOf(name, i) => (name, i.is_some()),
            _ => return None,
        };
        let wrong = match self.region(&name.text) {
            Some((_, false)) if indexed => refuse::element(name.span, name, false),
            Some((region, _)) => {
                let base = atom(address_of(region));
                return match indexed {
                    true => Some(Value::binary(Op2::Add, base, index?)),
                    false => Some(base),
                };
            }
            None => refuse::no_address(name),
        };
        report.push(wrong);
        None
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

/// Leaves that mean the same everywhere: the address of a region, how many threads a family has.
pub(super) type Outside<A> = (fn(RegionId) -> A, fn(FamilyId) -> A);

pub(super) const LOCAL: Outside<Local> = (Local::AddressOf, Local::Count);

/// The value of an expression without leaves.
pub(super) fn constant<A>(e: &Expr<A>) -> Option<i64> {
    let mut leaves = false;
    e.for_each_atom(&mut |_| leaves = true);
    if leaves {
        return None;
    }
    e.eval(&|_: &A| 0).ok()
}

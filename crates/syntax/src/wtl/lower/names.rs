//! What the names of a file mean, and expressions that need no memory: constants, lengths, ranges,
//! initial values.

use super::super::ast::{Ex, ExKind, Name};
use crate::Diagnostic;
use crate::diagnostics::nearest;
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

    pub fn unary(op: Op1, a: Self) -> Self {
        if let (true, Some(c)) = (a.named, a.expr.as_const())
            && let Ok(v) = op.apply(c)
        {
            return Value {
                expr: Expr::Const(v),
                named: true,
            };
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
            return Value {
                expr: Expr::Const(v),
                named,
            };
        }
        Value {
            expr: Expr::binary(op, a.expr, b.expr),
            named,
        }
    }

    pub fn ite(c: Self, a: Self, b: Self) -> Self {
        let named = c.named || a.named || b.named;
        match c.expr.as_const() {
            Some(v) if c.named => {
                if v != 0 {
                    a
                } else {
                    b
                }
            }
            _ => Value {
                expr: Expr::ite(c.expr, a.expr, b.expr),
                named,
            },
        }
    }
}

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
        let array = self
            .shapes
            .get(id.index())
            .is_some_and(|s| s.0 != Length::Scalar);
        Some((id, array))
    }

    pub fn known(&self) -> impl Iterator<Item = &str> {
        let regions = self.regions.keys().map(String::as_str);
        let constants = self.constants.keys().map(String::as_str);
        regions.chain(constants)
    }

    pub fn family(&self, name: &Name, report: &mut Collector) -> Option<FamilyId> {
        let found = self.families.get(&name.text).copied();
        if found.is_none() {
            let mut d = Diagnostic::error(
                name.span,
                format!("there is no family of threads called `{}`", name.text),
            );
            if !report.full()
                && let Some(n) = nearest_sorted(&name.text, self.families.keys())
            {
                d = d.hint(format!("did you mean `{n}`?"));
            }
            report.push(d);
        }
        found
    }

    /// An expression of constants, `self`, counts and addresses. `inner` knows constants of the
    /// thread.
    pub fn fixed(
        &self,
        e: &Ex,
        inner: &HashMap<String, Value>,
        report: &mut Collector,
    ) -> Option<Value> {
        Some(match &e.kind {
            ExKind::Number(n) => Value::spelled(Expr::Const(*n)),
            ExKind::SelfIndex => Value::spelled(Expr::Atom(Local::SelfIndex)),
            ExKind::Count(f) => Value::spelled(Expr::Atom(Local::Count(self.family(f, report)?))),
            ExKind::AddressOf(name, index) => {
                let base = self.address(name, index.is_some(), report)?;
                match index {
                    None => base,
                    Some(i) => Value::binary(Op2::Add, base, self.fixed(i, inner, report)?),
                }
            }
            ExKind::Name(name, None) => {
                if let Some(v) = inner.get(&name.text) {
                    return Some(v.clone());
                }
                match self.constants.get(&name.text) {
                    Some(c) => Value {
                        expr: Expr::Const(*c),
                        named: true,
                    },
                    None => {
                        self.not_constant(name, report);
                        return None;
                    }
                }
            }
            ExKind::Unary(op, a) => Value::unary(*op, self.fixed(a, inner, report)?),
            ExKind::Binary(op, a, b) => {
                let a = self.fixed(a, inner, report);
                let b = self.fixed(b, inner, report);
                Value::binary(*op, a?, b?)
            }
            ExKind::Ite(c, a, b) => Value::ite(
                self.fixed(c, inner, report)?,
                self.fixed(a, inner, report)?,
                self.fixed(b, inner, report)?,
            ),
            _ => {
                report.push(Diagnostic::error(
                    e.span,
                    "this must be a constant, but it reads memory or a thread",
                ));
                return None;
            }
        })
    }

    fn not_constant(&self, name: &Name, report: &mut Collector) {
        let text = &name.text;
        let d = if self.regions.contains_key(text) {
            Diagnostic::error(
                name.span,
                format!("`{text}` is shared memory; a constant is needed here"),
            )
        } else if self.families.contains_key(text) {
            Diagnostic::error(
                name.span,
                format!("`{text}` is a family of threads; a constant is needed here"),
            )
            .hint(format!("the number of its threads is `count({text})`"))
        } else {
            let d = Diagnostic::error(name.span, format!("unknown constant `{text}`"));
            match nearest_sorted(text, self.constants.keys()).filter(|_| !report.full()) {
                Some(n) => d.hint(format!("did you mean `{n}`?")),
                None => d.hint("constants are declared with `let`"),
            }
        };
        report.push(d);
    }

    /// The address of a region's first element.
    pub fn address<A>(&self, name: &Name, indexed: bool, report: &mut Collector) -> Option<Value<A>>
    where
        A: FromRegion,
    {
        let Some((region, array)) = self.region(&name.text) else {
            report.push(
                Diagnostic::error(name.span, format!("`{}` is not shared memory", name.text))
                    .expected("a shared name after `&`"),
            );
            return None;
        };
        if indexed && !array {
            report.push(Diagnostic::error(
                name.span,
                format!("`{}` is not an array", name.text),
            ));
            return None;
        }
        Some(Value::spelled(Expr::Atom(A::address_of(region))))
    }

    /// A number known now.
    pub fn number(
        &self,
        e: &Ex,
        inner: &HashMap<String, Value>,
        report: &mut Collector,
    ) -> Option<i64> {
        let value = self.fixed(e, inner, report)?;
        let known = constant(&value.expr);
        if known.is_none() {
            report.push(Diagnostic::error(
                e.span,
                "this must be a number that is known before the program runs",
            ));
        }
        known
    }
}

/// Leaves that can be an address.
pub(super) trait FromRegion {
    fn address_of(region: RegionId) -> Self;
}

impl FromRegion for Local {
    fn address_of(region: RegionId) -> Self {
        Local::AddressOf(region)
    }
}

impl FromRegion for wattle_model::Observation {
    fn address_of(region: RegionId) -> Self {
        wattle_model::Observation::AddressOf(region)
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

/// [`nearest`] over a hash table: ties must not depend on its order.
pub(super) fn nearest_sorted<'a>(
    given: &str,
    names: impl IntoIterator<Item = &'a String>,
) -> Option<&'a str> {
    let mut names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    names.sort_unstable();
    nearest(given, names)
}

//! Demands on runs, with every name resolved.

use super::build::{Builder, balanced};
use super::{DemandKind, InstanceError};
use crate::expr::Expr;
use crate::temporal::{Formula, Temporal, TemporalKind};

impl Builder<'_> {
    /// The formula for all choices of its index variables.
    pub(super) fn demand(&self, t: &Temporal) -> Result<DemandKind, InstanceError> {
        let (indices, formula) = match &t.kind {
            TemporalKind::Progress => return Ok(DemandKind::Progress),
            TemporalKind::Ltl(indices, formula) => (indices, formula.clone()),
            TemporalKind::LeadsTo(from, to) => {
                let formula = Formula::leads_to(from.expr.clone(), to.clone());
                (&from.indices, formula)
            }
        };
        let mut each = Vec::new();
        for choice in self.choices(indices)? {
            each.push(formula.map(&mut |e| self.fact(e, &choice, t.span))?);
        }
        let and = |a, b| Formula::And(Box::new(a), Box::new(b));
        let all = balanced(each, and).unwrap_or(Formula::Now(Expr::TRUE));
        Ok(DemandKind::Formula(all))
    }
}

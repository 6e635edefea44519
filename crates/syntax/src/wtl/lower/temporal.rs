//! Demands on whole runs.

use super::super::ast::{Between, Ex, ExKind, Later, TemporalEx};
use super::{Lowering, refuse};
use wattle_model::{Condition, Expr, Formula, Observation, Op1, Op2, Span, Temporal, TemporalKind};

impl Lowering<'_> {
    pub(super) fn temporal(&mut self, (t, span): &(TemporalEx, Span)) -> Option<Temporal> {
        let kind = match t {
            TemporalEx::Progress => TemporalKind::Progress,
            TemporalEx::Ltl(c) => {
                self.announce(c, &[&c.expr])?;
                let formula = self.formula(&c.expr)?;
                TemporalKind::Ltl(self.indices.list.clone(), formula)
            }
            TemporalEx::LeadsTo(c, to) => {
                self.announce(c, &[&c.expr, to])?;
                let (expr, to) = (self.observed(&c.expr), self.observed(to)?.expr);
                let (expr, indices) = (expr?.expr, self.indices.list.clone());
                TemporalKind::LeadsTo(Condition { indices, expr }, to)
            }
        };
        let temporal = Temporal { kind, span: *span };
        refuse::sees_in_the_long_run(&temporal, self.report);
        Some(temporal)
    }

    /// What has no operator of time in it is one condition.
    fn formula(&mut self, e: &Ex) -> Option<Formula<Expr<Observation>>> {
        if !speaks_of_time(e) {
            return Some(Formula::Now(self.observed(e)?.expr));
        }
        let mut one = |e: &Ex| self.formula(e).map(Box::new);
        let two: fn(_, _) -> _ = match &e.kind {
            ExKind::Unary(Op1::Not, a) => return Some(Formula::Not(one(a)?)),
            ExKind::Later(Later::Globally, a) => return Some(Formula::Globally(one(a)?)),
            ExKind::Later(Later::Finally, a) => return Some(Formula::Finally(one(a)?)),
            ExKind::Binary(Op2::And, ..) => Formula::And,
            ExKind::Binary(Op2::Or, ..) => Formula::Or,
            ExKind::Between(Between::Until, ..) => Formula::Until,
            ExKind::Between(Between::Release, ..) => Formula::Release,
            ExKind::Between(Between::WeakUntil, ..) => Formula::WeakUntil,
            ExKind::Between(Between::Implies, ..) => Formula::Implies,
            // Something else is computed with it: reported there.
            _ => return Some(Formula::Now(self.observed(e)?.expr)),
        };
        let (ExKind::Binary(_, a, b) | ExKind::Between(_, a, b)) = &e.kind else {
            return None;
        };
        let (a, b) = (one(a), one(b));
        Some(two(a?, b?))
    }
}

/// Whether an operator of time is in it.
fn speaks_of_time(e: &Ex) -> bool {
    matches!(e.kind, ExKind::Later(..) | ExKind::Between(..))
        || e.parts().into_iter().any(speaks_of_time)
}

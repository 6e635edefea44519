//! Demands on whole runs.

use super::super::ast::{Between, Ex, ExKind, Later, TemporalEx};
use super::conditions::Indices;
use super::{Lowering, refuse};
use wattle_model::{
    Condition, Expr, Family, Formula, Observation, Op1, Op2, Span, Temporal, TemporalKind,
};

impl Lowering<'_> {
    pub(super) fn temporal(
        &mut self,
        (t, span): &(TemporalEx, Span),
        families: &[Family],
    ) -> Option<Temporal> {
        let kind = match t {
            TemporalEx::Progress => TemporalKind::Progress,
            TemporalEx::Ltl(c) => {
                let indices = self.indices(c, &[&c.expr])?;
                let formula = self.formula(&c.expr, &indices, families)?;
                TemporalKind::Ltl(indices.list, formula)
            }
            TemporalEx::LeadsTo(c, to) => {
                let indices = self.indices(c, &[&c.expr, to])?;
                let expr = self.observed(&c.expr, &indices, families);
                let to = self.observed(to, &indices, families)?.expr;
                let expr = expr?.expr;
                let indices = indices.list;
                TemporalKind::LeadsTo(Condition { indices, expr }, to)
            }
        };
        let temporal = Temporal { kind, span: *span };
        let mut sees = false;
        temporal.for_each_condition(&mut |e| sees |= e.sees_buffers());
        match sees {
            true => self.refuse(refuse::sees_in_the_long_run(*span)),
            false => Some(temporal),
        }
    }

    /// What has no operator of time in it is one condition.
    fn formula(
        &mut self,
        e: &Ex,
        indices: &Indices,
        families: &[Family],
    ) -> Option<Formula<Expr<Observation>>> {
        if !speaks_of_time(e) {
            return Some(Formula::Now(self.observed(e, indices, families)?.expr));
        }
        let mut one = |e: &Ex| self.formula(e, indices, families).map(Box::new);
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
            _ => return Some(Formula::Now(self.observed(e, indices, families)?.expr)),
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
    match &e.kind {
        ExKind::Later(..) | ExKind::Between(..) => true,
        ExKind::Number(_) | ExKind::SelfIndex | ExKind::Count(_) => false,
        ExKind::Name(_, i)
        | ExKind::AddressOf(_, i)
        | ExKind::Field(_, i, _)
        | ExKind::At(_, i, _) => i.as_deref().is_some_and(speaks_of_time),
        ExKind::Seen(_, i, _, j) => [i, j].into_iter().flatten().any(|i| speaks_of_time(i)),
        ExKind::Memory(a) | ExKind::Unary(_, a) => speaks_of_time(a),
        ExKind::Binary(_, a, b) | ExKind::Swap(a, b) | ExKind::FetchAdd(a, b) => {
            speaks_of_time(a) || speaks_of_time(b)
        }
        ExKind::Ite(a, b, c) | ExKind::Cas(a, b, c) => [a, b, c].iter().any(|e| speaks_of_time(e)),
    }
}

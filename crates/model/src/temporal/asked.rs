//! What validators and printers ask of formulas.

use super::{Formula, Temporal, TemporalKind};
use crate::expr::Expr;
use crate::property::Observation;

impl<A> Formula<A> {
    /// How deep it is nested, conditions not counted.
    pub fn depth(&self) -> usize {
        1 + self.parts().iter().map(|p| p.depth()).max().unwrap_or(0)
    }
}

impl Temporal {
    /// Every condition it speaks of.
    pub fn for_each_condition<'t>(&'t self, visit: &mut dyn FnMut(&'t Expr<Observation>)) {
        match &self.kind {
            TemporalKind::Ltl(_, formula) => formula.for_each_now(visit),
            TemporalKind::LeadsTo(from, to) => {
                visit(&from.expr);
                visit(to);
            }
            TemporalKind::Progress => {}
        }
    }
}

//! Identifiers of two families are numbers that may be equal; in the system they are different
//! threads. So nothing may put them side by side.

use super::variables::{Holds, Variable};
use super::{Lowering, Refused, refuse};
use std::collections::BTreeSet;
use wattle_model::graph::Action;
use wattle_model::program::Local;
use wattle_model::{Expr, FamilyId, Observation, Op1, Op2, Span};

impl Lowering<'_> {
    /// Refuses expressions in which identifiers of two families meet.
    pub(super) fn not_mixed(&self, property: Option<usize>) -> Result<(), Refused> {
        for (f, family) in self.program.families.iter().enumerate() {
            let f = FamilyId::new(f);
            let leaf = |l: &Local| match l {
                Local::SelfIndex => Some(f),
                Local::Register(r) => self.threads_in(Variable::Register(f, *r)),
                Local::Count(_) | Local::AddressOf(_) => None,
            };
            for s in &family.steps {
                let e = match &s.action {
                    Action::Assume(e) | Action::Assert { condition: e, .. } => e,
                    Action::Assign { value, .. } | Action::Store { value, .. } => value,
                    Action::Skip
                    | Action::Havoc { .. }
                    | Action::Load { .. }
                    | Action::Fence(_)
                    | Action::AtomicBegin(_)
                    | Action::AtomicEnd
                    | Action::Lock
                    | Action::Unlock => continue,
                };
                if mixed(e, &leaf) {
                    return Err(two_families(s.span));
                }
            }
        }
        let Some(p) = property.and_then(|i| self.program.properties.get(i)) else {
            return Ok(());
        };
        let leaf = |o: &Observation| match o {
            Observation::Index(i) => p.condition.indices.get(i.index()).map(|v| v.family),
            Observation::Register(t, r) => self.threads_in(Variable::Register(t.family, *r)),
            Observation::Cell(r, _) | Observation::Seen(_, r, _) => {
                self.threads_in(Variable::Region(*r))
            }
            Observation::At(..)
            | Observation::Count(_)
            | Observation::Memory(_)
            | Observation::AddressOf(_) => None,
        };
        match mixed(&p.condition.expr, &leaf) {
            true => Err(two_families(p.span)),
            false => Ok(()),
        }
    }

    fn threads_in(&self, id: Variable) -> Option<FamilyId> {
        match self.variables.of(id) {
            Holds::Threads(f) => Some(*f),
            Holds::Few(_) | Holds::Numbers | Holds::Counter => None,
        }
    }
}

fn two_families(span: Span) -> Refused {
    refuse(
        span,
        "identifiers of two families of threads are mixed",
        "compare identifiers of one family only",
    )
}

fn mixed<A>(e: &Expr<A>, leaf: &dyn Fn(&A) -> Option<FamilyId>) -> bool {
    match e {
        Expr::Unary(Op1::Not, a) => mixed(a, leaf),
        Expr::Binary(Op2::And | Op2::Or, a, b) => mixed(a, leaf) || mixed(b, leaf),
        Expr::Const(_) | Expr::Atom(_) | Expr::Unary(..) | Expr::Binary(..) | Expr::Ite(..) => {
            let mut all: BTreeSet<FamilyId> = BTreeSet::new();
            e.for_each_atom(&mut |a| all.extend(leaf(a)));
            all.len() > 1
        }
    }
}

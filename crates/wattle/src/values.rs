//! Whether a program whose numbers have no range needs one: where nothing is computed, only the constants
//! that are written in it come up.

use wattle_evidence::{Scope, Verdict};
use wattle_model::graph::Action;
use wattle_model::instance::Initial;
use wattle_model::{Expr, Instance, Op1, Op2};

/// Says of a scope that data is finite where it is so in fact, though not by its types: nobody who wrote
/// no range wants to read of unbounded integers that are none.
pub(crate) fn plainly(instance: &Instance, scope: &mut Scope, verdict: &mut Verdict) {
    if instance.is_finite() || !few(instance) {
        return;
    }
    scope.data = "finite".into();
    if let Verdict::Holds { scope, .. } | Verdict::HoldsIf { scope, .. } = verdict {
        scope.data = "finite".into();
    }
}

/// Whether every value is one of the constants of the program, or given by a range. *Why*: initial values
/// and what is chosen are; every other value is a copy of one, true or false, or computed from constants.
fn few(instance: &Instance) -> bool {
    let unbounded = |ty: wattle_model::Type| ty.bounds().is_none();
    let open = |init: Initial, ty| init == Initial::Any && unbounded(ty);
    let cells = instance.cells.iter().all(|c| !open(c.init, c.ty));
    let threads = instance.threads.iter().all(|t| {
        let registers = t.registers.iter().all(|r| !open(r.init, r.ty));
        let steps = t.steps.iter().all(|s| match &s.action {
            Action::Assign { value, .. } | Action::Store { value, .. } => is_one(value),
            Action::Havoc { register, range } => {
                range.is_some() || !unbounded(t.registers[register.index()].ty)
            }
            Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Load { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => true,
        });
        registers && steps
    });
    cells && threads
}

/// Whether an expression gives a copy, a truth or a constant.
fn is_one<A>(e: &Expr<A>) -> bool {
    match e {
        Expr::Const(_) | Expr::Atom(_) => true,
        Expr::Unary(Op1::Not, _) => true,
        Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, of) => is_constant(of),
        Expr::Ite(_, yes, no) => is_one(yes) && is_one(no),
        Expr::Binary(op, a, b) => match op {
            Op2::Eq | Op2::Ne | Op2::Lt | Op2::Le | Op2::Gt | Op2::Ge | Op2::And | Op2::Or => true,
            Op2::Add
            | Op2::Sub
            | Op2::Mul
            | Op2::Div
            | Op2::Rem
            | Op2::BitAnd
            | Op2::BitOr
            | Op2::BitXor
            | Op2::Shl
            | Op2::Shr => is_constant(a) && is_constant(b),
        },
    }
}

fn is_constant<A>(e: &Expr<A>) -> bool {
    match e {
        Expr::Const(_) => true,
        Expr::Atom(_) => false,
        Expr::Unary(_, of) => is_constant(of),
        Expr::Binary(_, a, b) => is_constant(a) && is_constant(b),
        Expr::Ite(c, yes, no) => is_constant(c) && is_constant(yes) && is_constant(no),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_computed_is_nothing_unbounded() {
        let few = |body: &str| {
            let text = format!("shared x, y = 3; thread p {{ local r, s; {body} }}");
            let program = wattle_syntax::wtl::parse(&text).program.expect("it parses");
            super::few(&program.instance().expect("one thread"))
        };
        assert!(few("x = 1; r = x; y = r; s = r == y; x = 2 + 3;"));
        assert!(few("r = any 0..5; x = r;"));
        assert!(!few("x = x + 1;"));
        assert!(!few("r = any; x = r;"));
        assert!(!few("r = x; y = -r;"));
    }
}

//! Whether a program whose numbers have no range needs one: nobody who wrote no range wants to read of unbounded
//! integers that are none.

use wattle_evidence::{Certificate, Proof, Scope, Verdict};
use wattle_memory::compiled::are_bounded;
use wattle_model::graph::Action;
use wattle_model::program::{Init, Local, Place};
use wattle_model::{Expr, Instance, Op1, Op2, Program, Type};

/// Says of a scope that data is finite where it is so in fact, though not by its types: no step leads out of
/// some intervals, or all states were seen.
pub(crate) fn plainly(instance: &Instance, scope: &mut Scope, verdict: &mut Verdict) {
    let seen = match verdict {
        Verdict::Holds { proof, .. } | Verdict::HoldsIf { proof, .. } => matches!(
            proof,
            Proof::Certificate(Certificate::Explored(_) | Certificate::ClosedStates(_))
        ),
        Verdict::Violated { .. } | Verdict::Bounded { .. } | Verdict::Undecided { .. } => false,
    };
    if instance.is_finite() || !(seen || are_bounded(instance)) {
        return;
    }
    scope.data = "finite".into();
    if let Verdict::Holds { scope, .. } | Verdict::HoldsIf { scope, .. } = verdict {
        scope.data = "finite".into();
    }
}

/// The same of any number of threads: whether every value is one of the constants of the program, or given by
/// a type. *Why*: initial values and what is chosen are; every other value is a copy of one, true or false, or
/// computed from constants. Threads are no such values, there may be any number.
pub(crate) fn few(program: &Program) -> bool {
    let open = |init: &Init, ty| *init == Init::Any && ty == Type::Int;
    let thread = |ty: Type| matches!(ty, Type::Thread(_));
    let regions = program.regions.iter().all(|r| !open(&r.init, r.ty));
    let families = program.families.iter().all(|f| {
        let kept = |ty: Type, value: &Expr<Local>| {
            let plain = |l: &Local| match l {
                Local::Register(r) => !thread(f.registers[r.index()].ty),
                Local::SelfIndex | Local::Count(_) | Local::AddressOf(_) => false,
            };
            ty != Type::Int || is_one(value, &plain)
        };
        let of = |place: &Place| match place {
            Place::Region(region, _) => Some(program.region(*region).ty),
            Place::Memory(_) => None,
        };
        let steps = f.steps.iter().all(|s| match &s.action {
            Action::Assign { register, value } => kept(f.registers[register.index()].ty, value),
            Action::Store { place, value } => kept(of(place).unwrap_or(Type::Int), value),
            Action::Load { register, place } => {
                let mixed = match of(place) {
                    Some(ty) => thread(ty),
                    None => program.regions.iter().any(|r| thread(r.ty)),
                };
                f.registers[register.index()].ty != Type::Int || !mixed
            }
            Action::Havoc { register, range } => {
                range.is_some() || f.registers[register.index()].ty != Type::Int
            }
            Action::Skip
            | Action::Assume(_)
            | Action::Assert { .. }
            | Action::Fence(_)
            | Action::AtomicBegin(_)
            | Action::AtomicEnd
            | Action::Lock
            | Action::Unlock => true,
        });
        f.registers.iter().all(|r| !open(&r.init, r.ty)) && steps
    });
    regions && families
}

/// Whether an expression gives a copy, a truth or a constant.
fn is_one<A>(e: &Expr<A>, plain: &dyn Fn(&A) -> bool) -> bool {
    match e {
        Expr::Const(_) => true,
        Expr::Atom(a) => plain(a),
        Expr::Unary(Op1::Not, _) => true,
        Expr::Unary(Op1::Neg | Op1::BitNot | Op1::Wrap { .. }, of) => is_constant(of),
        Expr::Ite(_, yes, no) => is_one(yes, plain) && is_one(no, plain),
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
    fn program(head: &str, body: &str) -> wattle_model::Program {
        let text = format!("shared x, y = 3; {head} {{ local r, s; {body} }}");
        wattle_syntax::wtl::parse(&text).program.expect("it parses")
    }

    #[test]
    fn nothing_that_grows_is_nothing_unbounded() {
        let few = |body: &str| {
            let instance = program("thread p", body).instance().expect("one thread");
            super::are_bounded(&instance)
        };
        assert!(few("x = 1; r = x; y = r; s = r == y; x = 2 + 3;"));
        assert!(few("r = any 0..5; x = r;"));
        assert!(few("loop { r = x; x = 1 - r; }"));
        assert!(!few("loop { r = x; x = 2 - r; r = x; x = r * 2; }"));
        assert!(!few("x = x + 1;"));
        assert!(!few("r = any; x = r;"));
    }

    #[test]
    fn of_any_number_only_what_is_copied() {
        let few = |body: &str| super::few(&program("thread p[*]", body));
        assert!(few("x = 1; r = x; y = r; s = r == y; x = 2 + 3;"));
        assert!(few("r = any 0..5; x = r; x = (r == 1) ? 2 : 4;"));
        assert!(!few("x = x + 1;"));
        assert!(!few("x = self;"));
        assert!(!few("x = count(p);"));
        assert!(!few("r = any; x = r;"));
        assert!(!few("r = x; y = -r;"));
    }
}

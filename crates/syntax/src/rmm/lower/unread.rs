//! Registers whose initial value is never read.

use wattle_model::program::{Action, Local};
use wattle_model::{Expr, Family, Init, Place, RegisterId};

/// `$r = *` mostly means "never mind": where the initial value is never read, one value stands for
/// all, and integers without bounds stay searchable.
pub(super) fn settle(family: &mut Family) {
    for r in 0..family.registers.len() {
        let register = &family.registers[r];
        if register.init == Init::Any && !read_first(family, RegisterId::new(r)) {
            let start = register.ty.bounds().map_or(0, |(lo, hi)| 0.clamp(lo, hi));
            family.registers[r].init = Init::All(Expr::Const(start));
        }
    }
}

/// Whether some way from the entry reads the register before writing it.
fn read_first(family: &Family, register: RegisterId) -> bool {
    let mut outgoing = vec![Vec::new(); family.locations.len()];
    for s in &family.steps {
        outgoing[s.source.index()].push(s);
    }
    let mut seen = vec![false; family.locations.len()];
    let mut work = vec![family.entry];
    while let Some(at) = work.pop() {
        if std::mem::replace(&mut seen[at.index()], true) {
            continue;
        }
        for s in &outgoing[at.index()] {
            if reads(&s.action, register) {
                return true;
            }
            let written = match &s.action {
                Action::Assign { register: r, .. }
                | Action::Load { register: r, .. }
                | Action::Havoc { register: r, .. } => *r == register,
                _ => false,
            };
            if !written {
                work.push(s.target);
            }
        }
    }
    false
}

fn reads(action: &Action, register: RegisterId) -> bool {
    let inside = |e: &Expr<Local>| {
        let mut found = false;
        e.for_each_atom(&mut |a| found |= *a == Local::Register(register));
        found
    };
    let place = |p: &Place| match p {
        Place::Region(_, e) | Place::Memory(e) => inside(e),
    };
    match action {
        Action::Assign { value, .. } => inside(value),
        Action::Assume(e) => inside(e),
        Action::Assert { condition, .. } => inside(condition),
        Action::Load { place: p, .. } => place(p),
        Action::Store { place: p, value } => place(p) || inside(value),
        _ => false,
    }
}

//! Whether nothing tells the threads of open families apart: the auditor's own look at the program.
//!
//! What could is an atom that speaks of a thread's number or of how many there are, a cell for each
//! thread, or a variable that names one. Every expression of the program is searched for the former.

use crate::AuditError;
use wattle_model::graph::Action;
use wattle_model::{
    Count, Crowd, Expr, FamilyId, Init, Length, Local, Observation, Place, Program, Property,
    PropertyKind, ThreadIndex, ThreadRef, Type,
};

/// The instance in which a few threads of each open family stand for all; its only question, if any, is the property.
pub fn few_for_all(program: &Program, property: Option<usize>) -> Result<Crowd, AuditError> {
    let asked = property.and_then(|p| program.properties.get(p));
    if asked.is_none() && property.is_some() || !are_alike(program, asked) {
        let why = "the threads of a family do not stand for each other";
        return Err(AuditError::Other(why.into()));
    }
    let crowd = program.crowd(property);
    crowd.map_err(|e| AuditError::Refused(e.message))
}

/// For certificates that say nothing of pending stores.
pub fn sees_memory_only(crowd: &Crowd) -> Result<(), AuditError> {
    let mut questions = crowd.instance.questions.iter();
    if questions.any(|q| q.target.sees_buffers()) {
        let why = "the property sees pending stores, of which it says nothing";
        return Err(AuditError::Refused(why.into()));
    }
    Ok(())
}

pub fn are_alike(program: &Program, property: Option<&Property>) -> bool {
    let open = |f: FamilyId| program.families[f.index()].count == Count::Any;
    let plain = |ty: Type| !matches!(ty, Type::Thread(f) if open(f));
    let regions = program.regions.iter().all(|r| {
        plain(r.ty)
            && !matches!(r.length, Length::PerThread(f) if open(f))
            && blind(starts(&r.init), false, &open)
    });
    let families = program.families.iter().all(|f| {
        let anyone = f.count == Count::Any;
        let registers = f.registers.iter();
        registers.clone().all(|r| plain(r.ty))
            && blind(registers.flat_map(|r| starts(&r.init)), anyone, &open)
            && blind(f.steps.iter().flat_map(|s| said(&s.action)), anyone, &open)
    });
    regions && families && property.is_none_or(|p| of_any(p, &open))
}

/// None of the expressions counts an open family's threads or, where `anyone` speaks, says `self`.
fn blind<'e>(
    mut all: impl Iterator<Item = &'e Expr<Local>>,
    anyone: bool,
    open: &dyn Fn(FamilyId) -> bool,
) -> bool {
    all.all(|e| {
        let mut tells = false;
        e.for_each_atom(&mut |atom| {
            tells |= match atom {
                Local::SelfIndex => anyone,
                Local::Count(f) => open(*f),
                Local::Register(_) | Local::AddressOf(_) => false,
            }
        });
        !tells
    })
}

fn starts(init: &Init) -> impl Iterator<Item = &Expr<Local>> {
    let all: &[Expr<Local>] = match init {
        Init::All(e) => std::slice::from_ref(e),
        Init::Each(all) => all,
        Init::Any => &[],
    };
    all.iter()
}

fn said(action: &Action<Local, Place>) -> Vec<&Expr<Local>> {
    let at = |place| match place {
        &Place::Region(_, ref index) | &Place::Memory(ref index) => index,
    };
    match action {
        Action::Assign { value, .. } => vec![value],
        Action::Assume(e) => vec![e],
        Action::Assert { condition, .. } => vec![condition],
        Action::Load { place, .. } => vec![at(place)],
        Action::Store { place, value } => vec![at(place), value],
        Action::Skip
        | Action::Havoc { .. }
        | Action::Fence(_)
        | Action::AtomicBegin(_)
        | Action::AtomicEnd
        | Action::Lock
        | Action::Unlock => Vec::new(),
    }
}

/// The property is about states on the way, and names threads of open families by variables only.
fn of_any(property: &Property, open: &dyn Fn(FamilyId) -> bool) -> bool {
    let one_of_any = |t: &ThreadRef| open(t.family) && matches!(t.index, ThreadIndex::Number(_));
    let mut left = vec![&property.condition.expr];
    let mut fine = matches!(property.kind, PropertyKind::Never | PropertyKind::Always);
    while let Some(e) = left.pop() {
        e.for_each_atom(&mut |o| match o {
            Observation::Cell(_, index) | Observation::Memory(index) => left.push(index),
            Observation::Register(t, _) | Observation::At(t, _) => fine &= !one_of_any(t),
            Observation::Seen(t, _, index) => {
                fine &= !one_of_any(t);
                left.push(index);
            }
            Observation::Index(v) => {
                let variable = property.condition.indices.get(v.index());
                fine &= variable.is_some_and(|v| !open(v.family));
            }
            Observation::Count(f) => fine &= !open(*f),
            Observation::AddressOf(_) => {}
        });
    }
    fine
}

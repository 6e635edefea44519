//! What a closed round proves, written down.

use super::abstraction::{Cube, merged};
use super::search::Search;
use crate::reduce::ranges::Interval;
use crate::reduce::{Shape, Symbol, System};
use wattle_evidence::certificate::{
    Blur, Comparison, ControlState, Inductive, Invariant, PendingStores, Predicate, Quantity,
};
use wattle_logic::{Formula, Rel, Var};
use wattle_model::{CellId, RegisterId, ThreadId};

impl Search<'_> {
    /// The certificate, unless a predicate's numbers do not fit it.
    pub fn certificate(&self) -> Option<Inductive> {
        let predicates = self.predicates.all.iter();
        let predicates: Option<Vec<_>> = predicates.map(|p| written(&self.system, p)).collect();
        let mut invariants = Vec::new();
        for (shape, (spot, states)) in self.by_spot() {
            let cubes = merged(states.into_iter().cloned());
            let literals = |cube: &Cube| {
                let known = self.relevant[spot].iter().zip(cube);
                let signed = known.filter_map(|(p, v)| {
                    let n = i32::try_from(*p).ok()? + 1;
                    Some(if (*v)? { n } else { -n })
                });
                signed.collect()
            };
            invariants.push(Invariant {
                control: control(shape),
                cubes: cubes.iter().map(literals).collect(),
                clauses: Vec::new(),
            });
        }
        Some(Inductive {
            model: self.system.model,
            ranges: ranges(&self.system),
            blur: blur(&self.system),
            views: Vec::new(),
            parts: Vec::new(),
            predicates: predicates?,
            invariants,
        })
    }
}

/// What the certificate says of all values.
pub fn ranges(system: &System<'_>) -> Vec<(Quantity, Option<i64>, Option<i64>)> {
    let mut all = Vec::new();
    let mut add = |q, i: Interval| {
        if i.lo.is_some() || i.hi.is_some() {
            all.push((q, i.lo, i.hi));
        }
    };
    for (c, interval) in system.ranges.cells.iter().enumerate() {
        add(Quantity::Cell(CellId::new(c)), *interval);
    }
    for (t, row) in system.ranges.registers.iter().enumerate() {
        for (r, interval) in row.iter().enumerate() {
            let register = Quantity::Register(ThreadId::new(t), RegisterId::new(r));
            add(register, *interval);
        }
    }
    all
}

/// How the certificate says that buffers are kept small.
pub fn blur(system: &System<'_>) -> Option<Blur> {
    let blur = system.blur.as_ref()?;
    let keep = |t: ThreadId| u32::try_from(system.blur_of(t)?.keep[t.index()]).ok();
    Some(Blur {
        newest: blur.newest,
        keep: system.instance.thread_ids().map(keep).collect(),
        cuts: blur.cuts.clone(),
    })
}

/// The shape as the certificate writes it.
pub fn control(shape: &Shape) -> ControlState {
    let buffers = shape.pending.iter().map(|p| PendingStores {
        entries: p.slots.iter().map(|s| (s.epoch, s.cell)).collect(),
        before: match p.slots.iter().any(|s| s.before != 0) {
            true => p.slots.iter().map(|s| s.before).collect(),
            false => Vec::new(),
        },
        fenced: p.fenced,
    });
    ControlState {
        locations: shape.locations.clone(),
        buffers: buffers.collect(),
        holder: shape.holder,
    }
}

/// The predicate as the certificate writes it, if its numbers fit.
pub fn written(system: &System<'_>, predicate: &Formula) -> Option<Predicate> {
    written_with(predicate, &|v| quantity(system, v))
}

/// What a variable of the system is in a certificate.
pub fn quantity(system: &System<'_>, v: Var) -> Option<Quantity> {
    match system.symbol(v) {
        Symbol::Register(t, r) => Some(Quantity::Register(t, r)),
        Symbol::Cell(c) => Some(Quantity::Cell(c)),
        Symbol::Entry(t, i) => Some(Quantity::Entry(t, u32::try_from(i).ok()?)),
        Symbol::Choice => None,
    }
}

/// The predicate as the certificate writes it, if its numbers fit.
pub fn written_with(
    predicate: &Formula,
    quantity: &dyn Fn(Var) -> Option<Quantity>,
) -> Option<Predicate> {
    let atom = predicate.as_atom()?;
    let terms = atom.term().coeffs().iter();
    let sum: Option<Vec<_>> = terms
        .map(|(v, a)| Some((a.to_i64()?, quantity(*v)?)))
        .collect();
    Some(Predicate {
        sum: sum?,
        constant: atom.term().constant_part().to_i64()?,
        is: match atom.rel() {
            Rel::Le => Comparison::AtMostZero,
            Rel::Eq => Comparison::Zero,
            Rel::Divides(m) => Comparison::MultipleOf(m.to_i64()?),
            Rel::Ne | Rel::NotDivides(_) => return None,
        },
    })
}

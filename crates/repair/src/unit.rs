//! Read-modify-writes that are not atomic: what a `lock` prefix can be put on.
//!
//! A unit is one statement of the source (`dec dword [x]`, `x = x + 1`) that loads a cell and then
//! stores to the same region, entered at one place only. Steps belong to it by their place in the
//! text; whatever contains another statement is no unit.

use std::collections::BTreeSet;
use wattle_model::graph::Action;
use wattle_model::program::{Family, Place};
use wattle_model::{LocationId, Program, Span, StepId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub entry: LocationId,
    /// Its text.
    pub span: Span,
    pub steps: BTreeSet<StepId>,
    /// Where the thread is between the first and the last step.
    pub inside: BTreeSet<LocationId>,
}

impl Unit {
    pub fn contains(&self, step: StepId) -> bool {
        self.steps.contains(&step)
    }
}

/// The units of each family.
pub fn units(program: &Program) -> Vec<Vec<Unit>> {
    program.families.iter().map(of_family).collect()
}

pub fn of_family(family: &Family) -> Vec<Unit> {
    let held = held(family);
    let spans: BTreeSet<Span> = family.locations.iter().map(|l| l.span).collect();
    let leaf = |s: &&Span| s.is_some() && !spans.iter().any(|o| o != *s && within(*o, **s));
    let units = spans.iter().filter(leaf).filter_map(|s| unit(family, *s));
    units.filter(|u| !held.contains(&u.entry)).collect()
}

fn within(inner: Span, outer: Span) -> bool {
    inner.is_some() && outer.start <= inner.start && inner.end <= outer.end
}

fn unit(family: &Family, span: Span) -> Option<Unit> {
    let all = || family.steps.iter().enumerate();
    let steps: BTreeSet<StepId> = all()
        .filter(|(_, s)| within(s.span, span))
        .map(|(i, _)| StepId::new(i))
        .collect();
    let step = |s: &StepId| &family.steps[s.index()];
    let plain = |s: &StepId| {
        let action = &step(s).action;
        matches!(
            action,
            Action::Skip
                | Action::Assign { .. }
                | Action::Assume(_)
                | Action::Load { .. }
                | Action::Store { .. }
        )
    };
    if !steps.iter().all(plain) || !modifies(family, &steps) {
        return None;
    }
    let sources: BTreeSet<LocationId> = steps.iter().map(|s| step(s).source).collect();
    let outside = |(i, _): &(usize, _)| !steps.contains(&StepId::new(*i));
    let entered: BTreeSet<LocationId> = all().filter(outside).map(|(_, s)| s.target).collect();
    let is_entry = |l: &&LocationId| {
        **l == family.entry
            || entered.contains(l)
            || !family.locations[l.index()].labels.is_empty()
            || !steps.iter().any(|s| step(s).target == **l)
    };
    let entries: Vec<LocationId> = sources.iter().filter(is_entry).copied().collect();
    let [entry] = entries[..] else { return None };
    if all()
        .filter(outside)
        .any(|(_, s)| sources.contains(&s.source))
    {
        return None;
    }
    let inside: BTreeSet<LocationId> = sources.into_iter().filter(|l| *l != entry).collect();
    let unit = Unit {
        entry,
        span,
        steps,
        inside,
    };
    ends(family, &unit).then_some(unit)
}

/// Whether some store may follow a load of the same region.
fn modifies(family: &Family, steps: &BTreeSet<StepId>) -> bool {
    let region = |p: &Place| match p {
        Place::Region(r, _) => Some(*r),
        Place::Memory(_) => None,
    };
    let actions = || steps.iter().map(|s| &family.steps[s.index()].action);
    let stored = |from: &Place| {
        actions().any(
            |store| matches!(store, Action::Store { place, .. } if region(place) == region(from)),
        )
    };
    actions().any(|load| matches!(load, Action::Load { place, .. } if stored(place)))
}

/// Whether the unit has no loop within.
fn ends(family: &Family, unit: &Unit) -> bool {
    let mut left = unit.inside.clone();
    loop {
        // A place that no remaining place leads to can go; a loop keeps its own.
        let targets: BTreeSet<LocationId> = unit
            .steps
            .iter()
            .map(|s| &family.steps[s.index()])
            .filter(|s| left.contains(&s.source))
            .map(|s| s.target)
            .collect();
        let before = left.len();
        left.retain(|l| targets.contains(l));
        if left.is_empty() {
            return true;
        }
        if left.len() == before {
            return false;
        }
    }
}

/// Locations inside atomic blocks and between `lock` and `unlock`.
fn held(family: &Family) -> BTreeSet<LocationId> {
    let begins =
        |a: &wattle_model::program::Action| matches!(a, Action::AtomicBegin(_) | Action::Lock);
    let ends = |a: &wattle_model::program::Action| matches!(a, Action::AtomicEnd | Action::Unlock);
    let first = family.steps.iter().filter(|s| begins(&s.action));
    let mut work: Vec<LocationId> = first.map(|s| s.target).collect();
    let mut held = BTreeSet::new();
    while let Some(l) = work.pop() {
        if held.insert(l) {
            let on = family
                .steps
                .iter()
                .filter(|s| s.source == l && !ends(&s.action));
            work.extend(on.map(|s| s.target));
        }
    }
    held
}

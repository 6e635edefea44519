//! A program with fences and locks in.

use crate::site::{OfFamily, Places, Site, SiteKind};
use crate::unit::{self, Unit};
use std::collections::BTreeSet;
use wattle_model::graph::{Action, Location};
use wattle_model::program::{Family, Step};
use wattle_model::{FamilyId, Fence, LocationId, Program, StepId};

/// The program with its fences, and where its parts come from.
#[derive(Clone, Debug)]
pub struct Fenced {
    pub program: Program,
    origins: Vec<Origin>,
}

#[derive(Clone, Debug)]
struct Origin {
    locations: Vec<LocationId>,
    steps: Vec<Option<StepId>>,
}

impl Fenced {
    /// The location of the original program that this one belongs to.
    pub fn location(&self, family: FamilyId, l: LocationId) -> LocationId {
        self.origins[family.index()].locations[l.index()]
    }

    /// The step of the original program, unless it is part of a fence.
    pub fn step(&self, family: FamilyId, s: StepId) -> Option<StepId> {
        self.origins[family.index()].steps[s.index()]
    }
}

/// Puts the fences in, into every copy of a place. Numbers of old locations stay. At the head of a loop
/// the fence comes between the ways in and the head; elsewhere a fenced location gets a twin that its
/// steps now leave from, and its labels go there too: who is at a label is past the fence.
pub fn fenced(program: &Program, places: &Places, sites: &BTreeSet<Site>) -> Fenced {
    let mut program = program.clone();
    let mut origins = Vec::new();
    for (f, family) in program.families.iter_mut().enumerate() {
        let mine = sites.iter().filter(|s| s.family == FamilyId::new(f));
        let places = places.family(FamilyId::new(f));
        origins.push(insert(family, places, mine.map(|s| s.kind)));
    }
    Fenced { program, origins }
}

fn insert(family: &mut Family, places: &OfFamily, sites: impl Iterator<Item = SiteKind>) -> Origin {
    let mut origin = Origin {
        locations: (0..family.locations.len()).map(LocationId::new).collect(),
        steps: (0..family.steps.len())
            .map(|s| Some(StepId::new(s)))
            .collect(),
    };
    let mut fences: Vec<(LocationId, Fence)> = Vec::new();
    let mut behinds: Vec<(StepId, Fence)> = Vec::new();
    let (mut swaps, mut entries) = (Vec::new(), BTreeSet::new());
    for site in sites {
        match site {
            SiteKind::Fence(l) => fences.extend(copies(places, l, Fence::Full)),
            SiteKind::StoreFence(l) => fences.extend(copies(places, l, Fence::Store)),
            SiteKind::FenceBehind(s) => behinds.extend(places.stores(s).map(|s| (s, Fence::Full))),
            SiteKind::StoreFenceBehind(s) => {
                behinds.extend(places.stores(s).map(|s| (s, Fence::Store)));
            }
            SiteKind::Swap(s) => swaps.push(s),
            SiteKind::Lock(l) => {
                entries.insert(l);
            }
        }
    }
    let mut locked = unit::of_family(family);
    locked.retain(|u| entries.contains(&u.entry));
    // What is locked needs no fence inside.
    swaps.retain(|s| !locked.iter().any(|u| u.contains(*s)));
    fences.retain(|(l, _)| !locked.iter().any(|u| u.inside.contains(l)));
    for unit in &locked {
        lock(family, unit, &mut origin);
    }
    for s in &swaps {
        swap(family, *s, &mut origin);
    }
    // What is atomic leaves nothing in the buffer.
    let atomic = |s: &StepId| swaps.contains(s) || locked.iter().any(|u| u.contains(*s));
    for (l, fence) in fences {
        if let Some(ways) = places.ways_in(l) {
            let before = fresh(family, l, &mut origin);
            for s in ways.iter().filter(|s| !atomic(s)) {
                family.steps[s.index()].target = before;
            }
            let span = family.locations[l.index()].span;
            let fence = Action::Fence(fence);
            push(family, before, l, fence, span, None, &mut origin);
            continue;
        }
        let twin = fresh(family, l, &mut origin);
        for step in family.steps.iter_mut().filter(|s| s.source == l) {
            step.source = twin;
        }
        let labels = std::mem::take(&mut family.locations[l.index()].labels);
        family.locations[twin.index()].labels = labels;
        let span = family.locations[l.index()].span;
        push(
            family,
            l,
            twin,
            Action::Fence(fence),
            span,
            None,
            &mut origin,
        );
    }
    for (s, fence) in behinds.into_iter().filter(|(s, _)| !atomic(s)) {
        behind(family, s, fence, &mut origin);
    }
    origin
}

/// The copies of a place, each with the fence.
fn copies(
    places: &OfFamily,
    place: LocationId,
    fence: Fence,
) -> impl Iterator<Item = (LocationId, Fence)> {
    let all = places.copies(place).iter();
    all.map(move |l| (*l, fence))
}

/// A fence right behind a store.
fn behind(family: &mut Family, store: StepId, fence: Fence, origin: &mut Origin) {
    let step = &family.steps[store.index()];
    let (to, span) = (step.target, step.span);
    // A second fence comes before the first: both are passed.
    let like = origin.locations[to.index()];
    let stored = fresh(family, like, origin);
    family.steps[store.index()].target = stored;
    push(family, stored, to, Action::Fence(fence), span, None, origin);
}

/// `store` becomes `atomic { store }`.
fn swap(family: &mut Family, s: StepId, origin: &mut Origin) {
    let Some(step) = family.steps.get(s.index()).cloned() else {
        return;
    };
    let begun = fresh(family, step.source, origin);
    let done = fresh(family, step.source, origin);
    let span = step.span;
    // The old step is the one that stores, so that traces keep their words.
    family.steps[s.index()].source = begun;
    family.steps[s.index()].target = done;
    push(
        family,
        step.source,
        begun,
        Action::AtomicBegin(wattle_model::Section::Drained),
        span,
        None,
        origin,
    );
    push(
        family,
        done,
        step.target,
        Action::AtomicEnd,
        span,
        None,
        origin,
    );
}

/// The whole unit becomes one atomic block.
fn lock(family: &mut Family, unit: &Unit, origin: &mut Origin) {
    let begun = fresh(family, unit.entry, origin);
    for s in &unit.steps {
        let step = &mut family.steps[s.index()];
        if step.source == unit.entry {
            step.source = begun;
        }
        let target = step.target;
        if !unit.inside.contains(&target) {
            let done = fresh(family, unit.entry, origin);
            family.steps[s.index()].target = done;
            let end = Action::AtomicEnd;
            push(family, done, target, end, unit.span, None, origin);
        }
    }
    let begin = Action::AtomicBegin(wattle_model::Section::Drained);
    push(family, unit.entry, begun, begin, unit.span, None, origin);
}

fn fresh(family: &mut Family, like: LocationId, origin: &mut Origin) -> LocationId {
    let id = LocationId::new(family.locations.len());
    family.locations.push(Location {
        labels: Vec::new(),
        span: family.locations[like.index()].span,
    });
    origin.locations.push(like);
    id
}

fn push(
    family: &mut Family,
    source: LocationId,
    target: LocationId,
    action: wattle_model::program::Action,
    span: wattle_model::Span,
    from: Option<StepId>,
    origin: &mut Origin,
) {
    family.steps.push(Step {
        source,
        target,
        action,
        span,
    });
    origin.steps.push(from);
}

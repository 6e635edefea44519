//! A program with fences and locks in.

use crate::site::{OfFamily, Opening, PlaceId, Places, Site, SiteKind};
use crate::unit::{self, Unit};
use std::collections::{BTreeMap, BTreeSet};
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

/// Puts the fences in, into every copy of a place. Numbers of old locations stay. The fence comes between
/// the ways of the place and where they lead; who is at a label behind it is past the fence.
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
    let mut fences: Vec<(PlaceId, Fence)> = Vec::new();
    let (mut swaps, mut entries) = (Vec::new(), BTreeSet::new());
    for site in sites {
        match site {
            SiteKind::Fence(p) => fences.push((p, Fence::Full)),
            SiteKind::StoreFence(p) => fences.push((p, Fence::Store)),
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
    for unit in &locked {
        lock(family, unit, &mut origin);
    }
    for s in &swaps {
        swap(family, *s, &mut origin);
    }
    // What is atomic leaves nothing in the buffer.
    let atomic = |s: &StepId| swaps.contains(s) || locked.iter().any(|u| u.contains(*s));
    for (p, fence) in fences {
        put(family, places.place(p), fence, &atomic, &mut origin);
    }
    origin
}

/// A fence on the ways of a place. Of two on one way the second comes first: both are passed.
fn put(
    family: &mut Family,
    place: &Opening,
    fence: Fence,
    atomic: &dyn Fn(&StepId) -> bool,
    origin: &mut Origin,
) {
    let mut fences: BTreeMap<LocationId, LocationId> = BTreeMap::new();
    for w in place.ways.iter().filter(|w| !atomic(w)) {
        let to = family.steps[w.index()].target;
        let at = match fences.get(&to) {
            Some(at) => *at,
            None => {
                let like = origin.locations[to.index()];
                let at = fresh(family, like, origin);
                let mine = |l: &String| place.labels.contains(l);
                let labels = std::mem::take(&mut family.locations[to.index()].labels);
                let (before, behind) = labels.into_iter().partition(mine);
                family.locations[at.index()].labels = before;
                family.locations[to.index()].labels = behind;
                let span = family.locations[to.index()].span;
                push(family, at, to, Action::Fence(fence), span, None, origin);
                fences.insert(to, at);
                at
            }
        };
        family.steps[w.index()].target = at;
    }
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

//! Where a fence or a lock can go, and what it is.
//!
//! A site belongs to a family: a fence there is in all its threads. Many locations are equally good:
//! if every way to a location comes, without a store in between, through another one, a fence there
//! stops whatever a fence here would. Sites are therefore only the *first* location after a store
//! and locations where paths with different such places meet; every other location is represented by
//! the one before it ([`Places`]).
//!
//! Places are those of the source text. Where every way to a place is a store (or comes from a location
//! that it stands for, as in a loop that waits), the fence goes right behind these stores: that is before
//! a waiting loop and not in it. *Lemma*: such a fence stops what one at the location stops. Between its
//! last store and a location that the place stands for, a run passes the place, and it comes there by
//! that store: by any other way it has been there since. And copies of one text, as an unrolled loop has
//! them, are one place: the fence is in all of them, as it is when somebody writes it.
//!
//! ```text
//!     turn = 1            turn = 1
//!         │                   │ fence
//!    ┌──► ○ ──┐          ┌──► ○ ──┐
//!    └ turn==1 ┘         └ turn==1 ┘      the place ○ is entered by one store
//! ```

use crate::depth;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use wattle_model::graph::Action;
use wattle_model::program::Family;
use wattle_model::{FamilyId, LocationId, Program, Span, StepId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    pub family: FamilyId,
    pub kind: SiteKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SiteKind {
    /// A full fence at the location, before all its steps.
    Fence(LocationId),
    /// A store fence there.
    StoreFence(LocationId),
    /// The store becomes an atomic exchange: it needs an empty buffer and goes to memory at once.
    Swap(StepId),
    /// The read-modify-write that starts at the location becomes one atomic step.
    Lock(LocationId),
}

impl SiteKind {
    /// As on the command line.
    pub fn keyword(self) -> &'static str {
        match self {
            SiteKind::Fence(_) => "fence",
            SiteKind::StoreFence(_) => "fence store",
            SiteKind::Swap(_) => "swap",
            SiteKind::Lock(_) => "lock",
        }
    }
}

/// The places of a program where fences go.
#[derive(Clone, Debug)]
pub struct Places(Vec<OfFamily>);

/// The places of one family.
#[derive(Clone, Debug)]
pub struct OfFamily {
    /// The place that stands for each location.
    of: Vec<LocationId>,
    /// The copies of each place, itself among them.
    copies: BTreeMap<LocationId, Vec<LocationId>>,
    /// The stores that are the only ways to a location.
    entered: Vec<Option<Vec<StepId>>>,
    /// How many loops each location is in.
    depth: Vec<u32>,
}

impl Places {
    pub fn new(program: &Program) -> Self {
        Places(program.families.iter().map(OfFamily::new).collect())
    }

    pub fn of(&self, family: FamilyId, location: LocationId) -> LocationId {
        let places = self.0.get(family.index());
        *places
            .and_then(|p| p.of.get(location.index()))
            .unwrap_or(&location)
    }

    pub fn family(&self, family: FamilyId) -> &OfFamily {
        &self.0[family.index()]
    }

    /// How many loops the site is in.
    pub fn depth(&self, program: &Program, site: Site) -> u32 {
        let Some(mine) = self.0.get(site.family.index()) else {
            return 0;
        };
        let family = program.family(site.family);
        let at = |l: LocationId| mine.depth.get(l.index()).copied().unwrap_or(0);
        let of_step = |s: &StepId| {
            let step = &family.steps[s.index()];
            at(step.source).min(at(step.target))
        };
        match site.kind {
            SiteKind::Fence(l) | SiteKind::StoreFence(l) => {
                let copies = mine.copies(l).iter().map(|m| match mine.entered(*m) {
                    Some(stores) => stores.iter().map(of_step).max().unwrap_or(0),
                    None => at(*m),
                });
                copies.max().unwrap_or(0)
            }
            SiteKind::Swap(s) => of_step(&s),
            SiteKind::Lock(l) => at(l),
        }
    }
}

impl OfFamily {
    pub fn new(family: &Family) -> Self {
        let mut incoming: Vec<Vec<StepId>> = vec![Vec::new(); family.locations.len()];
        for (s, step) in family.steps.iter().enumerate() {
            incoming[step.target.index()].push(StepId::new(s));
        }
        let own = representatives(family, &incoming);
        let entered: Vec<Option<Vec<StepId>>> = (0..family.locations.len())
            .map(|l| entered(family, &own, &incoming, LocationId::new(l)))
            .collect();
        let mut first: BTreeMap<Key, LocationId> = BTreeMap::new();
        let mut copies: BTreeMap<LocationId, Vec<LocationId>> = BTreeMap::new();
        let mut place: Vec<LocationId> = (0..own.len()).map(LocationId::new).collect();
        for l in (0..own.len()).map(LocationId::new) {
            if own[l.index()] != l {
                continue;
            }
            let key = key(family, l, entered[l.index()].as_deref());
            let one = key.map_or(l, |k| *first.entry(k).or_insert(l));
            place[l.index()] = one;
            copies.entry(one).or_default().push(l);
        }
        OfFamily {
            of: own.iter().map(|l| place[l.index()]).collect(),
            copies,
            entered,
            depth: depth::depths(family),
        }
    }

    /// The copies of a place.
    pub fn copies(&self, place: LocationId) -> &[LocationId] {
        self.copies.get(&place).map_or(&[], Vec::as_slice)
    }

    /// The stores behind which a fence for this location goes; none if it goes to the location itself.
    pub fn entered(&self, location: LocationId) -> Option<&[StepId]> {
        self.entered.get(location.index())?.as_deref()
    }

    /// The texts of the stores behind which a fence of this place is written; empty if it is written
    /// before what starts there.
    pub fn behind(&self, family: &Family, place: LocationId) -> BTreeSet<Span> {
        let mut spans = BTreeSet::new();
        for copy in self.copies(place) {
            match self.entered(*copy) {
                Some(stores) => {
                    spans.extend(stores.iter().map(|s| family.steps[s.index()].span));
                }
                None => return BTreeSet::new(),
            }
        }
        match spans.iter().all(|s| s.is_some()) {
            true => spans,
            false => BTreeSet::new(),
        }
    }
}

/// What copies of one text have in common: the stores before them, or what starts there.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Behind(BTreeSet<Span>),
    Before(Span, BTreeSet<(Span, String)>),
}

fn key(family: &Family, l: LocationId, entered: Option<&[StepId]>) -> Option<Key> {
    let spans = |steps: &[StepId]| -> BTreeSet<Span> {
        steps.iter().map(|s| family.steps[s.index()].span).collect()
    };
    match entered {
        Some(stores) => {
            let spans = spans(stores);
            spans
                .iter()
                .all(|s| s.is_some())
                .then_some(Key::Behind(spans))
        }
        None => {
            let span = family.locations[l.index()].span;
            let outgoing = family.steps.iter().filter(|s| s.source == l);
            let outgoing = outgoing.map(|s| (s.span, format!("{:?}", discriminant(&s.action))));
            let labelled = !family.locations[l.index()].labels.is_empty();
            (span.is_some() && !labelled).then(|| Key::Before(span, outgoing.collect()))
        }
    }
}

/// The stores that enter a place, if nothing else does but what it stands for.
fn entered(
    family: &Family,
    own: &[LocationId],
    incoming: &[Vec<StepId>],
    l: LocationId,
) -> Option<Vec<StepId>> {
    if own[l.index()] != l || l == family.entry {
        return None;
    }
    let is_store = |s: &&StepId| matches!(family.steps[s.index()].action, Action::Store { .. });
    let (stores, others): (Vec<&StepId>, Vec<&StepId>) =
        incoming[l.index()].iter().partition(|s| is_store(s));
    let mut others = others.into_iter();
    let only = others.all(|s| own[family.steps[s.index()].source.index()] == l);
    (only && !stores.is_empty()).then(|| stores.into_iter().copied().collect())
}

fn representatives(family: &Family, incoming: &[Vec<StepId>]) -> Vec<LocationId> {
    let mut of: Vec<Option<LocationId>> = vec![None; family.locations.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for l in 0..of.len() {
            let here = LocationId::new(l);
            let mut meet = (here == family.entry).then_some(here);
            for step in incoming[l].iter().map(|s| &family.steps[s.index()]) {
                let stores = matches!(step.action, Action::Store { .. });
                let from = if stores {
                    Some(here)
                } else {
                    of[step.source.index()]
                };
                meet = match (meet, from) {
                    (m, None) => m,
                    (None, f) => f,
                    (Some(m), Some(f)) if m == f => Some(m),
                    _ => Some(here),
                };
            }
            // A place that once was its own stays so: this only ever gets finer, so it ends.
            if of[l] != meet && of[l] != Some(here) {
                of[l] = meet;
                changed = true;
            }
        }
    }
    let all = of.iter().enumerate();
    all.map(|(l, p)| p.unwrap_or(LocationId::new(l))).collect()
}

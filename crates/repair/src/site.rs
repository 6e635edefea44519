//! Where a fence or a lock can go, and what it is.
//!
//! A site belongs to a family: a fence there is in all its threads. Many locations are equally good:
//! if every way to a location comes, without a store in between, through another one, a fence there
//! stops whatever a fence here would. Sites are therefore only the *first* location after a store
//! and locations where paths with different such places meet; every other location is represented by
//! the one before it ([`Places`]).

use wattle_model::graph::Action;
use wattle_model::program::Family;
use wattle_model::{FamilyId, LocationId, Program, StepId};

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

/// The location that stands for each location of each family.
#[derive(Clone, Debug)]
pub struct Places(Vec<Vec<LocationId>>);

impl Places {
    pub fn new(program: &Program) -> Self {
        Places(program.families.iter().map(representatives).collect())
    }

    pub fn of(&self, family: FamilyId, location: LocationId) -> LocationId {
        let places = self.0.get(family.index());
        *places
            .and_then(|p| p.get(location.index()))
            .unwrap_or(&location)
    }
}

fn representatives(family: &Family) -> Vec<LocationId> {
    let mut of: Vec<Option<LocationId>> = vec![None; family.locations.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for l in 0..of.len() {
            let here = LocationId::new(l);
            let mut meet = (here == family.entry).then_some(here);
            for step in family.steps.iter().filter(|s| s.target == here) {
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

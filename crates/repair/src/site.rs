//! Where a fence or a lock can go, and what it is.
//!
//! A site belongs to a family: a fence there is in all its threads. Many locations are equally good:
//! if every way to a location comes, without a store in between, through another one, a fence there
//! stops whatever a fence here would. Sites are therefore only the *first* location after a store
//! and locations where paths with different such places meet; every other location is represented by
//! the one before it ([`Places`]).
//!
//! Places are those of the source text, where somebody can write a fence, and there are more of them
//! than locations:
//!
//! - Before a loop is another place than in it. Where a statement is a loop (`while`), a fence of the
//!   location it starts at, the *head*, goes on the ways to the statement and not on those round inside
//!   it: who waits in the loop passes it once. Where the loop is around the statement (`loop`, a jump
//!   back), it is met in every round.
//! - Right behind a store, where other ways lead to the same location: the end of a branch, or of the
//!   body of a loop ([`SiteKind::FenceBehind`]).
//! - Copies of one text, as an unrolled loop has them, are one place: the fence is in all of them, as
//!   it is when somebody writes it.
//!
//! ```text
//!     turn = 1                turn = 1
//!         │                       │ fence: the place ○, on the way in
//!    ┌──► ○ ──► …            ┌──► ○ ──► …
//!    └ x = 0                 └ x = 0
//!                              fence: the place behind x = 0
//! ```
//!
//! *Lemma*: a run in which an access overtakes a store passes one of these places in between. Take the
//! last store before the access. If other ways lead where it leads, its own place is behind it; else
//! the location is a place that is entered there.
//!
//! *Lemma*: a fence at another location stops no more runs. Where a thread is at a location that another
//! one stands for, it has passed that one, on a way in if it is a head, after its last store: on a way
//! round it would come from a location that the head does not stand for, or have passed the way in
//! since that store.
//!
//! One place of the text is no location and not among these: the end of a loop's body where several ways
//! meet. `crates/wattle/tests/fewest.rs` tries all places of the text.
//!
//! Automata have names for all locations and nothing else: there a place is a location.

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
    /// A full fence at the location, before all its steps; before the loop that it is the head of.
    Fence(LocationId),
    /// A store fence there.
    StoreFence(LocationId),
    /// A full fence right behind the store and the copies of its text.
    FenceBehind(StepId),
    /// A store fence there.
    StoreFenceBehind(StepId),
    /// The store becomes an atomic exchange: it needs an empty buffer and goes to memory at once.
    Swap(StepId),
    /// The read-modify-write that starts at the location becomes one atomic step.
    Lock(LocationId),
}

impl SiteKind {
    /// As on the command line.
    pub fn keyword(self) -> &'static str {
        match self {
            SiteKind::Fence(_) | SiteKind::FenceBehind(_) => "fence",
            SiteKind::StoreFence(_) | SiteKind::StoreFenceBehind(_) => "fence store",
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
    /// Whether a location stands for itself, and the first of its copies.
    own: Vec<Option<LocationId>>,
    /// The copies of each place, itself among them.
    copies: BTreeMap<LocationId, Vec<LocationId>>,
    /// The ways into a statement that is a loop, for its head.
    ways_in: Vec<Option<Vec<StepId>>>,
    /// Whether a loop comes back to the location.
    rounds: Vec<bool>,
    /// All ways to a location.
    incoming: Vec<Vec<StepId>>,
    /// The first of the stores with the same text, for those behind which there is another place.
    behind: BTreeMap<StepId, StepId>,
    /// How many loops each location is in.
    depth: Vec<u32>,
}

/// A place that a run passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    Location(LocationId),
    Behind(StepId),
}

impl Passed {
    /// A full fence there.
    pub fn fence(self) -> SiteKind {
        match self {
            Passed::Location(l) => SiteKind::Fence(l),
            Passed::Behind(s) => SiteKind::FenceBehind(s),
        }
    }

    /// A store fence there.
    pub fn store_fence(self) -> SiteKind {
        match self {
            Passed::Location(l) => SiteKind::StoreFence(l),
            Passed::Behind(s) => SiteKind::StoreFenceBehind(s),
        }
    }
}

impl Places {
    pub fn new(program: &Program) -> Self {
        Places(program.families.iter().map(OfFamily::new).collect())
    }

    pub fn family(&self, family: FamilyId) -> &OfFamily {
        &self.0[family.index()]
    }

    /// Whether a fence there is met when a loop comes round to where it began.
    pub fn in_every_round(&self, site: Site) -> bool {
        let (SiteKind::Fence(l) | SiteKind::StoreFence(l)) = site.kind else {
            return false;
        };
        let Some(mine) = self.0.get(site.family.index()) else {
            return false;
        };
        let met = |m: &LocationId| mine.rounds[m.index()] && mine.ways_in(*m).is_none();
        mine.copies(l).iter().any(met)
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
                let copies = mine.copies(l).iter().map(|m| match mine.ways_in(*m) {
                    Some(ways) => ways.iter().map(of_step).max().unwrap_or(0),
                    None => at(*m),
                });
                copies.max().unwrap_or(0)
            }
            SiteKind::FenceBehind(s) | SiteKind::StoreFenceBehind(s) => {
                mine.stores(s).map(|s| of_step(&s)).max().unwrap_or(0)
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
        let stands_for = representatives(family, &incoming);
        let depth = depth::depths(family);
        let automaton = family.locations.iter().all(|l| !l.labels.is_empty());
        let locations = || (0..family.locations.len()).map(LocationId::new);
        let mut next: Vec<Vec<LocationId>> = vec![Vec::new(); family.locations.len()];
        for step in &family.steps {
            next[step.source.index()].push(step.target);
        }
        let ways = |l: LocationId| match automaton || depth[l.index()] == 0 {
            true => (None, false),
            false => ways_in(family, &incoming[l.index()], &next, l),
        };
        let (ways_in, rounds) = locations().map(ways).unzip();
        let mut first: BTreeMap<Key, LocationId> = BTreeMap::new();
        let mut places = OfFamily {
            own: vec![None; family.locations.len()],
            copies: BTreeMap::new(),
            ways_in,
            rounds,
            incoming,
            behind: BTreeMap::new(),
            depth,
        };
        for l in locations().filter(|l| stands_for[l.index()] == *l) {
            let key = Key::new(family, l, places.only_store(family, l));
            let one = key.map_or(l, |k| *first.entry(k).or_insert(l));
            places.own[l.index()] = Some(one);
            places.copies.entry(one).or_default().push(l);
        }
        if !automaton {
            places.behind = places.behind_stores(family);
        }
        places
    }

    /// Stores that lead where other ways lead too.
    fn behind_stores(&self, family: &Family) -> BTreeMap<StepId, StepId> {
        let stores = family.steps.iter().enumerate();
        let stores = stores
            .filter(|(_, step)| matches!(step.action, Action::Store { .. }) && step.span.is_some());
        let stores: Vec<(StepId, Span)> = stores
            .map(|(s, step)| (StepId::new(s), step.span))
            .collect();
        let shares = |(s, span): &&(StepId, Span)| {
            let target = family.steps[s.index()].target;
            let place = self.own[target.index()].unwrap_or(target);
            !self.ways(target).contains(s) || self.behind(family, place) != Some(*span)
        };
        let texts: BTreeSet<Span> = stores
            .iter()
            .filter(shares)
            .map(|(_, span)| *span)
            .collect();
        let mut first: BTreeMap<Span, StepId> = BTreeMap::new();
        let shared = stores.iter().filter(|(_, span)| texts.contains(span));
        shared
            .map(|(s, span)| (*s, *first.entry(*span).or_insert(*s)))
            .collect()
    }

    /// The places that a thread passes when it comes to the location by that step.
    pub fn passed(&self, by: Option<StepId>, location: LocationId) -> Vec<Passed> {
        let own = self.own.get(location.index()).copied().flatten();
        let enters = match (self.ways_in(location), by) {
            (Some(ways), Some(by)) => ways.contains(&by),
            (Some(_), None) => false,
            (None, _) => true,
        };
        let at = own.filter(|_| enters).map(Passed::Location);
        let behind = by.and_then(|s| self.behind.get(&s));
        at.into_iter()
            .chain(behind.map(|s| Passed::Behind(*s)))
            .collect()
    }

    /// The copies of a place.
    pub fn copies(&self, place: LocationId) -> &[LocationId] {
        self.copies.get(&place).map_or(&[], Vec::as_slice)
    }

    /// The steps that a fence of a loop's head comes behind; none if it goes to the location itself.
    pub fn ways_in(&self, location: LocationId) -> Option<&[StepId]> {
        self.ways_in.get(location.index())?.as_deref()
    }

    /// The stores with the same text as this one.
    pub fn stores(&self, first: StepId) -> impl Iterator<Item = StepId> {
        let all = self.behind.iter().filter(move |(_, f)| **f == first);
        all.map(|(s, _)| *s)
    }

    /// The ways on which a fence of the location is met.
    fn ways(&self, location: LocationId) -> &[StepId] {
        let all = &self.incoming[location.index()];
        self.ways_in(location).unwrap_or(all)
    }

    /// The text of the stores that are the only ways to the location.
    fn only_store(&self, family: &Family, location: LocationId) -> Option<Span> {
        let mut text = None;
        for s in self.ways(location) {
            let step = &family.steps[s.index()];
            let store = matches!(step.action, Action::Store { .. }) && step.span.is_some();
            if !store || text.is_some_and(|t| t != step.span) || location == family.entry {
                return None;
            }
            text = Some(step.span);
        }
        text
    }

    /// The text of the stores behind which a fence of this place is written; none if it is written
    /// before what starts there.
    pub fn behind(&self, family: &Family, place: LocationId) -> Option<Span> {
        let mut texts = self
            .copies(place)
            .iter()
            .map(|l| self.only_store(family, *l));
        let first = texts.next()??;
        texts.all(|t| t == Some(first)).then_some(first)
    }

    /// The location whose text a fence of this place is written before: of an unrolled loop the first
    /// round begins where the loop does, and the others where its body does.
    pub fn before(&self, family: &Family, place: LocationId) -> LocationId {
        let copies = self.copies(place).iter();
        let start = |l: &&LocationId| {
            let span = family.locations[l.index()].span;
            span.is_some().then_some(span.start)
        };
        *copies.max_by_key(start).unwrap_or(&place)
    }
}

/// What copies of one text have in common: what starts there, or the store before them.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Before(Vec<String>, BTreeSet<(Span, String)>),
    Behind(Vec<String>, Span),
}

impl Key {
    fn new(family: &Family, l: LocationId, only_store: Option<Span>) -> Option<Self> {
        let labels = family.locations[l.index()].labels.clone();
        let outgoing = family.steps.iter().filter(|s| s.source == l);
        let texts = outgoing.map(|s| (s.span, format!("{:?}", discriminant(&s.action))));
        let texts: BTreeSet<(Span, String)> = texts.collect();
        match !texts.is_empty() && texts.iter().all(|(span, _)| span.is_some()) {
            true => Some(Key::Before(labels, texts)),
            false => only_store.map(|span| Key::Behind(labels, span)),
        }
    }
}

/// The ways to the statement that starts at a location, if there are others round inside it; and whether
/// some way comes round, from the location to itself.
fn ways_in(
    family: &Family,
    incoming: &[StepId],
    next: &[Vec<LocationId>],
    l: LocationId,
) -> (Option<Vec<StepId>>, bool) {
    let mut reached = vec![false; next.len()];
    // Nothing is reached by way of the location itself.
    reached[l.index()] = true;
    let mut work = vec![family.entry];
    while let Some(at) = work.pop() {
        if !std::mem::replace(&mut reached[at.index()], true) {
            work.extend(&next[at.index()]);
        }
    }
    reached[l.index()] = false;
    let statement = family.locations[l.index()].span;
    let round = |s: &&StepId| !reached[family.steps[s.index()].source.index()];
    let inside = |s: &&StepId| {
        let span = family.steps[s.index()].span;
        !span.is_some() || (span.start >= statement.start && span.end <= statement.end)
    };
    let ways = incoming.iter().filter(|s| !(round(s) && inside(s)));
    let ways: Vec<StepId> = ways.copied().collect();
    let rounds = incoming.iter().any(|s| round(&s));
    ((ways.len() < incoming.len()).then_some(ways), rounds)
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

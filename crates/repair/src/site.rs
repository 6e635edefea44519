//! Where a fence or a lock can go, and what it is.
//!
//! A site belongs to a family: a fence there is in all its threads. A fence is written at a *place* of the
//! source text, and what a place is to the graph are its *ways*: the steps right behind which the fence
//! comes. Places are those that somebody can write in, and there are more of them than locations:
//!
//! - Before a loop is another place than in it: who comes round does not come by what is before the loop.
//! - The end of a block, where other ways lead to the same location: a branch, or the body of a loop.
//! - Before a label is another place than behind it, for those who jump to it.
//! - Copies of one text, as an unrolled loop has them, are one place: the fence is in all of them, as
//!   it is when somebody writes it.
//!
//! ```text
//!     turn = 1                turn = 1
//!         │ before the loop       │
//!    ┌──► ○ ──► …            ┌──► ○ ──► … ──► ○ behind the loop
//!    └ x = 0                 └ x = 0
//!                              behind x = 0, the end of the body
//! ```
//!
//! Front-ends that know all gaps of their text tell them ([`wattle_syntax::gaps`]). Of the others they are
//! told from the places of statements and steps. Automata have names for all locations and nothing else: there a
//! place is a location.
//!
//! *Lemma*: a fence stops a run in which an access overtakes a store if and only if the thread takes one
//! of its ways from the store on (itself included) and before the access. Elsewhere the thread can wait
//! until its buffer is empty without anybody noticing.
//!
//! Many places are equally good. A place *stands for* another one if, on every way of the other, whoever
//! comes there took one of its own ways since (or with) the last store: then it stops whatever the other
//! stops, since the overtaken store is not later than the last one. Of those that cost no less only one
//! that nothing stands for is kept. `crates/wattle/tests/fewest.rs` tries all places of texts.

use crate::depth;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;
use wattle_model::graph::Action;
use wattle_model::program::Family;
use wattle_model::{FamilyId, LocationId, Program, Span, StepId};
use wattle_syntax::gaps::{Gap, Side};

/// Larger tables of which place stands for which are not made: then all places are kept.
const MAX_BITS: usize = 1 << 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site {
    pub family: FamilyId,
    pub kind: SiteKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SiteKind {
    /// A full fence at the place.
    Fence(PlaceId),
    /// A store fence there.
    StoreFence(PlaceId),
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

/// A place of a family, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(u32);

/// Where a fence can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Where it is in the text; none where a place is a location.
    pub side: Option<Side>,
    /// The location behind it, the first of several copies.
    pub location: LocationId,
    /// The steps that the fence comes behind.
    pub ways: BTreeSet<StepId>,
    /// Labels that stand before it.
    pub labels: Vec<String>,
    /// How many loops it is in.
    depth: u32,
    /// Whether it is met again when a loop comes round to where it began, or in another copy.
    again: bool,
}

/// The places of a program where fences go.
#[derive(Clone, Debug)]
pub struct Places(Vec<OfFamily>);

/// The places of one family.
#[derive(Clone, Debug)]
pub struct OfFamily {
    places: Vec<Opening>,
    by_way: BTreeMap<StepId, Vec<PlaceId>>,
    /// How many loops each location is in.
    depth: Vec<u32>,
}

impl Places {
    /// The places of a program; the gaps are those of its text, or none.
    pub fn new(program: &Program, gaps: &[Vec<Gap>]) -> Self {
        let families = program.families.iter().enumerate();
        let of_family = |(f, family)| OfFamily::new(family, gaps.get(f).map_or(&[], Vec::as_slice));
        Places(families.map(of_family).collect())
    }

    pub fn family(&self, family: FamilyId) -> &OfFamily {
        &self.0[family.index()]
    }

    /// Whether a fence there is met again in the next round.
    pub fn in_every_round(&self, site: Site) -> bool {
        match site.kind {
            SiteKind::Fence(p) | SiteKind::StoreFence(p) => self.family(site.family).place(p).again,
            SiteKind::Swap(_) | SiteKind::Lock(_) => false,
        }
    }

    /// How many loops the site is in.
    pub fn depth(&self, program: &Program, site: Site) -> u32 {
        let mine = self.family(site.family);
        match site.kind {
            SiteKind::Fence(p) | SiteKind::StoreFence(p) => mine.place(p).depth,
            SiteKind::Swap(s) => of_step(&mine.depth, program.family(site.family), s),
            SiteKind::Lock(l) => mine.depth[l.index()],
        }
    }
}

impl OfFamily {
    pub fn new(family: &Family, gaps: &[Gap]) -> Self {
        let depth = depth::depths(family);
        let mut candidates = Candidates::new(family, gaps, &depth).all;
        candidates.sort_by_key(|p| (p.location, p.side));
        let places = undominated(family, candidates);
        let mut by_way: BTreeMap<StepId, Vec<PlaceId>> = BTreeMap::new();
        for (p, place) in (0..).zip(&places) {
            for w in &place.ways {
                by_way.entry(*w).or_default().push(PlaceId(p));
            }
        }
        OfFamily {
            places,
            by_way,
            depth,
        }
    }

    pub fn place(&self, place: PlaceId) -> &Opening {
        &self.places[place.0 as usize]
    }

    /// The places that a thread comes by with this step.
    pub fn passed(&self, by: StepId) -> &[PlaceId] {
        self.by_way.get(&by).map_or(&[], Vec::as_slice)
    }
}

fn of_step(depth: &[u32], family: &Family, s: StepId) -> u32 {
    let step = &family.steps[s.index()];
    depth[step.source.index()].min(depth[step.target.index()])
}

fn is_store(family: &Family, s: StepId) -> bool {
    matches!(family.steps[s.index()].action, Action::Store { .. })
}

/// All places of a family.
struct Candidates<'f> {
    family: &'f Family,
    depth: &'f [u32],
    incoming: Vec<Vec<StepId>>,
    /// The stores with each text.
    stores: BTreeMap<Span, BTreeSet<StepId>>,
    /// The ways round to each location, as far as they were asked for.
    rounds: BTreeMap<LocationId, BTreeSet<StepId>>,
    all: Vec<Opening>,
}

impl<'f> Candidates<'f> {
    fn new(family: &'f Family, gaps: &[Gap], depth: &'f [u32]) -> Self {
        let mut incoming: Vec<Vec<StepId>> = vec![Vec::new(); family.locations.len()];
        let mut stores: BTreeMap<Span, BTreeSet<StepId>> = BTreeMap::new();
        for (s, step) in family.steps.iter().enumerate() {
            let s = StepId::new(s);
            incoming[step.target.index()].push(s);
            if is_store(family, s) && step.span.is_some() {
                stores.entry(step.span).or_default().insert(s);
            }
        }
        let mut candidates = Candidates {
            family,
            depth,
            incoming,
            stores,
            rounds: BTreeMap::new(),
            all: Vec::new(),
        };
        if gaps.is_empty() {
            candidates.locations();
        }
        for gap in gaps {
            let ways = gap.ways.iter().copied().collect();
            candidates.add(Some(gap.side), ways, gap.labels.clone());
            // A round in which nobody comes there by a step is a round all the same.
            if let Some(place) = candidates.all.last_mut().filter(|_| gap.copies > 1) {
                place.again = true;
            }
        }
        candidates
    }

    fn add(&mut self, side: Option<Side>, ways: BTreeSet<StepId>, labels: Vec<String>) {
        let steps = &self.family.steps;
        let targets: BTreeSet<LocationId> = ways.iter().map(|w| steps[w.index()].target).collect();
        let Some(location) = targets.first().copied() else {
            return;
        };
        for target in &targets {
            if !self.rounds.contains_key(target) {
                let round = self.round(*target);
                self.rounds.insert(*target, round);
            }
        }
        let round = |w: &StepId| self.rounds[&steps[w.index()].target].contains(w);
        let again = targets.len() > 1 || ways.iter().any(round);
        // Right behind the stores of one text, that is what it is called.
        let text = ways.first().map_or(Span::NONE, |w| steps[w.index()].span);
        let only_stores = self.stores.get(&text) == Some(&ways) && labels.is_empty();
        self.all.push(Opening {
            side: match side {
                Some(_) if only_stores => Some(Side::Behind(text)),
                side => side,
            },
            location,
            depth: ways
                .iter()
                .map(|w| of_step(self.depth, self.family, *w))
                .max()
                .unwrap_or(0),
            again,
            ways,
            labels,
        });
    }

    /// Places of a text whose gaps were not told: before the statements that start at locations, and
    /// behind stores.
    fn locations(&mut self) {
        let family = self.family;
        let automaton = family.locations.iter().all(|l| !l.labels.is_empty());
        let text = !automaton && family.locations.iter().any(|l| l.span.is_some());
        let mut copies: BTreeMap<Key, Vec<LocationId>> = BTreeMap::new();
        for l in (0..family.locations.len()).map(LocationId::new) {
            let key = match text {
                true => Key::of(family, l),
                false => Key::Alone(l),
            };
            copies.entry(key).or_default().push(l);
        }
        for all in copies.into_values() {
            let ways = all.iter().flat_map(|l| match text {
                true => self.ways_in(*l),
                false => self.incoming[l.index()].clone(),
            });
            let ways: BTreeSet<StepId> = ways.collect();
            // Of an unrolled loop the first round begins where the loop does, and the others where its
            // body does.
            let spans = all.iter().map(|l| family.locations[l.index()].span);
            let last = spans.filter(|s| s.is_some()).max_by_key(|s| s.start);
            match (text, last) {
                (false, _) => self.add(None, ways, Vec::new()),
                (true, Some(span)) => {
                    let incoming = all.iter().flat_map(|l| &self.incoming[l.index()]);
                    let round = incoming.filter(|w| !ways.contains(w));
                    let round: BTreeSet<StepId> = round.copied().collect();
                    self.add(Some(Side::Before(span)), ways, Vec::new());
                    if let Some(last) = self.last_within(span) {
                        self.add(Some(Side::Behind(last)), round, Vec::new());
                    }
                }
                (true, None) => {}
            }
        }
        if text {
            for (span, stores) in self.stores.clone() {
                self.add(Some(Side::Behind(span)), stores, Vec::new());
            }
        }
    }

    /// The last statement of the body of a loop.
    fn last_within(&self, loop_: Span) -> Option<Span> {
        let all = || self.family.locations.iter().map(|l| l.span);
        let within = |s: &Span, o: Span| *s != o && o.start <= s.start && s.end <= o.end;
        let inside = || all().filter(|s| s.is_some() && within(s, loop_));
        let outermost = inside().filter(|s| !inside().any(|o| within(s, o)));
        outermost.max_by_key(|s| s.start)
    }

    /// The ways that come round to a location: from where nobody comes but by it.
    fn round(&self, l: LocationId) -> BTreeSet<StepId> {
        if self.depth[l.index()] == 0 {
            return BTreeSet::new();
        }
        let family = self.family;
        let mut next: Vec<Vec<LocationId>> = vec![Vec::new(); family.locations.len()];
        for step in family.steps.iter().filter(|s| s.source != l) {
            next[step.source.index()].push(step.target);
        }
        let mut reached = vec![false; next.len()];
        let mut work = vec![family.entry];
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut reached[at.index()], true) {
                work.extend(&next[at.index()]);
            }
        }
        let incoming = self.incoming[l.index()].iter();
        let round = |s: &&StepId| {
            let source = family.steps[s.index()].source;
            source == l || !reached[source.index()]
        };
        incoming.filter(round).copied().collect()
    }

    /// The ways to the statement that starts at a location: those round inside it do not come by what is
    /// before it.
    fn ways_in(&self, l: LocationId) -> Vec<StepId> {
        let statement = self.family.locations[l.index()].span;
        let inside = |s: &StepId| {
            let span = self.family.steps[s.index()].span;
            !span.is_some() || (span.start >= statement.start && span.end <= statement.end)
        };
        let round = self.round(l);
        let incoming = self.incoming[l.index()].iter();
        let ways = incoming.filter(|s| !(round.contains(s) && inside(s)));
        ways.copied().collect()
    }
}

/// What copies of one text have in common: what starts there.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Text(Vec<String>, BTreeSet<(Span, String)>),
    Alone(LocationId),
}

impl Key {
    fn of(family: &Family, l: LocationId) -> Self {
        let labels = family.locations[l.index()].labels.clone();
        let outgoing = family.steps.iter().filter(|s| s.source == l);
        let texts = outgoing.map(|s| (s.span, format!("{:?}", discriminant(&s.action))));
        let texts: BTreeSet<(Span, String)> = texts.collect();
        match !texts.is_empty() && texts.iter().all(|(span, _)| span.is_some()) {
            true => Key::Text(labels, texts),
            false => Key::Alone(l),
        }
    }
}

/// The places that no other one stands for at no more cost.
fn undominated(family: &Family, all: Vec<Opening>) -> Vec<Opening> {
    let n = all.len();
    let words = n.div_ceil(64);
    if words.saturating_mul(64 * family.steps.len()) > MAX_BITS {
        return all;
    }
    let since = since_last_store(family, &all, words);
    // Which places every way of this one has behind it.
    let behind = |p: &Opening| {
        let mut common = vec![u64::MAX; words];
        for w in &p.ways {
            let with = common.iter_mut().zip(&since[w.index()]);
            with.for_each(|(c, b)| *c &= b);
        }
        common
    };
    let behind: Vec<Vec<u64>> = all.iter().map(behind).collect();
    let stands_for = |b: usize, a: usize| {
        let (pb, pa) = (&all[b], &all[a]);
        (behind[a][b / 64] >> (b % 64)) & 1 == 1
            && pb.depth <= pa.depth
            && pb.again <= pa.again
            && pb.labels.iter().all(|l| pa.labels.contains(l))
    };
    // Of two that stand for each other, what a person would rather write: behind a store, before a
    // statement, at the end of a block.
    let rank = |p: usize| {
        let rank = match all[p].side {
            Some(Side::Behind(text)) => {
                let stores = all[p].ways.iter();
                let of_text = |s: &StepId| family.steps[s.index()].span == text;
                match stores.clone().all(|s| is_store(family, *s) && of_text(s)) {
                    true => 0,
                    false => 3,
                }
            }
            None | Some(Side::Before(_)) => 1,
            Some(Side::BehindLabels(_)) => 2,
        };
        (rank, p)
    };
    let better =
        |a: usize, b: usize| b != a && stands_for(b, a) && (!stands_for(a, b) || rank(b) < rank(a));
    let keep: Vec<bool> = (0..n).map(|a| !(0..n).any(|b| better(a, b))).collect();
    let kept = all.into_iter().zip(keep);
    kept.filter(|(_, keep)| *keep).map(|(p, _)| p).collect()
}

/// For each step, the places that whoever takes it has come by since (or with) the last store: the
/// greatest solution. Who has not stored yet has come by all that matter.
fn since_last_store(family: &Family, all: &[Opening], words: usize) -> Vec<Vec<u64>> {
    let mut own = vec![vec![0u64; words]; family.steps.len()];
    for (p, place) in all.iter().enumerate() {
        for w in &place.ways {
            own[w.index()][p / 64] |= 1 << (p % 64);
        }
    }
    // By location: what all that lead there have in common.
    let mut at = vec![vec![u64::MAX; words]; family.locations.len()];
    let of = |s: usize, at: &[Vec<u64>]| -> Vec<u64> {
        let source = family.steps[s].source;
        match is_store(family, StepId::new(s)) {
            true => own[s].clone(),
            false => own[s]
                .iter()
                .zip(&at[source.index()])
                .map(|(o, a)| o | a)
                .collect(),
        }
    };
    let mut changed = true;
    while changed {
        changed = false;
        for (s, step) in family.steps.iter().enumerate() {
            let now = of(s, &at);
            let target = &mut at[step.target.index()];
            for (t, n) in target.iter_mut().zip(&now) {
                changed |= *t & !n != 0;
                *t &= n;
            }
        }
    }
    (0..family.steps.len()).map(|s| of(s, &at)).collect()
}
